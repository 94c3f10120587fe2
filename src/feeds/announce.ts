/** What is counted, logged and told of a page that was taken in. */
import { isKnownSeverity, severityRank } from '../event.ts'
import type { PolledFeed } from './types/polled-feed.ts'
import type { UnreadField } from './types/field-reader.ts'
import { findFeedType } from './types/feed-types.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import type { FeedState } from '../store/feed-state.ts'
import type { AcceptResult, Page, RoutedEvent } from '../store/intake.ts'
import { checkMatchFilter } from './match-time.ts'
import type { LoggedRun, PollerOptions, PollOutcome } from './poll-run.ts'
import type { RescanPlace } from './rescan.ts'
import { beginsAtStartBound } from './scan.ts'

type Committed = Extract<AcceptResult, { status: 'committed' }>

interface TakenIn {
  state: FeedState
  aheadMs: number
  page: Page
  hasMore: boolean
  place: RescanPlace | undefined
}

/** Counts a page, tells the sinks what it made, and says whether the feed goes on. */
export async function announce(
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
  await run.account.queue(accepted.changes)
  if (accepted.isBrokenOff) return { status: 'more' } // handled like a stale page
  await checkMatchFilter(options, run, state, { ...accepted, scan: page.scan })
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
export function observeDelays(
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
