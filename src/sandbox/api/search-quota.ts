import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { SandboxSettings } from '../options.ts'
import type { Persistent } from '../state/data-folder.ts'

/**
 * The monthly quota of global searches. One unit pays for 100 results of a search, and repeating
 * the search is free for ten minutes (docs/api-notes.md, Search quota).
 */
export interface SearchQuota extends Persistent {
  /** Pays for the results on a page of the search `key`; `shown` holds their ids or uids. */
  pay(key: string, shown: readonly (string | number)[], nowMs: number): Paid
  /**
   * Searches left, at least 0; null if the sandbox has no quota. `overdrawn` counts searches beyond
   * the quota.
   */
  remaining(): number | null
  overdrawn(): number
}

interface Paid {
  /** Number of searches left. */
  remaining: number
  /** Whether all paid results were shown, so that any further result costs another search. */
  isBatchReached: boolean
}

interface RunningSearch {
  sinceMs: number
  paid: number
  shown: Set<string | number>
}

const resultsPerUnit = 100
const freeRepeatMs = 600_000

export function createSearchQuota(searches: number | null): SearchQuota {
  const running = new Map<string, RunningSearch>()
  let used = 0

  const remaining = (): number => Math.max(0, (searches ?? 0) - used)
  return {
    pay(key, shown, nowMs) {
      const known = running.get(key)
      const search =
        known && nowMs - known.sinceMs < freeRepeatMs
          ? known
          : { sinceMs: nowMs, paid: 0, shown: new Set<string | number>() }
      running.set(key, search)
      for (const id of shown) search.shown.add(id)
      const owed = Math.max(1, search.paid, Math.ceil(search.shown.size / resultsPerUnit))
      used += owed - search.paid
      search.paid = owed
      return {
        remaining: remaining(),
        isBatchReached: search.shown.size >= owed * resultsPerUnit,
      }
    },
    remaining: () => (searches === null ? null : remaining()),
    overdrawn: () => (searches === null ? 0 : Math.max(0, used - searches)),
    snapshot: () => ({
      used,
      running: [...running].map(([key, { sinceMs, paid }]) => ({ key, sinceMs, paid })),
    }),
    restore(snapshot) {
      const state = quotaSnapshot.parse(snapshot)
      used = state.used
      for (const { key, ...search } of state.running) {
        running.set(key, { ...search, shown: new Set() })
      }
    },
  }
}

/**
 * Does not store which results were shown: after a restart, pages already paid for show as many
 * results again free of charge.
 */
const quotaSnapshot = z.object({
  used: z.int(),
  running: z.array(z.object({ key: z.string(), sinceMs: z.number(), paid: z.int() })),
})

interface ChargedPage {
  /** The endpoint; the same query at another endpoint is another search. */
  kind: 'credentials' | 'events' | 'legacy'
  /**
   * The query without filters: the same search with other filters is free (docs/api-notes.md,
   * Search quota).
   */
  query: unknown
  shown: readonly (string | number)[]
}

/**
 * Charges a page to the month's quota, and states the rest in headers (docs/api-notes.md, Search
 * quota).
 */
export function chargeSearch(
  reply: FastifyReply,
  { kind, query, shown }: ChargedPage,
  { settings, quota }: { settings: SandboxSettings; quota: SearchQuota },
): void {
  if (!settings.searchQuota) return
  const { prefix } = settings.searchQuota
  const paid = quota.pay(JSON.stringify([kind, query]), shown, settings.now())
  void reply.header(`${prefix}Global-Searches-Remaining`, String(paid.remaining))
  if (paid.isBatchReached) void reply.header(`${prefix}Global-Searches-Batch-Reached`, 'true')
}
