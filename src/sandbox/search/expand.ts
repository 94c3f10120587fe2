/** Pages of what a stealer log holds: credentials or cookies. */
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { expandFields } from '../../service/wire/enumerations.ts'
import { placeOf } from '../api/cursor-place.ts'
import type { CursorWatch } from '../api/cursor-watch.ts'
import { encodeCursor } from '../api/cursor.ts'
import { reachEvent } from '../api/event-access.ts'
import type { TokenGrant } from '../api/tokens.ts'
import { sendError, validationEntry } from '../error-bodies.ts'
import type { History } from '../history/history.ts'
import { stolenOf } from '../history/stolen.ts'
import type { SandboxSettings } from '../options.ts'

interface ExpandParts {
  settings: SandboxSettings
  history: History
  cursors: CursorWatch
}

export interface Expansion {
  query: unknown
  grant: TokenGrant | null
}

/** The names, the default and the most of `size`: facts.md 1, row 16. */
const expandQuery = z.strictObject({
  uid: z.string().min(1),
  field: z.enum(expandFields),
  from: z.string().optional(),
  size: z.coerce.number().int().min(1).max(20).default(20),
})

export function answerExpansion(
  reply: FastifyReply,
  { query, grant }: Expansion,
  { cursors, ...parts }: ExpandParts,
): FastifyReply {
  const asked = expandQuery.safeParse(query)
  if (!asked.success) {
    const detail = asked.error.issues.map(({ path, message }) =>
      validationEntry(['query', ...path.map(String)], message),
    )
    return reply.code(422).send({ detail })
  }
  const { from = null, ...walk } = asked.data
  const { event, refusal } = reachEvent(reply, walk.uid, { ...parts, grant })
  if (refusal) return refusal
  const stolen = stolenOf(event)
  if (!stolen) {
    const message = 'an event of this type has nothing to expand'
    return sendError(reply, { status: 400, code: 'UNSUPPORTED', message })
  }
  const name = `${walk.field} ${walk.uid}`
  const place = placeOf(from, ['expand', walk], cursors)
  if (place === 'refused' || (place && place[1] !== name)) {
    return sendError(reply, { status: 400, code: 'INVALID_CURSOR', message: 'bad cursor' })
  }
  const start = place?.[0] ?? 0
  const all: readonly unknown[] = stolen[walk.field]
  const end = start + walk.size
  const next = end < all.length ? encodeCursor([end, name]) : null
  if (next) cursors.handOut(next, ['expand', walk])
  return reply.send({ items: all.slice(start, end), next })
}
