/**
 * The legacy search (v2), which the API deprecates in favour of the global event search. GET and
 * POST both carry their parameters in the query string (docs/api-notes.md, Cursors and order).
 */
import { z } from 'zod'
import { readSearchesRemaining } from '../failures.ts'
import { readAnswer } from '../session.ts'
import { legacyEventActions, legacySortKeys, legacyTypes, orders } from './enumerations.ts'
import {
  ask,
  type TierCallOptions,
  checkRequest,
  type OperationParts,
  type SearchPage,
} from './operation.ts'
import { wireCursor, wireItems } from './page.ts'

export interface LegacySearchRequest extends TierCallOptions {
  /** All parameters except the cursor. */
  parameters: Omit<LegacySearchParameters, 'from' | 'search_after'>
  /** `next` of the previous page; null for the first page. */
  from: string | null
  /** Default POST: the GET is deprecated even within this API. */
  method?: 'GET' | 'POST'
}

interface LegacySearchPage extends SearchPage {
  /** Total number of hits; undefined if the answer does not state it. */
  hits: number | undefined
}

export interface LegacySearchOperations {
  /**
   * Returns one page of a legacy search, which costs quota. `GET|POST /firework/v2/search/`; search
   * tier.
   */
  legacySearch(request: LegacySearchRequest): Promise<LegacySearchPage>
}

export function createLegacySearchOperations(parts: OperationParts): LegacySearchOperations {
  return {
    async legacySearch({ parameters, from, method = 'POST', ...asked }) {
      const checked = checkRequest(legacySearchParameters, {
        ...parameters,
        ...(from !== null && parseCursor(from)),
      })
      const path = `/firework/v2/search/?${toQueryString(checked)}`
      const request = { method, path, pageSize: checked.size, tier: 'search' } as const
      const answer = await ask(parts, request, asked)
      const legacy = readAnswer(answer, wireLegacyPage)
      return {
        page: { items: legacy.items, next: readCursor(legacy) },
        hits: legacy.nb_hits ?? undefined,
        requestedAtMs: answer.sentAtMs,
        searchesRemaining: readSearchesRemaining(answer),
      }
    },
  }
}

/** Writes lists as repeated keys. */
function toQueryString(parameters: LegacySearchParameters): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) query.append(key, String(one))
  }
  return query.toString()
}

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

const text = z.string()

/** Every parameter of the query string. */
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
  nb_hits: z.number().nullish().catch(null),
  links: z.looseObject({ next: wireCursor.nullish() }).nullish(),
  search_after: z
    .union([wireCursor, z.array(z.unknown()).refine(isExact).transform(legacyCursor)])
    .nullish(),
})
export type WireLegacyPage = z.infer<typeof wireLegacyPage>
