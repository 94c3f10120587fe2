/**
 * How long events wait until their feed is read, in simulated time: the shipped rule, the rule of 0.4.0 and
 * round robin read the same events with the same number of requests.
 */
import {
  chooseNext,
  halveShare,
  newFleetPlace,
  newFeedPlace,
  notePage,
  currentShare,
  type Candidate,
  type FleetPlace,
  type Share,
} from '../../../src/feeds/next-feed.ts'
import { createShortPages } from '../../../src/feeds/poll-run.ts'
import { generateTraffic, numbers, type Traffic, type TrafficKind } from './traffic.ts'

export const rules = ['index', 'today', 'round robin'] as const
export type RuleName = (typeof rules)[number]

export interface Scene {
  kind: TrafficKind
  feeds: number
  seconds: number
  /** Replicas that take the lane in turn, every 30 s, and die now and then. */
  replicas: number
  /** Mean time between two answers 429, s; Infinity: none. */
  pausedEverySeconds: number
  /** How a feed's end shows: its last page says so, or an empty page follows. */
  end: 'said' | 'empty page'
}

export interface Delays {
  mean: number
  p99: number
  longest: number
  /** Lower bound of the mean where events arrive by chance; of no meaning otherwise. */
  bound: number
  /** Feeds ÷ requests a second: what round robin takes for one round, s. */
  round: number
}

/** One request a second, and 3 % of distance (tier-limiter.ts). */
const slotSeconds = 1.03
const configuredShare = 0.7
const pageSize = 10
/** Not counted: rates are being learned. */
const warmUpSeconds = 3_600

export function simulate(scene: Scene, rule: RuleName, seed: number): Delays {
  const random = numbers(seed)
  const asked = { kind: scene.kind, feeds: scene.feeds, meanRate: 1 / 300, seconds: scene.seconds }
  const { traffic, rates } = generateTraffic(asked, random)
  const reader = readerOf(traffic, scene.end)
  const policy = policies[rule](scene)
  const trouble = troubleOf(scene, numbers(seed + 1_000_000))
  const share = { now: undefined as Share | undefined }
  for (let at = 0; at < scene.seconds;) {
    const { freeAt, isPaused } = trouble.until(at)
    if (isPaused) share.now = halveShare(share.now, configuredShare, at * 1000)
    at = Math.max(at, freeAt)
    const perSecond = currentShare(share.now, configuredShare, at * 1000) / slotSeconds
    const chosen = policy.choose(at, perSecond)
    if ('at' in chosen) {
      at = Math.max(at + 0.001, chosen.at)
      continue
    }
    policy.read(chosen.feed, at, reader.read(chosen.feed, at))
    at += rule === 'today' ? slotSeconds : 1 / perSecond
  }
  const perSecond = configuredShare / slotSeconds
  return {
    ...summarise(reader.delays),
    bound: boundOf(rates, perSecond),
    round: scene.feeds / perSecond,
  }
}

interface Policy {
  choose(at: number, perSecond: number): { feed: number } | { at: number }
  read(feed: number, at: number, page: { shown: number; hasNext: boolean }): void
}

const policies: Record<RuleName, (scene: Scene) => Policy> = {
  index: ({ feeds }) => {
    const shortPages = createShortPages()
    const afterShort = new Set<number>()
    const fleet: FleetPlace = newFleetPlace(0)
    const candidates = Array.from({ length: feeds }, (_none, at): Candidate => {
      return { feed: { id: String(at) }, place: newFeedPlace() }
    })
    return {
      choose(at, perSecond) {
        const choice = chooseNext(candidates, fleet, { perSecond, minIntervalMs: 5_000 }, at * 1000)
        return 'feed' in choice ? { feed: Number(choice.feed) } : { at: choice.atMs / 1000 }
      },
      read(feed, at, { shown, hasNext }) {
        // what follows a short page came meanwhile: the simulated service is consistent
        const following = shown === 0 ? 'nothing' : 'newer'
        if (afterShort.delete(feed)) shortPages.noteFollowing('events', following)
        const isShort = shown > 0 && shown < pageSize
        const hasMore = hasNext && !(isShort && shortPages.isEnd('events'))
        if (isShort && hasMore) afterShort.add(feed)
        const page = { askedAtMs: at * 1000, newEvents: shown, urgentEvents: 0 }
        notePage(candidates[feed]!.place, fleet, { ...page, hasMore, isBacklog: false })
      },
    }
  },
  /** Of 0.4.0: each feed is due a minute after its last turn began; whoever waits longest is served. */
  today: ({ feeds }) => {
    const due = Array.from({ length: feeds }, (_none, at) => at / feeds)
    const begun = due.map(() => -Infinity)
    return {
      choose(at) {
        const feed = due.indexOf(Math.min(...due))
        return due[feed]! <= at ? { feed } : { at: due[feed]! }
      },
      read(feed, at, { hasNext }) {
        begun[feed] = Math.max(begun[feed]!, due[feed]!)
        due[feed] = hasNext ? at : Math.max(at, begun[feed]! + 60)
      },
    }
  },
  'round robin': ({ feeds }) => {
    let next = 0
    return {
      choose: () => ({ feed: next }),
      read(feed, _at, { hasNext }) {
        if (!hasNext) next = (feed + 1) % feeds
      },
    }
  },
}

function readerOf(traffic: Traffic, end: Scene['end']) {
  const delays: number[] = []
  const places = traffic.map(() => 0)
  return {
    delays,
    read(feed: number, at: number): { shown: number; hasNext: boolean } {
      const times = traffic[feed] ?? []
      const from = places[feed] ?? 0
      let to = from
      while (to < times.length && to - from < pageSize && times[to]! <= at) {
        if (times[to]! >= warmUpSeconds) delays.push(at - times[to]!)
        to += 1
      }
      places[feed] = to
      const isRest = (times[to] ?? Infinity) <= at
      return { shown: to - from, hasNext: end === 'said' ? isRest : to > from }
    },
  }
}

/** Pauses after an answer 429, a moment at each change of hands, 12 s where a replica died. */
function troubleOf({ replicas, pausedEverySeconds }: Scene, random: () => number) {
  let pauseAt = -Math.log(random()) * pausedEverySeconds
  let handAt = 30
  return {
    until(at: number): { freeAt: number; isPaused: boolean } {
      let freeAt = at
      if (replicas > 1 && at >= handAt) {
        const isDead = random() < (replicas * 30) / 7_200
        freeAt += isDead ? 12 : random() * 0.2
        handAt = freeAt + 30
      }
      const isPaused = at >= pauseAt
      if (isPaused) {
        freeAt += 30 + 30 * random()
        pauseAt = freeAt - Math.log(random()) * pausedEverySeconds
      }
      return { freeAt, isPaused }
    },
  }
}

function summarise(delays: number[]): Pick<Delays, 'mean' | 'p99' | 'longest'> {
  const sorted = Float64Array.from(delays).sort()
  const mean = sorted.reduce((sum, delay) => sum + delay, 0) / sorted.length
  return {
    mean,
    p99: sorted[Math.floor(0.99 * sorted.length)] ?? NaN,
    longest: sorted.at(-1) ?? NaN,
  }
}

/** D* = (Σ√λ)² / (2R·Σλ). */
function boundOf(rates: readonly number[], perSecond: number): number {
  const roots = rates.reduce((sum, rate) => sum + Math.sqrt(rate), 0)
  const all = rates.reduce((sum, rate) => sum + rate, 0)
  return roots ** 2 / (2 * perSecond * all)
}

/** Mean of values, and half of its 95 % interval. */
export function interval(values: readonly number[]): { mean: number; half: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  const deviation = Math.sqrt(squares / Math.max(1, values.length - 1))
  return { mean, half: (1.96 * deviation) / Math.sqrt(values.length) }
}
