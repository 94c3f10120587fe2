import { z } from 'zod'
import { eventSeverities, expandFields, orders } from './enumerations.ts'

const text = z.string()
const nullableText = z.string().nullish()

export const wireSearchItem = z.looseObject({
  metadata: z.looseObject({
    uid: z.string().min(1),
    type: nullableText,
    severity: nullableText,
    estimated_created_at: nullableText,
    matched_at: nullableText,
    flare_url: nullableText,
  }),
  tenant_metadata: z
    .looseObject({
      severity: z.looseObject({ original: nullableText, override: nullableText }).nullish(),
      tags: z.array(text).nullish(),
      notes: nullableText,
      ignored_at: nullableText,
      remediated_at: nullableText,
    })
    .nullish(),
  // an ornament: an odd one must not keep the event back
  highlights: z.record(z.string(), z.array(text)).nullish().catch(null),
  identifiers: z.array(z.looseObject({ id: z.number(), name: text })).nullish(),
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
    is_strict: z.boolean().optional(),
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

const searchFilters = {
  /** A word: this or higher; a list: exactly these (facts.md 2.6). */
  severity: z.union([severity, z.array(severity)]).optional(),
  type: z.array(word).optional(),
  estimated_created_at: timeRange.optional(),
  /** When it was matched; in the specification only (facts.md 2.3). */
  materialized_at: timeRange.optional(),
}

const searchPage = {
  /** At most 10 (service.md, Limits). */
  size: z.int().min(1).max(10),
  order: z.enum(orders),
  from: z.string().optional(),
}

/** The body of a global event search. `from` moves; everything else of a walk never changes. */
export const globalSearchBody = z.strictObject({
  query: eventQuery,
  ...searchPage,
  filters: z.strictObject(searchFilters).optional(),
})
export type GlobalSearchBody = z.input<typeof globalSearchBody>

/** The body of a search in an identifier group, which may do without a query. */
export const groupSearchBody = z.strictObject({
  query: eventQuery.optional(),
  ...searchPage,
  filters: z
    .strictObject({
      ...searchFilters,
      tags: z.array(z.string()).optional(),
      is_ignored: z.boolean().optional(),
      is_remediated: z.boolean().optional(),
    })
    .optional(),
})
export type GroupSearchBody = z.input<typeof groupSearchBody>

/** One page of an expanded field: at most 20 items (service.md, Limits). */
export const expansion = z.strictObject({
  uid: word,
  field: z.enum(expandFields),
  size: z.int().min(1).max(20),
  from: z.string().optional(),
})
export type Expansion = z.input<typeof expansion>
