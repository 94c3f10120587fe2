/**
 * The routes of the pretend service, made from the rows that describe the API. A row says how its
 * request is checked, and a handler what answers it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import {
  type Fields,
  type Operation,
  parameterNames,
  parameterShape,
} from '../../upstream/resources/operation.ts'
import { errorShapeOf, type RequestLog, sendError, validationEntry } from '../server.ts'
import { findGrant, type TokenGrant, type Tokens } from './guard.ts'

/** Who asks; `reply` is for headers. */
export interface Caller {
  /** null: an operation that takes no token. */
  grant: TokenGrant | null
  tenantId: number
  authorization: string
  reply: FastifyReply
}

export interface Route {
  row: Operation
  answer: (request: never, caller: Caller) => unknown
}

/**
 * Answers the operation of a row. `answer` gets the fields of path, query and body side by side,
 * and returns JSON or the bytes of a file. It throws a Refusal to refuse the request.
 */
export function on<Request>(
  row: Operation<Request>,
  answer: (request: Request, caller: Caller) => unknown,
): Route {
  return { row, answer }
}

/** Why a request is refused: thrown where it is found out, answered in one place. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number
  readonly code: string | undefined
  /** The entries of a 422. */
  readonly detail: readonly Record<string, unknown>[]

  constructor(status: number, message: string, more: { code?: string; detail?: object[] } = {}) {
    super(message)
    this.status = status
    this.code = more.code
    this.detail = (more.detail ?? []) as Record<string, unknown>[]
  }
}

/** A mistake in the request, answered as the version of the API answers mistakes. */
export function invalid(
  place: readonly PropertyKey[],
  message: string,
  input: unknown = null,
): Refusal {
  const loc = place.map((key) => (typeof key === 'number' ? key : String(key)))
  const text = `${loc.slice(1).join('.') || String(loc[0])}: ${message}`
  return new Refusal(422, text, { detail: [validationEntry(loc, message, input)] })
}

/** Returns `thing` if it is the tenant's. Throws a Refusal: 404, or 403 if it is another tenant's. */
export function requireOwn<Thing extends { tenantId: number }>(
  thing: Thing | undefined,
  what: string,
  { tenantId }: Pick<Caller, 'tenantId'>,
): Thing {
  if (!thing) throw new Refusal(404, `no such ${what}`)
  if (thing.tenantId === tenantId) return thing
  throw new Refusal(403, `the ${what} is another tenant's`)
}

interface RouteParts {
  tokens: Tokens
  log: RequestLog
}

export function addRoutes(
  app: FastifyInstance,
  routes: readonly Route[],
  { tokens, log }: RouteParts,
): void {
  for (const { row, answer } of routes) {
    const handler = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
      answerRequest(reply, request.url, () => {
        const grant = findGrant(request, tokens)
        const fields = readRequest(row, request, log.entryFor(request).body)
        return answer(fields as never, {
          grant,
          tenantId: grant?.tenantId ?? 0,
          authorization: request.headers.authorization ?? '',
          reply,
        })
      })
    app.route({
      method: row.method,
      url: row.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      config: { row },
      exposeHeadRoute: false,
      handler,
    })
  }
}

function answerRequest(reply: FastifyReply, url: string, act: () => unknown): FastifyReply {
  try {
    const answer = act()
    if (Buffer.isBuffer(answer)) return reply.send(answer)
    return reply.type('application/json').send(JSON.stringify(answer))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { status, code, message, detail } = error
    const shape = errorShapeOf(url)
    if (status === 422 && shape === 'error') return reply.code(422).send({ detail })
    const isGateway = status >= 500
    return sendError(reply, {
      status: status === 422 ? 400 : status,
      code,
      message,
      shape: isGateway ? undefined : shape,
    })
  }
}

/** The fields of a request as its row describes them. Throws a Refusal with every mistake. */
function readRequest(row: Operation, request: FastifyRequest, body: unknown): Fields {
  const params = request.params as Record<string, string>
  const path = parameterNames(row).map((name) => {
    const shape = parameterShape(name)
    return [name, parse(shape, readText(params[name] ?? '', shape), ['path', name])] as const
  })
  const queryShape = row.query?.shape ?? {}
  const query = Object.entries(request.query as Record<string, string | string[]>).map(
    ([name, given]) => [name, readParameter(given, queryShape[name])] as const,
  )
  return {
    ...(row.query && parse(row.query, Object.fromEntries(query), ['query'])),
    ...(row.body && (parse(row.body, body ?? {}, ['body']) as Fields)),
    ...Object.fromEntries(path),
  }
}

function parse<Shape extends z.ZodType>(
  shape: Shape,
  input: unknown,
  place: readonly string[],
): z.output<Shape> {
  const parsed = shape.safeParse(input, { reportInput: true })
  if (parsed.success) return parsed.data
  const { issues } = parsed.error
  const refusals = issues.map((one) => invalid([...place, ...one.path], one.message, one.input))
  throw new Refusal(422, refusals.map(({ message }) => message).join('; '), {
    detail: refusals.flatMap(({ detail }) => detail),
  })
}

/** A list is a repeated parameter, or values between commas. */
function readParameter(given: string | string[], shape: unknown): unknown {
  const inner = innermost(shape as z.ZodType | undefined)
  if (inner?.def.type !== 'array') return Array.isArray(given) ? given : readText(given, inner)
  const texts = [given].flat().flatMap((text) => text.split(','))
  return texts.map((text) => readText(text, innermost((inner as z.ZodArray<z.ZodType>).element)))
}

function innermost(shape: z.ZodType | undefined): z.ZodType | undefined {
  const { innerType } = (shape?.def ?? {}) as { innerType?: z.ZodType }
  return innerType ? innermost(innerType) : shape
}

function readText(text: string, shape: z.ZodType | undefined): unknown {
  if (shape?.def.type === 'number' && /^-?\d{1,15}$/.test(text)) return Number(text)
  if (shape?.def.type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true'
  return text
}
