/**
 * Polls one feed for one poll run: page after page while there are more, each committed exactly
 * once before the next is requested. A failure leaves the cursor where it was. The poller sends no
 * messages.
 *
 * A page goes through six stages: open (the feed's state), choose (choose.ts), fetch (fetch.ts),
 * parse (parse.ts), commit (store/intake.ts) and announce (announce.ts).
 */
import { severityRank } from '../event.ts'
import type { PolledFeed } from './types/polled-feed.ts'
import { findFeedType } from './types/feed-types.ts'
import { errorMessage } from '../lib/errors.ts'
import { type FeedState, noteFeedTrouble, openFeed } from '../store/feed-state.ts'
import { acceptPage, type Page, type RoutedEvent } from '../store/intake.ts'
import { UpstreamError } from '../upstream/error.ts'
import { type Committed, countPage, observeDelays } from './announce.ts'
import { chooseScan } from './choose.ts'
import { fetchPage } from './fetch.ts'
import { checkMatchFilter, isFilterIgnored } from './match-time.ts'
import { buildPage } from './parse.ts'
import {
  createPollLog,
  type Poller,
  type PollerOptions,
  type PollLog,
  type PollOutcome,
  type PollRun,
  type PollRequest,
  type PollStage,
} from './poll-run.ts'
import type { RescanPlace } from './rescan.ts'
import { beginsAtStartBound } from './scan.ts'

/** Pages per run, so that a long backlog does not hold a lane forever. */
const pagesPerRun = 50

export function createPoller(options: PollerOptions): Poller {
  const { clock, logger } = options
  const log = createPollLog(logger, clock)
  return {
    async pollOnce(feed, asked) {
      const { kind, signal, dueSinceMs = clock.now() } = asked
      try {
        const run = { ...asked, feed, dueSinceMs, log, refusals: { count: 0 } }
        return await pollAndLog(options, run)
      } catch (error) {
        if (signal.aborted) return { status: 'stopped' }
        if (error instanceof UpstreamError) return noteFailure(options, { feed, asked }, error)
        const trouble = { reason: 'internal', answer: errorMessage(error), waitMs: undefined }
        await noteTrouble(options, feed, kind, trouble)
        throw error
      }
    },
  }
}

async function noteFailure(
  options: PollerOptions,
  { feed, asked: { kind, waitAfter } }: { feed: PolledFeed; asked: PollRequest },
  error: UpstreamError,
): Promise<PollOutcome> {
  const { logger, metrics } = options
  const { reason, message: answer, status, retryAfterMs } = error
  const outcome: PollOutcome = { status: 'failed', reason, retryAfterMs }
  // nothing was asked: the account pauses, and says why
  if (reason === 'auth' && status === undefined && retryAfterMs !== undefined) return outcome
  metrics.feedPollsFailedTotal.inc({ feed: feed.name, reason })
  const said = kind === 'rescan' ? 'rescan failed' : 'poll failed'
  const fields = { feed: feed.name, account: feed.account, err: error }
  logger.repeated.warn(fields, said, {
    cause: describeCause(error),
    list: 'feeds',
    name: feed.name,
  })
  if (reason === 'auth' && status === undefined) return outcome
  const isPause = reason === 'auth' && retryAfterMs !== undefined // the account knows its end
  await noteTrouble(options, feed, kind, {
    reason,
    answer,
    waitMs: isPause ? undefined : waitAfter?.(outcome),
  })
  return outcome
}

/** Called last: Redis may be what failed. */
async function noteTrouble(
  { ledger }: Pick<PollerOptions, 'ledger'>,
  { account, name }: PolledFeed,
  kind: PollRequest['kind'],
  trouble: Parameters<typeof noteFeedTrouble>[3],
): Promise<void> {
  try {
    await noteFeedTrouble(ledger(account), name, kind, trouble)
  } catch {
    // what failed is in the log, or is thrown
  }
}

/** One text per kind of API failure, whatever the feed. */
function describeCause({ reason, status, fault }: UpstreamError): string {
  return [reason, status, fault].filter((part) => part !== undefined).join(' ')
}

type LoggedRun = PollRun & { log: PollLog }

/** Logs also what a run took in that failed in the end. */
async function pollAndLog(options: PollerOptions, run: LoggedRun): Promise<PollOutcome> {
  run.log.begin(run)
  let hasMore = false
  try {
    const outcome = await pollPages(options, run)
    hasMore = outcome.status === 'more' && !run.signal.aborted
    return outcome
  } finally {
    run.log.end(run, hasMore)
  }
}

async function pollPages(options: PollerOptions, run: LoggedRun): Promise<PollOutcome> {
  let { dueSinceMs } = run
  for (let page = 0; page < pagesPerRun; page += 1) {
    if (run.signal.aborted) return { status: 'stopped' }
    const outcome = await pollPage(options, { ...run, dueSinceMs }, page)
    if (outcome.status !== 'more') return outcome
    if (run.mayContinue && !(await run.mayContinue(page + 1))) return outcome
    dueSinceMs = options.clock.now() // other feeds that become due meanwhile have waited longer
  }
  return { status: 'more' }
}

async function pollPage(
  options: PollerOptions,
  run: LoggedRun,
  pageOfRun: number,
): Promise<PollOutcome> {
  const { feed } = run
  const timed = <T>(stage: PollStage, work: () => T | Promise<T>): Promise<T> =>
    timeStage(options, run, stage, work)
  const ledger = options.ledger(feed.account)
  const state = await timed('open', () => openFeed(ledger, feed.name, feed.startMs))
  const aheadMs = state.nowMs - options.clock.now() // Redis' clock is the same for every replica
  const pages = (run.pagesBefore ?? 0) + pageOfRun
  const next = await timed('choose', () => chooseScan(options, run, { state, aheadMs }, pages))
  if ('status' in next) return next
  if (pageOfRun === 0) options.metrics.feedPollsTotal.inc({ feed: feed.name })
  const fetched = await timed('fetch', () => fetchPage(options, run, state, next))
  const { place } = next
  const context = { state, fetched, aheadMs, place }
  const { page, hasMore } = await timed('parse', () => buildPage(options, run, context))
  const asked = { scan: fetched.scan, startBoundMs: state.startBoundMs }
  if (await isFilterIgnored(options, feed, asked, page.events)) return { status: 'more' }
  const accepted = await timed('commit', () => acceptPage(ledger, page, options.batchWaitMs))
  if (accepted.status === 'stale') return { status: 'more' } // another replica committed it
  if (accepted.status !== 'committed') return { status: accepted.status }
  return timed('announce', () =>
    announce(options, run, { state, aheadMs, page, hasMore, place }, accepted),
  )
}

/** Observes how long a stage took, also one that fails. */
async function timeStage<T>(
  { clock, metrics }: PollerOptions,
  run: LoggedRun,
  stage: PollStage,
  work: () => T | Promise<T>,
): Promise<T> {
  const beganMs = clock.monotonic()
  try {
    return await work()
  } finally {
    const ms = clock.monotonic() - beganMs
    metrics.feedPollStageSeconds.observe({ stage }, ms / 1000)
    run.log.addStage(run, stage, ms)
  }
}

interface TakenIn {
  state: FeedState
  aheadMs: number
  page: Page
  hasMore: boolean
  place: RescanPlace | undefined
}

async function announce(
  options: PollerOptions,
  run: LoggedRun,
  { state, aheadMs, page, hasMore, place }: TakenIn,
  accepted: Committed,
): Promise<PollOutcome> {
  const { feed } = run
  const { unordered } = findFeedType(feed)
  countPage(options, feed, page, accepted)
  run.log.add(run, accepted)
  const isBacklog = state.isBackfilling || beginsAtStartBound(feed, state)
  if (!place && !isBacklog && !page.isBeyond && !unordered)
    observeDelays(options, { state, page, aheadMs, count: accepted.newEvents.length })
  await options.queue(feed.account, accepted.changes)
  if (accepted.isBrokenOff) return { status: 'more' } // handled like a stale page
  await checkMatchFilter(options, feed, state, { ...accepted, scan: page.scan })
  // short rescans end often: the run continues with the longer ones
  const isEnded = accepted.isEnded && page.scan.held === undefined
  const goesOn = place ? !isWholeScan(place, page) : (unordered?.goesOn?.(page.scan) ?? false)
  const isMore = (hasMore && !isEnded) || goesOn
  run.onPage?.({
    newEvents: accepted.newEvents.length,
    urgentEvents: accepted.newEvents.filter(isUrgent).length,
    hasMore: isMore,
    isBacklog,
    isNewScan: isNewScan(state, page),
  })
  return { status: isMore ? 'more' : 'caught_up' }
}

function isNewScan({ scan: before, lastCaughtUpMs }: FeedState, page: Page): boolean {
  const { scan, isCaughtUp } = page
  const isFirstEnd = isCaughtUp && lastCaughtUpMs === undefined
  const isOther = scan.fingerprint !== before?.fingerprint || scan.behind?.id !== before.behind?.id
  return isFirstEnd || isOther
}

function isUrgent({ event }: RoutedEvent): boolean {
  return severityRank(event.severity) >= severityRank('high')
}

function isWholeScan(place: RescanPlace, { rescan }: Page): boolean {
  return place === 'whole' && rescan?.isSnapshot === false
}
