/**
 * The legacy search over all events, with their number. It takes every
 * parameter, and heeds `query` and `types`.
 */
import {
  legacySearchOperations,
  type LegacySearchParameters,
} from '../../upstream/resources/legacy-search.ts'
import { toLegacyItem, withoutNotes } from './event-items.ts'
import { expandTypes } from './filters.ts'
import { plainQuery, toDocument } from './query.ts'
import { type Caller, on, type Route } from './routes.ts'
import { isShownTo, type SearchParts } from './search.ts'

type Parameters = LegacySearchParameters

export function legacyRoutes(parts: SearchParts): Route[] {
  const { settings, history, pages, quota } = parts

  function answer({ search_after: after, from, ...asked }: Parameters, caller: Caller): unknown {
    const { order = 'desc', size = 10, query = '', types = [] } = asked
    const wanted = expandTypes(types)
    const holds = plainQuery(query.trim() || '*')
    const entries = history
      .inOrder()
      .map((event) => (isShownTo(event, caller, settings) ? event : withoutNotes(event)))
      .filter(({ type }) => types.length === 0 || wanted.has(type))
      .filter((event) => holds(toDocument(event)))
    const page = pages.read({ scan: ['legacy', asked], entries, order, size, from: after ?? from })
    quota.charge(caller, ['legacy', asked.query])
    return {
      items: page.entries.map((event) => toLegacyItem(event)),
      nb_hits: entries.length,
      search_after: page.next,
    }
  }

  return Object.values(legacySearchOperations).map((row) => on(row, answer))
}
