/**
 * How often feeds are read again, pure: the ladder's windows, what it costs, and how the feeds of an organization's
 * tier share what rescans may use of the requests that feeds may send (docs/decisions/rescans.md).
 */
import type { FeedConfig } from '../feed-types/config.ts'

/** How often, by the budget. */
export interface RescanPlan {
  ladder: Ladder
  wholeEveryMs: number
  matchedEveryMs: number
}

/** Which windows are read again on their own, and when: once `fraction` of their own length has passed. */
export interface Ladder {
  /** Places among the windows, shortest first. */
  rungs: readonly number[]
  fraction: number
}

/** Where the budget allows it, each window is read again after a quarter of its length. */
const minFraction = 1 / 4
/** A window that is read more seldom finds hardly anything for certain. */
const maxFraction = 3 / 4

/** Of a feed alone in its organization, far below its budget. */
export const unconstrainedPlan: RescanPlan = {
  ladder: { rungs: Array.from({ length: 20 }, (_none, rung) => rung), fraction: minFraction },
  wholeEveryMs: 3_600_000,
  matchedEveryMs: 60_000,
}

export interface RescanContext {
  plan: RescanPlan
  /** The service's clock where it filters by match time for this feed; undefined where it does not. */
  matchClockMs?: number | undefined
  /** For how long what was seen is known again; left out: for ever. */
  rememberedMs?: number | undefined
}

const firstRungMs = 600_000
/** Windows by match time end so long before the service's clock. */
export const matchLagMs = 60_000
/** The ladder's windows, shortest first: 10 min, 20 min, … shorter than `backMs`. */
export function rungWindows(backMs: number): number[] {
  const windows: number[] = []
  for (let ms = firstRungMs; ms < backMs; ms *= 2) windows.push(ms)
  return windows
}

const dayMs = 86_400_000

/** Feeds whose pages cost nothing but budget are read again by ladder or match time. */
const frequentTypes: ReadonlySet<FeedConfig['type']> = new Set([
  'events',
  'tenant_events',
  'identifier_events',
])

export function isFrequent({ type }: Pick<FeedConfig, 'type'>): boolean {
  return frequentTypes.has(type)
}

/** From the beginning of one whole rescan to the beginning of the next. */
export function wholeEveryMs(
  { sweep }: Pick<FeedConfig, 'sweep'>,
  { plan, matchClockMs: matchedNowMs }: RescanContext,
): number {
  if (sweep?.everyMs !== undefined) return sweep.everyMs
  return matchedNowMs === undefined ? plan.wholeEveryMs : Math.max(dayMs, plan.wholeEveryMs)
}

/**
 * How often each window of a feed is read, ms; undefined: not on its own. A feed whose windows all are shorter than
 * the ladder's has its longest one read as often as the ladder's first.
 */
export function rungIntervals(
  windows: readonly number[],
  { rungs, fraction }: Ladder,
): (number | undefined)[] {
  const [first] = rungs
  if (first === undefined) return windows.map(() => undefined)
  const place = Math.min(first, windows.length - 1)
  return windows.map((windowMs, rung) => {
    if (rung === place) return fraction * firstRungMs * 2 ** first
    return rungs.includes(rung) ? fraction * windowMs : undefined
  })
}

/** After how long at most an event that is late by so much is found, ms. */
export function maxFindDelayMs(
  windows: readonly number[],
  { ladder, wholeEveryMs: wholeMs }: Pick<RescanPlan, 'ladder' | 'wholeEveryMs'>,
  lateMs: number,
): number {
  return soonestFindMs(toWindowScans(windows, ladder), { wholeMs, lateMs })
}

/** A window that is read again and again; it finds for certain what is late by up to `reachMs`. */
interface WindowScan {
  everyMs: number
  reachMs: number
}

/** Shortest first. A window holds an event for its length less the lateness: it must be read within that. */
function toWindowScans(windows: readonly number[], ladder: Ladder): WindowScan[] {
  const times = rungIntervals(windows, ladder)
  return windows.flatMap((windowMs, rung) => {
    const everyMs = times[rung]
    return everyMs === undefined ? [] : [{ everyMs, reachMs: windowMs - everyMs }]
  })
}

function soonestFindMs(
  scans: readonly WindowScan[],
  { wholeMs, lateMs }: { wholeMs: number; lateMs: number },
): number {
  const scan = scans.find(({ reachMs }) => reachMs >= lateMs)
  return Math.min(wholeMs, scan?.everyMs ?? wholeMs)
}

/** A feed as the budget of its tier sees it. */
export interface RescanLoad {
  /** Events created in a week, as far as is known. */
  perWeek: number
  backMs: number
  /** The interval that the operator fixed for whole rescans. */
  everyMs: number | undefined
  /** Whether it is read by match time. */
  isMatched: boolean
}

/**
 * The part of the requests of feeds that rescans may use while tails are due; half of it is the near past's, half
 * the whole window's.
 */
export const rescanShare = 0.1
/** Events of a feed that nobody has counted yet. */
export const usualPerWeek = 1_000
const itemsPerPage = 10

/** How often the feeds of one organization's tier are read again. `perSecond`: requests that feeds may send. */
export function planRescans(feeds: readonly RescanLoad[], perSecond: number): RescanPlan {
  const half = (rescanShare * perSecond) / 2
  const perFeed = half / Math.max(1, feeds.length)
  const onLadder = feeds.filter(({ isMatched }) => !isMatched)
  const byMatch = feeds.length - onLadder.length
  const whole = feeds.filter(({ everyMs }) => everyMs === undefined)
  const pages = sum(whole.map(({ perWeek, backMs }) => countPages(perWeek, backMs)))
  const readWhole = (share: number): number =>
    Math.max(unconstrainedPlan.wholeEveryMs, (pages / share) * 1000)
  const forLadder = perFeed * onLadder.length
  const ladder = planLadder(onLadder, forLadder, readWhole(half))
  return {
    ladder,
    wholeEveryMs: readWhole(ladder.rungs.length > 0 ? half : half + forLadder),
    matchedEveryMs: Math.max(unconstrainedPlan.matchedEveryMs, byMatch === 0 ? 0 : 1000 / perFeed),
  }
}

function countPages(perWeek: number, windowMs: number): number {
  return Math.max(1, Math.ceil((perWeek * windowMs) / (7 * dayMs) / itemsPerPage))
}

/** Doubling, from seconds to a day: lateness is short far more often than long. */
const typicalLatenessesMs = Array.from({ length: 14 }, (_none, step) => 10_000 * 2 ** step)

/**
 * The ladder that finds late events soonest, of those that so many requests a second carry: windows that double,
 * quadruple or grow by eight, from any to any. Soonest is the least product of what `maxFindDelayMs` says of the usual
 * lateness. Without rungs where nothing fits.
 */
function planLadder(feeds: readonly RescanLoad[], perSecond: number, wholeMs: number): Ladder {
  if (feeds.length === 0) return unconstrainedPlan.ladder
  const windows = rungWindows(Math.max(...feeds.map(({ backMs }) => backMs)))
  const pages = windows.map((windowMs) =>
    sum(feeds.map(({ perWeek, backMs }) => countPages(perWeek, Math.min(windowMs, backMs)))),
  )
  let best: Ladder = { rungs: [], fraction: minFraction }
  let bestDelay = Infinity
  for (const rungs of candidateLadders(windows.length)) {
    const fraction = Math.max(minFraction, ladderCost(rungs, windows, pages) / perSecond)
    if (fraction > maxFraction) continue
    const scans = toWindowScans(windows, { rungs, fraction })
    const delaysMs = typicalLatenessesMs.map((lateMs) => soonestFindMs(scans, { wholeMs, lateMs }))
    const delay = sum(delaysMs.map((ms) => Math.log(ms)))
    if (delay < bestDelay) [best, bestDelay] = [{ rungs, fraction }, delay]
  }
  return best
}

/** Those that may be chosen, by the places of their windows. */
function candidateLadders(count: number): number[][] {
  const candidates: number[][] = []
  for (const step of [1, 2, 3]) {
    for (let first = 0; first < count; first += 1) {
      const rungs: number[] = []
      for (let rung = first; rung < count; rung += step) {
        rungs.push(rung)
        candidates.push([...rungs])
      }
    }
  }
  return candidates
}

/** Requests a second with a fraction of 1. A look at a longer window takes the place of one at a shorter. */
function ladderCost(
  rungs: readonly number[],
  windows: readonly number[],
  pages: readonly number[],
): number {
  return sum(
    rungs.map((rung, at) => {
      const longerMs = windows[rungs[at + 1] ?? windows.length] ?? Infinity
      const scansPerSecond = 1000 / (windows[rung] ?? Infinity) - 1000 / longerMs
      return scansPerSecond * (pages[rung] ?? 0)
    }),
  )
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

export interface RescanBudget {
  /** How often a feed is read again, by what is known of all feeds of its organization's tier. */
  plan(feed: FeedConfig, known: { perWeek: number | undefined; isMatched: boolean }): RescanPlan
}

/**
 * `laneOf` names the organization and tier that a feed's pages count against; `limitOf`: requests per second that
 * its feeds may send.
 */
export function createRescanBudget(
  feeds: readonly FeedConfig[],
  laneFor: (feed: FeedConfig) => string,
  limitFor: (feed: FeedConfig) => number,
): RescanBudget {
  /** The feeds that share a plan and what each asks for: by lane, then by feed. */
  const lanes = new Map<string, Map<string, RescanLoad>>()
  const laneByFeed = new Map<string, string>()
  const plans = new Map<string, RescanPlan>()
  const feedKey = ({ account, name }: FeedConfig): string => `${account}\0${name}`

  /** An organization may become known while all runs. */
  function assignToLane(lane: string, feed: FeedConfig): RescanLoad {
    const id = feedKey(feed)
    const previousLane = laneByFeed.get(id)
    const load = lanes.get(previousLane ?? '')?.get(id) ?? toRescanLoad(feed)
    if (previousLane === lane) return load
    lanes.get(previousLane ?? '')?.delete(id)
    plans.delete(previousLane ?? '')
    plans.delete(lane)
    laneByFeed.set(id, lane)
    lanes.set(lane, (lanes.get(lane) ?? new Map<string, RescanLoad>()).set(id, load))
    return load
  }

  for (const feed of feeds) {
    if (feed.sweep && isFrequent(feed)) assignToLane(laneFor(feed), feed)
  }

  return {
    plan(feed, { perWeek = usualPerWeek, isMatched }) {
      const lane = laneFor(feed)
      const load = feed.sweep && isFrequent(feed) ? assignToLane(lane, feed) : undefined
      if (load && (load.perWeek !== perWeek || load.isMatched !== isMatched)) {
        Object.assign(load, { perWeek, isMatched })
        plans.delete(lane)
      }
      const plan =
        plans.get(lane) ?? planRescans([...(lanes.get(lane)?.values() ?? [])], limitFor(feed))
      plans.set(lane, plan)
      return plan
    },
  }
}

export function toRescanLoad({ sweep }: Pick<FeedConfig, 'sweep'>): RescanLoad {
  const { backMs = 0, everyMs } = sweep ?? {}
  return { perWeek: usualPerWeek, backMs, everyMs, isMatched: false }
}

/** How late finds are found at most, ms: what is late by seconds or minutes, and by whatever `back` reaches. */
export function rescanBounds(
  feed: Pick<FeedConfig, 'sweep' | 'type'>,
  context: RescanContext,
): { soonMs: number; wholeMs: number } | undefined {
  if (!feed.sweep) return undefined
  const wholeMs = wholeEveryMs(feed, context)
  if (!isFrequent(feed)) return { soonMs: wholeMs, wholeMs }
  if (context.matchClockMs !== undefined) {
    const soonMs = context.plan.matchedEveryMs + matchLagMs
    return { soonMs, wholeMs: soonMs }
  }
  const windows = rungWindows(feed.sweep.backMs)
  return {
    soonMs: maxFindDelayMs(windows, { ladder: context.plan.ladder, wholeEveryMs: wholeMs }, 0),
    wholeMs,
  }
}
