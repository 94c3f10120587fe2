import type { Walk } from '../ledger/feed-state.ts'
import type { FeedConfig } from './config.ts'

/** What an account has left of its global searches, by the last answer that said so. */
export interface Quota {
  remaining: number
  atMs: number
}

/** Nobody is told when a month's quota is renewed: one search a day finds out. */
const askAgainMs = 86_400_000

/** How many searches of the month a feed leaves to others; 0 of feeds and walks that cost none. */
export function quotaReserveOf(feed: FeedConfig, walk?: Walk): number {
  return 'quotaReserve' in feed && walk?.notes?.['searchedBy'] !== freeSearch
    ? feed.quotaReserve
    : 0
}

/** The credential search without a quota, in an account's memory of what it has and in notes of walks. */
export const freeSearch = 'astp_credentials'

/** Whether a feed leaves what is left to others (`quota_reserve`). */
export function isReserveReached(
  feed: FeedConfig,
  quota: Quota | undefined,
  nowMs: number,
): boolean {
  const reserve = quotaReserveOf(feed)
  if (reserve === 0 || !quota) return false
  return quota.remaining <= reserve && nowMs - quota.atMs < askAgainMs
}
