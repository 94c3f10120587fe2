/** Event searches over HTTP: in all or part of what a tenant watches for, and globally. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { formatZonelessTime } from '../history/draft.ts'
import { createOrderedEvents, type History, type SandboxEvent } from '../history/history.ts'
import { hashText, type MaterializedFilter, type SandboxSettings } from '../options.ts'
import { sendError, validationEntry } from '../server.ts'
import {
  createPageHabits,
  type CursorWatch,
  type PageHabits,
  takePage,
  resolveCursor,
  wirePage,
} from './cursor.ts'
import {
  effectiveSeverity,
  isOwn,
  filterMatcher,
  parseGlobalSearchBody,
  parseSearchBody,
  refuseIdentifier,
  type SearchBody,
  restrictView,
} from './filters.ts'
import type { TokenGrant } from './guard.ts'
import { LuceneError } from './lucene.ts'
import { eventMatcher } from './matching.ts'
import { chargeSearch, type SearchQuota } from './search-quota.ts'

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
  /** Returns the tenant of an identifier; undefined if the identifier does not exist. */
  tenantOf: (identifierId: number) => number | undefined
}

/** The events that a search covers, and how it shows the matches. */
interface Scope {
  /** What its cursors are bound to, besides the request's body. */
  name: unknown
  events: readonly SandboxEvent[]
  view: (event: SandboxEvent) => SandboxEvent
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
  const answerFeed = (reply: FastifyReply, body: unknown, where: ScopeEvents): FastifyReply => {
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
      const caller = { settings, grant }
      const { query } = parsed.body
      return answerPage(reply, parsed.body, {
        name: 'global',
        events: everything(),
        view: (event) => restrictView(event, caller),
        isHidden: () => false,
        show: (event) => toGlobalItem(restrictView(event, caller), isOwn(event, caller)),
        charge: (shown) => chargeSearch(reply, { kind: 'events', query, shown }, parts),
      })
    },
  }
}

type ScopeEvents = Pick<Scope, 'name' | 'events'>

/** Searches the events that the tenant watches for; ignored ones are hidden unless requested. */
function feedScope(where: ScopeEvents, { filters }: SearchBody, settings: SandboxSettings): Scope {
  const showsIgnored = settings.showsIgnored || filters.is_ignored === true
  return {
    ...where,
    view: (event) => event,
    isHidden: ({ ignoredAtMs }) => ignoredAtMs !== null && !showsIgnored,
    show: toSearchItem,
    charge: () => {},
  }
}

const unknownFilter = validationEntry(
  ['body', 'filters', 'materialized_at'],
  'extra inputs are not permitted',
)

interface PageParts {
  body: SearchBody
  scope: Scope
  habits: PageHabits
  cursors: CursorWatch
  settings: SandboxSettings
}

function sendPage(reply: FastifyReply, parts: PageParts): FastifyReply {
  const { body, scope, habits, cursors } = parts
  const { materializedFilter } = parts.settings
  if (materializedFilter === 'refused' && body.filters.materialized_at) {
    return reply.code(422).send({ detail: [unknownFilter] })
  }
  const { from = null, ...scanQuery } = body
  const place = resolveCursor(from, [scope.name, scanQuery], cursors)
  if (place === 'refused') {
    return sendError(reply, { status: 400, code: 'INVALID_CURSOR', message: 'bad cursor' })
  }
  const matchesSearch = searchMatcher(body, materializedFilter)
  if (typeof matchesSearch === 'string')
    return sendError(reply, { status: 400, message: matchesSearch })
  const { order, size } = body
  const matches = (event: SandboxEvent): boolean => matchesSearch(scope.view(event))
  const { isHidden } = scope
  const page = takePage(scope.events, { order, size, from: place, matches, isHidden }, habits)
  const wire = wirePage(page.items.map(scope.show), page.next, from)
  if (wire.next) cursors.issue(wire.next, [scope.name, scanQuery])
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

/** Returns the search's test, or the problem with the query as text. */
function searchMatcher(
  { filters, query }: SearchBody,
  materializedFilter: MaterializedFilter,
): string | ((event: SandboxEvent) => boolean) {
  try {
    const passes = filterMatcher(filters, materializedFilter)
    const holds = query ? eventMatcher(query) : () => true
    return (event) => passes(event) && holds(event)
  } catch (error) {
    if (error instanceof LuceneError) return error.message
    throw error
  }
}

/** The forms in which the API has been seen to write one instant; all keep the millisecond. */
const timeForms: readonly ((ms: number) => string)[] = [
  (ms) => `${formatMicroseconds(ms)}Z`,
  (ms) => `${formatMicroseconds(ms)}Z`,
  (ms) => `${formatMicroseconds(ms)}+00:00`,
  (ms) => formatMicroseconds(ms),
  (ms) => `${formatMicroseconds(ms + 19_800_000)}+05:30`,
  (ms) => new Date(ms).toISOString(),
]

/** Returns an event as search pages show it; one event always has the same time form. */
export function toSearchItem(event: SandboxEvent): unknown {
  if ('raw' in event) return event.raw
  const formatTime = (ms: number): string =>
    timeForms[hashText(event.uid) % timeForms.length]?.(ms) ?? ''
  return {
    metadata: {
      estimated_created_at: formatTime(event.createdAtMs),
      matched_at: formatTimeOrNull(event.matchedAtMs, formatTime),
      type: event.type,
      uid: event.uid,
      severity: event.severity,
      flare_url: eventLink(event.uid),
    },
    tenant_metadata: {
      severity:
        event.override === null ? null : { original: event.severity, override: event.override },
      tags: event.tags,
      notes: event.notes,
      ignored_at: formatTimeOrNull(event.ignoredAtMs, formatTime),
      remediated_at: formatTimeOrNull(event.remediatedAtMs, formatTime),
    },
    highlights: event.highlights,
    identifiers: event.identifiers,
    revision: hashText(event.uid) % 7,
  }
}

/**
 * Returns an event as a global search shows it: without identifiers, and with the tenant's notes
 * only for its own events.
 */
function toGlobalItem(event: SandboxEvent, isOwn: boolean): unknown {
  const item = toSearchItem(event)
  if ('raw' in event || typeof item !== 'object') return item
  const tenantMetadata = {
    severity: null,
    tags: [],
    notes: null,
    ignored_at: null,
    remediated_at: null,
  }
  return { ...item, identifiers: undefined, ...(!isOwn && { tenant_metadata: tenantMetadata }) }
}

/** Host of the pretend service's web application. */
export const appHost = 'app.example.com'

/** Returns the address of the event in the web application. */
export function eventLink(uid: string): string {
  return `https://${appHost}/#/uid?uid=${encodeURIComponent(uid)}`
}

function formatTimeOrNull(ms: number | null, timeOf: (ms: number) => string): string | null {
  return ms === null ? null : timeOf(ms)
}

/** Six fractional digits and no zone. The last three are arbitrary. */
function formatMicroseconds(ms: number): string {
  const digits = String(ms % 997).padStart(3, '0')
  return `${new Date(ms).toISOString().slice(0, -1)}${digits}`
}

/** Returns the bare full event: times without a zone, data in the shape of the type's model. */
export function toFullEvent(event: SandboxEvent, showsPassword = true): Record<string, unknown> {
  return {
    event_type: event.type,
    metadata: {
      estimated_created_at: formatZonelessTime(event.createdAtMs),
      flare_url: eventLink(event.uid),
      matched_at: event.matchedAtMs === null ? null : formatZonelessTime(event.matchedAtMs),
      severity: effectiveSeverity(event),
      uid: event.uid,
    },
    data: {
      ...event.data,
      ...(!showsPassword && event.data && 'password' in event.data && { password: null }),
    },
  }
}
