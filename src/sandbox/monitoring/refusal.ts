import type { FastifyReply } from 'fastify'
import type { z } from 'zod'
import { sendError, validationEntry, type ErrorSaid } from '../error-bodies.ts'

/** Why a request is not done: thrown wherever it is found out, answered in one place. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly answer: (reply: FastifyReply) => FastifyReply

  constructor(answer: (reply: FastifyReply) => FastifyReply) {
    super('a request to the sandbox is refused')
    this.answer = answer
  }
}

/** The shape of an error depends on the version of the path (facts.md 2.4). */
type Version = 'v2' | 'v4'

export function refusal(version: Version, said: Omit<ErrorSaid, 'shape'>): Refusal {
  return new Refusal((reply) =>
    sendError(reply, { ...said, shape: version === 'v2' ? 'message' : 'error' }),
  )
}

/** 422: what is wrong, entry by entry. */
export function invalid(...detail: Record<string, unknown>[]): Refusal {
  return new Refusal((reply) => reply.code(422).send({ detail }))
}

/** The id of a path; 422 on what is no integer. */
export function integerOf(text: string, name: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw invalid(validationEntry(['path', name], 'not an integer', text))
}

/** What the tenant may use: 404 where there is no such thing, 403 where it is another tenant's. */
export function ownOf<Thing extends { tenantId: number }>(
  thing: Thing | undefined,
  { version, what, tenantId }: { version: Version; what: string; tenantId: number },
): Thing {
  if (!thing) throw refusal(version, { status: 404, message: `no such ${what}` })
  if (thing.tenantId === tenantId) return thing
  throw refusal(version, { status: 403, message: `the ${what} is another tenant's` })
}

/** `input` as the schema has it: 400 with one message (v2), 422 with an entry for each mistake (v4). */
export function parsedBy<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  { version, part }: { version: Version; part: 'body' | 'query' },
): z.infer<Schema> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const { issues } = parsed.error
  if (version === 'v4') {
    throw invalid(...issues.map(({ path, message }) => entryOf(part, path, { message, input })))
  }
  const said = issues.map(({ path, message }) => [...path, message].map(String).join(': '))
  throw refusal('v2', { status: 400, message: said.join('; ') })
}

function entryOf(
  part: string,
  path: readonly PropertyKey[],
  { message, input }: { message: string; input: unknown },
): Record<string, unknown> {
  const place = path.map((key) => (typeof key === 'number' ? key : String(key)))
  let value: unknown = input
  for (const key of place) value = (value as Record<string | number, unknown> | null)?.[key]
  return validationEntry([part, ...place], message, value ?? null)
}
