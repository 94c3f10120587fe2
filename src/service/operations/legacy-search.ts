/**
 * The legacy search (v2), deprecated by the service in favour of the global event search. Both methods
 * carry their parameters in the query string (facts.md 1, row 17).
 */
import { readAnswer } from '../read-answer.ts'
import { searchesRemainingIn } from '../transport/searches-remaining.ts'
import {
  legacySearchParameters,
  wireLegacyPage,
  type LegacySearchParameters,
  type WireLegacyPage,
} from '../wire/legacy-search.ts'
import { checkRequest } from './check-request.ts'
import { ask, type AskedOfTier, type OperationParts } from './operation.ts'
import type { SearchPage } from './search-page.ts'

export interface LegacySearchRequest extends AskedOfTier {
  /** All but the cursor. */
  parameters: Omit<LegacySearchParameters, 'from' | 'search_after'>
  /** `next` of the page before; null: the first page. */
  from: string | null
  /** Default POST: the GET is marked as deprecated even within this API. */
  method?: 'GET' | 'POST'
}

export interface LegacySearchPage extends SearchPage {
  /** How many the search finds in all; undefined where the answer does not say. */
  hits: number | undefined
}

export interface LegacySearchOperations {
  /** One page of a legacy search, which costs quota. `GET|POST /firework/v2/search/`; search tier. */
  legacySearch(request: LegacySearchRequest): Promise<LegacySearchPage>
}

export function createLegacySearchOperations(parts: OperationParts): LegacySearchOperations {
  return {
    async legacySearch({ parameters, from, method = 'POST', ...asked }) {
      const checked = checkRequest(legacySearchParameters, {
        ...parameters,
        ...(from !== null && parametersOfCursor(from)),
      })
      const path = `/firework/v2/search/?${queryOf(checked)}`
      const request = { method, path, pageSize: checked.size, tier: 'search' } as const
      const answer = await ask(parts, request, asked)
      const legacy = readAnswer(answer, wireLegacyPage)
      return {
        page: { items: legacy.items, next: nextOf(legacy) },
        hits: legacy.nb_hits ?? undefined,
        requestedAtMs: answer.sentAtMs,
        searchesRemaining: searchesRemainingIn(answer),
      }
    },
  }
}

/** Lists as repeated keys. */
function queryOf(parameters: LegacySearchParameters): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) query.append(key, String(one))
  }
  return query.toString()
}

/**
 * One cursor for the two that an answer may hold: `search_after`, or what `links.next` holds of one,
 * by itself or within an address. It names the parameter that it goes back as.
 */
export function nextOf({ search_after, links }: WireLegacyPage): string | null {
  if (search_after) return cursorOf('search_after', search_after)
  const next = links?.next
  if (!next) return null
  const query = addressIn(next)?.searchParams
  if (query === undefined) return cursorOf('from', next)
  const after = query.get('search_after')
  const from = query.get('from')
  if (after !== null) return cursorOf('search_after', after)
  return from === null ? null : cursorOf('from', from)
}

type CursorParameter = 'search_after' | 'from'

function cursorOf(parameter: CursorParameter, value: string): string {
  return `${parameter}=${value}`
}

function parametersOfCursor(cursor: string): Partial<Record<CursorParameter, string>> {
  if (cursor.startsWith('from=')) return { from: cursor.slice('from='.length) }
  return { search_after: cursor.replace(/^search_after=/, '') }
}

/** A cursor by itself may begin with a slash, as base64 does; an address that holds one has a query. */
function addressIn(next: string): URL | undefined {
  if (!/^(https?:\/\/|\/[^?]*\?|\?)/.test(next)) return undefined
  return URL.parse(next, 'https://any.example') ?? undefined
}
