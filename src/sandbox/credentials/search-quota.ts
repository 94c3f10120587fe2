/**
 * The monthly quota of global searches: one unit pays for a hundred results of one search, and the same
 * search asked again within ten minutes is free (facts.md 1, row 29).
 */
export interface SearchQuota {
  /** Pays for the results that a page of the search `key` shows; how many searches are left then. */
  pay(key: string, shown: readonly number[], nowMs: number): number
  /** null: this sandbox counts none. Zero is the least; `overdrawn` says how many too many were made. */
  remaining(): number | null
  overdrawn(): number
}

interface Search {
  sinceMs: number
  paid: number
  shown: Set<number>
}

const resultsPerUnit = 100
const graceMs = 600_000

export function createSearchQuota(searches: number | null): SearchQuota {
  const running = new Map<string, Search>()
  let used = 0

  const remaining = (): number => Math.max(0, (searches ?? 0) - used)
  return {
    pay(key, shown, nowMs) {
      const known = running.get(key)
      const search =
        known && nowMs - known.sinceMs < graceMs
          ? known
          : { sinceMs: nowMs, paid: 0, shown: new Set<number>() }
      running.set(key, search)
      for (const id of shown) search.shown.add(id)
      const due = Math.max(1, Math.ceil(search.shown.size / resultsPerUnit))
      used += due - search.paid
      search.paid = due
      return remaining()
    },
    remaining: () => (searches === null ? null : remaining()),
    overdrawn: () => (searches === null ? 0 : Math.max(0, used - searches)),
  }
}
