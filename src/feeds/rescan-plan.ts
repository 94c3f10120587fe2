/**
 * Rescan planning, pure: the windows of the ladder, what they cost, and how a tier's feeds share
 * the requests of rescans (docs/decisions/rescans.md).
 */
import type { FeedConfig } from './types/config.ts'

/** How often the budget lets each kind of rescan run. */
export interface RescanPlan {
  ladder: Ladder
  wholeEveryMs: number
  matchedEveryMs: number
}

/** Which windows are rescanned on their own: each once `fraction` of its own length has passed. */
export interface Ladder {
  /** Indexes of the windows, shortest first. */
  rungs: readonly number[]
  fraction: number
}

/** Where the budget allows it, each window is rescanned after a quarter of its length. */
const minFraction = 1 / 4
/** A window that is read less often finds hardly anything for certain. */
const maxFraction = 3 / 4

/** The plan of a feed that is alone in its organization and far below its budget. */
export const unconstrainedPlan: RescanPlan = {
  ladder: { rungs: Array.from({ length: 20 }, (_none, rung) => rung), fraction: minFraction },
  wholeEveryMs: 3_600_000,
  matchedEveryMs: 60_000,
}

export interface RescanContext {
  plan: RescanPlan
  /** The API's clock, ms, where it filters this feed by match time; undefined where it does not. */
  matchClockMs?: number | undefined
  /** The API's clock, ms; absent: that of Redis. */
  clockMs?: number | undefined
  /** For how long a seen event is recognised, ms; absent: forever. */
  rememberedMs?: number | undefined
}

const firstRungMs = 600_000
/** Windows by match time end this long before the API's clock. */
export const matchLagMs = 60_000
/** The ladder's windows, ms, shortest first: 10 min, 20 min, … shorter than `backMs`. */
export function rungWindows(backMs: number): number[] {
  const windows: number[] = []
  for (let ms = firstRungMs; ms < backMs; ms *= 2) windows.push(ms)
  return windows
}

const dayMs = 86_400_000

/** Whether a feed's pages cost no quota, so that it is rescanned by ladder or match time. */
export function isFrequent({ type }: Pick<FeedConfig, 'type'>): boolean {
  return type === 'events'
}

/** Time between the starts of two whole rescans, ms. */
export function wholeEveryMs(
  { rescan }: Pick<FeedConfig, 'rescan'>,
  { plan, matchClockMs }: RescanContext,
): number {
  if (rescan?.everyMs !== undefined) return rescan.everyMs
  return matchClockMs === undefined ? plan.wholeEveryMs : Math.max(dayMs, plan.wholeEveryMs)
}

/**
 * How often each window of a feed is rescanned, ms; undefined: not on its own. If all windows are
 * shorter than the ladder's first one, the longest of them is read as often as that.
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

/** The longest time until an event that is late by `lateMs` is found, ms. */
export function maxFindDelayMs(
  windows: readonly number[],
  { ladder, wholeEveryMs: wholeMs }: Pick<RescanPlan, 'ladder' | 'wholeEveryMs'>,
  lateMs: number,
): number {
  return soonestFindMs(toWindowScans(windows, ladder), { wholeMs, lateMs })
}

/**
 * A window that is rescanned regularly; it surely finds events that are late by up to `reachMs`.
 */
interface WindowScan {
  everyMs: number
  reachMs: number
}

/**
 * Shortest first. A window shows an event for its length less the event's lateness, so it must be
 * read within that time.
 */
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

/** A feed, as the budget of its tier counts it. */
export interface RescanLoad {
  /** Events created per week, as far as known; more where pages are short. */
  perWeek: number
  backMs: number
  /** The interval that the operator fixed for whole rescans, ms. */
  everyMs: number | undefined
  /** Whether it is rescanned by match time. */
  isMatched: boolean
}

/**
 * The fraction of a lane's requests that rescans may use while tails are due. Half of it is for the
 * recent past, half for the whole window.
 */
export const rescanShare = 0.1
/** Events per week of a feed whose events nobody has counted yet. */
const usualPerWeek = 1_000
export const itemsPerPage = 10

/** Plans the rescans of the feeds of one tier. `perSecond`: requests that its feeds may send. */
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

/** Doubling from seconds to a day: short lateness is far more frequent than long. */
const typicalLatenessesMs = Array.from({ length: 14 }, (_none, step) => 10_000 * 2 ** step)

/**
 * Chooses the ladder that finds late events soonest among those that `perSecond` requests can pay
 * for. Its windows grow by two, four or eight, from any to any. Soonest means the least product of
 * the times that `maxFindDelayMs` gives for typical latenesses. Returns a ladder without rungs when
 * none fits.
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

/** All ladders that may be chosen, as indexes of windows. */
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

/**
 * Requests per second at a fraction of 1. A scan of a longer window replaces one of each shorter
 * window.
 */
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
  /** The plan of a feed, given what is known of all feeds of its tier. */
  plan(feed: FeedConfig, known: { perWeek: number | undefined; isMatched: boolean }): RescanPlan
}

/**
 * `laneFor` names the organization and tier that a feed's pages count against; it may become known
 * at run time. `limitFor` gives the requests per second that its feeds may send.
 */
export function createRescanBudget(
  feeds: readonly FeedConfig[],
  laneFor: (feed: FeedConfig) => string,
  limitFor: (feed: FeedConfig) => number,
): RescanBudget {
  const idOf = ({ account, name }: FeedConfig): string => `${account}\0${name}`
  const planned = feeds.filter((feed) => feed.rescan && isFrequent(feed))
  const loads = new Map(planned.map((feed) => [idOf(feed), toRescanLoad(feed)]))
  const plans = new Map<string, RescanPlan>()
  let laneById = new Map<string, string>()

  function groupByLane(): void {
    laneById = new Map(planned.map((feed) => [idOf(feed), laneFor(feed)]))
    plans.clear()
  }

  function planLane(lane: string, perSecond: number): RescanPlan {
    const inLane = [...loads].filter(([id]) => laneById.get(id) === lane)
    const plan = planRescans(
      inLane.map(([, load]) => load),
      perSecond,
    )
    plans.set(lane, plan)
    return plan
  }

  return {
    plan(feed, { perWeek = usualPerWeek, isMatched }) {
      const [id, lane] = [idOf(feed), laneFor(feed)]
      const load = loads.get(id)
      if (load && laneById.get(id) !== lane) groupByLane()
      if (load && (load.perWeek !== perWeek || load.isMatched !== isMatched)) {
        Object.assign(load, { perWeek, isMatched })
        plans.delete(lane)
      }
      return plans.get(lane) ?? planLane(lane, limitFor(feed))
    },
  }
}

export function toRescanLoad({ rescan }: Pick<FeedConfig, 'rescan'>): RescanLoad {
  const { backMs = 0, everyMs } = rescan ?? {}
  return { perWeek: usualPerWeek, backMs, everyMs, isMatched: false }
}
