/**
 * Reads one feed for one turn: page after page while there is more, each taken in exactly once before
 * the next is asked for. A failure leaves the cursor where it was. It never sends anything.
 */
import type { ThreatEvent } from '../events/threat-event.ts'
import { acceptPage, type RoutedEvent } from '../intake/intake.ts'
import type { Book } from '../ledger/book.ts'
import type { MadeWork } from '../ledger/collecting.ts'
import { openFeed, type FeedState, type Walk } from '../ledger/feed-state.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { ServiceClient } from '../service/client.ts'
import { ServiceError, type ServiceReason } from '../service/service-error.ts'
import { countPage } from './count-page.ts'
import { fetchPage } from './fetch-page.ts'
import { pageOf } from './page-of.ts'
import type { PolledFeed } from './polled-feed.ts'
import { isReserveReached, type Quota } from './quota-reserve.ts'
import { fingerprintOf, sweepDueMs, sweepFor, walkFor } from './walk.ts'

/** Pages a turn, so that one long backlog does not hold a job for ever. */
const pagesPerTurn = 50

export type PollOutcome =
  | { status: 'caught_up' | 'more' | 'superseded' | 'full' | 'stopped' | 'paused' | 'quota' }
  /** Of a sweep: none is due before `untilMs` (undefined: before the feed was read to its end once). */
  | { status: 'not_due'; untilMs: number | undefined }
  | { status: 'failed'; reason: ServiceReason; retryAfterMs: number | undefined }

export interface Poller {
  /** One turn of a feed's tail or sweep. Throws only what is a bug or a Redis failure. */
  pollOnce(feed: PolledFeed, asked: TurnAsked): Promise<PollOutcome>
}

export interface TurnAsked {
  kind: 'feed' | 'sweep'
  signal: AbortSignal
  /** Since when the turn is owed, wall clock ms; undefined: since now. */
  dueSinceMs?: number | undefined
}

export interface PollerOptions {
  client: (account: string) => ServiceClient
  book: (account: string) => Book
  /**
   * Fixes an event's way: pure. `isBacklog`: what the feed's first walk finds, to come as a summary;
   * `isFresh`: found by the tail on its way, neither then nor by a sweep.
   */
  plan: (
    event: ThreatEvent,
    feed: PolledFeed,
    about: { isBacklog: boolean; isFresh: boolean },
  ) => Pick<RoutedEvent, 'decisions' | 'items' | 'inhibits'>
  batchWaitMs: (sink: string) => number | undefined
  /** Queues the work that a commit made; may fail, the reconciler finds it all the same. */
  queue: (account: string, made: MadeWork[]) => Promise<void>
  generation: () => number
  /** Whether the ledger may grow: what is not taken in stays at the service. */
  hasRoom: () => Promise<boolean>
  /** What an account has left of its searches; undefined where no answer has said so. */
  quotaOf?: ((account: string) => Promise<Quota | undefined>) | undefined
  /** Names what a leaked credential is recognised by, under a key that Redis does not have. */
  pairIdOf?: ((account: string, parts: readonly string[]) => string | undefined) | undefined
  /** Encrypts a leaked secret for sinks that reveal; left out where none does. */
  sealSecret?: ((account: string, uid: string, secret: string) => string | undefined) | undefined
  clock: Clock
  logger: Logger
  metrics: Metrics
}

/** One turn of one feed at the service. */
export interface PollTurn {
  feed: PolledFeed
  kind: 'feed' | 'sweep'
  signal: AbortSignal
  dueSinceMs: number
  /** Cursors that the service refused in this turn. */
  refusals: { count: number }
}

export function createPoller(options: PollerOptions): Poller {
  const { clock, logger, metrics } = options
  return {
    async pollOnce(feed, { kind, signal, dueSinceMs = clock.now() }) {
      try {
        const refusals = { count: 0 }
        return await pollPages(options, { feed, kind, signal, dueSinceMs, refusals })
      } catch (error) {
        if (signal.aborted) return { status: 'stopped' }
        if (!(error instanceof ServiceError)) throw error
        metrics.feedPollsFailedTotal.inc({ feed: feed.name, reason: error.reason })
        const said = kind === 'sweep' ? 'sweep failed' : 'poll failed'
        logger.warn({ feed: feed.name, account: feed.account, err: error }, said)
        return { status: 'failed', reason: error.reason, retryAfterMs: error.retryAfterMs }
      }
    },
  }
}

async function pollPages(options: PollerOptions, turn: PollTurn): Promise<PollOutcome> {
  let { dueSinceMs } = turn
  for (let page = 0; page < pagesPerTurn; page += 1) {
    if (turn.signal.aborted) return { status: 'stopped' }
    const outcome = await pollPage(options, { ...turn, dueSinceMs }, page === 0)
    if (outcome.status !== 'more') return outcome
    dueSinceMs = options.clock.now() // others that are due meanwhile have waited longer
  }
  return { status: 'more' }
}

async function pollPage(
  options: PollerOptions,
  turn: PollTurn,
  isFirst: boolean,
): Promise<PollOutcome> {
  const { feed, kind } = turn
  const book = options.book(feed.account)
  const state = await openFeed(book, feed.name, feed.startMs)
  const readAtMs = options.clock.now()
  const walk = kind === 'sweep' ? sweepFor(feed, state) : walkFor(feed, state)
  const obstacle = await obstacleTo(options, turn, state)
  if (obstacle) return { status: obstacle }
  if (!walk) return { status: 'not_due', untilMs: sweepDueMs(feed, state) }
  if (isFirst) options.metrics.feedPollsTotal.inc({ feed: feed.name })
  const fetched = await fetchPage(options, turn, state, walk)
  const aheadMs = state.nowMs - readAtMs // Redis' clock, the same for every replica
  const { page, hasMore } = pageOf(options, turn, { state, fetched, aheadMs })
  const accepted = await acceptPage(book, page, options.batchWaitMs)
  if (accepted.status === 'stale') return { status: 'more' } // another replica took it in: read anew
  if (accepted.status !== 'committed') return { status: accepted.status }
  countPage(options, feed, page, accepted)
  await options.queue(feed.account, accepted.made)
  return { status: hasMore && !accepted.isEnded ? 'more' : 'caught_up' }
}

/** Why nothing is asked just now; known beforehand, it costs no request. */
async function obstacleTo(
  { generation, hasRoom, quotaOf, clock }: PollerOptions,
  { feed, kind }: PollTurn,
  state: FeedState,
): Promise<'paused' | 'superseded' | 'quota' | 'full' | undefined> {
  if (state.paused) return 'paused'
  const own = generation()
  if (isSuperseded(feed, state, state, own)) return 'superseded'
  if (kind === 'sweep' && isSuperseded(feed, state, state.sweep, own)) return 'superseded'
  const quota = await quotaOf?.(feed.account)
  if (isReserveReached(feed, quota, clock.now())) return 'quota'
  return (await hasRoom()) ? undefined : 'full'
}

/** As the commit decides it. */
function isSuperseded(
  feed: PolledFeed,
  { floorMs }: FeedState,
  stored: { generation: number; walk: Walk | undefined },
  own: number,
): boolean {
  return stored.generation > own && stored.walk?.fingerprint !== fingerprintOf(feed, floorMs)
}
