/** The sandbox over HTTP, for whoever does not share its process: faults, events, credentials, state. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { ownHosts } from '../runtime/own-hosts.ts'
import type { FaultControl, FaultInput } from './faults.ts'
import { bytesOf, controlPrefix } from './server.ts'

export interface ControlParts {
  faults: FaultControl
  /** What `GET /_sandbox/state` answers. */
  state: () => Record<string, unknown>
  /** `ageMs`: how long before now they were created. */
  addEvents: (count: number, ageMs: number) => void
  addCredentials: (count: number) => void
}

/**
 * `POST /_sandbox/faults` with one fault or a list adds, `DELETE` clears; `POST /_sandbox/events` with
 * `{count}` lets events arrive, created `age_ms` before, `/_sandbox/credentials` credentials; `GET /_sandbox/state` tells what
 * stands and what came.
 */
export function addControl(app: FastifyInstance, parts: ControlParts): void {
  const { faults, state } = parts
  app.addHook('onRequest', async (request, reply) => {
    const isControl = request.routeOptions.url?.startsWith(controlPrefix) === true
    if (!isControl || isFromHere(request)) return
    return reply.code(403).send({ message: 'control is not for web pages' })
  })
  app.get(`${controlPrefix}state`, () => state())
  app.delete(`${controlPrefix}faults`, () => {
    faults.clear()
    return { faults: [] }
  })
  app.post(`${controlPrefix}faults`, (request, reply) =>
    attempt(reply, () => {
      const given = JSON.parse(bytesOf(request).toString('utf8')) as FaultInput | FaultInput[]
      for (const fault of Array.isArray(given) ? given : [given]) faults.add(fault)
      return { faults: faults.list() }
    }),
  )
  for (const [what, add] of [
    ['events', parts.addEvents],
    ['credentials', parts.addCredentials],
  ] as const) {
    app.post(`${controlPrefix}${what}`, (request, reply) =>
      attempt(reply, () => {
        const { count, age_ms } = countSchema.parse(JSON.parse(bytesOf(request).toString('utf8')))
        add(count, age_ms)
        return { added: count }
      }),
    )
  }
}

const isOwn = ownHosts([])

/** A web page may send requests to this machine: its browser says whence, or under which foreign name. */
function isFromHere({ headers, host, hostname }: FastifyRequest): boolean {
  const isOwnPage = headers.origin === undefined || headers.origin === `http://${host}`
  return isOwnPage && isOwn(hostname) && headers['sec-fetch-site'] !== 'cross-site'
}

const countSchema = z.strictObject({
  count: z.int().min(1).max(10_000),
  age_ms: z.int().min(0).default(0),
})

function attempt(
  reply: { code(status: number): { send(body: unknown): unknown } },
  act: () => unknown,
): unknown {
  try {
    return act()
  } catch (error) {
    const isOperators = error instanceof z.ZodError || error instanceof SyntaxError
    if (!isOperators) throw error
    return reply.code(400).send({ message: error.message })
  }
}
