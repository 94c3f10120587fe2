/**
 * Reads one feed for one turn: page after page while there is more, each taken in exactly once before
 * the next is asked for. A failure leaves the cursor where it was. It never sends anything.
 */
import { isKnownSeverity, severityRank } from '../event.ts'
import { isReserveReached, type Need, type PolledFeed } from '../feed-types/feed-type.ts'
import { typeOf } from '../feed-types/feed-types.ts'
import type { UnreadField } from '../feed-types/field-reader.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { type FeedState, noteRefusal, openFeed, type Walk } from '../store/feed-state.ts'
import { type Accepted, acceptPage, type Page, type RoutedEvent } from '../store/intake.ts'
import { isNotThere, isUnknownPath } from '../upstream/capabilities.ts'
import { ServiceError } from '../upstream/error.ts'
import { doubtMatchTime, isCredible, matchedNow } from './match-time.ts'
import { fetchPage, noteShortEnd, pageOf } from './page.ts'
import {
  createShortPages,
  noShortPage,
  type Obstacle,
  type PollerOptions,
  type PollOutcome,
  type PollTurn,
  type TurnAsked,
} from './poll-turn.ts'
import { leastPlan, wholeEveryMs } from './rescan-plan.ts'
import { nextRescan, type RescanPlace } from './rescan.ts'
import { fingerprintOf, isReadAnew, tailDueMs, walkFor } from './scan.ts'

/** Pages a run, so that one long backlog does not hold a lane for ever. */
const pagesPerRun = 50

export interface Poller {
  /** One turn of a feed's tail or of its rescans. Throws only what is a bug or a Redis failure. */
  pollOnce(feed: PolledFeed, asked: TurnAsked): Promise<PollOutcome>
}

export function createPoller(options: PollerOptions): Poller {
  const { clock, logger, metrics } = options
  const shortPages = createShortPages()
  return {
    async pollOnce(feed, asked) {
      const { kind, signal, dueSinceMs = clock.now() } = asked
      try {
        const short = kind === 'feed' ? shortPages.last(feed) : noShortPage()
        const turn = { ...asked, feed, dueSinceMs, shortPages, short }
        return await pollPages(options, { ...turn, refusals: { count: 0 } })
      } catch (error) {
        if (signal.aborted) return { status: 'stopped' }
        if (!(error instanceof ServiceError)) throw error
        if (await noteRefused(options, feed, error)) return { status: 'refused' }
        metrics.feedPollsFailedTotal.inc({ feed: feed.name, reason: error.reason })
        const said = kind === 'sweep' ? 'rescan failed' : 'poll failed'
        const fields = { feed: feed.name, account: feed.account, err: error }
        const cause = describeCause(error)
        logger.repeated.warn(fields, said, { cause, list: 'feeds', name: feed.name })
        return { status: 'failed', reason: error.reason, retryAfterMs: error.retryAfterMs }
      }
    },
  }
}

/** One for each way in which the service fails, whatever the feed. */
function describeCause({ reason, status, fault }: ServiceError): string {
  return [reason, status, fault].join(' ')
}

async function pollPages(options: PollerOptions, turn: PollTurn): Promise<PollOutcome> {
  let { dueSinceMs } = turn
  for (let page = 0; page < pagesPerRun; page += 1) {
    if (turn.signal.aborted) return { status: 'stopped' }
    const outcome = await pollPage(options, { ...turn, dueSinceMs }, page)
    if (outcome.status !== 'more') return outcome
    if (turn.goesOn && !(await turn.goesOn(page + 1))) return outcome
    dueSinceMs = options.clock.now() // others that are due meanwhile have waited longer
  }
  return { status: 'more' }
}

async function pollPage(
  options: PollerOptions,
  turn: PollTurn,
  pageOfTurn: number,
): Promise<PollOutcome> {
  const { feed, kind } = turn
  const book = options.book(feed.account)
  const state = await openFeed(book, feed.name, feed.startMs)
  const readAtMs = options.clock.now()
  const obstacle = await obstacleTo(options, turn, state)
  if (obstacle) return { status: obstacle }
  const isRescan = kind === 'sweep'
  const next = isRescan
    ? await chooseRescan(options, turn, state, (turn.pagesBefore ?? 0) + pageOfTurn)
    : nextOfTail(turn, state)
  if (!('rescan' in next)) {
    const aheadMs = state.nowMs - readAtMs
    const endMs = turn.isForgotten ? state.lastCaughtUpMs : undefined
    return {
      status: 'not_due',
      untilMs: next.dueMs && next.dueMs - aheadMs,
      readAtMs: endMs && endMs - aheadMs,
    }
  }
  const { place, walk } = next.rescan
  if (await isTooCostly(options, turn, walk)) return { status: 'quota' }
  if (pageOfTurn === 0) options.metrics.feedPollsTotal.inc({ feed: feed.name })
  const fetched = await fetchPage(options, turn, state, next.rescan)
  const aheadMs = state.nowMs - readAtMs // Redis' clock, the same for every replica
  const { page, hasMore, shortEnd } = pageOf(options, turn, { state, fetched, aheadMs, place })
  const shown = { asked: fetched.walk, events: page.events }
  if (!(await isCredible(options, turn, state, shown))) return { status: 'more' }
  const accepted = await acceptPage(book, page, options.batchWaitMs)
  if (accepted.status === 'stale') return { status: 'more' } // another replica took it in: read anew
  if (accepted.status !== 'committed') return { status: accepted.status }
  countPage(options, feed, page, accepted)
  await clearRefused(options, feed, state)
  if (kind === 'feed') sayRemark(options, feed, { before: state.walk, after: page.walk })
  await options.queue(feed.account, accepted.made)
  if (accepted.isBrokenOff) return { status: 'more' } // as where it is stale
  if (shortEnd) noteShortEnd(turn, shortEnd)
  await doubtMatchTime(options, turn, state, { ...accepted, walk: page.walk })
  // short rescans end often: the turn goes on with the longer ones
  const isMore = (hasMore && !accepted.isEnded) || (place && !isWholeScan(place, page))
  turn.onPage?.({
    newEvents: accepted.newEvents.length,
    urgentEvents: accepted.newEvents.filter(isUrgent).length,
    hasMore: isMore === true,
    isBacklog: state.isBackfilling || isReadAnew(feed, state),
    isNewWalk: isNewWalk(state, page),
  })
  return { status: isMore ? 'more' : 'caught_up' }
}

function isNewWalk({ walk: before, lastCaughtUpMs }: FeedState, page: Page): boolean {
  const { walk, isCaughtUp } = page
  const isFirstEnd = isCaughtUp && lastCaughtUpMs === undefined
  const isOther = walk.fingerprint !== before?.fingerprint || walk.behind?.id !== before.behind?.id
  return isFirstEnd || isOther
}

function isUrgent({ event }: RoutedEvent): boolean {
  return severityRank(event.severity) >= severityRank('high')
}

function nextOfTail(
  { feed, isForgotten }: PollTurn,
  state: FeedState,
): { rescan: { walk: Walk; place: undefined } } | { dueMs: number } {
  const dueMs = tailDueMs(feed, state, isForgotten)
  if (dueMs !== undefined && dueMs > state.nowMs) return { dueMs }
  return { rescan: { walk: walkFor(feed, state), place: undefined } }
}

function isWholeScan(place: RescanPlace, { rescan }: Page): boolean {
  return place === 'sweep' && rescan?.isSnapshot === false
}

async function chooseRescan(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
  pages: number,
): Promise<ReturnType<typeof nextRescan>> {
  const { feed } = turn
  const isBegun = state.lastCaughtUpMs !== undefined && !state.isBackfilling
  const matchedNowMs = isBegun ? await matchedNow(options, turn, state) : undefined
  const { perWeek } = state.rescans
  const plan = options.rescanBudget?.plan(feed, { perWeek, isMatched: matchedNowMs !== undefined })
  const rememberedMs = options.book(feed.account).horizonMs
  const world = { plan: plan ?? leastPlan, matchedNowMs, rememberedMs }
  options.metrics.feedSweepIntervalSeconds.set(
    { feed: feed.name },
    wholeEveryMs(feed, world) / 1000,
  )
  return nextRescan(feed, state, world, pages)
}

/** Once when it begins to hold, and once when it no longer does. */
function sayRemark(
  { logger }: PollerOptions,
  feed: PolledFeed,
  { before, after }: { before: Walk | undefined; after: Walk },
): void {
  const { unordered } = typeOf(feed)
  const [had, has] = [before && unordered?.remark?.(before, feed), unordered?.remark?.(after, feed)]
  const about = { feed: feed.name, account: feed.account }
  if (has !== undefined && had === undefined) logger.warn(about, has)
  if (has === undefined && had !== undefined) logger.info(about, `no longer so: ${had}`)
}

/** Why nothing is asked just now; known beforehand, it costs no request. */
async function obstacleTo(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
): Promise<Obstacle | undefined> {
  const { generation, hasRoom } = options
  const { feed, kind } = turn
  if (state.paused) return 'paused'
  const own = generation()
  if (isSuperseded(feed, state, state, own)) return 'superseded'
  const places = kind === 'sweep' ? (['recent', 'long', 'sweep'] as const) : []
  if (places.some((place) => isSuperseded(feed, state, state[place], own))) return 'superseded'
  if (await isRefused(options, feed, state)) return 'refused'
  return (await hasRoom()) ? undefined : 'full'
}

/** Whether the next page would use what the feed must leave of the quota. */
async function isTooCostly(
  { client, quotaOf, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs, onJoin, onSlot }: PollTurn,
  walk: Walk,
): Promise<boolean> {
  const nowMs = clock.now()
  if (!isReserveReached(feed, await quotaOf?.(feed.account), nowMs)) return false
  const turn = { kind, name: feed.name, dueSinceMs, onJoin, onSlot }
  const request = { client: client(feed.account), walk, turn, signal, nowMs }
  return !(await typeOf(feed).isFree?.(request))
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

type Committed = Extract<Accepted, { status: 'committed' }>

/** Metrics and log of a page that was taken in. */
export function countPage(
  parts: { metrics: Metrics; logger: Logger },
  { name: feed }: Pick<PolledFeed, 'name'>,
  page: Page,
  { counts, newEvents }: Committed,
): void {
  const { metrics, logger } = parts
  metrics.feedPagesTotal.inc({ feed })
  if (counts.fetched === 0) metrics.feedEmptyPagesTotal.inc({ feed })
  metrics.eventsFetchedTotal.inc({ feed }, counts.fetched)
  metrics.eventsDuplicateTotal.inc({ feed }, counts.duplicate)
  metrics.eventsQuarantinedTotal.inc({ feed }, counts.quarantined)
  metrics.eventsUnreadableTotal.inc({ feed }, page.malformed.length)
  metrics.eventsBaselineTotal.inc({ feed }, counts.baseline)
  metrics.eventsSeverityRaisedTotal.inc({ feed }, counts.raised)
  metrics.sweepLateEventsTotal.inc({ feed }, counts.late)
  for (const routed of newEvents) countNew(metrics, page, routed)
  if (counts.new + counts.quarantined + counts.raised > 0)
    logger.info({ feed, ...counts }, 'page taken in')
  if (counts.quarantined > 0) warnOfQuarantine(parts, page, counts)
  warnOfUnread(parts, feed, newEvents)
}

function warnOfQuarantine(
  { logger }: { logger: Logger },
  { feed, malformed }: Page,
  { quarantined, fetched }: Committed['counts'],
): void {
  const problem = malformed[0]?.problem
  const fields = { feed, quarantined, fetched, problem, remedy: 'tocsin quarantine list' }
  logger.repeated.warn(fields, 'items cannot be read and are quarantined: nobody is told of them', {
    cause: `${feed}: ${problem}`,
    list: 'feeds',
    name: feed,
  })
}

function warnOfUnread(
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

function countNew(
  metrics: Metrics,
  { feed, requestedAtMs, rescan }: Page,
  { event, decisions }: RoutedEvent,
): void {
  const { severity } = event
  metrics.eventsNewTotal.inc({ feed, severity })
  metrics.eventsNewBySeverityTotal.inc({ severity })
  if (!isKnownSeverity(severity)) metrics.unknownSeverityTotal.inc({ feed })
  for (const { route } of decisions) metrics.eventsRoutedTotal.inc({ route, severity })
  if (decisions.every(({ path }) => path.length === 1))
    metrics.eventsRootOnlyTotal.inc({ severity })
  const isLate =
    rescan?.lateBeforeMs !== undefined && (event.createdAtMs ?? Infinity) < rescan.lateBeforeMs
  if (isLate) {
    const ageMs = requestedAtMs - (event.createdAtMs ?? requestedAtMs)
    metrics.eventLatenessSeconds.observe({ feed }, Math.max(0, ageMs) / 1000)
  }
  const shownAtMs = event.matchedAtMs ?? event.createdAtMs
  if (shownAtMs === null || rescan) return // how soon the tail is, what a rescan finds does not tell
  const waitedMs = Math.max(0, requestedAtMs - shownAtMs)
  metrics.eventMatchToFetchSeconds.observe({ feed }, waitedMs / 1000)
}

/**
 * Feeds whose operation not every server has, or not every key may use. Where the service refuses it by 403,
 * 404 or 405 the feed stops: the refusal stands in its state, for commands, metrics and operators, and in
 * the account's memory of what it has, so that it is seldom asked again, and at once with another key.
 */

type Asking = Pick<PollerOptions, 'client' | 'book' | 'clock' | 'logger' | 'metrics'>

/** A feed that never got an answer asks again once a day. */
const askAgainMs = 86_400_000
/** One that did may have met a fault of a gateway. */
const askSoonMs = 600_000

/** Whether the service refused it so lately that it is not asked again yet. Each feed asks for itself once. */
async function isRefused(
  { client, clock }: Asking,
  feed: PolledFeed,
  { lastSuccessMs, refused }: FeedState,
): Promise<boolean> {
  if (!refused) return false
  const need = typeOf(feed).needs?.(feed)
  const known = need && (await client(feed.account).capabilities.read(need.capability))
  if (!known || known.has) return false
  return clock.now() - known.atMs < (lastSuccessMs === undefined ? askAgainMs : askSoonMs)
}

/** Whether the error is such a refusal; then it is noted, and said once. */
async function noteRefused(
  { client, book, clock, logger, metrics }: Asking,
  feed: PolledFeed,
  error: ServiceError,
): Promise<boolean> {
  const need = typeOf(feed).needs?.(feed)
  if (!need || !isNotThere(error)) return false
  metrics.feedPollsFailedTotal.inc({ feed: feed.name, reason: error.reason })
  await client(feed.account).capabilities.note(need.capability, false)
  const reason = reasonOf(need, error)
  const refusal = { reason, sinceMs: clock.now() }
  const isFirst = await noteRefusal(book(feed.account), feed.name, refusal)
  const about = { feed: feed.name, account: feed.account, err: error }
  if (isFirst) logger.warn(about, `the feed stops: ${reason}`)
  return true
}

/** After a page came. */
async function clearRefused(
  { client, book, logger }: Asking,
  feed: PolledFeed,
  { refused }: FeedState,
): Promise<void> {
  const need = typeOf(feed).needs?.(feed)
  if (!need || !refused) return
  await client(feed.account).capabilities.note(need.capability, true)
  await noteRefusal(book(feed.account), feed.name, undefined)
  logger.info(
    { feed: feed.name, account: feed.account },
    'the feed goes on: it is no longer refused',
  )
}

function reasonOf({ operation, what }: Need, error: ServiceError): string {
  const { status } = error
  if (status === 403) {
    return `403 to ${operation}: the user of the key needs access to ${what}`
  }
  if (status === 405 || isUnknownPath(error)) {
    return `${status} to ${operation}: this server is too old to have it; use a feed of another type`
  }
  return `${status} to ${operation}: there is no ${what}`
}
