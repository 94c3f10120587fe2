/**
 * The operations of before over HTTP: the legacy search in everything there is, with the total and two
 * names for one cursor, and the full event in its older shape.
 */
import type { FastifyReply } from 'fastify'
import { chargeSearch } from '../api/charge-search.ts'
import { placeOf } from '../api/cursor-place.ts'
import { encodeCursor } from '../api/cursor.ts'
import { reachEvent, seenBy } from '../api/event-access.ts'
import { legacySearchPath } from '../api/gate.ts'
import { createPageHabits } from '../api/page-habits.ts'
import { pageOf, type NextPlace } from '../api/page.ts'
import type { SearchParts } from '../api/search.ts'
import type { TokenGrant } from '../api/tokens.ts'
import { sendError } from '../error-bodies.ts'
import { comparePositions, positionOf, type Placed } from '../history/history.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import { legacyMatcher } from './legacy-filters.ts'
import { activityOf, legacyItemOf } from './legacy-item.ts'
import { legacyParameters, type LegacyParameters } from './legacy-parameters.ts'
import { pickedFields } from './picked-fields.ts'

export interface LegacySearch {
  answer(reply: FastifyReply, asked: Asked): FastifyReply
  /** The full event, which there is here of every type. */
  answerActivity(reply: FastifyReply, asked: Asked): FastifyReply
}

interface Asked {
  query: unknown
  grant: TokenGrant | null
}

interface PlacedEvent extends Placed {
  event: SandboxEvent
}

export function createLegacySearch(parts: SearchParts): LegacySearch {
  const { settings, history, cursors } = parts
  const habits = createPageHabits(settings, settings.seed + 9)

  return {
    answer(reply, { query, grant }) {
      const parsed = legacyParameters.safeParse(query)
      if (!parsed.success) return refuse(reply, reasonsOf(parsed.error.issues))
      const { search_after: after, from: given, ...asked } = parsed.data
      const walk = ['legacy', asked]
      const from = after ?? given ?? null
      const place = placeOf(from, walk, cursors)
      if (place === 'refused') return refuse(reply, 'bad cursor', 'INVALID_CURSOR')
      const seen = history.all().map((event) => seenBy(event, { settings, grant }))
      const found = inOrder(seen.filter(legacyMatcher(asked)), asked.sort_by)
      const request = {
        order: asked.order,
        size: asked.size,
        from: place,
        matches: () => true,
        isHidden: () => false,
      }
      const { items, next } = pageOf(found, request, habits)
      const cursor = cursorOf(next, from)
      if (cursor) cursors.handOut(cursor, walk)
      const shown = items.map(({ uid }) => uid)
      chargeSearch(reply, { kind: 'legacy', query: asked.query, shown }, parts)
      return reply.send({
        items: items.map(({ event }) => pickedFields(legacyItemOf(event, grant), asked.fields)),
        nb_hits: found.length,
        links: { next: cursor && linkTo(cursor, query) },
        search_after: cursor,
      })
    },
    answerActivity(reply, { query, grant }) {
      const { uid } = query as { uid?: string }
      if (uid === undefined) return refuse(reply, 'uid: missing')
      const asked = { settings, history, grant, shape: 'message' } as const
      const { event, refusal } = reachEvent(reply, uid, asked)
      return refusal ?? reply.send({ activity: activityOf(event, grant) })
    },
  }
}

/** `materialized`, `indexed` and `searchable` are all when it became visible. */
function inOrder(
  events: readonly SandboxEvent[],
  sortBy: LegacyParameters['sort_by'],
): PlacedEvent[] {
  return events
    .map((event) => ({ createdAtMs: momentOf(event, sortBy), uid: event.uid, event }))
    .sort((left, right) => comparePositions(positionOf(left), positionOf(right)))
}

function momentOf(event: SandboxEvent, sortBy: LegacyParameters['sort_by']): number {
  const { createdAtMs, arrivedAtMs, ignoredAtMs, remediatedAtMs } = event
  switch (sortBy) {
    case 'created':
      return createdAtMs
    case 'updated':
      return Math.max(arrivedAtMs, ignoredAtMs ?? 0, remediatedAtMs ?? 0)
    case 'indexed':
    case 'searchable':
    case 'materialized':
    case 'alertable-materialized':
      return arrivedAtMs
  }
}

/** undefined: the answer is without one. */
function cursorOf(next: NextPlace, from: string | null): string | null | undefined {
  if (next === null || next === undefined) return next
  return next === 'same' ? from : encodeCursor(next)
}

/** A path of this service, as the request was but for the cursor. */
function linkTo(cursor: string, query: unknown): string {
  const parameters = new URLSearchParams()
  for (const [key, values] of Object.entries(query as Record<string, string | string[]>)) {
    const isCursor = key === 'from' || key === 'search_after'
    for (const value of isCursor ? [] : [values].flat()) parameters.append(key, value)
  }
  parameters.append('from', cursor)
  return `${legacySearchPath}?${parameters.toString()}`
}

function reasonsOf(issues: readonly { path: PropertyKey[]; message: string }[]): string {
  return issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`).join('; ')
}

function refuse(reply: FastifyReply, message: string, code?: string): FastifyReply {
  return sendError(reply, { status: 400, shape: 'message', message, code })
}
