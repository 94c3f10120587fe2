/**
 * The older operations over HTTP: the legacy search over all events, with the total and two names
 * for one cursor, and the full event in its older shape.
 */
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { isTimeZone } from '../../lib/time-zone.ts'
import {
  legacyEventActions,
  legacySortKeys,
  type LegacyType,
  legacyTypeGroups,
  legacyTypes,
  orders,
} from '../../upstream/resources/enumerations.ts'
import { readStolen, formatOffsetTime } from '../history/draft.ts'
import { comparePositions, type Placed, toPosition, type SandboxEvent } from '../history/history.ts'
import { sendError } from '../server.ts'
import {
  createPageHabits,
  encodeCursor,
  type NextCursor,
  takePage,
  resolveCursor,
} from './cursor.ts'
import {
  effectiveSeverity,
  parseInstant,
  knownSeverities,
  findOwnEvent,
  restrictView,
  expandTypes,
} from './filters.ts'
import { legacySearchPath, hasPermission, type TokenGrant } from './guard.ts'
import { LuceneError, luceneMatcher, parseLucene } from './lucene.ts'
import { toSearchable } from './matching.ts'
import { chargeSearch } from './search-quota.ts'
import { toFullEvent, eventLink, type SearchParts } from './search.ts'

export interface LegacySearch {
  answer(reply: FastifyReply, asked: LegacyRequest): FastifyReply
  /** Answers with the full event, which this operation has for every type. */
  answerActivity(reply: FastifyReply, asked: LegacyRequest): FastifyReply
}

interface LegacyRequest {
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
      if (!parsed.success) return refuseRequest(reply, formatIssues(parsed.error.issues))
      const { search_after: after, from: given, ...asked } = parsed.data
      const scanQuery = ['legacy', asked]
      const from = after ?? given ?? null
      const place = resolveCursor(from, scanQuery, cursors)
      if (place === 'refused') return refuseRequest(reply, 'bad cursor', 'INVALID_CURSOR')
      const visible = history.all().map((event) => restrictView(event, { settings, grant }))
      const found = sortEvents(visible.filter(legacyMatcher(asked)), asked.sort_by)
      const request = {
        order: asked.order,
        size: asked.size,
        from: place,
        matches: () => true,
        isHidden: () => false,
      }
      const { items, next } = takePage(found, request, habits)
      const cursor = encodeNext(next, from)
      if (cursor) cursors.issue(cursor, scanQuery)
      const shown = items.map(({ uid }) => uid)
      chargeSearch(reply, { kind: 'legacy', query: asked.query, shown }, parts)
      return reply.send({
        items: items.map(({ event }) => pickFields(toLegacyItem(event, grant), asked.fields)),
        nb_hits: found.length,
        links: { next: cursor && linkToPage(cursor, query) },
        search_after: cursor,
      })
    },
    answerActivity(reply, { query, grant }) {
      const { uid } = query as { uid?: string }
      if (uid === undefined) return refuseRequest(reply, 'uid: missing')
      const asked = { settings, history, grant, shape: 'message' } as const
      const { event, refusal } = findOwnEvent(reply, uid, asked)
      return refusal ?? reply.send({ activity: toActivity(event, grant) })
    },
  }
}

/**
 * `materialized`, `indexed` and `searchable` all mean the time at which the event became visible.
 */
function sortEvents(
  events: readonly SandboxEvent[],
  sortBy: LegacyParameters['sort_by'],
): PlacedEvent[] {
  return events
    .map((event) => ({ createdAtMs: sortTimeMs(event, sortBy), uid: event.uid, event }))
    .sort((left, right) => comparePositions(toPosition(left), toPosition(right)))
}

function sortTimeMs(event: SandboxEvent, sortBy: LegacyParameters['sort_by']): number {
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

/** Returns undefined if the answer has no cursor key. */
function encodeNext(next: NextCursor, from: string | null): string | null | undefined {
  if (next === null || next === undefined) return next
  return next === 'same' ? from : encodeCursor(next)
}

/** Returns a path on this server: the request's own with the new cursor. */
function linkToPage(cursor: string, query: unknown): string {
  const parameters = new URLSearchParams()
  for (const [key, values] of Object.entries(query as Record<string, string | string[]>)) {
    const isCursor = key === 'from' || key === 'search_after'
    for (const value of isCursor ? [] : [values].flat()) parameters.append(key, value)
  }
  parameters.append('from', cursor)
  return `${legacySearchPath}?${parameters.toString()}`
}

function formatIssues(issues: readonly { path: PropertyKey[]; message: string }[]): string {
  return issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`).join('; ')
}

function refuseRequest(reply: FastifyReply, message: string, code?: string): FastifyReply {
  return sendError(reply, { status: 400, shape: 'message', message, code })
}

type EventTest = (event: SandboxEvent) => boolean
type Action = LegacyParameters['event_actions'][number]

const matchesAll: EventTest = () => true

function legacyMatcher(parameters: LegacyParameters): EventTest {
  const { time, risks, query } = parameters
  const tests: EventTest[] = [
    time ? ({ createdAtMs: at }) => at >= time.since && at <= time.until : matchesAll,
    typeTest(parameters.types, parameters.experimental_types),
    tagTest(parameters.tags, parameters.tags_query_operator),
    actionTest(parameters),
    risks.length > 0 ? (event) => risks.includes(toRisk(event)) : matchesAll,
    parameters.has_modified_risk_score ? isRescored : matchesAll,
    parameters.has_notes ? ({ notes }) => notes !== null : matchesAll,
    query ? queryTest(query) : matchesAll,
  ]
  return (event) => tests.every((passes) => passes(event))
}

function queryTest(query: NonNullable<LegacyParameters['query']>): EventTest {
  const matches = luceneMatcher(query)
  return (event) => matches(toSearchable(event).document)
}

/** Groups of the API description list their own types; other groups are resolved by the filters. */
function typeTest(types: readonly LegacyType[], experimental: readonly string[]): EventTest {
  if (types.length === 0 && experimental.length === 0) return matchesAll
  const named = types.flatMap((type) => legacyTypeGroups[type] ?? [type])
  const wanted = expandTypes([...named, ...experimental])
  const known = types.includes('experimental') ? expandTypes(legacyTypes) : null
  return ({ type }) => wanted.has(type) || known?.has(type) === false
}

/** Matches any of the tags, or all of them if the operator is AND. */
function tagTest(tags: readonly string[], operator: 'AND' | 'OR'): EventTest {
  if (tags.length === 0) return matchesAll
  return (event) => {
    const has = (tag: string): boolean => event.tags.includes(tag)
    return operator === 'AND' ? tags.every(has) : tags.some(has)
  }
}

/** Matches any of the actions. Without an action, ignored events are left out. */
function actionTest({ event_action: action, event_actions: actions }: LegacyParameters): EventTest {
  const all: Action[] = [...(action ? [action] : []), ...actions]
  const wanted = all.length > 0 ? all : (['default'] as const)
  return (event) => wanted.some((one) => hasAction(event, one))
}

function hasAction(event: SandboxEvent, action: Action): boolean {
  const isIgnored = event.ignoredAtMs !== null
  const isRemediated = event.remediatedAtMs !== null
  switch (action) {
    case 'default':
    case 'exclude_ignored':
      return !isIgnored
    case 'ignored':
      return isIgnored
    case 'remediated':
      return isRemediated
    case 'ignored_or_remediated':
      return isIgnored || isRemediated
    case 'risk_score_edited':
      return isRescored(event)
  }
}

function isRescored({ override }: SandboxEvent): boolean {
  return override !== null
}

type Fields = Record<string, unknown>

/** Characters of a content preview. */
const previewLength = 200

/**
 * Returns an event in the v2 shape, with uid and type in the header (docs/api-notes.md, The older
 * shape).
 */
function toLegacyItem(event: SandboxEvent, grant: TokenGrant | null): unknown {
  if ('raw' in event) return event.raw
  const { uid, type } = event
  const metadata = {
    estimated_created_at: formatOffsetTime(event.createdAtMs),
    event_id: null,
    source: uid.split('/')[1] ?? null,
    flare_url: eventLink(uid),
  }
  return {
    data: { uid, index: type, metadata, title: findTitle(event), ...toData(event, grant) },
    header: { ...toHeader(event), uid, type },
    metadata,
  }
}

/** Returns the older full event, which exists for every type, even one without a model. */
function toActivity(event: SandboxEvent, grant: TokenGrant | null): unknown {
  const item = toLegacyItem(event, grant) as object
  return { ...item, duplicates: [], history_logs: null, similar_items: [] }
}

/**
 * Returns the severity as a risk, 1 to 5 (docs/api-notes.md, Severities); an unknown one ranks
 * highest.
 */
function toRisk(event: SandboxEvent): number {
  const rank = (knownSeverities as readonly string[]).indexOf(effectiveSeverity(event))
  return rank === -1 ? knownSeverities.length : rank + 1
}

function toHeader(event: SandboxEvent): Fields {
  const data = event.data ?? {}
  const source = event.uid.split('/')[1] ?? null
  return {
    title: findTitle(event),
    content_preview: previewText(event),
    category_name: textAt(data, 'context.category_name'),
    risk: { score: toRisk(event) },
    source,
    source_name: textAt(data, 'source.name') ?? source,
    actor: textAt(data, 'actor.name'),
    timestamp: formatOffsetTime(event.createdAtMs),
    ignored_at: formatTimeOrNull(event.ignoredAtMs),
    remediated_at: formatTimeOrNull(event.remediatedAtMs),
    tags: event.tags,
    notes: event.notes,
  }
}

const titlePaths = [
  'title',
  'context.topic_title',
  'context.conversation_name',
  'domain',
  'hostname',
  'identity_name',
  'term',
  'name',
  'username',
  'bucket.host',
  'bin',
  'victim_information.username',
]

function findTitle({ uid, data }: SandboxEvent): string {
  const found = titlePaths.map((path) => textAt(data ?? {}, path))
  return found.find((text) => text !== null) ?? uid
}

function previewText({ data, highlights }: SandboxEvent): string | null {
  const shown = Object.values(highlights)
    .flat()[0]
    ?.replaceAll(/<\/?mark>/g, '')
  return (textAt(data ?? {}, 'content') ?? shown)?.slice(0, previewLength) ?? null
}

function textAt(data: Fields, path: string): string | null {
  let value: unknown = data
  for (const key of path.split('.')) value = (value as Fields | null | undefined)?.[key]
  return typeof value === 'string' ? value : null
}

/** Includes stolen credentials and cookies only as far as the caller may see them. */
function toData(event: SandboxEvent, grant: TokenGrant | null): Fields {
  if (event.data === null) return highlightFields(event)
  const { data } = toFullEvent(event, hasPermission(grant, 'leaksdb.show-passwords'))
  const stolen = readStolen(event)
  return {
    ...(data as Fields),
    ...(stolen &&
      hasPermission(grant, 'astp_credentials_access') && { credentials: stolen.credentials }),
    ...(stolen && hasPermission(grant, 'astp_cookies_access') && { cookies: stolen.cookies }),
  }
}

/** Returns the fields of a type without a model, taken from its highlights. */
function highlightFields({ highlights }: SandboxEvent): Fields {
  const shown = Object.entries(highlights).map(([path, texts]) => [
    path.split('.').at(-1),
    texts.join('\n').replaceAll(/<\/?mark>/g, ''),
  ])
  return Object.fromEntries(shown) as Fields
}

function formatTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : formatOffsetTime(ms)
}

/** A list parameter: a repeated key, or values separated by commas. */
function listField<Value extends z.ZodType>(value: Value): z.ZodType<z.output<Value>[]> {
  const texts = z.union([z.string(), z.array(z.string())]).default([])
  return texts
    .transform((given) => [given].flat().flatMap((text) => text.split(',')))
    .pipe(z.array(value) as z.ZodType<z.output<Value>[], string[]>)
}

const word = z.string().min(1)
const flag = z
  .enum(['true', 'false', '1', '0'])
  .transform((text) => text === 'true' || text === '1')

const span = z.string().transform((text, context) => {
  const [since, until, ...rest] = text.split('@').map(parseInstant)
  const isSpan = rest.length === 0 && Number.isFinite(since) && Number.isFinite(until)
  if (since !== undefined && until !== undefined && isSpan) return { since, until }
  context.addIssue('not of the form from@to, both of them timestamps')
  return z.NEVER
})

const lucene = z.string().transform((text, context) => {
  try {
    return text.trim() === '' ? null : parseLucene(text)
  } catch (error) {
    if (!(error instanceof LuceneError)) throw error
    context.addIssue(error.message)
    return z.NEVER
  }
})

/**
 * Parameters of the legacy search, in the query string of both methods (docs/api-notes.md, Cursors
 * and order). No maximum of `size` is published. The sandbox has no global policies and no
 * statistics.
 */
const legacyParameters = z.strictObject({
  fields: listField(word),
  time: span.optional(),
  size: z.coerce.number().int().min(1).default(10),
  search_after: word.optional(),
  from: word.optional(),
  tags: listField(word),
  tags_query_operator: z
    .string()
    .toUpperCase()
    .pipe(z.enum(['AND', 'OR']))
    .default('OR'),
  types: listField(z.enum(legacyTypes)),
  experimental_types: listField(word),
  event_action: z.enum(legacyEventActions).optional(),
  event_actions: listField(z.enum(legacyEventActions)),
  risks: listField(z.coerce.number().int().min(1).max(5)),
  order: z.enum(orders).default('desc'),
  sort_by: z.enum(legacySortKeys).default('created'),
  use_global_policies: flag.default(true),
  time_zone: z.string().refine(isTimeZone, 'not a time zone').optional(),
  query: lucene.default(null),
  has_modified_risk_score: flag.default(false),
  has_notes: flag.default(false),
})

type LegacyParameters = z.infer<typeof legacyParameters>

/** Returns the parts of `item` at or below the dotted paths; all of it if there are no paths. */
function pickFields(item: unknown, paths: readonly string[]): unknown {
  if (paths.length === 0) return item
  return pick(
    item,
    paths.map((path) => path.split('.')),
  )
}

function pick(value: unknown, paths: readonly string[][]): unknown {
  if (Array.isArray(value)) return value.map((entry) => pick(entry, paths))
  if (paths.some(({ length }) => length === 0)) return value
  if (typeof value !== 'object' || value === null) return undefined
  const picked = Object.entries(value).flatMap(([key, inner]) => {
    const below = paths.filter(([first]) => first === key).map(([, ...rest]) => rest)
    return below.length === 0 ? [] : [[key, pick(inner, below)] as const]
  })
  return Object.fromEntries(picked)
}
