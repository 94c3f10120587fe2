/** What the routes over assets, groups and policies share: a request, its answer, refusals and pages. */
import type { FastifyReply, HTTPMethods, RouteHandlerMethod } from 'fastify'
import { z } from 'zod'
import { decodeCursor, takePage, wirePage } from '../api/cursor.ts'
import { comparePositions, type History, type Placed, toPosition } from '../history/history.ts'
import type { EndMode, SandboxSettings } from '../options.ts'
import { type ErrorAnswer, sendError, validationEntry } from '../server.ts'
import type { Monitoring } from './monitoring.ts'

/** The parts of a request that a route sees. */
export interface TenantRequest {
  tenantId: number
  organizationId: number
  params: Record<string, string>
  query: unknown
  body: unknown
}

/** A route and its JSON answer; `answer` throws a Refusal to refuse the request. */
export interface MonitoringRoute {
  method: HTTPMethods
  path: string
  answer: (asked: TenantRequest) => unknown
  /**
   * Missing from the API description (docs/api-notes.md, Operations that only some servers have).
   */
  isUndescribed?: true
}

export interface MonitoringParts {
  settings: SandboxSettings
  history: History
  monitoring: Monitoring
}

export function createHandler(
  answer: (request: Parameters<RouteHandlerMethod>[0]) => unknown,
): RouteHandlerMethod {
  return (request, reply) => {
    try {
      const body = JSON.stringify(answer(request))
      return reply.type('application/json').send(body)
    } catch (error) {
      if (error instanceof Refusal) return error.answer(reply)
      throw error
    }
  }
}

/** Why a request is refused: thrown where it is found out, answered in one place. */
class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly answer: (reply: FastifyReply) => FastifyReply

  constructor(answer: (reply: FastifyReply) => FastifyReply) {
    super('a request to the sandbox is refused')
    this.answer = answer
  }
}

/** The version of the path, which decides the shape of an error (docs/api-notes.md, Errors). */
type Version = 'v2' | 'v4'

export function refusal(version: Version, answer: Omit<ErrorAnswer, 'shape'>): Refusal {
  return new Refusal((reply) =>
    sendError(reply, { ...answer, shape: version === 'v2' ? 'message' : 'error' }),
  )
}

/** Returns a Refusal with 422 and one entry per mistake. */
export function invalidInput(...detail: Record<string, unknown>[]): Refusal {
  return new Refusal((reply) => reply.code(422).send({ detail }))
}

/** Returns the id in a path; throws a 422 Refusal if it is not an integer. */
export function parseInteger(text: string, name: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw invalidInput(validationEntry(['path', name], 'not an integer', text))
}

/**
 * Returns `thing` if it is the tenant's. Throws a Refusal: 404 if it does not exist, 403 if it is
 * another tenant's.
 */
export function requireOwn<Thing extends { tenantId: number }>(
  thing: Thing | undefined,
  { version, what, tenantId }: { version: Version; what: string; tenantId: number },
): Thing {
  if (!thing) throw refusal(version, { status: 404, message: `no such ${what}` })
  if (thing.tenantId === tenantId) return thing
  throw refusal(version, { status: 403, message: `the ${what} is another tenant's` })
}

/**
 * Parses `input`. Throws a Refusal: 400 with one message (v2), or 422 with one entry per mistake
 * (v4).
 */
export function parseWith<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  { version, part }: { version: Version; part: 'body' | 'query' },
): z.infer<Schema> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const { issues } = parsed.error
  if (version === 'v4') {
    throw invalidInput(
      ...issues.map(({ path, message }) => toEntry(part, path, { message, input })),
    )
  }
  const messages = issues.map(({ path, message }) => [...path, message].map(String).join(': '))
  throw refusal('v2', { status: 400, message: messages.join('; ') })
}

function toEntry(
  part: string,
  path: readonly PropertyKey[],
  { message, input }: { message: string; input: unknown },
): Record<string, unknown> {
  const place = path.map((key) => (typeof key === 'number' ? key : String(key)))
  let value: unknown = input
  for (const key of place) value = (value as Record<string | number, unknown> | null)?.[key]
  return validationEntry([part, ...place], message, value ?? null)
}

interface ListOptions<Entry> {
  endMode: EndMode
  itemOf: (entry: Entry) => unknown
  /** The largest page; also the default, unless `usual` says otherwise (docs/api-notes.md, Page sizes). */
  most?: number
  usual?: number
  /** Default: as the query says, else descending. */
  order?: 'asc'
}

/** Returns one page of a list that only the public documentation has: `{items, next}`. */
export function listPage<Entry extends Placed>(
  entries: readonly Entry[],
  query: unknown,
  { endMode, itemOf, most = 25, usual = most, order: fixed }: ListOptions<Entry>,
): unknown {
  const listQuery = z.object({
    from: z.string().optional(),
    size: z.coerce.number().int().min(1).max(most).default(usual),
    order: z.enum(['asc', 'desc']).default('desc'),
  })
  const { from = null, size, order } = parseWith(listQuery, query, { version: 'v4', part: 'query' })
  const position = from === null ? null : decodeCursor(from)
  if (from !== null && !position) {
    throw refusal('v4', { status: 400, code: 'INVALID_CURSOR', message: 'bad cursor' })
  }
  const page = takePage(
    entries.toSorted((a, b) => comparePositions(toPosition(a), toPosition(b))),
    {
      order: fixed ?? order,
      size,
      from: position,
      matches: () => true,
      isHidden: () => false,
    },
    { endMode, usedSize: (places) => places },
  )
  return wirePage(page.items.map(itemOf), page.next, from)
}
