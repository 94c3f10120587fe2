/**
 * Polls one feed for one poll run: page after page while there are more, each committed exactly
 * once before the next is requested. A failure leaves the cursor where it was. The poller sends no
 * messages.
 */
import { isKnownSeverity, severityRank } from '../event.ts'
import { isReserveReached, reservedSearches, type PolledFeed } from '../feed-types/feed-type.ts'
import { findFeedType } from '../feed-types/feed-types.ts'
import type { UnreadField } from '../feed-types/field-reader.ts'
import { errorMessage } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { type FeedState, noteFeedTrouble, openFeed, type Scan } from '../store/feed-state.ts'
import { type AcceptResult, acceptPage, type Page, type RoutedEvent } from '../store/intake.ts'
import { UpstreamError } from '../upstream/error.ts'
import {
  checkMatchFilter,
  endsTooLate,
  isFilterIgnored,
  readMatchClock,
  upstreamNowMs,
} from './match-time.ts'
import { fetchPage, buildPage } from './page.ts'
import {
  createPollLog,
  type Obstacle,
  type PollerOptions,
  type PollLog,
  type PollOutcome,
  type PollRun,
  type PollRequest,
} from './poll-run.ts'
import { unconstrainedPlan, wholeEveryMs } from './rescan-plan.ts'
import { nextRescan, type RescanPlace } from './rescan.ts'
import { scanFingerprint, beginsAtStartBound, forgottenDueMs, tailScan } from './scan.ts'

/** Pages per run, so that a long backlog does not hold a lane forever. */
const pagesPerRun = 50

export interface Poller {
  /** Polls a feed's tail or its rescans once. Throws only on a bug or a Redis failure. */
  pollOnce(feed: PolledFeed, asked: PollRequest): Promise<PollOutcome>
}

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
  const { feed, kind } = run
  const ledger = options.ledger(feed.account)
  const state = await openFeed(ledger, feed.name, feed.startMs)
  const readAtMs = options.clock.now()
  const obstacle = await findObstacle(options, run, state)
  if (obstacle) return { status: obstacle }
  const isRescan = kind === 'rescan'
  const next = isRescan
    ? await chooseRescan(options, run, state, (run.pagesBefore ?? 0) + pageOfRun)
    : chooseTailScan(run, state)
  if (!('rescan' in next)) {
    const aheadMs = state.nowMs - readAtMs
    const endMs = run.isForgotten ? state.lastCaughtUpMs : undefined
    return {
      status: 'not_due',
      untilMs: next.dueMs && next.dueMs - aheadMs,
      readAtMs: endMs && endMs - aheadMs,
    }
  }
  const { place } = next.rescan
  if (await isTooCostly(options, run)) return { status: 'quota' }
  if (pageOfRun === 0) options.metrics.feedPollsTotal.inc({ feed: feed.name })
  const fetched = await fetchPage(options, run, state, next.rescan)
  const aheadMs = state.nowMs - readAtMs // Redis' clock is the same for every replica
  const { page, hasMore } = buildPage(options, run, { state, fetched, aheadMs, place })
  if (endsTooLate(options, feed, fetched.scan)) return { status: 'more' }
  const asked = { scan: fetched.scan, startBoundMs: state.startBoundMs }
  if (await isFilterIgnored(options, feed, asked, page.events)) return { status: 'more' }
  const accepted = await acceptPage(ledger, page, options.batchWaitMs)
  if (accepted.status === 'stale') return { status: 'more' } // another replica committed it
  if (accepted.status !== 'committed') return { status: accepted.status }
  countPage(options, feed, page, accepted)
  run.log.add(run, accepted)
  const isBacklog = state.isBackfilling || beginsAtStartBound(feed, state)
  if (kind === 'feed' && !isBacklog && !page.isBeyond && !findFeedType(feed).unordered)
    observeDelays(options, { state, page, aheadMs, count: accepted.newEvents.length })
  await options.queue(feed.account, accepted.changes)
  if (accepted.isBrokenOff) return { status: 'more' } // handled like a stale page
  await checkMatchFilter(options, run, state, { ...accepted, scan: page.scan })
  // short rescans end often: the run continues with the longer ones
  const isEnded = accepted.isEnded && page.scan.held === undefined
  const goesOn = !place && findFeedType(feed).unordered?.goesOn?.(page.scan)
  const isMore = (hasMore && !isEnded) || goesOn || (place && !isWholeScan(place, page))
  run.onPage?.({
    newEvents: accepted.newEvents.length,
    urgentEvents: accepted.newEvents.filter(isUrgent).length,
    hasMore: isMore === true,
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

function chooseTailScan(
  { feed, isForgotten }: PollRun,
  state: FeedState,
): { rescan: { scan: Scan; place: undefined } } | { dueMs: number } {
  const dueMs = isForgotten ? forgottenDueMs(feed, state) : undefined
  if (dueMs !== undefined && dueMs > state.nowMs) return { dueMs }
  return { rescan: { scan: tailScan(feed, state), place: undefined } }
}

function isWholeScan(place: RescanPlace, { rescan }: Page): boolean {
  return place === 'whole' && rescan?.isSnapshot === false
}

async function chooseRescan(
  options: PollerOptions,
  run: PollRun,
  state: FeedState,
  pages: number,
): Promise<ReturnType<typeof nextRescan>> {
  const { feed } = run
  const isBegun = state.lastCaughtUpMs !== undefined && !state.isBackfilling
  const matchedNowMs = isBegun ? await readMatchClock(options, feed) : undefined
  const plan = options.rescanBudget?.plan(feed, {
    perWeek: state.rescans.perWeek,
    isMatched: matchedNowMs !== undefined,
    perSecond: run.allowedPerSecond?.(),
  })
  const rememberedMs = options.ledger(feed.account).horizonMs
  const context = {
    plan: plan ?? unconstrainedPlan,
    matchClockMs: matchedNowMs,
    clockMs: upstreamNowMs(options, feed),
    rememberedMs,
  }
  options.metrics.feedRescanIntervalSeconds.set(
    { feed: feed.name },
    wholeEveryMs(feed, context) / 1000,
  )
  return nextRescan(feed, state, context, pages)
}

/** Why nothing can be requested now; checked first, because it costs no request. */
async function findObstacle(
  options: PollerOptions,
  run: PollRun,
  state: FeedState,
): Promise<Obstacle | undefined> {
  const { generation, hasRoom } = options
  const { feed, kind } = run
  if (state.paused) return 'paused'
  const ownGeneration = generation()
  if (isSuperseded(feed, state, state, ownGeneration)) return 'superseded'
  const places = kind === 'rescan' ? (['recent', 'long', 'whole'] as const) : []
  if (places.some((place) => isSuperseded(feed, state, state[place], ownGeneration)))
    return 'superseded'
  return (await hasRoom()) ? undefined : 'full'
}

/** Whether the next page would use quota that the feed must leave. */
async function isTooCostly(
  { readQuota, clock }: PollerOptions,
  { feed }: PollRun,
): Promise<boolean> {
  if (reservedSearches(feed) === 0) return false // most feeds reserve none, and ask nobody
  return isReserveReached(feed, await readQuota?.(feed.account), clock.now())
}

/** Decides as the commit does. */
function isSuperseded(
  feed: PolledFeed,
  { startBoundMs }: FeedState,
  stored: { generation: number; scan: Scan | undefined },
  ownGeneration: number,
): boolean {
  return (
    stored.generation > ownGeneration &&
    stored.scan?.fingerprint !== scanFingerprint(feed, startBoundMs)
  )
}

type Committed = Extract<AcceptResult, { status: 'committed' }>

/** Counts a page that was taken in, and warns of what cannot be read in it. */
export function countPage(
  parts: { metrics: Metrics; logger: Logger },
  { name: feed }: Pick<PolledFeed, 'name'>,
  page: Page,
  { counts, newEvents }: Committed,
): void {
  const { metrics } = parts
  metrics.feedPagesTotal.inc({ feed })
  metrics.eventsFetchedTotal.inc({ feed }, counts.fetched)
  metrics.eventsDuplicateTotal.inc({ feed }, counts.duplicate)
  metrics.eventsQuarantinedTotal.inc({ feed }, counts.quarantined)
  metrics.eventsUnreadableTotal.inc({ feed }, page.malformed.length)
  metrics.eventsBaselineTotal.inc({ feed }, counts.baseline)
  metrics.eventsSeverityRaisedTotal.inc({ feed }, counts.raised)
  metrics.rescanLateEventsTotal.inc({ feed }, counts.late)
  metrics.eventsDatedAheadTotal.inc({ feed }, counts.ahead)
  for (const routed of newEvents) countNewEvent(metrics, page, routed)
  if (counts.quarantined > 0) warnOfQuarantine(parts, page, counts)
  warnOfUnreadFields(parts, feed, newEvents)
}

function warnOfQuarantine(
  { logger }: { logger: Logger },
  { feed, malformed }: Page,
  { quarantined, fetched }: Committed['counts'],
): void {
  const problem = malformed[0]?.problem
  const fields = {
    feed,
    quarantined,
    fetched,
    problem,
    remedy: 'tocsin items list --state quarantined',
  }
  logger.repeated.warn(fields, 'items cannot be read and are quarantined: nobody is told of them', {
    cause: `${feed}: ${problem}`,
    list: 'feeds',
    name: feed,
  })
}

function warnOfUnreadFields(
  { metrics, logger }: { metrics: Metrics; logger: Logger },
  feed: string,
  newEvents: readonly RoutedEvent[],
): void {
  const unread = newEvents.flatMap(({ event }) => event.unread ?? [])
  for (const field of unread) {
    metrics.eventFieldsUnreadTotal.inc({ feed, field: field as UnreadField })
  }
  if (unread.length === 0) return
  const fields = [...new Set(unread)].toSorted()
  logger.repeated.warn({ feed, fields }, 'fields of new events cannot be read', {
    cause: `${feed}: ${fields.join(', ')}`,
    list: 'feeds',
    name: feed,
  })
}

function countNewEvent(
  metrics: Metrics,
  { feed, requestedAtMs, rescan }: Page,
  { event, decisions }: RoutedEvent,
): void {
  const { severity } = event
  metrics.eventsNewTotal.inc({ feed })
  metrics.eventsNewBySeverityTotal.inc({ severity })
  if (!isKnownSeverity(severity)) metrics.unknownSeverityTotal.inc({ feed })
  for (const { route } of decisions) metrics.eventsRoutedTotal.inc({ route })
  if (decisions.every(({ path }) => path.length === 1))
    metrics.eventsUnroutedTotal.inc({ severity })
  const isLate =
    rescan?.lateBeforeMs !== undefined && (event.createdAtMs ?? Infinity) < rescan.lateBeforeMs
  if (isLate) {
    const ageMs = requestedAtMs - (event.createdAtMs ?? requestedAtMs)
    metrics.eventLatenessSeconds.observe(Math.max(0, ageMs) / 1000)
  }
  const shownAtMs = event.matchedAtMs ?? event.createdAtMs
  if (shownAtMs === null || rescan) return // only the tail shows how soon events are fetched
  const waitedMs = Math.max(0, requestedAtMs - shownAtMs)
  metrics.eventMatchToFetchSeconds.observe(waitedMs / 1000)
}

/**
 * Bounds how long new events have waited. That cannot be seen: an event became visible after the
 * request that last read the feed to its end, and before this one was answered. Call only for tails
 * that keep an order, and not for what was there before the feed was first read.
 */
function observeDelays(
  { metrics, clock }: PollerOptions,
  given: { state: FeedState; page: Page; aheadMs: number; count: number },
): void {
  const { requestedAtMs } = given.page
  const { lastCaughtUpMs } = given.state
  if (lastCaughtUpMs === undefined) return
  const nowMs = clock.now() + given.aheadMs
  const shortestSeconds = Math.max(0, nowMs - requestedAtMs) / 1000
  const longestSeconds = Math.max(shortestSeconds, (nowMs - lastCaughtUpMs) / 1000)
  for (let observed = 0; observed < given.count; observed += 1) {
    metrics.eventDetectionLowerBoundSeconds.observe(shortestSeconds)
    metrics.eventDetectionUpperBoundSeconds.observe(longestSeconds)
  }
}
