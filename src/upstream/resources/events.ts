/**
 * Events: searched in the tenant, an identifier group, an identifier or globally, read one by one,
 * and their expanded fields.
 */
import { z } from 'zod'
import { type Capabilities, isOperationMissing, isUnknownPath } from '../capabilities.ts'
import { UpstreamError } from '../error.ts'
import { type Answer, parseErrorBody } from '../failures.ts'
import { readAnswer } from '../session.ts'
import { eventSeverities, expandFields, orders } from './enumerations.ts'
import {
  ask,
  type CallOptions,
  type TierCallOptions,
  checkRequest,
  pathPart,
  read,
  type SearchPage,
  readSearchPage,
  type OptionalOperationParts,
} from './operation.ts'
import { wireSearchPage, type WireSearchPage } from './page.ts'

const text = z.string()
const nullableText = text.nullish()
/** A malformed field reads as null, so that the item survives. Feeds read the raw item. */
const optionalText = nullableText.catch(null)

/** One search item as commands show it. */
export const wireSearchItem = z.looseObject({
  metadata: z.looseObject({
    uid: z.string().min(1),
    type: optionalText,
    severity: optionalText,
    estimated_created_at: optionalText,
    matched_at: optionalText,
    flare_url: optionalText,
  }),
  tenant_metadata: z
    .looseObject({
      severity: z
        .looseObject({ original: optionalText, override: optionalText })
        .nullish()
        .catch(null),
      tags: z.array(text).nullish().catch(null),
      notes: optionalText,
      ignored_at: optionalText,
      remediated_at: optionalText,
    })
    .nullish()
    .catch(null),
  highlights: z.record(z.string(), z.array(text)).nullish().catch(null),
  identifiers: z
    .array(z.looseObject({ id: z.number(), name: text }))
    .nullish()
    .catch(null),
})
export type WireSearchItem = z.infer<typeof wireSearchItem>

/** The full event. Older servers wrap it in `activity` (docs/api-notes.md, Full events). */
export const wireFullEvent = z.looseObject({
  event_type: nullableText,
  metadata: z.looseObject({ uid: nullableText }).nullish(),
  data: z.record(z.string(), z.unknown()).nullish(),
})
export type WireFullEvent = z.infer<typeof wireFullEvent>

/** An item of an expanded field (docs/api-notes.md, Expanded fields). */
export const wireExpandedCredential = z.looseObject({
  url: nullableText,
  username: nullableText,
  password: nullableText,
  application: nullableText,
})
export const wireExpandedCookie = z.looseObject({
  host_key: nullableText,
  path: nullableText,
  expires_utc: nullableText,
  name: nullableText,
  value: nullableText,
})

const word = z.string().min(1)

/** The thirteen kinds of event queries (docs/api-notes.md, Event queries). */
export const eventQuery = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('domain'), fqdn: word }),
  z.strictObject({ type: z.literal('email'), email: word }),
  z.strictObject({ type: z.literal('keyword'), keyword: word }),
  z.strictObject({ type: z.literal('query_string'), query_string: word.max(10_000) }),
  z.strictObject({ type: z.literal('username'), username: word }),
  z.strictObject({ type: z.literal('github_repository'), repo_owner: word, repo_name: word }),
  z.strictObject({ type: z.literal('brand'), name: word }),
  z.strictObject({
    type: z.literal('name'),
    first_name: word,
    last_name: word,
    is_strict: z.boolean(),
  }),
  z.strictObject({ type: z.literal('bin'), bin: word }),
  z.strictObject({ type: z.literal('ip'), ip: word }),
  z.strictObject({ type: z.literal('credentials'), username: word, password: word }),
  z.strictObject({ type: z.literal('secret'), secret: word }),
  z.strictObject({ type: z.literal('azure_tenant'), tenant_id: word }),
])
export type EventQuery = z.input<typeof eventQuery>

const timeRange = z.strictObject({
  gt: word.optional(),
  gte: word.optional(),
  lt: word.optional(),
  lte: word.optional(),
})

const severity = z.enum(eventSeverities)

const searchFilters = z.strictObject({
  /** A word means this severity or higher, a list exactly these (docs/api-notes.md, Severities). */
  severity: z.union([severity, z.array(severity)]).optional(),
  /** Words of `eventFilterTypes`, or of later servers. */
  type: z.array(word).optional(),
  estimated_created_at: timeRange.optional(),
  /** When it was matched into the feed, whatever its age (docs/api-notes.md, Cursors and order). */
  materialized_at: timeRange.optional(),
  tags: z.array(z.string()).optional(),
  /** Only `true` filters. `false` is the default and has no effect. */
  is_ignored: z.boolean().optional(),
  is_remediated: z.boolean().optional(),
})

const searchPage = {
  /** At most 10 (docs/api-notes.md, Page sizes). */
  size: z.int().min(1).max(10),
  order: z.enum(orders),
  from: z.string().optional(),
  filters: searchFilters.optional(),
}

/** The body of a global event search. During a scan only `from` changes. */
export const globalSearchBody = z.strictObject({ query: eventQuery, ...searchPage })
export type GlobalSearchBody = z.input<typeof globalSearchBody>

/** The body of a search in a group, an identifier or the tenant. The query is optional. */
export const groupSearchBody = z.strictObject({ query: eventQuery.optional(), ...searchPage })
export type GroupSearchBody = z.input<typeof groupSearchBody>

/** The full event of any type in its older shape (docs/api-notes.md, Full events). */
const wireActivityAnswer = z.looseObject({
  activity: z.looseObject({
    data: z.record(text, z.unknown()).nullish(),
    header: z.looseObject({ uid: nullableText, type: nullableText }).nullish(),
  }),
})

const filterWord = z.looseObject({ value: word })

/** The words that a `type` filter takes: categories, and the types in them. */
const wireTypeFilters = z.looseObject({
  categories: z.array(filterWord.extend({ types: z.array(filterWord).nullish() })).nullish(),
})

/** The words that a `severity` filter takes. */
const wireSeverityFilters = z.looseObject({ severities: z.array(filterWord).nullish() })

/** The request for one page of an expanded field: at most 20 items (docs/api-notes.md, Page sizes). */
export const expansion = z.strictObject({
  uid: word,
  field: z.enum(expandFields),
  size: z.int().min(1).max(20),
  from: z.string().optional(),
})
type Expansion = z.input<typeof expansion>

/** The caller chooses the tier: none is published for these (docs/api-notes.md, Rate limits). */
type FeedSearch = { body: GroupSearchBody } & Required<Pick<TierCallOptions, 'tier'>> & CallOptions

export interface EventOperations {
  /**
   * Returns one page of an identifier group's events. `POST
   * /firework/v4/events/identifier_groups/{id}/_search`.
   */
  searchGroupEvents(request: { groupId: number } & FeedSearch): Promise<SearchPage>
  /**
   * Returns one page of all events that the tenant watches for, with tier and body as for a group.
   * `POST /firework/v4/events/tenant/_search`. Not every server has it.
   */
  searchTenantEvents(request: FeedSearch): Promise<SearchPage>
  /**
   * Returns one page of an identifier's events. `POST
   * /firework/v4/events/identifiers/{id}/_search`. Not every server has it.
   */
  searchIdentifierEvents(request: { identifier: number } & FeedSearch): Promise<SearchPage>
  /**
   * Returns one page of a global search, which costs quota. `POST
   * /firework/v4/events/global/_search`; search tier.
   */
  searchEvents(request: { body: GlobalSearchBody } & TierCallOptions): Promise<SearchPage>
  /**
   * Returns the full event, or why there is none; only the latter is final. `GET
   * /firework/v4/events/`; basic tier. If it has no full event, `getActivity` is tried where the
   * server has it.
   */
  getEvent(request: { uid: string } & CallOptions): Promise<EventAnswer>
  /** Returns any full event in its older shape. `GET /firework/v2/activities/`; basic tier. */
  getActivity(request: { uid: string } & CallOptions): Promise<EventAnswer>
  /**
   * Returns the words that a `type` filter takes, groups and single types. `GET
   * /firework/v4/events/filters/types`; basic tier. Not every server has it.
   */
  eventTypeFilters(asked: CallOptions): Promise<string[]>
  /**
   * Returns the words that a `severity` filter takes. `GET /firework/v4/events/filters/severities`;
   * basic tier. Not every server has it.
   */
  eventSeverityFilters(asked: CallOptions): Promise<string[]>
  /**
   * Returns one page of an event's credentials or cookies, with secrets in clear text. Only stealer
   * logs have any. `GET /firework/v4/events/_expand`; basic tier.
   */
  expandEvent(request: { expansion: Expansion } & CallOptions): Promise<WireSearchPage>
}

export function createEventOperations(parts: OptionalOperationParts): EventOperations {
  async function searchFeed(where: string, { body, ...asked }: FeedSearch): Promise<SearchPage> {
    const path = `/firework/v4/events/${where}/_search`
    const checked = checkRequest(groupSearchBody, body)
    const [secrets, pageSize] = [querySecrets(checked.query), checked.size]
    const request = { method: 'POST', path, body: checked, secrets, pageSize } as const
    return readSearchPage(await ask(parts, request, asked))
  }

  return {
    searchGroupEvents: ({ groupId, ...search }) =>
      searchFeed(`identifier_groups/${pathPart(groupId)}`, search),
    searchTenantEvents: (search) => searchFeed('tenant', search),
    searchIdentifierEvents: ({ identifier, ...search }) =>
      searchFeed(`identifiers/${pathPart(identifier)}`, search),
    async searchEvents({ body, ...asked }) {
      const path = '/firework/v4/events/global/_search'
      const checked = checkRequest(globalSearchBody, body)
      const [secrets, pageSize] = [querySecrets(checked.query), checked.size]
      const tier = 'search'
      const request = { method: 'POST', path, body: checked, secrets, pageSize, tier } as const
      return readSearchPage(await ask(parts, request, asked))
    },
    async getEvent({ uid, ...asked }) {
      await parts.lookup.ensure(asked.signal)
      const path = `/firework/v4/events/?uid=${pathPart(uid)}`
      const call = { method: 'GET', path, tier: 'basic', ...asked } as const
      const answer = readEvent(await parts.session.call(call, hasNoDetail), uid)
      if (answer.kind === 'detail' || answer.why === 'mismatch') return answer
      const older = await tryOlderOperation(parts.capabilities, () =>
        getActivity(parts, { uid, ...asked }),
      )
      return older?.kind === 'detail' ? older : answer
    },
    getActivity: (asked) => getActivity(parts, asked),
    async eventTypeFilters(asked) {
      const request = { method: 'GET', path: '/firework/v4/events/filters/types' } as const
      const { categories } = await read(parts, wireTypeFilters, request, asked)
      const words = (categories ?? []).flatMap(({ value, types }) => [
        value,
        ...filterValues(types ?? []),
      ])
      return [...new Set(words)]
    },
    async eventSeverityFilters(asked) {
      const request = { method: 'GET', path: '/firework/v4/events/filters/severities' } as const
      return filterValues((await read(parts, wireSeverityFilters, request, asked)).severities ?? [])
    },
    async expandEvent({ expansion: wanted, ...asked }) {
      const { uid, field, size, from } = checkRequest(expansion, wanted)
      const query = new URLSearchParams({ uid, field, size: String(size) })
      if (from !== undefined) query.set('from', from)
      const path = `/firework/v4/events/_expand?${query.toString()}`
      return read(parts, wireSearchPage, { method: 'GET', path, pageSize: size }, asked)
    },
  }
}

async function getActivity(
  parts: OptionalOperationParts,
  { uid, ...asked }: { uid: string } & CallOptions,
): Promise<EventAnswer> {
  const path = `/firework/v2/activities/?uid=${pathPart(uid)}`
  try {
    return readActivity(await ask(parts, { method: 'GET', path }, asked), uid)
  } catch (error) {
    if (!(error instanceof UpstreamError) || isUnknownPath(error)) throw error
    if (error.status === 404) return { kind: 'none', why: 'not_found' }
    if (error.serviceCode === 'UNSUPPORTED') return { kind: 'none', why: 'unsupported' }
    throw error
  }
}

/**
 * Returns what the older operation gives; undefined if it is missing, closed to the key, or its
 * answer makes no sense. A 404 may be about the path or about the event: if it looks like one for
 * the path, or is a 405, and the operation never returned anything, the operation counts as missing
 * for an hour.
 */
async function tryOlderOperation(
  capabilities: Capabilities,
  getActivity: () => Promise<EventAnswer>,
): Promise<EventAnswer | undefined> {
  const capability = await capabilities.read('activities')
  if (capability?.has === false) return undefined
  try {
    const answer = await getActivity()
    if (answer.kind === 'detail' && !capability) await capabilities.note('activities', true)
    return answer
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    if (!capability && (isUnknownPath(error) || error.status === 405)) {
      await capabilities.note('activities', false, 'hour')
    }
    if (isOperationMissing(error) || error.reason === 'contract') return undefined
    throw error
  }
}

function filterValues(words: readonly { value: string }[]): string[] {
  return words.map(({ value }) => value)
}

/** Returns the secrets of a query, which must not appear in any message. */
function querySecrets(query: EventQuery | undefined): string[] {
  if (query?.type === 'secret') return [query.secret]
  return query?.type === 'credentials' ? [query.password] : []
}

export type EventAnswer =
  | { kind: 'detail'; event: WireFullEvent; data: Record<string, unknown> }
  /**
   * In this order: the type has no full event, the uid is unknown, its data is empty, or the answer
   * is about another event.
   */
  | { kind: 'none'; why: 'unsupported' | 'not_found' | 'empty' | 'mismatch' }

const wireEvents = z.union([
  z.looseObject({ activity: wireFullEvent }).transform(({ activity }) => [activity]),
  z.looseObject({ items: z.array(wireFullEvent) }).transform(({ items }) => items),
  wireFullEvent.transform((event) => [event]),
])

/** Whether a refusal only means that there is no full event. */
function hasNoDetail({ status, body }: Answer): boolean {
  return status === 404 || (status === 400 && parseErrorBody(body).code === 'UNSUPPORTED')
}

/**
 * Reads an answer about one event: a bare event, one within `activity` or `items` as other server
 * versions send it, or a refusal that `hasNoDetail` accepts.
 */
function readEvent(answer: Answer, uid: string): EventAnswer {
  if (answer.status === 404) return { kind: 'none', why: 'not_found' }
  if (answer.status === 400) return { kind: 'none', why: 'unsupported' }
  const events = readAnswer(answer, wireEvents)
  const event = events.find(({ metadata }) => metadata?.uid === uid) ?? events.find(hasNoUid)
  if (!event) return { kind: 'none', why: events.length === 0 ? 'not_found' : 'mismatch' }
  const data = event.data ?? {}
  return Object.keys(data).length === 0
    ? { kind: 'none', why: 'empty' }
    : { kind: 'detail', event, data }
}

/** Reads an answer of the older operation, which has the uid in the header or in the data. */
function readActivity(answer: Answer, uid: string): EventAnswer {
  const { header, data } = readAnswer(answer, wireActivityAnswer).activity
  const shownUid = header?.uid ?? data?.['uid'] ?? uid
  if (shownUid !== uid) return { kind: 'none', why: 'mismatch' }
  if (!data || Object.keys(data).length === 0) return { kind: 'none', why: 'empty' }
  return { kind: 'detail', event: { event_type: header?.type, metadata: { uid }, data }, data }
}

function hasNoUid({ metadata }: WireFullEvent): boolean {
  return metadata?.uid === undefined || metadata.uid === null
}
