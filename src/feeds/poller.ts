/**
 * Polls one feed for one turn: page after page while there is more, each taken in exactly once before
 * the next is asked for. A failure leaves the cursor where it was. It never sends anything.
 */
import type { ThreatEvent } from '../events/threat-event.ts'
import { acceptPage, type Page, type RoutedEvent } from '../intake/intake.ts'
import type { Book } from '../ledger/book.ts'
import type { MadeWork } from '../ledger/collecting.ts'
import { openFeed, type FeedState } from '../ledger/feed-state.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { ServiceClient } from '../service/client.ts'
import { ServiceError, type ServiceReason } from '../service/service-error.ts'
import type { PolledFeed } from './polled-feed.ts'
import { countPage } from './count-page.ts'
import { fetchPage, type FetchedPage } from './fetch-page.ts'
import { sortPage } from './sort-page.ts'
import { advance, fingerprintOf } from './walk.ts'

/** Pages a turn, so that one long backlog does not hold a job for ever. */
const pagesPerTurn = 50

export type PollOutcome =
  | { status: 'caught_up' | 'more' | 'superseded' | 'full' | 'stopped' }
  | { status: 'failed'; reason: ServiceReason; retryAfterMs: number | undefined }

export interface Poller {
  /** One turn. Throws only what is a bug or a Redis failure. */
  pollOnce(feed: PolledFeed, signal: AbortSignal): Promise<PollOutcome>
}

export interface PollerOptions {
  client: (account: string) => ServiceClient
  book: (account: string) => Book
  /** Fixes an event's way: pure. */
  plan: (event: ThreatEvent, feed: PolledFeed) => Pick<RoutedEvent, 'decisions' | 'items'>
  batchWaitMs: (sink: string) => number | undefined
  /** Queues the work that a commit made; may fail, the reconciler finds it all the same. */
  queue: (account: string, made: MadeWork[]) => Promise<void>
  generation: () => number
  /** Whether the ledger may grow: what is not taken in stays at the service. */
  hasRoom: () => Promise<boolean>
  clock: Clock
  logger: Logger
  metrics: Metrics
}

/** One feed's turn at the service. */
export interface PollTurn {
  feed: PolledFeed
  signal: AbortSignal
  dueSinceMs: number
}

type PageOutcome = 'more' | 'caught_up' | 'pause' | 'superseded' | 'full'

export function createPoller(options: PollerOptions): Poller {
  const { clock, logger, metrics } = options
  return {
    async pollOnce(feed, signal) {
      metrics.feedPollsTotal.inc({ feed: feed.name })
      try {
        return await pollPages(options, { feed, signal, dueSinceMs: clock.now() })
      } catch (error) {
        if (signal.aborted) return { status: 'stopped' }
        if (!(error instanceof ServiceError)) throw error
        metrics.feedPollsFailedTotal.inc({ feed: feed.name, reason: error.reason })
        logger.warn({ feed: feed.name, account: feed.account, err: error }, 'poll failed')
        return { status: 'failed', reason: error.reason, retryAfterMs: error.retryAfterMs }
      }
    },
  }
}

async function pollPages(options: PollerOptions, turn: PollTurn): Promise<PollOutcome> {
  for (let page = 0; page < pagesPerTurn; page += 1) {
    if (turn.signal.aborted) return { status: 'stopped' }
    const outcome = await pollPage(options, turn)
    if (outcome === 'superseded' || outcome === 'full') return { status: outcome }
    if (outcome === 'caught_up' || outcome === 'pause') return { status: 'caught_up' }
  }
  return { status: 'more' }
}

async function pollPage(options: PollerOptions, turn: PollTurn): Promise<PageOutcome> {
  const { feed } = turn
  const book = options.book(feed.account)
  const state = await openFeed(book, feed.name, feed.startMs)
  const readAtMs = options.clock.now()
  if (isSuperseded(feed, state, options.generation())) return 'superseded'
  if (!(await options.hasRoom())) return 'full'
  const fetched = await fetchPage(options, turn, state)
  const { page, hasMore } = pageOf(options, turn, {
    state,
    fetched,
    aheadMs: state.nowMs - readAtMs,
  })
  const accepted = await acceptPage(book, page, options.batchWaitMs)
  if (accepted.status === 'stale') return 'more' // another replica took this page in: read anew
  if (accepted.status !== 'committed') return accepted.status
  countPage(options, feed, page, accepted)
  await options.queue(feed.account, accepted.made)
  if (page.isCaughtUp) return 'caught_up'
  return hasMore ? 'more' : 'pause'
}

/** As the commit decides it; known beforehand, it costs no request. */
function isSuperseded(
  feed: PolledFeed,
  { generation, walk, floorMs }: FeedState,
  own: number,
): boolean {
  return generation > own && walk?.fingerprint !== fingerprintOf(feed, floorMs)
}

function pageOf(
  { plan, generation }: PollerOptions,
  { feed }: PollTurn,
  { state, fetched, aheadMs }: { state: FeedState; fetched: FetchedPage; aheadMs: number },
): { page: Page; hasMore: boolean } {
  const { walk, isCaughtUp, hasMore } = advance(fetched.walk, fetched.page)
  const page: Page = {
    feed: feed.name,
    labels: feed.labels,
    sequence: state.sequence,
    generation: generation(),
    walk,
    requestedAtMs: fetched.requestedAtMs + aheadMs, // Redis' clock, the same for every replica
    isCaughtUp,
    isBackfilling: !isCaughtUp && (state.isBackfilling || !state.walk),
    ...sortPage(fetched.page.items, feed, plan),
  }
  return { page, hasMore }
}
