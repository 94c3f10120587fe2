/**
 * The polling rule, pure: which feed of a lane is read next, and what is known of the feeds for that.
 *
 * A lane holds the feeds of one organization whose pages count against one tier. Whenever it may send a
 * request, it reads, in this order:
 *
 * 1. the feed that is longest overdue: not read for 1.5 × N/R (N feeds, R requests a second), or for longer
 *    than it states (`every`, `lag_objective`) where all stated intervals fit the budget, though not sooner than
 *    the floor;
 * 2. a feed of which more pages wait, the one that waits longest first;
 * 3. the feed with the largest weight × rate × age², if no feed is younger than the floor.
 *
 * The third step minimizes the sum of all delays where rates are known: a feed's next request saves
 * rate × age²/2 of waiting. Rates are estimates that forget over two hours and lean on the mean of the lane's
 * feeds while little was seen, the more so the less evenly events arrive (docs/decisions/polling.md).
 *
 * Feeds of which every poll costs quota keep their interval (`everyMs`) and go first when it has passed.
 */
import { defaultTimings, type Timings } from '../lib/clock.ts'
import type { PollOutcome } from './poll-run.ts'

/** A feed as the rule sees its configuration. */
export interface FeedTiming {
  id: string
  /** The fixed interval of a feed that is not chosen by rate, ms. */
  everyMs?: number | undefined
  /** The longest interval that the operator states, ms; it holds where all stated ones fit the budget. */
  longestMs?: number | undefined
}

/** What is known of a feed's past. It holds no truth: without it the feed counts as an average one. */
export interface FeedPlace {
  /** When the request was sent that read the feed to its end, ms; undefined: never. */
  readAtMs: number | undefined
  /** When its last request was sent, ms. */
  askedAtMs: number | undefined
  /** Pages wait. */
  hasMore: boolean
  /** Nothing is asked before, ms, and why not. */
  wait: { untilMs: number; why: string } | undefined
  /** Failed polls in a row. */
  failures: number
  /** The mean of the last intervals, ms. */
  intervalMs: number | undefined
  /** New events, those among them that are critical or high, and seconds watched; all forget over two hours. */
  events: number
  urgent: number
  watchedSeconds: number
  /** New events since the feed was last read to its end. */
  sinceRead: number
  /** Of its rescans; undefined: nobody has looked. */
  rescan: RescanPlace | undefined
  /** When something of it changed last, ms: of two replicas, whose word counts. */
  notedAtMs: number
}

interface RescanPlace {
  /** When the feed is read again, or looked at, ms. */
  atMs: number
  /** Failed runs in a row. */
  failures: number
  /** Pages read so far, over all runs. */
  pages: number
}

/** What is known of all feeds of a lane together; forgets over twelve hours. */
export interface FleetPlace {
  events: number
  watchedSeconds: number
  /** Squared deviations from what was expected, and the sum of what was expected. */
  deviation: number
  expected: number
  atMs: number
}

interface Budget {
  /** Requests a second that the lane may send. */
  perSecond: number
  /** No feed is read again sooner, ms, unless more pages wait. */
  minIntervalMs: number
}

type Choice =
  | { feed: string; why: 'overdue' | 'more' | 'rate' }
  /** Nothing is to be read before, ms. */
  | { atMs: number }

/**
 * The floor of all feeds of a configuration, ms: together they send at most `pollsPerSecond` requests a second for
 * what is new. Fixed intervals are kept, and the others share what these leave. `leastMs`: no floor is lower.
 */
export function minPollInterval(
  feeds: readonly Pick<FeedTiming, 'everyMs'>[],
  pollsPerSecond: number,
  leastMs = defaultTimings.minPollIntervalMs,
): number {
  return Math.max(leastMs, (1000 * ruledFeeds(feeds).length) / besideFixed(feeds, pollsPerSecond))
}

function ruledFeeds<Feed extends Pick<FeedTiming, 'everyMs'>>(feeds: readonly Feed[]): Feed[] {
  return feeds.filter(({ everyMs }) => everyMs === undefined)
}

/** What feeds that keep an interval leave of so many requests a second: a tenth at the least. */
function besideFixed(feeds: readonly Pick<FeedTiming, 'everyMs'>[], perSecond: number): number {
  const fixed = feeds.reduce((sum, { everyMs = Infinity }) => sum + 1000 / everyMs, 0)
  return Math.max(perSecond - fixed, perSecond / 10)
}

/** Of the mean interval: no feed is read less often than that. */
const ceilingFactor = 1.5
const memoryMs = 2 * 3_600_000
const fleetMemoryMs = 12 * 3_600_000
/** How long the mean of the lane speaks for a feed, times the Fano factor. */
const priorSeconds = 300
const maxFano = 20
/** Events a second of a feed of which nothing is known: 1,000 a week. */
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
    notedAtMs: 0,
  }
}

export function newFleetPlace(nowMs: number): FleetPlace {
  return { events: 0, watchedSeconds: 0, deviation: 0, expected: 0, atMs: nowMs }
}

/** No failure and no pause leaves a feed alone for longer, ms. */
const longestWaitMs = 16 * 60_000

/** Times that are yet to come were written while a clock was ahead: they count as now. Changes all three. */
export function clampFutureTimes(
  { place, fleet, share }: { place?: FeedPlace; fleet?: FleetPlace; share?: Share | undefined },
  nowMs: number,
): void {
  if (fleet) fleet.atMs = Math.min(fleet.atMs, nowMs)
  if (share) share.atMs = Math.min(share.atMs, nowMs)
  if (!place) return
  const { readAtMs, askedAtMs, wait } = place
  if (readAtMs !== undefined) place.readAtMs = Math.min(readAtMs, nowMs)
  if (askedAtMs !== undefined) place.askedAtMs = Math.min(askedAtMs, nowMs)
  place.notedAtMs = Math.min(place.notedAtMs, nowMs)
  if (wait && wait.untilMs > nowMs + longestWaitMs) place.wait = undefined
  if (place.rescan && place.rescan.atMs > nowMs + longestWaitMs) place.rescan.atMs = nowMs
}

export interface Candidate {
  feed: FeedTiming
  place: FeedPlace
}

/** Chooses among the feeds of a lane. `fleet`: what is known of them all. */
export function chooseNext(
  candidates: readonly Candidate[],
  fleet: FleetPlace,
  budget: Budget,
  nowMs: number,
): Choice {
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
    const floorMs = feed.everyMs === undefined ? lastReadMs(place) + budget.minIntervalMs : dueMs
    const readyMs = place.hasMore ? freeMs : Math.max(freeMs, floorMs)
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

/** Weight × rate × age²: what one request to the feed saves in waiting, but for a constant. */
function pollPriority(place: FeedPlace, fleet: FleetPlace, nowMs: number): number {
  const ageSeconds = (nowMs - lastReadMs(place)) / 1000
  return urgencyWeight(place) * eventRate(place, fleet) * ageSeconds * ageSeconds
}

/** New events a second that are expected of a feed. */
export function eventRate({ events, watchedSeconds }: FeedPlace, fleet: FleetPlace): number {
  const prior = priorSeconds * fanoFactor(fleet)
  const priorWeight = priorSeconds * 10 // the lane's own mean takes over as soon as it was watched for longer
  const mean = (usualRate * priorWeight + fleet.events) / (priorWeight + fleet.watchedSeconds)
  return (mean * prior + events) / (prior + watchedSeconds)
}

/** How unevenly events arrive: 1 as by chance (Poisson), more in bursts. */
function fanoFactor({ deviation, expected }: FleetPlace): number {
  return Math.min(maxFano, Math.max(1, (deviation + 10) / (expected + 10)))
}

/** From 1, where nothing urgent was seen, to 2, where everything was. */
function urgencyWeight({ events, urgent }: FeedPlace): number {
  return 1 + urgent / (events + 3)
}

interface Intervals {
  /** Of a feed that states nothing, ms. */
  usualMs: number
  /** No feed is read again sooner, ms. */
  floorMs: number
  areStatedKept: boolean
}

/** After how long feeds are overdue, and whether the intervals that operators state fit the budget. */
function overdueIntervals(
  candidates: readonly Candidate[],
  { perSecond, minIntervalMs: floorMs }: Budget,
  nowMs: number,
): Intervals {
  const active = candidates.filter(({ place: { wait } }) => !(wait && wait.untilMs > nowMs))
  const feeds = active.map(({ feed }) => feed)
  const ratePolledCount = ruledFeeds(feeds).length
  const usualMs = Math.max(
    floorMs,
    (ceilingFactor * 1000 * ratePolledCount) / besideFixed(feeds, perSecond),
  )
  const areStatedKept = neededPerSecond(feeds, { usualMs, floorMs }) <= perSecond
  return { usualMs, floorMs, areStatedKept }
}

/** What the feeds of a lane may expect, as far as the configuration tells. */
export interface Outlook {
  /** How often a feed is read if all show as much, ms; who shows more is read more often. */
  intervalMs: number
  /** After how long a feed is read at the latest, ms, while the service answers. */
  longestMs: number
  /** Whether the intervals that operators state fit the budget; where not, none of them is kept. */
  areStatedKept: boolean
  /** Requests a second that the stated intervals take, those of the other feeds included. */
  neededPerSecond: number
  /** No feed is read again sooner, ms, whatever it states. */
  floorMs: number
}

export function expectIntervals(feeds: readonly FeedTiming[], budget: Budget): Outlook {
  const candidates = feeds.map((feed) => ({ feed, place: newFeedPlace() }))
  const { usualMs, areStatedKept } = overdueIntervals(candidates, budget, 0)
  return {
    intervalMs: Math.max(budget.minIntervalMs, usualMs / ceilingFactor),
    longestMs: usualMs,
    areStatedKept,
    neededPerSecond: neededPerSecond(feeds, { usualMs, floorMs: budget.minIntervalMs }),
    floorMs: budget.minIntervalMs,
  }
}

/** What carries all intervals that are stated, with `usualMs` for the others. */
function neededPerSecond(
  feeds: readonly FeedTiming[],
  given: Pick<Intervals, 'usualMs' | 'floorMs'>,
): number {
  return feeds.reduce(
    (sum, { everyMs, longestMs }) => sum + 1000 / (everyMs ?? statedInterval(longestMs, given)),
    0,
  )
}

/** After how long a feed is overdue where stated intervals are kept, ms. */
function statedInterval(
  longestMs = Infinity,
  { usualMs, floorMs }: Pick<Intervals, 'usualMs' | 'floorMs'>,
): number {
  return Math.max(floorMs, Math.min(longestMs, usualMs))
}

function overdueAtMs(
  { everyMs, longestMs }: FeedTiming,
  place: FeedPlace,
  intervals: Intervals,
): number {
  const { usualMs, areStatedKept } = intervals
  const sinceMs = place.hasMore ? place.askedAtMs : place.readAtMs
  if (sinceMs === undefined) return -Infinity
  if (everyMs !== undefined) return (place.askedAtMs ?? 0) + (place.hasMore ? usualMs : everyMs)
  return sinceMs + (areStatedKept ? statedInterval(longestMs, intervals) : usualMs)
}

function lastReadMs({ readAtMs = 0 }: FeedPlace): number {
  return readAtMs
}

/** A page as the rule counts it. */
interface ReadPage {
  /** When its request was sent, ms. */
  askedAtMs: number
  newEvents: number
  /** Of the new ones, those that are critical or high. */
  urgentEvents: number
  hasMore: boolean
  /** Its events say nothing of the feed's rate: the first scan of what was there before. */
  isBacklog: boolean
}

/** Notes a page that was taken in. Changes `place` and `fleet`. */
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

/** From one end of the feed to the next. */
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

/** The share of a tier that feeds use after 429s: `value` at `atMs`, and it grows from there. */
export interface Share {
  value: number
  atMs: number
}

const minShare = 0.05
const regainedPerMs = 0.01 / 60_000

/** The share now: a hundredth more with every minute, up to what is configured. */
export function currentShare(share: Share | undefined, configured: number, nowMs: number): number {
  if (!share) return configured
  const grown = share.value + Math.max(0, nowMs - share.atMs) * regainedPerMs
  return Math.min(configured, Math.max(minShare, grown))
}

/** After a pause by a 429. */
export function halveShare(share: Share | undefined, configured: number, nowMs: number): Share {
  const value = Math.min(configured, Math.max(minShare, currentShare(share, configured, nowMs) / 2))
  return { value, atMs: nowMs }
}

/**
 * Until when a feed is left alone after a run, wall clock ms. `failures`: in a row, this one included. When a
 * feed that was read is read again, the rule decides (next-feed.ts).
 */
export function nextPollMs(
  outcome: PollOutcome,
  { nowMs, failures }: { nowMs: number; failures: number },
  timings: Timings = defaultTimings,
): number {
  switch (outcome.status) {
    case 'more':
    case 'stopped':
    case 'caught_up':
      return nowMs
    case 'superseded':
      return nowMs + timings.supersededLookMs
    case 'full':
      return nowMs + timings.fullLookMs
    case 'paused':
      return nowMs + timings.pausedLookMs
    case 'quota':
    case 'refused':
      return nowMs + timings.notDueLookMs
    case 'not_due':
      return Math.max(
        nowMs + 1_000,
        Math.min(outcome.untilMs ?? Infinity, nowMs + timings.notDueLookMs),
      )
    case 'failed':
      return nowMs + Math.max(outcome.retryAfterMs ?? 0, backoffMs(failures, timings))
  }
}

/** A failing feed keeps asking, without eating its account's budget. */
function backoffMs(failures: number, { pollBackoffMs }: Timings): number {
  return pollBackoffMs * Math.min(2 ** Math.max(0, failures - 1), 60)
}
