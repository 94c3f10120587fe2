/** How far each feed is, read from the ledger without touching it. */
import type { FeedConfig } from '../feeds/config.ts'
import { readAccounting, type FeedAccount } from '../ledger/accounting.ts'
import { peekFeed, type FeedState } from '../ledger/feed-state.ts'
import { redisNow, type OpenLedger } from './open-ledger.ts'

export interface FeedReport {
  feed: FeedConfig
  /** undefined: nobody has looked at it yet. */
  state: FeedState | undefined
  /** Since it was last caught up; before that, since its floor. */
  lagMs: number | undefined
  counts: FeedAccount | undefined
}

export async function reportFeeds(
  ledger: OpenLedger,
  feeds: readonly FeedConfig[],
): Promise<FeedReport[]> {
  const nowMs = await redisNow(ledger)
  const accountings = new Map(
    await Promise.all(
      ledger.books.map(
        async (book) => [book.account, { book, ...(await readAccounting(book)) }] as const,
      ),
    ),
  )
  return Promise.all(
    feeds.map(async (feed) => {
      const account = accountings.get(feed.account)
      const state = account && (await peekFeed(account.book, feed.name, nowMs))
      const sinceMs = state?.lastCaughtUpMs ?? state?.floorMs
      const lagMs = sinceMs === undefined ? undefined : Math.max(0, nowMs - sinceMs)
      return { feed, state, lagMs, counts: account?.feeds[feed.name] }
    }),
  )
}
