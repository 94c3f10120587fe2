import type { FeedState, Walk } from '../ledger/feed-state.ts'
import { ServiceError } from '../service/service-error.ts'
import type { FeedPage } from './feed-type.ts'
import { typeOf } from './feed-types.ts'
import { noteMatchRefused } from './match-time.ts'
import type { PolledFeed } from './polled-feed.ts'
import type { PollerOptions, PollTurn } from './poller.ts'
import type { RescanPlace } from './rescan.ts'
import {
  isInCircle,
  isReadBehind,
  walkAfterRefusal,
  walkInSmallerPages,
  walkInSmallPages,
  walkPast,
} from './walk.ts'

export interface FetchedPage extends FeedPage {
  /** The walk that the page belongs to; a new one where the stored one could not go on. */
  walk: Walk
  /** Pages that could not be read, and were passed by to come to this one. */
  passed: PassedPage[]
}

export interface PassedPage {
  /** Its request, and its cursor as `from`. */
  request: Record<string, unknown>
  problem: string
}

interface Reading {
  walk: Walk
  place: RescanPlace | undefined
}

/**
 * The next page of a walk. Where the service refuses the cursor, or its gateway gives up on so large a page,
 * another walk begins at once. A page that is too large to be read is asked for again in smaller ones; where
 * even a single item is too much, the tail goes round it.
 */
export async function fetchPage(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
  { walk, place }: Reading,
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
    const fetched = await fetchPage(options, turn, state, { walk: fresh.walk, place })
    if (!fresh.isPast) return fetched
    return { ...fetched, passed: [passedPage(walk, error), ...fetched.passed] }
  }
}

/** More in one turn is no accident: the feed backs off instead of asking again and again. */
const mostRefusals = 3

/** What begins now has no old page: more in one turn is a service that makes no sense. */
const mostPassed = 1

interface Fresh {
  walk: Walk
  /** It goes round the page, which stays unread. */
  isPast?: true
}

/** The walk that goes on where this one cannot; undefined where another would fare no better. */
function walkAfter(
  error: unknown,
  turn: PollTurn,
  state: FeedState,
  { walk, place }: Reading,
): Fresh | undefined {
  const { feed, signal, refusals } = turn
  if (!(error instanceof ServiceError) || signal.aborted) return undefined
  if (error.fault === 'too_large') return walkAfterTooLarge(turn, state, { walk, place })
  // the gateway gives up after some 30 s (facts.md 2.3), as we do
  const isTooSlow = error.status === 504 || error.reason === 'timeout'
  if (isTooSlow) return fresh(walkInSmallerPages(feed, state, walk))
  // a refused cursor shows as a refused request; nothing public says with which status
  const isRefused = error.reason === 'rejected' || error.reason === 'invalid'
  if (!isRefused || walk.cursor === null) return undefined
  refusals.count += 1
  if (refusals.count > mostRefusals) return undefined // a service that takes none of its cursors
  if (place === undefined) return { walk: walkAfterRefusal(feed, state, walk) }
  // a service may take no cursor with another page size: small pages stay small to the end of this walk
  const { passed: _circle, small: _small, ...again } = walk
  return { walk: { ...again, cursor: null, reason: 'cursor_refused' } }
}

/**
 * A rescan stays where it is, and asks again later: nobody waits for it, and what it would go round nothing
 * else reads.
 */
function walkAfterTooLarge(
  { feed, refusals }: PollTurn,
  state: FeedState,
  { walk, place }: Reading,
): Fresh | undefined {
  const small = walkInSmallPages(walk)
  if (small) return { walk: small }
  refusals.count += 1
  if (place !== undefined || refusals.count > mostPassed) return undefined
  return { walk: walkPast(feed, state), isPast: true }
}

function fresh(walk: Walk | undefined): Fresh | undefined {
  return walk && { walk }
}

function passedPage({ body, cursor }: Walk, error: unknown): PassedPage {
  const why = error instanceof ServiceError ? error.message : ''
  return { request: { ...body, from: cursor }, problem: `a page was not read: ${why}` }
}

async function ask(
  { client, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs, onJoin, onSlot }: PollTurn,
  walk: Walk,
): Promise<FetchedPage> {
  if (isInCircle(walk)) throw circle()
  const turn = { kind, name: feed.name, dueSinceMs, onJoin, onSlot }
  const request = { client: client(feed.account), walk, turn, signal, nowMs: clock.now() }
  const answer = await typeOf(feed).fetch(feed, request)
  const { page, requestedAtMs } = answer
  return { page, requestedAtMs, walk: answer.walk ?? walk, passed: [] }
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
