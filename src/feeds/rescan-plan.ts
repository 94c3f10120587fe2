/**
 * How often feeds are read again, pure: the ladder's windows, what it costs, and how the feeds of a tier
 * share the part of its limit that rescans may use.
 */
import type { FeedConfig } from './config.ts'

/** How often, by the budget; ms but for `stretch`. */
export interface RescanPlan {
  /** 1: the ladder as it is; 2: each rung half as often. */
  stretch: number
  wholeEveryMs: number
  matchedEveryMs: number
}

/** Of a feed alone in its organization, far below its budget. */
export const leastPlan: RescanPlan = {
  stretch: 1,
  wholeEveryMs: 3_600_000,
  matchedEveryMs: 60_000,
}

export interface RescanWorld {
  plan: RescanPlan
  /** The service's clock where it filters by match time for this feed; undefined where it does not. */
  matchedNowMs?: number | undefined
  /** For how long what was seen is known again; left out: for ever. */
  rememberedMs?: number | undefined
}

/** Each rung is read again once this part of its length has passed. */
const rungFraction = 1 / 4
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
  { plan, matchedNowMs }: RescanWorld,
): number {
  if (sweep?.everyMs !== undefined) return sweep.everyMs
  return matchedNowMs === undefined ? plan.wholeEveryMs : Math.max(dayMs, plan.wholeEveryMs)
}

/** How often each rung is read, ms; a stretch of two and more leaves the shortest ones out (undefined). */
export function rungIntervals(windows: readonly number[], stretch: number): (number | undefined)[] {
  const left = Math.min(Math.floor(Math.log2(stretch)), windows.length - 1)
  const rest = stretch / 2 ** left
  return windows.map((ms, rung) => (rung < left ? undefined : rungFraction * rest * ms))
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

/** The part of the tier's limit that rescans may use; half of it is the ladder's, half the whole window's. */
const rescanShare = 0.1
/** Events of a feed that nobody has counted yet. */
export const usualPerWeek = 1_000
const itemsPerPage = 10

/** How often the feeds of one organization's tier are read again. `limit`: requests per second. */
export function planRescans(feeds: readonly RescanLoad[], limit: number): RescanPlan {
  const half = (rescanShare * limit) / 2
  const onLadder = feeds.filter(({ isMatched }) => !isMatched)
  const byMatch = feeds.length - onLadder.length
  let stretch = 1
  while (stretch < 4096 && sum(onLadder.map((feed) => ladderCost(feed, stretch))) > half) {
    stretch *= 1.05
  }
  const whole = feeds.filter(({ everyMs }) => everyMs === undefined)
  const pages = sum(whole.map(({ perWeek, backMs }) => pagesIn(perWeek, backMs)))
  return {
    stretch,
    wholeEveryMs: Math.max(leastPlan.wholeEveryMs, (pages / half) * 1000),
    matchedEveryMs: Math.max(leastPlan.matchedEveryMs, (byMatch / half) * 1000),
  }
}

function pagesIn(perWeek: number, windowMs: number): number {
  return Math.max(1, Math.ceil((perWeek * windowMs) / (7 * dayMs) / itemsPerPage))
}

/** Requests per second: every second look is at the shortest window, every fourth at the next one, … */
function ladderCost({ perWeek, backMs }: RescanLoad, stretch: number): number {
  const windows = rungWindows(backMs)
  const times = rungIntervals(windows, stretch)
  const first = times.findIndex((everyMs) => everyMs !== undefined)
  const shortestMs = times[first]
  if (shortestMs === undefined) return 0
  const perLook = windows.slice(first).reduce((cost, windowMs, step) => {
    const isLast = first + step === windows.length - 1
    return cost + pagesIn(perWeek, windowMs) * (isLast ? 2 ** -step : 2 ** -(step + 1))
  }, 0)
  return (perLook * 1000) / shortestMs
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

export interface RescanBudget {
  /** How often a feed is read again, by what is known of all feeds of its organization's tier. */
  plan(feed: FeedConfig, known: { perWeek: number | undefined; isMatched: boolean }): RescanPlan
}

/** `laneOf` names the organization and tier that a feed's pages count against; `limitOf`: requests per second. */
export function createRescanBudget(
  feeds: readonly FeedConfig[],
  laneOf: (feed: FeedConfig) => string,
  limitOf: (feed: FeedConfig) => number,
): RescanBudget {
  /** The feeds that share a plan and what each asks for: by lane, then by feed. */
  const lanes = new Map<string, Map<string, RescanLoad>>()
  const laneByFeed = new Map<string, string>()
  const plans = new Map<string, RescanPlan>()
  const idOf = ({ account, name }: FeedConfig): string => `${account}\0${name}`

  /** An organization may become known while all runs. */
  function placeIn(lane: string, feed: FeedConfig): RescanLoad {
    const id = idOf(feed)
    const before = laneByFeed.get(id)
    const load = lanes.get(before ?? '')?.get(id) ?? describeLoad(feed)
    if (before === lane) return load
    lanes.get(before ?? '')?.delete(id)
    plans.delete(before ?? '')
    plans.delete(lane)
    laneByFeed.set(id, lane)
    lanes.set(lane, (lanes.get(lane) ?? new Map<string, RescanLoad>()).set(id, load))
    return load
  }

  for (const feed of feeds) {
    if (feed.sweep && isFrequent(feed)) placeIn(laneOf(feed), feed)
  }

  return {
    plan(feed, { perWeek = usualPerWeek, isMatched }) {
      const lane = laneOf(feed)
      const load = feed.sweep && isFrequent(feed) ? placeIn(lane, feed) : undefined
      if (load && (load.perWeek !== perWeek || load.isMatched !== isMatched)) {
        Object.assign(load, { perWeek, isMatched })
        plans.delete(lane)
      }
      const plan =
        plans.get(lane) ?? planRescans([...(lanes.get(lane)?.values() ?? [])], limitOf(feed))
      plans.set(lane, plan)
      return plan
    },
  }
}

export function describeLoad({ sweep }: Pick<FeedConfig, 'sweep'>): RescanLoad {
  const { backMs = 0, everyMs } = sweep ?? {}
  return { perWeek: usualPerWeek, backMs, everyMs, isMatched: false }
}

/** How late finds are found at most, ms: what is late by seconds or minutes, and by whatever `back` reaches. */
export function rescanBounds(
  feed: Pick<FeedConfig, 'sweep' | 'type'>,
  world: RescanWorld,
): { soonMs: number; wholeMs: number } | undefined {
  if (!feed.sweep) return undefined
  const wholeMs = wholeEveryMs(feed, world)
  if (!isFrequent(feed)) return { soonMs: wholeMs, wholeMs }
  if (world.matchedNowMs !== undefined) {
    const soonMs = world.plan.matchedEveryMs + matchLagMs
    return { soonMs, wholeMs: soonMs }
  }
  const times = rungIntervals(rungWindows(feed.sweep.backMs), world.plan.stretch)
  const soonMs = Math.min(wholeMs, ...times.filter((everyMs) => everyMs !== undefined))
  return { soonMs, wholeMs }
}
