/** The monthly quota of global searches: each search costs one, and a repeat of it nothing. */
import type { SandboxSettings } from '../options.ts'
import type { Caller } from './routes.ts'

export interface SearchQuota {
  /** Charges a search, and states the rest in a header. `search`: the operation and its query. */
  charge(caller: Caller, search: unknown): void
  /** Searches left, at least 0; null without a quota. */
  remaining(): number | null
}

export function createSearchQuota({ searchQuota }: SandboxSettings): SearchQuota {
  const paid = new Set<string>()
  const remaining = (): number | null =>
    searchQuota === null ? null : Math.max(0, searchQuota - paid.size)

  return {
    remaining,
    charge({ reply }, search) {
      if (searchQuota === null) return
      paid.add(JSON.stringify(search))
      void reply.header('X-Sandbox-Global-Searches-Remaining', String(remaining()))
    },
  }
}
