/** Everything that is searched or walked among the events, over HTTP. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createCursorWatch, type CursorWatch } from '../api/cursor-watch.ts'
import { filterCategories } from '../api/filters.ts'
import { globalSearchPath, grantOf, legacySearchPath } from '../api/gate.ts'
import type { SearchQuota } from '../api/search-quota.ts'
import { knownSeverities } from '../api/search-body.ts'
import { createSearch, type Caller, type Search } from '../api/search.ts'
import type { Tokens } from '../api/tokens.ts'
import { eventFilterTypes } from '../../service/wire/enumerations.ts'
import type { History } from '../history/history.ts'
import { createLegacySearch, type LegacySearch } from '../legacy/legacy-search.ts'
import type { SandboxSettings } from '../options.ts'
import type { RequestLog } from '../request-log.ts'
import { answerExpansion, type Expansion } from './expand.ts'

export interface Searches {
  events: Search
  legacy: LegacySearch
  expand(reply: FastifyReply, asked: Expansion): FastifyReply
  /** The cursors of all of them. */
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
    expand: (reply, asked) => answerExpansion(reply, asked, parts),
    cursors,
  }
}

export function addSearches(
  app: FastifyInstance,
  { searches, tokens, log }: { searches: Searches; tokens: Tokens; log: RequestLog },
): void {
  const { events, legacy } = searches
  const callerOf = (request: FastifyRequest): Caller => ({
    grant: grantOf(request, tokens),
    body: log.entryOf(request).body,
  })
  app.post('/firework/v4/events/identifier_groups/:id/_search', (request, reply) =>
    events.answerGroup(request, reply, callerOf(request)),
  )
  app.post('/firework/v4/events/identifiers/:id/_search', (request, reply) =>
    events.answerIdentifier(request, reply, callerOf(request)),
  )
  app.post('/firework/v4/events/tenant/_search', (request, reply) =>
    events.answerTenant(reply, callerOf(request)),
  )
  app.get('/firework/v4/events/filters/types', () => ({ categories: typeCategories() }))
  app.get('/firework/v4/events/filters/severities', () => ({ severities: severityWords }))
  app.post(globalSearchPath, (request, reply) => events.answerGlobal(reply, callerOf(request)))
  app.get('/firework/v4/events/_expand', (request, reply) =>
    searches.expand(reply, { query: request.query, grant: grantOf(request, tokens) }),
  )
  app.get('/firework/v2/activities/', (request, reply) =>
    legacy.answerActivity(reply, { query: request.query, grant: grantOf(request, tokens) }),
  )
  for (const method of ['GET', 'POST'] as const) {
    app.route({
      method,
      url: legacySearchPath,
      handler: (request, reply) =>
        legacy.answer(reply, { query: request.query, grant: grantOf(request, tokens) }),
    })
  }
}

/** Every word that a `type` filter takes: the groups with what they contain, the rest by itself. */
function typeCategories(): unknown[] {
  const filters: readonly string[] = eventFilterTypes
  return filters.map((value) => ({
    value,
    label: labelOf(value),
    types: (filterCategories[value] ?? [])
      .filter((type) => filters.includes(type))
      .map((type) => ({ value: type, label: labelOf(type) })),
  }))
}

const colors = ['#5e6a7d', '#3b82f6', '#f59e0b', '#f97316', '#dc2626'] as const

const severityWords = knownSeverities.map((value, rank) => ({
  value,
  label: labelOf(value),
  color: colors[rank] ?? colors[0],
}))

function labelOf(value: string): string {
  return value.charAt(0).toUpperCase() + value.slice(1).replaceAll('_', ' ')
}
