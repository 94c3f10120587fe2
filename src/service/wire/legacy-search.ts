/** The legacy search (v2), deprecated by the service: as asked, and as answered. */
import { z } from 'zod'
import { legacyEventActions, legacySortKeys, legacyTypes, orders } from './enumerations.ts'
import { wireCursor, wireItems } from './page.ts'

const text = z.string()

/** Every parameter; both methods carry them in the query string (facts.md 1, row 17). */
export const legacySearchParameters = z.strictObject({
  fields: z.array(text.min(1)).optional(),
  /** `from@to`, both timestamps. */
  time: text.regex(/^[^@]+@[^@]+$/).optional(),
  size: z.int().min(1).optional(),
  search_after: text.optional(),
  from: text.optional(),
  tags: z.array(text).optional(),
  tags_query_operator: text.optional(),
  types: z.array(z.enum(legacyTypes)).optional(),
  experimental_types: z.array(text).optional(),
  event_action: z.enum(legacyEventActions).optional(),
  event_actions: z.array(text).optional(),
  risks: z.array(z.int().min(1).max(5)).optional(),
  order: z.enum(orders).optional(),
  sort_by: z.enum(legacySortKeys).optional(),
  use_global_policies: z.boolean().optional(),
  time_zone: text.optional(),
  /** Lucene query syntax. */
  query: text.optional(),
  has_modified_risk_score: z.boolean().optional(),
  has_notes: z.boolean().optional(),
})
export type LegacySearchParameters = z.input<typeof legacySearchParameters>

/** A number beyond 2^53 was rounded when it was read: as a cursor it would skip events, or repeat them. */
function isExact(parts: unknown[]): boolean {
  return parts.every((part) => !Number.isInteger(part) || Number.isSafeInteger(part))
}

/** As a list it goes back as JSON; an empty one is none. */
function cursorOf(parts: unknown[]): string | null {
  return parts.length === 0 ? null : JSON.stringify(parts)
}

/** Items stay unknown, as on every page. `links.next` is a cursor, or an address that holds one. */
export const wireLegacyPage = z.looseObject({
  items: wireItems,
  nb_hits: z.number().nullish().catch(null),
  links: z.looseObject({ next: wireCursor.nullish() }).nullish(),
  search_after: z
    .union([wireCursor, z.array(z.unknown()).refine(isExact).transform(cursorOf)])
    .nullish(),
})
export type WireLegacyPage = z.infer<typeof wireLegacyPage>
