/** Feeds as they are polled, and the searches of the quota that they leave to others. */
import type { FeedConfig } from './config.ts'

export type PolledFeed = Polled<FeedConfig>

/** `scope` is the base URL and tenant of the feed's account: elsewhere its cursor means nothing. */
export type Polled<Config extends FeedConfig> = Config extends FeedConfig
  ? Config & { scope: string }
  : never

/** The searches that an account has left, by the last answer that stated them. */
export interface Quota {
  remaining: number
  atMs: number
}

/** The API does not announce when a month's quota is renewed: one search a day finds out. */
const quotaRecheckMs = 86_400_000

/** How many searches of the month a feed leaves to others; 0 for feeds that cost none. */
export function reservedSearches(feed: FeedConfig): number {
  return 'quotaReserve' in feed ? feed.quotaReserve : 0
}

/** Whether the remaining searches are reserved for others (`quota_reserve`). */
export function isReserveReached(
  feed: FeedConfig,
  quota: Quota | undefined,
  nowMs: number,
): boolean {
  const reserve = reservedSearches(feed)
  if (reserve === 0 || !quota) return false
  return quota.remaining <= reserve && nowMs - quota.atMs < quotaRecheckMs
}

interface FeedParts {
  feeds: readonly FeedConfig[]
  accounts: readonly { name: string; baseUrl: string; tenantId?: number | undefined }[]
}

/**
 * The feeds of a configuration as they are polled, each with the scope in which its cursors are
 * valid.
 */
export function polledFeeds({ feeds, accounts }: FeedParts): PolledFeed[] {
  const byName = new Map(accounts.map((account) => [account.name, account]))
  return feeds.map((feed) => {
    const account = byName.get(feed.account)
    return { ...feed, scope: `${account?.baseUrl} ${account?.tenantId ?? ''}` }
  })
}
