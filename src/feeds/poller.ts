/**
 * Reads one feed for one turn: page after page while there is more, each taken in exactly once before
 * the next is asked for. A failure leaves the cursor where it was. It never sends anything.
 */
import { severityRank } from '../events/severity.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import { acceptPage, type Page, type RoutedEvent } from '../intake/intake.ts'
import type { Book } from '../ledger/book.ts'
import type { MadeWork } from '../ledger/collecting.ts'
import { openFeed, type FeedState, type Walk } from '../ledger/feed-state.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { Capabilities } from '../service/capabilities.ts'
import type { ServiceClient } from '../service/client.ts'
import { ServiceError, type ServiceReason } from '../service/service-error.ts'
import { countPage } from './count-page.ts'
import { typeOf } from './feed-types.ts'
import { fetchPage } from './fetch-page.ts'
import { pageOf } from './page-of.ts'
import type { PolledFeed } from './polled-feed.ts'
import { isReserveReached, type Quota } from './quota-reserve.ts'
import { clearRefused, isRefused, noteRefused } from './refused-operation.ts'
import { doubtMatchTime, isCredible, matchedNow } from './match-time.ts'
import { leastPlan, wholeEveryMs, type RescanBudget } from './rescan-plan.ts'
import { createShortPages, noShortPage, type ShortPage, type ShortPages } from './short-pages.ts'
import { nextRescan, type RescanPlace } from './rescan.ts'
import { fingerprintOf, isReadAnew, tailDueMs, walkFor } from './walk.ts'

/** Pages a run, so that one long backlog does not hold a lane for ever. */
const pagesPerRun = 50

/** Why nothing is asked just now. */
type Obstacle = 'paused' | 'superseded' | 'refused' | 'quota' | 'full'

export type PollOutcome =
  | { status: 'caught_up' | 'more' | 'stopped' | Obstacle }
  /** Nothing is before `untilMs`, wall clock; undefined, of rescans: before the feed was read to its end once. */
  | { status: 'not_due'; untilMs: number | undefined }
  | { status: 'failed'; reason: ServiceReason; retryAfterMs: number | undefined }

export interface Poller {
  /** One turn of a feed's tail or of its rescans. Throws only what is a bug or a Redis failure. */
  pollOnce(feed: PolledFeed, asked: TurnAsked): Promise<PollOutcome>
}

export interface TurnAsked {
  kind: 'feed' | 'sweep'
  signal: AbortSignal
  /** Since when the turn is owed, wall clock ms; undefined: since now. */
  dueSinceMs?: number | undefined
  /** Nobody knows when the tail was last read: what the ledger says of that counts. */
  isForgotten?: boolean | undefined
  /** A page's request waits for its slot, and for nothing else. */
  onJoin?: (() => void) | undefined
  /** The slot of a page's request has come. */
  onSlot?: (() => void) | undefined
  /** A page was taken in. */
  onPage?: ((page: TakenPage) => void) | undefined
  /** Pages that earlier turns have read, where these take turns among a feed's rescans; left out: none. */
  pagesBefore?: number | undefined
  /** Whether the run goes on with the next page, after so many; left out: it does. */
  goesOn?: ((pages: number) => Promise<boolean>) | undefined
}

/** A page of a tail that was taken in, as the polling rule counts it. */
export interface TakenPage {
  newEvents: number
  /** Of the new ones, those that are critical or high, or of unknown severity. */
  urgentEvents: number
  hasMore: boolean
  /** What the feed's first walk found. */
  isBacklog: boolean
  /** The feed may have to be read again sooner than was known: its request or start is another one. */
  isNewWalk?: boolean | undefined
}

export interface PollerOptions {
  client: (account: string) => ServiceClient
  book: (account: string) => Book
  /**
   * Fixes an event's way: pure. `isBacklog`: what the feed's first walk finds, to come as a summary;
   * `isFresh`: found by the tail on its way, neither then nor by a rescan.
   */
  plan: (
    event: ThreatEvent,
    feed: PolledFeed,
    about: { isBacklog: boolean; isFresh: boolean },
  ) => Pick<RoutedEvent, 'decisions' | 'items' | 'inhibits'>
  batchWaitMs: (sink: string) => number | undefined
  /** Queues the work that a commit made; may fail, a slow pass finds it all the same. */
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
  /** What an account's server can beyond its description; left out: nothing. */
  capabilities?: ((account: string) => Pick<Capabilities, 'read' | 'note' | 'demote'>) | undefined
  /** How the feeds of a tier share the budget of rescans; left out: as if each were alone. */
  rescanBudget?: RescanBudget | undefined
  clock: Clock
  logger: Logger
  metrics: Metrics
}

/** One turn of one feed at the service. */
export interface PollTurn extends TurnAsked {
  feed: PolledFeed
  dueSinceMs: number
  shortPages: ShortPages
  /** Of the feed's tail. */
  short: ShortPage
  /** Cursors that the service refused in this turn. */
  refusals: { count: number }
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
  return [reason, status, fault].filter((part) => part !== undefined).join(' ')
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
    return { status: 'not_due', untilMs: next.dueMs && next.dueMs - aheadMs }
  }
  const { place, walk } = next.rescan
  if (await isTooCostly(options, turn, walk)) return { status: 'quota' }
  if (pageOfTurn === 0) options.metrics.feedPollsTotal.inc({ feed: feed.name })
  const fetched = await fetchPage(options, turn, state, next.rescan)
  const aheadMs = state.nowMs - readAtMs // Redis' clock, the same for every replica
  const { page, hasMore } = pageOf(options, turn, { state, fetched, aheadMs, place })
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
