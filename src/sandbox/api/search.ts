/** Event searches over HTTP: in what a tenant watches for, or a part of it, and over everything. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendError, validationEntry } from '../error-bodies.ts'
import type { History } from '../history/history.ts'
import { createOrderedEvents } from '../history/ordered-events.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import type { MaterializedFilter, SandboxSettings } from '../options.ts'
import { eventMatcher } from '../search/event-query.ts'
import { LuceneError } from '../search/lucene.ts'
import { chargeSearch } from './charge-search.ts'
import { placeOf } from './cursor-place.ts'
import type { CursorWatch } from './cursor-watch.ts'
import { isOwn, refuseIdentifier, seenBy } from './event-access.ts'
import { matcherOf } from './filters.ts'
import { createPageHabits } from './page-habits.ts'
import { pageOf, type PageHabits } from './page.ts'
import { parseGlobalSearchBody, parseSearchBody, type SearchBody } from './search-body.ts'
import { globalItemOf, searchItemOf } from './search-item.ts'
import type { SearchQuota } from './search-quota.ts'
import type { TokenGrant } from './tokens.ts'
import { wirePage } from './wire-page.ts'

export interface Search {
  answerGroup(request: FastifyRequest, reply: FastifyReply, caller: Caller): FastifyReply
  answerIdentifier(request: FastifyRequest, reply: FastifyReply, caller: Caller): FastifyReply
  answerTenant(reply: FastifyReply, caller: Caller): FastifyReply
  answerGlobal(reply: FastifyReply, caller: Caller): FastifyReply
}

export interface Caller {
  grant: TokenGrant | null
  body: unknown
}

export interface SearchParts {
  settings: SandboxSettings
  history: History
  quota: SearchQuota
  cursors: CursorWatch
  /** Whose identifier it is; undefined: there is none. */
  tenantOf: (identifierId: number) => number | undefined
}

/** What a search looks through, and how it shows what it finds. */
interface Scope {
  /** What its cursors are good for, besides the request's body. */
  name: unknown
  events: readonly SandboxEvent[]
  seen: (event: SandboxEvent) => SandboxEvent
  isHidden: (event: SandboxEvent) => boolean
  show: (event: SandboxEvent) => unknown
  charge: (uids: readonly string[]) => void
}

export function createSearch(parts: SearchParts): Search {
  const { settings, history } = parts
  const habits = createPageHabits(settings, settings.seed + 2)
  const everything = createOrderedEvents(history)
  const answerPage = (reply: FastifyReply, body: SearchBody, scope: Scope): FastifyReply =>
    sendPage(reply, { body, scope, habits, ...parts })
  const answerFeed = (reply: FastifyReply, body: unknown, where: Where): FastifyReply => {
    const parsed = parseSearchBody(body)
    if ('detail' in parsed) return reply.code(422).send(parsed)
    return answerPage(reply, parsed.body, feedScope(where, parsed.body, settings))
  }

  return {
    answerGroup(request, reply, { grant, body }) {
      const { id } = request.params as { id: string }
      const refusal = refuseGroup(reply, id, { settings, grant })
      if (refusal) return refusal
      return answerFeed(reply, body, { name: Number(id), events: history.ofGroup(Number(id)) })
    },
    answerIdentifier(request, reply, { grant, body }) {
      const { id } = request.params as { id: string }
      const asker = { id, grant, tenantOf: parts.tenantOf, shape: 'error' } as const
      const refusal = refuseIdentifier(reply, asker)
      if (refusal) return refusal
      const events = everything().filter(({ identifiers }) =>
        identifiers.some((identifier) => String(identifier.id) === id),
      )
      return answerFeed(reply, body, { name: `identifier ${id}`, events })
    },
    answerTenant(reply, { grant, body }) {
      const events = everything().filter((event) => isOwn(event, { settings, grant }))
      return answerFeed(reply, body, { name: 'tenant', events })
    },
    answerGlobal(reply, { grant, body }) {
      const parsed = parseGlobalSearchBody(body)
      if ('detail' in parsed) return reply.code(422).send(parsed)
      const asked = { settings, grant }
      const { query } = parsed.body
      return answerPage(reply, parsed.body, {
        name: 'global',
        events: everything(),
        seen: (event) => seenBy(event, asked),
        isHidden: () => false,
        show: (event) => globalItemOf(seenBy(event, asked), isOwn(event, asked)),
        charge: (shown) => chargeSearch(reply, { kind: 'events', query, shown }, parts),
      })
    },
  }
}

type Where = Pick<Scope, 'name' | 'events'>

/** Events that the tenant watches for; what it ignored is hidden unless it is asked for. */
function feedScope(where: Where, { filters }: SearchBody, settings: SandboxSettings): Scope {
  const showsIgnored = settings.showsIgnored || filters.is_ignored === true
  return {
    ...where,
    seen: (event) => event,
    isHidden: ({ ignoredAtMs }) => ignoredAtMs !== null && !showsIgnored,
    show: searchItemOf,
    charge: () => {},
  }
}

const unknownFilter = validationEntry(
  ['body', 'filters', 'materialized_at'],
  'extra inputs are not permitted',
)

interface Page {
  body: SearchBody
  scope: Scope
  habits: PageHabits
  cursors: CursorWatch
  settings: SandboxSettings
}

function sendPage(reply: FastifyReply, asked: Page): FastifyReply {
  const { body, scope, habits, cursors } = asked
  const { materializedFilter } = asked.settings
  if (materializedFilter === 'refused' && body.filters.materialized_at) {
    return reply.code(422).send({ detail: [unknownFilter] })
  }
  const { from = null, ...walk } = body
  const place = placeOf(from, [scope.name, walk], cursors)
  if (place === 'refused') {
    return sendError(reply, { status: 400, code: 'INVALID_CURSOR', message: 'bad cursor' })
  }
  const isAsked = askedBy(body, materializedFilter)
  if (typeof isAsked === 'string') return sendError(reply, { status: 400, message: isAsked })
  const { order, size } = body
  const matches = (event: SandboxEvent): boolean => isAsked(scope.seen(event))
  const { isHidden } = scope
  const page = pageOf(scope.events, { order, size, from: place, matches, isHidden }, habits)
  const wire = wirePage(page.items.map(scope.show), page.next, from)
  if (wire.next) cursors.handOut(wire.next, [scope.name, walk])
  scope.charge(page.items.map(({ uid }) => uid))
  return reply.send(wire)
}

function refuseGroup(
  reply: FastifyReply,
  id: string,
  { settings, grant }: { settings: SandboxSettings; grant: TokenGrant | null },
): FastifyReply | null {
  if (!/^\d+$/.test(id)) {
    const detail = [validationEntry(['path', 'identifier_group_id'], 'not an integer', id)]
    return reply.code(422).send({ detail })
  }
  const groupId = Number(id)
  const group = settings.groups.find((known) => known.id === groupId)
  if (!group) return sendError(reply, { status: 404, message: 'no such identifier group' })
  if (group.tenantId === grant?.tenantId) return null
  return sendError(reply, { status: 403, message: 'a group of another tenant' })
}

/** Text: what is wrong with the query. */
function askedBy(
  { filters, query }: SearchBody,
  materializedFilter: MaterializedFilter,
): string | ((event: SandboxEvent) => boolean) {
  try {
    const passes = matcherOf(filters, materializedFilter)
    const holds = query ? eventMatcher(query) : () => true
    return (event) => passes(event) && holds(event)
  } catch (error) {
    if (error instanceof LuceneError) return error.message
    throw error
  }
}
