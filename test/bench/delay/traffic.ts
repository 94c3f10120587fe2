/** Events of many feeds in simulated time, by seed. */

export const kinds = ['poisson', 'bursty', 'session', 'diurnal', 'shifted'] as const
export type TrafficKind = (typeof kinds)[number]

/** When the events of each feed are created, seconds from the beginning, in order. */
export type Traffic = readonly (readonly number[])[]

/** Deterministic numbers from 0 to 1, both excluded (mulberry32). */
export function numbers(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 2 ** 32
  }
}

/** Spread of the feeds' rates: the standard deviation of their logarithm; none further out than 2.5 of them. */
const spread = 1.33

export interface Asked {
  kind: TrafficKind
  feeds: number
  /** Events a second of the average feed. */
  meanRate: number
  /** How long, s. */
  seconds: number
}

export function generateTraffic(
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
