import { z } from 'zod'
import { eventSeverities, expandFields, orders } from './enumerations.ts'

const text = z.string()
const nullableText = text.nullish()
/** An odd field keeps no item back: it reads as null. Feeds read the item as it came. */
const optionalText = nullableText.catch(null)

/** One item of a search, as commands show it. */
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

/** The full event: bare, or wrapped as `activity` by older servers (facts.md 3, event detail). */
export const wireFullEvent = z.looseObject({
  event_type: nullableText,
  metadata: z.looseObject({ uid: nullableText }).nullish(),
  data: z.record(z.string(), z.unknown()).nullish(),
})
export type WireFullEvent = z.infer<typeof wireFullEvent>

/** An item of an expanded field (facts.md 1, row 6, and service.md, Expanded cookie item). */
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

/** What a global event search looks for: thirteen kinds (facts.md 3.2; the description has `domain`). */
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
  /** A word: this or higher; a list: exactly these (facts.md 2.6). */
  severity: z.union([severity, z.array(severity)]).optional(),
  /** Words of `eventFilterTypes`, and of later servers. */
  type: z.array(word).optional(),
  estimated_created_at: timeRange.optional(),
  /** When it was matched into the feed, whatever its age (OpenAPI v4, FeedFilters). */
  materialized_at: timeRange.optional(),
  tags: z.array(z.string()).optional(),
  /** Only `true` filters; `false` is the default and has no effect. */
  is_ignored: z.boolean().optional(),
  is_remediated: z.boolean().optional(),
})

const searchPage = {
  /** At most 10 (service.md, Limits). */
  size: z.int().min(1).max(10),
  order: z.enum(orders),
  from: z.string().optional(),
  filters: searchFilters.optional(),
}

/** The body of a global event search. `from` moves; everything else of a walk never changes. */
export const globalSearchBody = z.strictObject({ query: eventQuery, ...searchPage })
export type GlobalSearchBody = z.input<typeof globalSearchBody>

/** The body of a search in an identifier group, an identifier or the tenant: it may do without a query. */
export const groupSearchBody = z.strictObject({ query: eventQuery.optional(), ...searchPage })
export type GroupSearchBody = z.input<typeof groupSearchBody>

/** The full event as the older operation gives it, for every type (OpenAPI v2, activities). */
export const wireActivityAnswer = z.looseObject({
  activity: z.looseObject({
    data: z.record(text, z.unknown()).nullish(),
    header: z.looseObject({ uid: nullableText, type: nullableText }).nullish(),
  }),
})

const filterWord = z.looseObject({ value: word })

/** Which words a `type` filter takes: categories and what they contain. */
export const wireTypeFilters = z.looseObject({
  categories: z.array(filterWord.extend({ types: z.array(filterWord).nullish() })).nullish(),
})

/** Which words a `severity` filter takes. */
export const wireSeverityFilters = z.looseObject({ severities: z.array(filterWord).nullish() })

/** One page of an expanded field: at most 20 items (service.md, Limits). */
export const expansion = z.strictObject({
  uid: word,
  field: z.enum(expandFields),
  size: z.int().min(1).max(20),
  from: z.string().optional(),
})
export type Expansion = z.input<typeof expansion>
