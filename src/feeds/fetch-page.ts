import type { FeedState, Walk } from '../ledger/feed-state.ts'
import { ServiceError } from '../service/service-error.ts'
import type { FeedPage } from './feed-type.ts'
import { typeOf } from './feed-types.ts'
import { noteMatchRefused } from './match-time.ts'
import type { PolledFeed } from './polled-feed.ts'
import type { PollerOptions, PollTurn } from './poller.ts'
import type { RescanPlace } from './rescan.ts'
import { isInCircle, isReadBehind, walkAfterRefusal, walkInSmallerPages } from './walk.ts'

export interface FetchedPage extends FeedPage {
  /** The walk that the page belongs to; a new one where the stored one could not go on. */
  walk: Walk
}

/**
 * The next page of a walk. Where the service refuses the cursor, or its gateway gives up on so large a
 * page, another walk begins at once.
 */
export async function fetchPage(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
  { walk, place }: { walk: Walk; place: RescanPlace | undefined },
): Promise<FetchedPage> {
  try {
    const fetched = await ask(options, turn, walk)
    const stored = place ? state[place].walk : state.walk
    const isNew = walk.startedAtMs !== stored?.startedAtMs || walk.reason !== stored.reason
    if (isNew) sayReset(options, turn.feed, walk)
    return fetched
  } catch (error) {
    const fresh = walkAfter(error, turn, state, { walk, place })
    if (!fresh) {
      await noteMatchRefused(options, turn.feed, walk, error)
      throw error
    }
    return fetchPage(options, turn, state, { walk: fresh, place })
  }
}

/** More in one turn is no accident: the feed backs off instead of asking again and again. */
const mostRefusals = 3

/** The walk that goes on where this one cannot; undefined where another would fare no better. */
function walkAfter(
  error: unknown,
  { feed, signal, refusals }: PollTurn,
  state: FeedState,
  { walk, place }: { walk: Walk; place: RescanPlace | undefined },
): Walk | undefined {
  if (!(error instanceof ServiceError) || signal.aborted) return undefined
  // the gateway gives up after some 30 s (facts.md 2.3), as we do
  const isTooSlow = error.status === 504 || error.reason === 'timeout'
  if (isTooSlow) return walkInSmallerPages(feed, state, walk)
  // a refused cursor shows as a refused request; nothing public says with which status
  const isRefused = error.reason === 'rejected' || error.reason === 'invalid'
  if (!isRefused || walk.cursor === null) return undefined
  refusals.count += 1
  if (refusals.count > mostRefusals) return undefined // a service that takes none of its cursors
  if (place === undefined) return walkAfterRefusal(feed, state)
  const { passed: _circle, ...again } = walk
  return { ...again, cursor: null, reason: 'cursor_refused' }
}

async function ask(
  { client, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs }: PollTurn,
  walk: Walk,
): Promise<FetchedPage> {
  if (isInCircle(walk)) throw circle()
  const turn = { kind, name: feed.name, dueSinceMs }
  const request = { client: client(feed.account), walk, turn, signal, nowMs: clock.now() }
  const answer = await typeOf(feed).fetch(feed, request)
  return { page: answer.page, requestedAtMs: answer.requestedAtMs, walk: answer.walk ?? walk }
}

/** Its pages were taken in, each at least once; it is treated as a refused cursor. */
function circle(): ServiceError {
  return new ServiceError('invalid', 'the service gave a cursor again: its pages never end')
}

function sayReset({ metrics, logger }: PollerOptions, feed: PolledFeed, { reason }: Walk): void {
  if (reason === 'first' || reason === 'again') return
  metrics.feedCursorResetsTotal.inc({ feed: feed.name, reason })
  const rest = isReadBehind(feed) ? '; what lies behind it is read again' : ''
  logger.warn({ feed: feed.name, reason }, `a new walk begins${rest}`)
}
