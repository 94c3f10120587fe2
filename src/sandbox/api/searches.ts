/** The routes that search events or page through their contents. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { eventFilterTypes, expandFields } from '../../upstream/resources/enumerations.ts'
import { readStolen } from '../history/draft.ts'
import type { History } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import { type RequestLog, sendError, validationEntry } from '../server.ts'
import { createCursorWatch, type CursorWatch, encodeCursor, resolveCursor } from './cursor.ts'
import { filterCategories, knownSeverities, findOwnEvent } from './filters.ts'
import {
  globalSearchPath,
  findGrant,
  legacySearchPath,
  type TokenGrant,
  type Tokens,
} from './guard.ts'
import { createLegacySearch, type LegacySearch } from './legacy-search.ts'
import type { SearchQuota } from './search-quota.ts'
import { type Caller, createSearch, type Search } from './search.ts'

interface Searches {
  events: Search
  legacy: LegacySearch
  expand(reply: FastifyReply, asked: Expansion): FastifyReply
  /** The cursors of all these searches. */
  cursors: CursorWatch
}

export function createSearches(given: {
  settings: SandboxSettings
  history: History
  quota: SearchQuota
  tenantOf: (identifierId: number) => number | undefined
}): Searches {
  const cursors = createCursorWatch()
  const parts = { ...given, cursors }
  return {
    events: createSearch(parts),
    legacy: createLegacySearch(parts),
    expand: (reply, query) => answerExpansion(reply, query, parts),
    cursors,
  }
}

export function addSearches(
  app: FastifyInstance,
  { searches, tokens, log }: { searches: Searches; tokens: Tokens; log: RequestLog },
): void {
  const { events, legacy } = searches
  const readCaller = (request: FastifyRequest): Caller => ({
    grant: findGrant(request, tokens),
    body: log.entryFor(request).body,
  })
  app.post('/firework/v4/events/identifier_groups/:id/_search', (request, reply) =>
    events.answerGroup(request, reply, readCaller(request)),
  )
  app.post('/firework/v4/events/identifiers/:id/_search', (request, reply) =>
    events.answerIdentifier(request, reply, readCaller(request)),
  )
  app.post('/firework/v4/events/tenant/_search', (request, reply) =>
    events.answerTenant(reply, readCaller(request)),
  )
  app.get('/firework/v4/events/filters/types', () => ({ categories: typeCategories() }))
  app.get('/firework/v4/events/filters/severities', () => ({ severities: severityWords }))
  app.post(globalSearchPath, (request, reply) => events.answerGlobal(reply, readCaller(request)))
  app.get('/firework/v4/events/_expand', (request, reply) =>
    searches.expand(reply, { query: request.query, grant: findGrant(request, tokens) }),
  )
  app.get('/firework/v2/activities/', (request, reply) =>
    legacy.answerActivity(reply, { query: request.query, grant: findGrant(request, tokens) }),
  )
  for (const method of ['GET', 'POST'] as const) {
    app.route({
      method,
      url: legacySearchPath,
      handler: (request, reply) =>
        legacy.answer(reply, { query: request.query, grant: findGrant(request, tokens) }),
    })
  }
}

/** Lists every word that a `type` filter takes: groups with their types, and single types. */
function typeCategories(): unknown[] {
  const filters: readonly string[] = eventFilterTypes
  return filters.map((value) => ({
    value,
    label: toLabel(value),
    types: (filterCategories[value] ?? [])
      .filter((type) => filters.includes(type))
      .map((type) => ({ value: type, label: toLabel(type) })),
  }))
}

const colors = ['#5e6a7d', '#3b82f6', '#f59e0b', '#f97316', '#dc2626'] as const

const severityWords = knownSeverities.map((value, rank) => ({
  value,
  label: toLabel(value),
  color: colors[rank] ?? colors[0],
}))

function toLabel(value: string): string {
  return value.charAt(0).toUpperCase() + value.slice(1).replaceAll('_', ' ')
}

interface ExpandParts {
  settings: SandboxSettings
  history: History
  cursors: CursorWatch
}

interface Expansion {
  query: unknown
  grant: TokenGrant | null
}

/** Query parameters of an expanded field (docs/api-notes.md, Expanded fields, Page sizes). */
const expandQuery = z.strictObject({
  uid: z.string().min(1),
  field: z.enum(expandFields),
  from: z.string().optional(),
  size: z.coerce.number().int().min(1).max(20).default(20),
})

function answerExpansion(
  reply: FastifyReply,
  { query, grant }: Expansion,
  { cursors, ...parts }: ExpandParts,
): FastifyReply {
  const parsed = expandQuery.safeParse(query)
  if (!parsed.success) {
    const detail = parsed.error.issues.map(({ path, message }) =>
      validationEntry(['query', ...path.map(String)], message),
    )
    return reply.code(422).send({ detail })
  }
  const { from = null, ...scanQuery } = parsed.data
  const { event, refusal } = findOwnEvent(reply, scanQuery.uid, { ...parts, grant })
  if (refusal) return refusal
  const stolen = readStolen(event)
  if (!stolen) {
    const message = 'an event of this type has nothing to expand'
    return sendError(reply, { status: 400, code: 'UNSUPPORTED', message })
  }
  const name = `${scanQuery.field} ${scanQuery.uid}`
  const place = resolveCursor(from, ['expand', scanQuery], cursors)
  if (place === 'refused' || (place && place[1] !== name)) {
    return sendError(reply, { status: 400, code: 'INVALID_CURSOR', message: 'bad cursor' })
  }
  const start = place?.[0] ?? 0
  const all: readonly unknown[] = stolen[scanQuery.field]
  const end = start + scanQuery.size
  const next = end < all.length ? encodeCursor([end, name]) : null
  if (next) cursors.issue(next, ['expand', scanQuery])
  return reply.send({ items: all.slice(start, end), next })
}
