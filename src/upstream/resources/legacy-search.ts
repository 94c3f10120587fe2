/**
 * The legacy search (v2), which the API deprecates in favour of the global event search. GET and
 * POST both carry their parameters in the query string (docs/api-notes.md, Cursors and order).
 */
import { z } from 'zod'
import { orders } from './enumerations.ts'
import { pagedOperation } from './operation.ts'
import { lenient, wireCursor, wireItems } from './page.ts'

const text = z.string()

/** Every parameter of the query string. */
export const legacySearchParameters = z.strictObject({
  fields: z.array(text.min(1)).optional(),
  /** `from@to`, both timestamps. */
  time: text.regex(/^[^@]+@[^@]+$/).optional(),
  size: z.int().min(1).optional(),
  search_after: text.optional(),
  from: text.nullish(),
  tags: z.array(text).optional(),
  tags_query_operator: text.optional(),
  types: z.array(text).optional(),
  experimental_types: z.array(text).optional(),
  event_action: text.optional(),
  event_actions: z.array(text).optional(),
  risks: z.array(z.int().min(1).max(5)).optional(),
  order: z.enum(orders).optional(),
  sort_by: text.optional(),
  use_global_policies: z.boolean().optional(),
  time_zone: text.optional(),
  /** Lucene query syntax. */
  query: text.optional(),
  has_modified_risk_score: z.boolean().optional(),
  has_notes: z.boolean().optional(),
})
export type LegacySearchParameters = z.input<typeof legacySearchParameters>

/** Items stay unparsed, as on every page. `links.next` is the same cursor within a URL. */
export const wireLegacyPage = z.looseObject({
  items: wireItems,
  nb_hits: lenient.number,
  search_after: wireCursor.nullish(),
})

/** One event in the older shape, as commands show it. */
const wireLegacyItem = z.looseObject({
  header: z.looseObject({
    uid: lenient.text,
    type: lenient.text,
    title: lenient.text,
    timestamp: lenient.text,
    source: lenient.text,
  }),
  data: lenient.fields,
})

const search = {
  query: legacySearchParameters,
  answer: wireLegacyPage.transform((page) => ({
    items: page.items,
    next: page.search_after || null,
  })),
  item: wireLegacyItem,
  paging: 'search_after',
  tier: 'search',
  costsQuota: true,
} as const

export const legacySearchOperations = {
  post: pagedOperation({
    ...search,
    name: 'events.legacy-search',
    summary: 'search all events by the deprecated operation (costs quota)',
    request: 'POST /firework/v2/search/',
  }),
  get: pagedOperation({
    ...search,
    name: 'events.legacy-search-get',
    summary: 'the same by GET, which is deprecated even so',
    request: 'GET /firework/v2/search/',
  }),
} as const
