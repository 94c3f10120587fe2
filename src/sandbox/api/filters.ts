/** Which events a search finds, and which events and identifiers a caller may see. */
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { eventFilterTypes } from '../../upstream/resources/enumerations.ts'
import { eventQuery } from '../../upstream/resources/events.ts'
import type { History, SandboxEvent } from '../history/history.ts'
import type { MaterializedFilter, SandboxSettings } from '../options.ts'
import { type ErrorAnswer, sendError, validationEntry } from '../server.ts'
import type { TokenGrant } from './guard.ts'

type Filters = SearchBody['filters']

/**
 * The types that words of the `type` filter stand for (docs/api-notes.md, Types that stand for
 * others). Items also have types that are no such words.
 */
const typeGroups: Record<string, readonly string[]> = {
  illicit_networks: [
    'forum_content',
    'blog_content',
    'profile',
    'chat_message',
    'listing',
    'ransomleak',
    'infected_devices',
    'financial_data',
  ],
  open_web: ['paste', 'social_media', 'source_code', 'docker', 'google', 'service', 'buckets'],
  buckets: ['bucket', 'bucket_object'],
  source_code: ['stack_exchange', 'source_code_files', 'source_code_secrets'],
  forum_content: ['forum_post', 'forum_topic'],
  blog_content: ['blog_post'],
  profile: ['forum_profile', 'seller'],
  infected_devices: ['bot', 'stealer_log'],
  financial_data: ['cc', 'ccbin'],
  social_media: ['social_media_account'],
  docker: ['docker_repository', 'docker_image'],
  leaks: ['leak', 'valid_credential', 'invalid_credential', 'mitigated_credential'],
  domains: ['domain'],
  domain: ['domain', 'lookalike'],
}

export function effectiveSeverity(event: SandboxEvent): string {
  return event.override ?? event.severity
}

export function filterMatcher(
  filters: Filters,
  materializedFilter: MaterializedFilter = 'honoured',
): (event: SandboxEvent) => boolean {
  const types = filters.type ? expandTypes(filters.type) : null
  const isCreatedThen = rangeMatcher(filters.estimated_created_at)
  const isMaterializedThen = materializedMatcher(filters, materializedFilter)
  return (event) =>
    hasSeverity(event, filters.severity) &&
    (types === null || types.has(event.type)) &&
    (!filters.tags || filters.tags.some((tag) => event.tags.includes(tag))) &&
    (!filters.is_remediated || event.remediatedAtMs !== null) &&
    (!filters.is_ignored || event.ignoredAtMs !== null) &&
    isCreatedThen(event.createdAtMs) &&
    isMaterializedThen(event.arrivedAtMs)
}

/** The mode `refused` does not get here: the request is refused earlier. */
function materializedMatcher(
  { materialized_at: range }: Filters,
  mode: MaterializedFilter,
): (ms: number) => boolean {
  if (range && mode === 'empty') return () => false
  return rangeMatcher(mode === 'ignored' ? undefined : range)
}

/**
 * A string means this severity or higher, an array exactly these. An unknown severity ranks
 * highest.
 */
function hasSeverity(event: SandboxEvent, wanted: Filters['severity']): boolean {
  if (!wanted) return true
  const severity = effectiveSeverity(event)
  if (typeof wanted !== 'string') return (wanted as string[]).includes(severity)
  return rankSeverity(severity) >= rankSeverity(wanted)
}

function rankSeverity(severity: string): number {
  const rank = (knownSeverities as readonly string[]).indexOf(severity)
  return rank === -1 ? knownSeverities.length : rank
}

/** Returns every item type that the named filters cover. */
export function expandTypes(names: readonly string[]): Set<string> {
  const found = new Set<string>()
  const waiting = [...names]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue
    found.add(name)
    waiting.push(...(typeGroups[name] ?? []))
  }
  return found
}

/** The categories of the filter list, each with the types in it. */
export const filterCategories: Readonly<Record<string, readonly string[]>> = typeGroups

function rangeMatcher(range: RangeFilter | null | undefined): (ms: number) => boolean {
  const [gt, gte, lt, lte] = [range?.gt, range?.gte, range?.lt, range?.lte].map((text) =>
    text === undefined || text === null ? undefined : parseInstant(text),
  )
  return (ms) =>
    (gt === undefined || ms > gt) &&
    (gte === undefined || ms >= gte) &&
    (lt === undefined || ms < lt) &&
    (lte === undefined || ms <= lte)
}

export const knownSeverities = ['info', 'low', 'medium', 'high', 'critical'] as const

const severity = z.enum(knownSeverities)
const time = z.string().refine((text) => !Number.isNaN(parseInstant(text)), 'not a date-time')
const rangeFilter = z.object({
  gt: time.nullish(),
  gte: time.nullish(),
  lt: time.nullish(),
  lte: time.nullish(),
})

const filters = z.object({
  severity: z.union([severity, z.array(severity)]).optional(),
  type: z.array(z.enum(eventFilterTypes)).optional(),
  estimated_created_at: rangeFilter.optional(),
  materialized_at: rangeFilter.optional(),
  tags: z.array(z.string()).optional(),
  is_ignored: z.boolean().optional(),
  is_remediated: z.boolean().optional(),
})

/** Unknown fields are accepted, here as in a body. */
const query = z.discriminatedUnion('type', eventQuery.options.map(withoutStrictness) as Kinds)

type Kinds = typeof eventQuery.options

function withoutStrictness(kind: Kinds[number]): z.ZodObject {
  return z.object(kind.shape)
}

const page = {
  size: z.int().min(1).max(10).default(10),
  order: z.enum(['asc', 'desc']).default('desc'),
  from: z.string().nullish(),
  filters: filters.default({}),
}

const searchBody = z.object({ query: query.nullish(), ...page })

const globalSearchBody = z.object({ query, ...page })

export type SearchBody = z.infer<typeof searchBody>
type RangeFilter = z.infer<typeof rangeFilter>

/**
 * Returns milliseconds since 1970, or NaN if `text` is not a time. A time without a zone is UTC.
 */
export function parseInstant(text: string): number {
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/i.test(text)
  return Date.parse(hasZone || !text.includes('T') ? text : `${text}Z`)
}

/** The parsed body, or the `detail` of a 422. */
type Parsed = { body: SearchBody } | { detail: Record<string, unknown>[] }

/** Parses the body of a search in what a tenant watches for; the query is optional. */
export function parseSearchBody(body: unknown): Parsed {
  return parseWith(searchBody, body)
}

/** Parses the body of a global search. */
export function parseGlobalSearchBody(body: unknown): Parsed {
  return parseWith(globalSearchBody, body)
}

function parseWith(schema: z.ZodType<SearchBody>, body: unknown): Parsed {
  const parsed = schema.safeParse(body ?? {})
  if (parsed.success) return { body: parsed.data }
  return {
    detail: parsed.error.issues.map((issue) =>
      validationEntry(['body', ...issue.path.map(toLocationKey)], issue.message),
    ),
  }
}

function toLocationKey(key: PropertyKey): string | number {
  return typeof key === 'number' ? key : String(key)
}

interface CallerScope {
  settings: Pick<SandboxSettings, 'groups'>
  grant: TokenGrant | null
}

export function isOwn(event: SandboxEvent, { settings, grant }: CallerScope): boolean {
  return settings.groups.some(
    ({ id, tenantId }) => tenantId === grant?.tenantId && event.groupIds.includes(id),
  )
}

/**
 * Returns the event as a global search shows it to the caller: without the tenant's notes if it
 * belongs to another tenant.
 */
export function restrictView(event: SandboxEvent, scope: CallerScope): SandboxEvent {
  if (isOwn(event, scope)) return event
  return {
    ...event,
    override: null,
    matchedAtMs: null,
    tags: [],
    notes: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
  }
}

type OwnEventResult =
  | { event: SandboxEvent; refusal?: never }
  | { event?: never; refusal: FastifyReply }

/** Returns one of the caller's own events, or the answer that refuses it. */
export function findOwnEvent(
  reply: FastifyReply,
  uid: string,
  { history, shape, ...scope }: CallerScope & { history: History; shape?: ErrorAnswer['shape'] },
): OwnEventResult {
  const event = history.get(uid)
  if (!event) return { refusal: sendError(reply, { status: 404, message: 'no such event', shape }) }
  if (isOwn(event, scope)) return { event }
  const message = 'an event of another tenant'
  return { refusal: sendError(reply, { status: 403, message, shape }) }
}

interface IdentifierRequest {
  id: string
  grant: TokenGrant | null
  /** Returns the tenant of an identifier; undefined if the identifier does not exist. */
  tenantOf: (identifierId: number) => number | undefined
  shape: NonNullable<ErrorAnswer['shape']>
}

/** Sends a refusal if the identifier is not the tenant's; returns null if it is. */
export function refuseIdentifier(
  reply: FastifyReply,
  { id, grant, tenantOf, shape }: IdentifierRequest,
): FastifyReply | null {
  if (!/^\d+$/.test(id)) {
    const detail = [validationEntry(['path', 'identifier_id'], 'not an integer', id)]
    return reply.code(422).send({ detail })
  }
  const tenant = tenantOf(Number(id))
  if (tenant === undefined) {
    return sendError(reply, { status: 404, message: 'no such identifier', shape })
  }
  if (grant?.tenantId === tenant) return null
  return sendError(reply, { status: 403, message: 'an identifier of another tenant', shape })
}
