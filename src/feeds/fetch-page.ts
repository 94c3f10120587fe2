import type { FeedState, Walk } from '../ledger/feed-state.ts'
import { ServiceError } from '../service/service-error.ts'
import type { WireSearchPage } from '../service/wire.ts'
import type { PolledFeed } from './polled-feed.ts'
import type { PollerOptions, PollTurn } from './poller.ts'
import { bodyOf, walkAfterRefusal, walkFor } from './walk.ts'

export interface FetchedPage {
  page: WireSearchPage
  /** This machine's wall clock, ms. */
  requestedAtMs: number
  /** The walk that the page belongs to; a new one where the stored cursor could not be used. */
  walk: Walk
}

/** The next page of the feed's walk. A cursor that the service refuses begins a new walk at once. */
export async function fetchPage(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
): Promise<FetchedPage> {
  const walk = walkFor(turn.feed, state)
  if (walk !== state.walk) sayReset(options, turn.feed, walk)
  try {
    return await search(options, turn, walk)
  } catch (error) {
    if (walk.cursor === null || !refusesCursor(error)) throw error
    const fresh = walkAfterRefusal(turn.feed, state)
    sayReset(options, turn.feed, fresh)
    return search(options, turn, fresh)
  }
}

async function search(
  { client }: PollerOptions,
  { feed, signal, dueSinceMs }: PollTurn,
  walk: Walk,
): Promise<FetchedPage> {
  const answer = await client(feed.account).searchGroupEvents({
    groupId: feed.identifierGroup,
    body: bodyOf(walk),
    turn: { kind: 'feed', name: feed.name, dueSinceMs },
    tier: feed.tier,
    signal,
  })
  return { ...answer, walk }
}

/** A refused cursor shows as a refused request; nothing public says with which status. */
function refusesCursor(error: unknown): boolean {
  return error instanceof ServiceError && error.reason === 'rejected'
}

function sayReset({ metrics, logger }: PollerOptions, feed: PolledFeed, { reason }: Walk): void {
  if (reason === 'first') return
  metrics.feedCursorResetsTotal.inc({ feed: feed.name, reason })
  logger.warn({ feed: feed.name, reason }, 'a new walk begins, with overlap')
}
