/**
 * Events: searched in the tenant, an identifier group, an identifier or globally, read one by one,
 * their expanded fields, and triage back to the service.
 */
import { z } from 'zod'
import { eventSeverities, expandFields, orders, triageActions } from './enumerations.ts'
import { cursor, moment, nothing, operation, pagedOperation } from './operation.ts'
import { lenient } from './page.ts'

const text = z.string()
const nullableText = text.nullish()

/** One search item as commands show it. */
export const wireSearchItem = z.looseObject({
  metadata: z.looseObject({
    uid: z.string().min(1),
    type: lenient.text,
    severity: lenient.text,
    estimated_created_at: lenient.text,
    matched_at: lenient.text,
    flare_url: lenient.text,
  }),
  tenant_metadata: z
    .looseObject({
      severity: z
        .looseObject({ original: lenient.text, override: lenient.text })
        .nullish()
        .catch(null),
      tags: lenient.texts,
      notes: lenient.text,
      ignored_at: lenient.text,
      remediated_at: lenient.text,
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
  gt: moment.optional(),
  gte: moment.optional(),
  lt: moment.optional(),
  lte: moment.optional(),
})

const severity = z.enum(eventSeverities)

const searchFilters = z.strictObject({
  /** A word means this severity or higher, a list exactly these (docs/api-notes.md, Severities). */
  severity: z.union([severity, z.array(severity)]).optional(),
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
  size: z.int().min(1).max(10).optional(),
  order: z.enum(orders).optional(),
  from: cursor,
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
const typeFilters = z
  .looseObject({
    categories: z.array(filterWord.extend({ types: z.array(filterWord).nullish() })).nullish(),
  })
  .transform(({ categories }) => [
    ...new Set(
      (categories ?? [])
        .flatMap((category) => [category, ...(category.types ?? [])])
        .map(({ value }) => value),
    ),
  ])

/** The words that a `severity` filter takes. */
const severityFilters = z
  .looseObject({ severities: z.array(filterWord).nullish() })
  .transform(({ severities }) => (severities ?? []).map(({ value }) => value))

/** One event: bare, or within `activity` or `items` as other server versions send it. */
export const wireEvents = z.union([
  z.looseObject({ activity: wireFullEvent }).transform(({ activity }) => [activity]),
  z.looseObject({ items: z.array(wireFullEvent) }).transform(({ items }) => items),
  wireFullEvent.transform((event) => [event]),
])

/** What people do with an event or a credential at the service. */
export const triageAction = z.strictObject({ type: z.enum(triageActions) })

/** At most 10 targets in one request. */
const eventAction = z.strictObject({
  targets: z
    .array(z.strictObject({ uid: word }))
    .min(1)
    .max(10),
  action: triageAction,
})

/** What the tenant notes about an event; what is left out stays. */
const tenantNote = z.strictObject({
  tags: z.array(word).optional(),
  notes: z.string().optional(),
  severity: z.enum(eventSeverities).optional(),
})

const wireTenantNote = z.looseObject({
  uid: z.string(),
  notes: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
  severity: z.string().nullish(),
})

const uid = z.strictObject({ uid: word })
/** The request for one page of an expanded field: at most 20 items (docs/api-notes.md, Page sizes). */
export const expansion = uid.extend({
  field: z.enum(expandFields),
  size: z.int().min(1).max(20).optional(),
  from: cursor,
})

const root = '/firework/v4/events'
const toReadEvents = 'to read its events'

/** Only the global search has a published tier; the official guide paces all of them like it. */
export const eventOperations = {
  searchGlobal: pagedOperation({
    name: 'events.search',
    summary: 'search all events (costs quota)',
    request: `POST ${root}/global/_search`,
    body: globalSearchBody,
    item: wireSearchItem,
    tier: 'search',
    costsQuota: true,
  }),
  searchGroup: pagedOperation({
    name: 'events.search-group',
    summary: 'search the events of an identifier group',
    request: `POST ${root}/identifier_groups/{identifier_group_id}/_search`,
    body: groupSearchBody,
    item: wireSearchItem,
    tier: 'search',
  }),
  searchIdentifier: pagedOperation({
    name: 'events.search-identifier',
    summary: 'search the events of an identifier',
    request: `POST ${root}/identifiers/{identifier_id}/_search`,
    body: groupSearchBody,
    item: wireSearchItem,
    tier: 'search',
    permission: toReadEvents,
  }),
  searchTenant: pagedOperation({
    name: 'events.search-tenant',
    summary: 'search the events of all identifiers of the tenant',
    request: `POST ${root}/tenant/_search`,
    body: groupSearchBody,
    item: wireSearchItem,
    tier: 'search',
    permission: toReadEvents,
  }),
  get: operation({
    name: 'events.get',
    summary: 'read a full event',
    request: `GET ${root}/`,
    query: uid,
    answer: wireEvents.transform(([event]) => event ?? null),
  }),
  activity: operation({
    name: 'events.activity',
    summary: 'read a full event of any type, in its older shape',
    request: 'GET /firework/v2/activities/',
    query: uid,
    answer: wireActivityAnswer,
    permission: toReadEvents,
  }),
  expand: pagedOperation({
    name: 'events.expand',
    summary: 'list the credentials or cookies of a stealer log',
    request: `GET ${root}/_expand`,
    query: expansion,
    item: z.union([wireExpandedCredential, wireExpandedCookie]),
  }),
  types: operation({
    name: 'events.types',
    summary: 'list the words that a type filter takes',
    request: `GET ${root}/filters/types`,
    answer: typeFilters,
    item: text,
    permission: toReadEvents,
  }),
  severities: operation({
    name: 'events.severities',
    summary: 'list the words that a severity filter takes',
    request: `GET ${root}/filters/severities`,
    answer: severityFilters,
    item: text,
    permission: toReadEvents,
  }),
  act: operation({
    name: 'events.act',
    summary: 'ignore or remediate events, or undo that',
    request: `POST ${root}/actions`,
    body: eventAction,
    answer: nothing,
    changes: true,
    permission: 'to change events',
  }),
  note: operation({
    name: 'events.note',
    summary: 'replace the tags, the note or the severity of an event',
    request: `PATCH ${root}/tenant/metadata`,
    query: uid,
    body: tenantNote,
    answer: wireTenantNote,
    changes: true,
    permission: 'to change events',
  }),
} as const
