/** Event searches over HTTP: in what a tenant watches for, or a part of it, and over everything. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { zoneless } from '../history/draft.ts'
import { createOrderedEvents, type History, type SandboxEvent } from '../history/history.ts'
import { hashOf, type MaterializedFilter, type SandboxSettings } from '../options.ts'
import { sendError, validationEntry } from '../server.ts'
import {
  createPageHabits,
  type CursorWatch,
  type PageHabits,
  pageOf,
  placeOf,
  wirePage,
} from './cursor.ts'
import {
  effectiveSeverity,
  isOwn,
  matcherOf,
  parseGlobalSearchBody,
  parseSearchBody,
  refuseIdentifier,
  type SearchBody,
  seenBy,
} from './filters.ts'
import type { TokenGrant } from './gate.ts'
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

/** Events as search pages show them: in several time forms, with fields that no description names. */

/** The forms in which the service was seen to write one instant; all keep the millisecond. */
const timeForms: readonly ((ms: number) => string)[] = [
  (ms) => `${microseconds(ms)}Z`,
  (ms) => `${microseconds(ms)}Z`,
  (ms) => `${microseconds(ms)}+00:00`,
  (ms) => microseconds(ms),
  (ms) => `${microseconds(ms + 19_800_000)}+05:30`,
  (ms) => new Date(ms).toISOString(),
]

/** The same event is always shown in the same form. */
export function searchItemOf(event: SandboxEvent): unknown {
  if ('raw' in event) return event.raw
  const timeOf = (ms: number): string => timeForms[hashOf(event.uid) % timeForms.length]?.(ms) ?? ''
  return {
    metadata: {
      estimated_created_at: timeOf(event.createdAtMs),
      matched_at: timeOrNull(event.matchedAtMs, timeOf),
      type: event.type,
      uid: event.uid,
      severity: event.severity,
      flare_url: linkTo(event.uid),
    },
    tenant_metadata: {
      severity:
        event.override === null ? null : { original: event.severity, override: event.override },
      tags: event.tags,
      notes: event.notes,
      ignored_at: timeOrNull(event.ignoredAtMs, timeOf),
      remediated_at: timeOrNull(event.remediatedAtMs, timeOf),
    },
    highlights: event.highlights,
    identifiers: event.identifiers,
    revision: hashOf(event.uid) % 7,
  }
}

/** As a search over everything shows it: for no identifier, and what a tenant notes to itself alone. */
function globalItemOf(event: SandboxEvent, isOwn: boolean): unknown {
  const item = searchItemOf(event)
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

/** Of the service's web application. */
export const appHost = 'app.example.com'

/** Where a person would read the event. */
export function linkTo(uid: string): string {
  return `https://${appHost}/#/uid?uid=${encodeURIComponent(uid)}`
}

function timeOrNull(ms: number | null, timeOf: (ms: number) => string): string | null {
  return ms === null ? null : timeOf(ms)
}

/** Six digits and no zone. The last three say nothing, but vary. */
function microseconds(ms: number): string {
  const digits = String(ms % 997).padStart(3, '0')
  return `${new Date(ms).toISOString().slice(0, -1)}${digits}`
}

/** The bare object of an event detail: times without a zone, data as the type's model has it. */
export function fullEventOf(event: SandboxEvent, showsPassword = true): Record<string, unknown> {
  return {
    event_type: event.type,
    metadata: {
      estimated_created_at: zoneless(event.createdAtMs),
      flare_url: linkTo(event.uid),
      matched_at: event.matchedAtMs === null ? null : zoneless(event.matchedAtMs),
      severity: effectiveSeverity(event),
      uid: event.uid,
    },
    data: {
      ...event.data,
      ...(!showsPassword && event.data && 'password' in event.data && { password: null }),
    },
  }
}
