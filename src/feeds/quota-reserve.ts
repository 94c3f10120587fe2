import type { PolledFeed } from './polled-feed.ts'

/** What an account has left of its global searches, by the last answer that said so. */
export interface Quota {
  remaining: number
  atMs: number
}

/** Nobody is told when a month's quota is renewed: one search a day finds out. */
const askAgainMs = 86_400_000

/** Whether a feed leaves what is left to others (`quota_reserve`). */
export function isReserveReached(
  feed: PolledFeed,
  quota: Quota | undefined,
  nowMs: number,
): boolean {
  const reserve = feed.type === 'credential_search' ? feed.quotaReserve : 0
  if (reserve === 0 || !quota) return false
  return quota.remaining <= reserve && nowMs - quota.atMs < askAgainMs
}
