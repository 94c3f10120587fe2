/**
 * The legacy search (v2), which the API deprecates in favour of the global event search. GET and
 * POST both carry their parameters in the query string (docs/api-notes.md, Cursors and order).
 */
import { z } from 'zod'
import { legacyEventActions, legacySortKeys, legacyTypes, orders } from './enumerations.ts'
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

/**
 * Whether no number of the cursor is beyond 2^53: rounded by the parser, it would skip or repeat
 * events.
 */
function isExact(parts: unknown[]): boolean {
  return parts.every((part) => !Number.isInteger(part) || Number.isSafeInteger(part))
}

/** A list is sent back as JSON; an empty one means no cursor. */
function legacyCursor(parts: unknown[]): string | null {
  return parts.length === 0 ? null : JSON.stringify(parts)
}

/** Items stay unparsed, as on every page. `links.next` is a cursor, or a URL that holds one. */
export const wireLegacyPage = z.looseObject({
  items: wireItems,
  nb_hits: lenient.number,
  links: z.looseObject({ next: wireCursor.nullish() }).nullish(),
  search_after: z
    .union([wireCursor, z.array(z.unknown()).refine(isExact).transform(legacyCursor)])
    .nullish(),
})
export type WireLegacyPage = z.infer<typeof wireLegacyPage>

/**
 * Returns one cursor for the two that an answer may hold: `search_after`, or the cursor in
 * `links.next`, which is bare or within a URL. It is prefixed with the parameter that it is sent
 * back as.
 */
export function readCursor({ search_after, links }: WireLegacyPage): string | null {
  if (search_after) return formatCursor('search_after', search_after)
  const next = links?.next
  if (!next) return null
  const query = parseLink(next)?.searchParams
  if (query === undefined) return formatCursor('from', next)
  const after = query.get('search_after')
  const from = query.get('from')
  if (after !== null) return formatCursor('search_after', after)
  return from === null ? null : formatCursor('from', from)
}

type CursorParameter = 'search_after' | 'from'

function formatCursor(parameter: CursorParameter, value: string): string {
  return `${parameter}=${value}`
}

/** The parameter that sends a cursor of `readCursor` back. */
function parseCursor(cursor: string): Partial<Record<CursorParameter, string>> {
  if (cursor.startsWith('from=')) return { from: cursor.slice('from='.length) }
  return { search_after: cursor.replace(/^search_after=/, '') }
}

/**
 * Returns the URL, or undefined if `next` is a bare cursor. A bare cursor may begin with a slash,
 * as base64 does, but a URL with a cursor has a query.
 */
function parseLink(next: string): URL | undefined {
  if (!/^(https?:\/\/|\/[^?]*\?|\?)/.test(next)) return undefined
  return URL.parse(next, 'https://any.example') ?? undefined
}

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
  answer: wireLegacyPage.transform((page) => ({ items: page.items, next: readCursor(page) })),
  item: wireLegacyItem,
  paging: 'search_after',
  cursorFields: parseCursor,
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
