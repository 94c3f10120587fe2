/**
 * The polling rule, pure: chooses which feed of a lane is read next, and keeps the estimates that
 * it needs.
 *
 * A lane holds the feeds of one organization whose pages count against one rate-limit tier.
 * Whenever it may send a request, it reads, in this order:
 *
 * 1. the feed that is longest overdue: not read for 1.5 × N/R (N feeds, R requests per second), or
 *    for longer than the interval it states (`every`, `lag_objective`) where all stated intervals
 *    fit the budget; a stated interval is never shorter than the minimum poll interval;
 * 2. the feed with more pages waiting that has waited longest;
 * 3. the feed with the largest weight × rate × age², among those not read within the minimum
 *    interval.
 *
 * The third step minimizes the sum of all delays where rates are known: the next request to a feed
 * saves rate × age²/2 of waiting. Rates are estimates that decay over two hours. While little has
 * been seen they lean on the mean of the lane's feeds, the more so the more unevenly events arrive
 * (docs/decisions/polling.md).
 *
 * Feeds whose last run failed come after all others, but for one turn in `retryEvery`, or at once
 * after one of them that works again. Those that hang take no more than others can spare.
 *
 * Feeds whose every poll costs quota keep their interval (`everyMs`) and go first when it has
 * passed.
 */
import { defaultTimings } from '../../lib/clock.ts'

/** The configuration of a feed, as the rule needs it. */
export interface FeedTiming {
  id: string
  /** The fixed interval of a feed that is not chosen by rate, ms. */
  everyMs?: number | undefined
  /**
   * The longest interval that the operator states, ms; kept where all stated intervals fit the
   * budget.
   */
  longestMs?: number | undefined
}

/** What is known of a feed's past. When it is lost, the feed counts as an average one. */
export interface FeedPlace {
  /** When the request that read the feed to its end was sent, ms; undefined: never. */
  readAtMs: number | undefined
  /** When the last request was sent, ms. */
  askedAtMs: number | undefined
  /** More pages wait. */
  hasMore: boolean
  /** Until when nothing is requested, ms, and why. */
  wait: { untilMs: number; why: string } | undefined
  /** Consecutive failed polls. */
  failures: number
  /** Moving average of the intervals between reads to the end, ms. */
  intervalMs: number | undefined
  /**
   * New events, the critical or high ones among them, and seconds watched; all decay over two
   * hours.
   */
  events: number
  urgent: number
  watchedSeconds: number
  /** New events since the feed was last read to its end. */
  sinceRead: number
  /** State of its rescans; undefined: none was looked for yet. */
  rescan: RescanPlace | undefined
}

interface RescanPlace {
  /** When a rescan is next read or looked for, ms. */
  atMs: number
  /** Consecutive failed runs. */
  failures: number
  /** Pages read so far, over all runs. */
  pages: number
}

/** What is known of all feeds of a lane together; decays over twelve hours. */
export interface FleetPlace {
  events: number
  watchedSeconds: number
  /** Squared deviations from the expected event counts, and the sum of those counts. */
  deviation: number
  expected: number
  atMs: number
}

interface Budget {
  /** Requests per second that the lane may send. */
  perSecond: number
  /** No feed is read again sooner, ms, unless more pages wait. */
  minIntervalMs: number
  /** Requests since a feed was chosen whose last run had failed; absent: `retryEvery`. */
  turnsSinceRetry?: number | undefined
}

/** Rescans take one request in ten; so feeds keep within `ceilingFactor` of their mean interval. */
export const retryEvery = 5

type Choice =
  | { feed: string; why: 'overdue' | 'more' | 'rate' }
  /** Nothing is due before this time, ms. */
  | { atMs: number }

/** The most polls per second of all feeds of a configuration together: it bounds a process's work. */
const maxPollsPerSecond = 100

/**
 * The minimum poll interval of all feeds of a configuration, ms. Fixed intervals are kept, and the
 * other feeds share the rest of `maxPollsPerSecond`. It is never less than `leastMs`.
 */
export function minPollInterval(
  feeds: readonly Pick<FeedTiming, 'everyMs'>[],
  leastMs = defaultTimings.minPollIntervalMs,
): number {
  return Math.max(
    leastMs,
    (1000 * ruledFeeds(feeds).length) / besideFixed(feeds, maxPollsPerSecond),
  )
}

function ruledFeeds<Feed extends Pick<FeedTiming, 'everyMs'>>(feeds: readonly Feed[]): Feed[] {
  return feeds.filter(({ everyMs }) => everyMs === undefined)
}

/** The requests per second that fixed intervals leave for other feeds: at least a tenth. */
function besideFixed(feeds: readonly Pick<FeedTiming, 'everyMs'>[], perSecond: number): number {
  const fixed = feeds.reduce((sum, { everyMs = Infinity }) => sum + 1000 / everyMs, 0)
  return Math.max(perSecond - fixed, perSecond / 10)
}

/** Times the mean interval: no feed is read less often than that. */
const ceilingFactor = 1.5
const memoryMs = 2 * 3_600_000
const fleetMemoryMs = 12 * 3_600_000
/**
 * Weight of the lane's mean in the estimate for a feed, in seconds watched; multiplied by the Fano
 * factor.
 */
const priorSeconds = 300
const maxFano = 20
/** Events per second of a feed of which nothing is known: 1,000 a week. */
const usualRate = 1_000 / (7 * 86_400)

export function newFeedPlace(): FeedPlace {
  return {
    readAtMs: undefined,
    askedAtMs: undefined,
    hasMore: false,
    wait: undefined,
    failures: 0,
    intervalMs: undefined,
    events: 0,
    urgent: 0,
    watchedSeconds: 0,
    sinceRead: 0,
    rescan: undefined,
  }
}

export function newFleetPlace(nowMs: number): FleetPlace {
  return { events: 0, watchedSeconds: 0, deviation: 0, expected: 0, atMs: nowMs }
}

/** No failure and no pause leaves a feed alone for longer, ms. */
const longestWaitMs = 16 * 60_000

/**
 * Clamps past times that lie in the future to now, and drops waits that are too long: a clock was
 * ahead. Changes both.
 */
export function clampFutureTimes(
  { place, fleet }: { place?: FeedPlace; fleet?: FleetPlace },
  nowMs: number,
): void {
  if (fleet) fleet.atMs = Math.min(fleet.atMs, nowMs)
  if (!place) return
  const { readAtMs, askedAtMs, wait, rescan } = place
  if (readAtMs !== undefined) place.readAtMs = Math.min(readAtMs, nowMs)
  if (askedAtMs !== undefined) place.askedAtMs = Math.min(askedAtMs, nowMs)
  if (wait && wait.untilMs > nowMs + longestWaitMs) place.wait = undefined
  if (rescan && rescan.atMs > nowMs + longestWaitMs) rescan.atMs = nowMs
}

export interface Candidate {
  feed: FeedTiming
  place: FeedPlace
}

/** Chooses the next feed of a lane. `fleet` is what is known of all its feeds. */
export function chooseNext(
  candidates: readonly Candidate[],
  fleet: FleetPlace,
  budget: Budget,
  nowMs: number,
): Choice {
  const { turnsSinceRetry = retryEvery } = budget
  const working = candidates.filter(({ place }) => place.failures === 0)
  if (turnsSinceRetry < retryEvery && working.length < candidates.length) {
    const choice = chooseNext(working, fleet, { ...budget, turnsSinceRetry: retryEvery }, nowMs)
    if ('feed' in choice) return choice
  }
  const intervals = overdueIntervals(candidates, budget, nowMs)
  let overdue: { feed: string; sinceMs: number } | undefined
  let more: { feed: string; sinceMs: number } | undefined
  let best: { feed: string; index: number } | undefined
  let atMs = Infinity
  for (const { feed, place } of candidates) {
    const freeMs = place.wait?.untilMs ?? -Infinity
    const dueMs = Math.max(freeMs, overdueAtMs(feed, place, intervals))
    if (dueMs <= nowMs && !(overdue && overdue.sinceMs <= dueMs))
      overdue = { feed: feed.id, sinceMs: dueMs }
    const notBeforeMs =
      feed.everyMs === undefined ? lastReadMs(place) + budget.minIntervalMs : dueMs
    const readyMs = place.hasMore ? freeMs : Math.max(freeMs, notBeforeMs)
    if (readyMs > nowMs) {
      atMs = Math.min(atMs, readyMs)
    } else if (place.hasMore) {
      const sinceMs = place.askedAtMs ?? -Infinity
      if (!(more && more.sinceMs <= sinceMs)) more = { feed: feed.id, sinceMs }
    } else {
      const index = pollPriority(place, fleet, nowMs)
      if (!(best && best.index >= index)) best = { feed: feed.id, index }
    }
  }
  if (overdue) return { feed: overdue.feed, why: 'overdue' }
  if (more) return { feed: more.feed, why: 'more' }
  return best ? { feed: best.feed, why: 'rate' } : { atMs }
}

/** Weight × rate × age²: proportional to the waiting that one request to the feed saves. */
function pollPriority(place: FeedPlace, fleet: FleetPlace, nowMs: number): number {
  const ageSeconds = (nowMs - lastReadMs(place)) / 1000
  return urgencyWeight(place) * eventRate(place, fleet) * ageSeconds * ageSeconds
}

/** Estimated new events per second of a feed. */
export function eventRate({ events, watchedSeconds }: FeedPlace, fleet: FleetPlace): number {
  const prior = priorSeconds * fanoFactor(fleet)
  const priorWeight = priorSeconds * 10 // until the lane was watched for longer
  const mean = (usualRate * priorWeight + fleet.events) / (priorWeight + fleet.watchedSeconds)
  return (mean * prior + events) / (prior + watchedSeconds)
}

/** How unevenly events arrive: 1 for random arrival (Poisson), more for bursts. */
function fanoFactor({ deviation, expected }: FleetPlace): number {
  return Math.min(maxFano, Math.max(1, (deviation + 10) / (expected + 10)))
}

/** From 1, where nothing urgent was seen, to 2, where everything was. */
function urgencyWeight({ events, urgent }: FeedPlace): number {
  return 1 + urgent / (events + 3)
}

interface Intervals {
  /** The interval of a feed that states none, ms. */
  usualMs: number
  /** No feed is read again sooner, ms. */
  minIntervalMs: number
  areStatedKept: boolean
}

/** After how long feeds are overdue, and whether the stated intervals fit the budget. */
function overdueIntervals(
  candidates: readonly Candidate[],
  { perSecond, minIntervalMs }: Budget,
  nowMs: number,
): Intervals {
  const active = candidates.filter(({ place: { wait } }) => !(wait && wait.untilMs > nowMs))
  const feeds = active.map(({ feed }) => feed)
  const ratePolledCount = ruledFeeds(feeds).length
  const usualMs = Math.max(
    minIntervalMs,
    (ceilingFactor * 1000 * ratePolledCount) / besideFixed(feeds, perSecond),
  )
  const areStatedKept = neededPerSecond(feeds, { usualMs, minIntervalMs }) <= perSecond
  return { usualMs, minIntervalMs, areStatedKept }
}

/** The intervals that the feeds of a lane can expect, by configuration alone. */
export interface Outlook {
  /** How often a feed is read if all have the same rate, ms; busier feeds are read more often. */
  intervalMs: number
  /** The longest time between two reads of a feed while the API answers, ms. */
  longestMs: number
  /** Whether the stated intervals fit the budget; where they do not, none of them is kept. */
  areStatedKept: boolean
  /** Requests per second that the stated intervals take, including those of the other feeds. */
  neededPerSecond: number
  /** No feed is read again sooner, ms, whatever it states. */
  minIntervalMs: number
}

export function expectIntervals(feeds: readonly FeedTiming[], budget: Budget): Outlook {
  const candidates = feeds.map((feed) => ({ feed, place: newFeedPlace() }))
  const { usualMs, areStatedKept } = overdueIntervals(candidates, budget, 0)
  return {
    intervalMs: Math.max(budget.minIntervalMs, usualMs / ceilingFactor),
    longestMs: usualMs,
    areStatedKept,
    neededPerSecond: neededPerSecond(feeds, { usualMs, minIntervalMs: budget.minIntervalMs }),
    minIntervalMs: budget.minIntervalMs,
  }
}

/** Requests per second that all stated intervals take, with `usualMs` for the other feeds. */
function neededPerSecond(
  feeds: readonly FeedTiming[],
  given: Pick<Intervals, 'usualMs' | 'minIntervalMs'>,
): number {
  return feeds.reduce(
    (sum, { everyMs, longestMs }) => sum + 1000 / (everyMs ?? statedInterval(longestMs, given)),
    0,
  )
}

/** After how long a feed is overdue where stated intervals are kept, ms. */
function statedInterval(
  longestMs = Infinity,
  { usualMs, minIntervalMs }: Pick<Intervals, 'usualMs' | 'minIntervalMs'>,
): number {
  return Math.max(minIntervalMs, Math.min(longestMs, usualMs))
}

function overdueAtMs(
  { everyMs, longestMs }: FeedTiming,
  place: FeedPlace,
  intervals: Intervals,
): number {
  const { usualMs, areStatedKept } = intervals
  if (everyMs !== undefined && place.askedAtMs !== undefined)
    return place.askedAtMs + (place.hasMore ? usualMs : everyMs)
  const sinceMs = place.hasMore ? place.askedAtMs : place.readAtMs
  if (sinceMs === undefined) return -Infinity
  return sinceMs + (areStatedKept ? statedInterval(longestMs, intervals) : usualMs)
}

function lastReadMs({ readAtMs = 0 }: FeedPlace): number {
  return readAtMs
}

interface ReadPage {
  /** When its request was sent, ms. */
  askedAtMs: number
  newEvents: number
  /** New events that are critical or high, or of unknown severity. */
  urgentEvents: number
  hasMore: boolean
  /**
   * The page belongs to the first scan of what was there before, so it says nothing of the feed's
   * rate.
   */
  isBacklog: boolean
}

/** Records a page that was taken in. Changes `place` and `fleet`. */
export function notePage(place: FeedPlace, fleet: FleetPlace, page: ReadPage): void {
  const { askedAtMs, newEvents, urgentEvents, hasMore, isBacklog } = page
  Object.assign(place, { askedAtMs, hasMore, wait: undefined, failures: 0 })
  if (!isBacklog && place.readAtMs !== undefined) {
    place.events += newEvents
    place.urgent += urgentEvents
    place.sinceRead += newEvents
  }
  if (hasMore) return
  if (place.readAtMs !== undefined) noteInterval(place, fleet, askedAtMs)
  place.readAtMs = askedAtMs
  place.sinceRead = 0
}

/** Records the interval between two reads to the end of the feed. */
function noteInterval(place: FeedPlace, fleet: FleetPlace, atMs: number): void {
  const spanMs = Math.max(0, atMs - lastReadMs(place))
  const seconds = spanMs / 1000
  decayFleet(fleet, atMs)
  const expected = eventRate(place, fleet) * seconds
  fleet.events += place.sinceRead
  fleet.watchedSeconds += seconds
  fleet.expected += expected
  fleet.deviation += (place.sinceRead - expected) ** 2
  place.watchedSeconds += seconds
  const remaining = Math.exp(-spanMs / memoryMs)
  place.events *= remaining
  place.urgent *= remaining
  place.watchedSeconds *= remaining
  place.intervalMs = place.intervalMs === undefined ? spanMs : 0.8 * place.intervalMs + 0.2 * spanMs
}

function decayFleet(fleet: FleetPlace, atMs: number): void {
  const remaining = Math.exp(-Math.max(0, atMs - fleet.atMs) / fleetMemoryMs)
  fleet.events *= remaining
  fleet.watchedSeconds *= remaining
  fleet.expected *= remaining
  fleet.deviation *= remaining
  fleet.atMs = Math.max(fleet.atMs, atMs)
}
