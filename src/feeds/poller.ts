/**
 * Polls one feed for one poll run: page after page while there are more, each committed exactly
 * once before the next is requested. A failure leaves the cursor where it was. The poller sends no
 * messages.
 *
 * A page goes through seven stages: open (the feed's state), choose (choose.ts), slot and fetch (fetch.ts),
 * parse (parse.ts), commit (store/intake.ts) and announce (announce.ts).
 */
import { errorMessage } from '../lib/errors.ts'
import { noteFeedTrouble, openFeed } from '../store/feed-state.ts'
import { acceptPage } from '../store/intake.ts'
import { UpstreamError } from '../upstream/error.ts'
import { announce } from './announce.ts'
import { chooseScan } from './choose.ts'
import { fetchPage } from './fetch.ts'
import { doubtFilter } from './match-time.ts'
import { buildPage } from './parse.ts'
import {
  createPollLog,
  type LoggedRun,
  type Poller,
  type PollerOptions,
  type PollOutcome,
  type PollStage,
} from './poll-run.ts'

/** Pages per run, so that a long backlog does not hold a lane forever. */
const pagesPerRun = 50

export function createPoller(options: PollerOptions): Poller {
  const { clock, logger } = options
  const log = createPollLog(logger, clock)
  return {
    async pollOnce(feed, asked) {
      const { signal, dueSinceMs = clock.now() } = asked
      const account = options.account(feed.account)
      const run = { ...asked, feed, account, dueSinceMs, log, refusals: { count: 0 } }
      log.begin(run)
      let hasMore = false
      try {
        const outcome = await pollPages(options, run)
        hasMore = outcome.status === 'more' && !signal.aborted
        return outcome
      } catch (error) {
        if (signal.aborted) return { status: 'stopped' }
        if (error instanceof UpstreamError) return await noteFailure(options, run, error)
        const trouble = { reason: 'internal', answer: errorMessage(error), waitMs: undefined }
        await noteTrouble(run, trouble)
        throw error
      } finally {
        log.end(run, hasMore) // also what was taken in before a failure
      }
    },
  }
}

async function noteFailure(
  options: PollerOptions,
  run: LoggedRun,
  error: UpstreamError,
): Promise<PollOutcome> {
  const { logger, metrics } = options
  const { feed, kind, waitAfter, log } = run
  const { reason, message: answer, status, retryAfterMs } = error
  const outcome: PollOutcome = { status: 'failed', reason, retryAfterMs }
  // nothing was asked: the account pauses, and says why
  if (reason === 'auth' && status === undefined && retryAfterMs !== undefined) return outcome
  metrics.feedPollsFailedTotal.inc({ feed: feed.name, reason })
  const said = kind === 'rescan' ? 'rescan failed' : 'poll failed'
  const fields = { feed: feed.name, account: feed.account, err: error, stages: log.stages(run) }
  logger.repeated.warn(fields, said, {
    cause: describeCause(error),
    list: 'feeds',
    name: feed.name,
  })
  if (reason === 'auth' && status === undefined) return outcome
  const isPause = reason === 'auth' && retryAfterMs !== undefined // the account knows its end
  await noteTrouble(run, {
    reason,
    answer,
    waitMs: isPause ? undefined : waitAfter?.(outcome),
  })
  return outcome
}

/** Called last: Redis may be what failed. */
async function noteTrouble(
  { account, feed, kind }: LoggedRun,
  trouble: Parameters<typeof noteFeedTrouble>[3],
): Promise<void> {
  try {
    await noteFeedTrouble(account.ledger, feed.name, kind, trouble)
  } catch {
    // what failed is in the log, or is thrown
  }
}

/** One text per kind of API failure, whatever the feed. */
function describeCause({ reason, status, fault }: UpstreamError): string {
  return [reason, status, fault].filter((part) => part !== undefined).join(' ')
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
  const { feed, account } = run
  const { ledger } = account
  const timed = <T>(stage: PollStage, work: () => T | Promise<T>): Promise<T> =>
    timeStage(options, run, stage, work)
  const state = await timed('open', () => openFeed(ledger, feed.name, feed.startMs))
  const aheadMs = state.nowMs - options.clock.now() // Redis' clock is the same for every replica
  const pages = (run.pagesBefore ?? 0) + pageOfRun
  const next = await timed('choose', () => chooseScan(options, run, { state, aheadMs }, pages))
  if ('status' in next) return next
  if (pageOfRun === 0) options.metrics.feedPollsTotal.inc({ feed: feed.name })
  const fetched = await timeFetch(options, run, (queued) => fetchPage(options, queued, state, next))
  const { place } = next
  const context = { state, fetched, aheadMs, place }
  const { page, hasMore, disproof } = await timed('parse', () => buildPage(options, run, context))
  if (disproof !== undefined) {
    await doubtFilter(options, run, disproof) // the page would alert about all that is old
    return { status: 'more' }
  }
  const accepted = await timed('commit', () => acceptPage(ledger, page, options.batchWaitMs))
  if (accepted.status === 'stale') return { status: 'more' } // another replica committed it
  if (accepted.status !== 'committed') return { status: accepted.status }
  return timed('announce', () =>
    announce(options, run, { state, aheadMs, page, hasMore, place }, accepted),
  )
}

/** Observes how long a stage took, also one that fails. */
async function timeStage<T>(
  options: PollerOptions,
  run: LoggedRun,
  stage: PollStage,
  work: () => T | Promise<T>,
): Promise<T> {
  const beganMs = options.clock.monotonic()
  try {
    return await work()
  } finally {
    noteStage(options, run, stage, options.clock.monotonic() - beganMs)
  }
}

/** Tells the wait for API slots from the time until the answers are there. */
async function timeFetch<T>(
  options: PollerOptions,
  run: LoggedRun,
  work: (queued: LoggedRun) => Promise<T>,
): Promise<T> {
  const { clock } = options
  const beganMs = clock.monotonic()
  let slotMs = 0
  let joinedMs: number | undefined
  const leaveQueue = (): void => {
    if (joinedMs !== undefined) slotMs += clock.monotonic() - joinedMs
    joinedMs = undefined
  }
  const queued: LoggedRun = {
    ...run,
    onJoin() {
      joinedMs = clock.monotonic()
      run.onJoin?.()
    },
    onSlot() {
      leaveQueue()
      run.onSlot?.()
    },
  }
  try {
    return await work(queued)
  } finally {
    leaveQueue()
    noteStage(options, run, 'slot', slotMs)
    noteStage(options, run, 'fetch', clock.monotonic() - beganMs - slotMs)
  }
}

function noteStage({ metrics }: PollerOptions, run: LoggedRun, stage: PollStage, ms: number): void {
  metrics.feedPollStageSeconds.observe({ stage }, ms / 1000)
  run.log.addStage(run, stage, ms)
}
