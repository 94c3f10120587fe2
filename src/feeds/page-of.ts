import type { Page } from '../intake/intake.ts'
import type { FeedState } from '../ledger/feed-state.ts'
import { typeOf } from './feed-types.ts'
import type { FetchedPage } from './fetch-page.ts'
import type { PollerOptions, PollTurn } from './poller.ts'
import { sortPage } from './sort-page.ts'
import { advance, lateBeforeMs } from './walk.ts'

interface Fetched {
  state: FeedState
  fetched: FetchedPage
  /** How far Redis' clock is ahead of this machine's. */
  aheadMs: number
}

/** A fetched page as intake takes it: sorted, and with the walk as it stands after it. */
export function pageOf(
  options: PollerOptions,
  turn: PollTurn,
  { state, fetched, aheadMs }: Fetched,
): { page: Page; hasMore: boolean } {
  const { feed, kind } = turn
  const { walk, hasMore, stands, ...moved } = advance(fetched.walk, fetched.page)
  // a sweep that stands still is over: it is not asked again and again for the same page
  const isCaughtUp = moved.isCaughtUp || (kind === 'sweep' && !hasMore)
  const isFirstWalk = state.isBackfilling || !state.walk
  const isBacklog = kind === 'feed' && isFirstWalk && feed.backlog === 'summarise'
  const { unordered } = typeOf(feed)
  const order = kind === 'feed' ? unordered : undefined
  const page: Page = {
    feed: feed.name,
    labels: feed.labels,
    sequence: kind === 'sweep' ? state.sweep.sequence : state.sequence,
    generation: options.generation(),
    walk: order ? { ...walk, notes: order.note(fetched.walk, fetched.page, isCaughtUp) } : walk,
    ...(kind === 'sweep' && { sweep: { lateBeforeMs: lateBeforeMs(walk) } }),
    requestedAtMs: fetched.requestedAtMs + aheadMs,
    isCaughtUp,
    endsWhenKnown: stands || (order?.endsWhenKnown(fetched.walk) ?? false),
    isBackfilling: kind === 'feed' && !isCaughtUp && isFirstWalk,
    ...sortPage(fetched.page.items, {
      feed,
      floorMs: state.floorMs,
      plan: (event) =>
        options.plan(event, feed, { isBacklog, isFresh: kind === 'feed' && !isFirstWalk }),
      pairIdOf: (parts) => options.pairIdOf?.(feed.account, parts),
      seal: (uid, secret) => options.sealSecret?.(feed.account, uid, secret),
    }),
  }
  return { page, hasMore }
}
