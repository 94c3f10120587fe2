/** Everything that is searched or walked among the events, over HTTP. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createCursorWatch, type CursorWatch } from '../api/cursor-watch.ts'
import { globalSearchPath, grantOf, legacySearchPath } from '../api/gate.ts'
import type { SearchQuota } from '../api/search-quota.ts'
import { createSearch, type Caller, type Search } from '../api/search.ts'
import type { Tokens } from '../api/tokens.ts'
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
  app.post(globalSearchPath, (request, reply) => events.answerGlobal(reply, callerOf(request)))
  app.get('/firework/v4/events/_expand', (request, reply) =>
    searches.expand(reply, { query: request.query, grant: grantOf(request, tokens) }),
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
