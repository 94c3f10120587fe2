/*
 * Whatever the dates of events, in simulated time: what is dated now is told within two polls, what is late
 * within what `feeds list` states of rescans, and what is dated ahead of now as soon as others, or, where
 * there are more of them than a page holds, a page with each poll.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectIntervals, minPollInterval } from '../../../src/feeds/next-feed.ts'
import { maxFindDelayMs, rungWindows } from '../../../src/feeds/rescan-plan.ts'
import {
  type Arrival,
  type LaneReading,
  perSecond,
  readInTime,
} from '../../support/lane-in-time.ts'
import { redisForTests } from '../../support/ledger.ts'
import { runs } from '../../support/runs.ts'
import type { Habits } from '../../support/scripted-service.ts'

const tests = redisForTests()
const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const untilMs = 40 * minuteMs
/** Of more than a page holds, each page beyond is read with a poll. */
const pageSize = 10

const numRuns = runs({ short: 1, long: 20 })

/** The longest time to the second poll from now, as the rule of the lane allows it, ms. */
function twoPollsMs({ feeds }: Pick<LaneReading, 'feeds'>): number {
  const minIntervalMs = minPollInterval(feeds, perSecond)
  const timings = feeds.map(({ name: id }) => ({ id }))
  const { longestMs } = expectIntervals(timings, { perSecond, minIntervalMs })
  return 2 * longestMs + (2 * secondMs) / perSecond
}

/** What was found later than it may be; nothing where all is well. */
function foundTooLate(reading: LaneReading): string[] {
  const { seen, feeds, budget } = reading
  const plan = budget.plan(feeds[0]!, { perWeek: undefined, isMatched: false })
  const windows = rungWindows(feeds[0]!.sweep!.backMs)
  return seen.flatMap(({ feed, atMs, aheadMs, foundAtMs }) => {
    const others = seen.filter((other) => other.feed === feed && other.atMs <= foundAtMs)
    const [late, ahead] = [
      others.filter((one) => one.aheadMs < 0),
      others.filter((one) => one.aheadMs > 0),
    ]
    const pages =
      1 + Math.floor((others.length - late.length - (aheadMs > 0 ? 0 : ahead.length)) / pageSize)
    const boundMs =
      aheadMs < 0
        ? maxFindDelayMs(windows, plan, -aheadMs) + twoPollsMs(reading)
        : pages * twoPollsMs(reading)
    const tookMs = foundAtMs - atMs
    return tookMs <= boundMs ? [] : [`${aheadMs} ms ahead took ${tookMs} ms, at most ${boundMs} ms`]
  })
}

const ends: Habits['end'][] = ['null', 'absent', 'empty', 'echo', 'inclusive']

test.each(ends.flatMap((end) => [[1, end] as const, [10, end] as const]))(
  'among %i feeds one that ends with %s is not led by an event of tomorrow',
  async (feeds, end) => {
    const arrivals: Arrival[] = [{ feed: 0, atMs: 2 * minuteMs, aheadMs: 14 * hourMs, count: 1 }]
    for (let at = 3; at < 8; at += 1)
      arrivals.push({ feed: 0, atMs: at * minuteMs, aheadMs: 0, count: 1 })
    const reading = await readInTime({ tests, feeds, habits: { end }, arrivals, untilMs })
    expect(foundTooLate(reading)).toEqual([])
  },
)

const arrival = (feeds: number): fc.Arbitrary<Arrival> =>
  fc.record({
    feed: fc.nat(feeds - 1),
    atMs: fc.integer({ min: 0, max: 15 * minuteMs }),
    aheadMs: fc.oneof(
      { weight: 4, arbitrary: fc.constant(0) },
      { weight: 2, arbitrary: fc.integer({ min: 2 * secondMs, max: 20 * minuteMs }) },
      { weight: 2, arbitrary: fc.integer({ min: hourMs, max: 365 * dayMs }) },
      { weight: 1, arbitrary: fc.integer({ min: -hourMs, max: -secondMs }) },
    ),
    count: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.constantFrom(3, 12, 25)),
  })

describe.each([1, 10])('of %i feeds', (feeds) => {
  test.each(ends)(
    'that end with %s each event of any date is found in time, once',
    async (end) => {
      const histories = fc.array(arrival(feeds), { minLength: 1, maxLength: 20 })
      const skews = fc.constantFrom(0, -dayMs, 4 * dayMs)
      await fc.assert(
        fc.asyncProperty(histories, skews, async (arrivals, skewMs) => {
          const scene = { tests, feeds, habits: { end }, arrivals, skewMs, untilMs }
          expect(foundTooLate(await readInTime(scene))).toEqual([])
        }),
        { numRuns, interruptAfterTimeLimit: 60_000 * numRuns },
      )
    },
    120_000 * numRuns,
  )
})
