/**
 * The monthly quota of global searches. One unit pays for 100 results of a search, and repeating
 * the search is free for ten minutes (docs/api-notes.md, Search quota).
 */
import type { SandboxSettings } from '../options.ts'
import type { Caller } from './routes.ts'

export interface SearchQuota {
  /**
   * Charges the results on a page, and states the rest in headers. `search`: the operation and its
   * query without filters, since the same search with other filters is free. `shown`: ids or uids.
   */
  charge(caller: Caller, search: unknown, shown: readonly (string | number)[]): void
  /** Searches left, at least 0; null without a quota. */
  remaining(): number | null
}

const resultsPerUnit = 100
const freeRepeatMs = 600_000

export function createSearchQuota({ searchQuota, now }: SandboxSettings): SearchQuota {
  const running = new Map<string, { sinceMs: number; paid: number; shown: Set<string | number> }>()
  const searches = searchQuota?.searches ?? 0
  let used = 0
  const left = (): number => Math.max(0, searches - used)

  return {
    remaining: () => (searchQuota === null ? null : left()),
    charge({ reply }, asked, shown) {
      if (searchQuota === null) return
      const key = JSON.stringify(asked)
      const known = running.get(key)
      const isFree = known !== undefined && now() - known.sinceMs < freeRepeatMs
      const search = isFree ? known : { sinceMs: now(), paid: 0, shown: new Set<string | number>() }
      running.set(key, search)
      for (const id of shown) search.shown.add(id)
      const owed = Math.max(1, search.paid, Math.ceil(search.shown.size / resultsPerUnit))
      used += owed - search.paid
      search.paid = owed
      const name = `${searchQuota.prefix}Global-Searches`
      void reply.header(`${name}-Remaining`, String(left()))
      if (search.shown.size >= owed * resultsPerUnit) {
        void reply.header(`${name}-Batch-Reached`, 'true')
      }
    },
  }
}
