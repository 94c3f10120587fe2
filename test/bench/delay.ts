/**
 * How long events wait until their feed is read, in simulated time: the shipped rule and round robin read the
 * same events with the same number of requests.
 */
import {
  chooseNext,
  newFleetPlace,
  newFeedPlace,
  notePage,
  type Candidate,
  type FleetPlace,
} from '../../src/feeds/lanes/next-feed.ts'
import { createRandom } from '../../src/sandbox/options.ts'
import type { Figures } from './report.ts'

export interface DelayPlan {
  seeds: number
  feeds: readonly number[]
  seconds: number
}

/** `empty page`: of a service whose last page does not say that it is the last. */
export const delayScenes = [
  'poisson',
  'bursty',
  'session',
  'diurnal',
  'shifted',
  'empty-page',
] as const

/** Of each kind of traffic the worst over all numbers of feeds. The rule's constants are of seeds 1 to 4. */
export function measureDelay(plan: DelayPlan): Figures {
  const figures: Figures = {}
  for (const scene of delayScenes) {
    const worst = plan.feeds.map((feeds) => compareRules(scene, feeds, plan))
    const most = (of: (one: Comparison) => number): number => Math.max(...worst.map(of))
    figures[`delay-${scene}-bound`] = most(({ ofBound }) => ofBound)
    figures[`delay-${scene}-longest`] = most(({ longest }) => longest)
    figures[`delay-${scene}-more`] = most(({ more }) => more)
  }
  return figures
}

interface Comparison {
  /** Mean of the lower bound that no schedule beats where events arrive by chance. */
  ofBound: number
  /** Of one round of all feeds. */
  longest: number
  /** Seconds by which the mean exceeds round robin's: the lower end of the 95 % interval, paired by seed. */
  more: number
}

function compareRules(
  scene: (typeof delayScenes)[number],
  feeds: number,
  { seeds, seconds }: DelayPlan,
): Comparison {
  const asked: Scene = {
    kind: scene === 'empty-page' ? 'poisson' : scene,
    end: scene === 'empty-page' ? 'empty page' : 'said',
    feeds,
    seconds,
  }
  const all = Array.from({ length: seeds }, (_none, at) => ({
    index: simulate(asked, 'index', 101 + at),
    others: simulate(asked, 'round robin', 101 + at),
  }))
  return {
    ofBound: mean(all.map(({ index }) => index.mean)) / mean(all.map(({ index }) => index.bound)),
    longest: Math.max(...all.map(({ index }) => index.longest / index.round)),
    more: leastMean(all.map(({ index, others }) => index.mean - others.mean)),
  }
}

interface Scene {
  kind: TrafficKind
  feeds: number
  seconds: number
  /** How a feed's end shows: its last page says so, or an empty page follows. */
  end: 'said' | 'empty page'
}

interface Delays {
  mean: number
  longest: number
  /** Lower bound of the mean where events arrive by chance; of no meaning otherwise. */
  bound: number
  /** Feeds ÷ requests a second: what round robin takes for one round, s. */
  round: number
}

/** One request a second, and 3 % of distance (tier-limiter.ts). */
const perSecond = 0.7 / 1.03
const pageSize = 10
/** Not counted: rates are being learned. */
const warmUpSeconds = 3_600

function simulate(scene: Scene, rule: keyof typeof policies, seed: number): Delays {
  const drawn = createRandom(seed)
  const random = (): number => drawn.next() + 2 ** -33 // never 0
  const asked = { kind: scene.kind, feeds: scene.feeds, meanRate: 1 / 300, seconds: scene.seconds }
  const { traffic, rates } = generateTraffic(asked, random)
  const reader = readerOf(traffic, scene.end)
  const policy = policies[rule](scene)
  for (let at = 0; at < scene.seconds;) {
    const chosen = policy.choose(at, perSecond)
    if ('at' in chosen) {
      at = Math.max(at + 0.001, chosen.at)
      continue
    }
    policy.read(chosen.feed, at, reader.read(chosen.feed, at))
    at += 1 / perSecond
  }
  return {
    mean: mean(reader.delays),
    longest: reader.delays.reduce((most, one) => Math.max(most, one), 0),
    bound: boundOf(rates),
    round: scene.feeds / perSecond,
  }
}

interface Policy {
  choose(at: number, perSecond: number): { feed: number } | { at: number }
  read(feed: number, at: number, page: { shown: number; hasNext: boolean }): void
}

const policies = {
  index: ({ feeds }: Scene): Policy => {
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
        const page = { askedAtMs: at * 1000, newEvents: shown, urgentEvents: 0 }
        notePage(candidates[feed]!.place, fleet, { ...page, hasMore: hasNext, isBacklog: false })
      },
    }
  },
  'round robin': ({ feeds }: Scene): Policy => {
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

/** D* = (Σ√λ)² / (2R·Σλ). */
function boundOf(rates: readonly number[]): number {
  const roots = rates.reduce((sum, rate) => sum + Math.sqrt(rate), 0)
  const all = rates.reduce((sum, rate) => sum + rate, 0)
  return roots ** 2 / (2 * perSecond * all)
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The lower end of the 95 % interval of the mean. */
function leastMean(values: readonly number[]): number {
  const middle = mean(values)
  const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0)
  return (
    middle - (1.96 * Math.sqrt(squares / Math.max(1, values.length - 1))) / Math.sqrt(values.length)
  )
}

type TrafficKind = Exclude<(typeof delayScenes)[number], 'empty-page'>

/** When the events of each feed are created, seconds from the beginning, in order. */
type Traffic = readonly (readonly number[])[]

/** Spread of the feeds' rates: the standard deviation of their logarithm; none further out than 2.5 of them. */
const spread = 1.33

interface Asked {
  kind: TrafficKind
  feeds: number
  /** Events a second of the average feed. */
  meanRate: number
  /** How long, s. */
  seconds: number
}

function generateTraffic(
  { kind, feeds, meanRate, seconds }: Asked,
  random: () => number,
): { traffic: Traffic; rates: number[] } {
  const rates = Array.from({ length: feeds }, () => {
    const often = Math.max(-2.5, Math.min(2.5, normal(random)))
    return meanRate * Math.exp(spread * often - spread ** 2 / 2)
  })
  const traffic = rates.map((rate, feed) => {
    if (kind === 'bursty') return bursts(rate, seconds, random)
    const later = rates[(feed + 1) % feeds] ?? rate
    const atRate = rateAt(kind, { rate, later, seconds }, random)
    return thinned(atRate, seconds, random)
  })
  return { traffic, rates }
}

interface RateOverTime {
  /** Events a second, at most `most`. */
  at: (second: number) => number
  most: number
}

function rateAt(
  kind: Exclude<TrafficKind, 'bursty'>,
  { rate, later, seconds }: { rate: number; later: number; seconds: number },
  random: () => number,
): RateOverTime {
  switch (kind) {
    case 'poisson':
      return { at: () => rate, most: rate }
    case 'diurnal': {
      const phase = random() * 2 * Math.PI
      const at = (second: number): number =>
        rate * (1 + 0.9 * Math.sin((2 * Math.PI * second) / 86_400 + phase))
      return { at, most: 1.9 * rate }
    }
    case 'shifted': // half-way, each feed gets its neighbour's rate
      return { at: (s) => (s < seconds / 2 ? rate : later), most: Math.max(rate, later) }
    case 'session':
      return sessions(rate, seconds, random)
  }
}

/** A quarter of the time at four times the rate: half an hour on, an hour and a half off, on average. */
function sessions(rate: number, seconds: number, random: () => number): RateOverTime {
  const ends: number[] = []
  const isOnFirst = random() < 0.25
  for (let at = 0, isOn = isOnFirst; at < seconds; isOn = !isOn) {
    at -= Math.log(random()) * (isOn ? 1_800 : 5_400)
    ends.push(at)
  }
  let span = 0
  return {
    at(second) {
      while ((ends[span] ?? Infinity) < second) span += 1
      return (span % 2 === 0) === isOnFirst ? 4 * rate : 0
    },
    most: 4 * rate,
  }
}

/** Eight events within half a minute, on average. */
function bursts(rate: number, seconds: number, random: () => number): number[] {
  const mean = 8
  const times: number[] = []
  for (let at = 0; ;) {
    at -= (Math.log(random()) * mean) / rate
    if (at >= seconds) break
    do times.push(at + random() * 30)
    while (random() < 1 - 1 / mean)
  }
  return times.filter((time) => time < seconds).toSorted((a, b) => a - b)
}

function thinned({ at, most }: RateOverTime, seconds: number, random: () => number): number[] {
  const times: number[] = []
  for (let second = 0; ;) {
    second -= Math.log(random()) / most
    if (second >= seconds) return times
    if (random() * most < at(second)) times.push(second)
  }
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random())
}
