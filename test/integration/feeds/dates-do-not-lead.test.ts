/*
 * Whatever the dates of events, in simulated time: what is dated now is told within two polls, what is late
 * within what `feeds list` states of rescans, and what is dated ahead of now as soon as others, or, where
 * there are more of them than a page holds, a page with each poll; an empty one at the end is one, too.
 * The service states its time in whole seconds: a date within the coming one is read past as if it were
 * now, and what then comes behind it is late.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectIntervals, minPollInterval } from '../../../src/feeds/lanes/next-feed.ts'
import { maxFindDelayMs, rescanShare, rungWindows } from '../../../src/feeds/rescan-plan.ts'
import {
  type Arrival,
  type LaneReading,
  perSecond,
  readInTime,
  type SeenEvent,
} from '../../support/lane-in-time.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
import { redisForTests } from '../../support/ledger.ts'
import { allOr, runs, seeded } from '../../support/runs.ts'
import type { Habits } from '../../support/scripted-service.ts'

const tests = redisForTests()
const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const untilMs = 40 * minuteMs
/** Of more than a page holds, each page beyond is read with a poll. */
const pageSize = 10

const numRuns = runs({ short: 2, long: 20 })
/** For what hangs alone: the requests of a reading are bounded by `untilMs`. */
const hangMs = 300_000 * numRuns

/** The longest time to the second poll from now, as the rule of the lane allows it, ms. */
function twoPollsMs({ feeds }: Pick<LaneReading, 'feeds'>): number {
  const minIntervalMs = minPollInterval(feeds, perSecond)
  const timings = feeds.map(({ name: id }) => ({ id }))
  const { longestMs } = expectIntervals(timings, { perSecond, minIntervalMs })
  return 2 * longestMs + (2 * secondMs) / perSecond
}

/**
 * What was found later than it may be; nothing where all is well. `itemsPerRead`: that so many reads
 * show at least so many items.
 */
function foundTooLate(reading: LaneReading, itemsPerRead = pageSize): string[] {
  const { seen, feeds, budget } = reading
  const plan = budget.plan(feeds[0]!, { perWeek: undefined, isMatched: false })
  const windows = rungWindows(feeds[0]!.rescan!.backMs)
  const dateOf = ({ atMs, aheadMs }: SeenEvent): number => atMs + aheadMs
  return seen.flatMap((event) => {
    const { feed, atMs, aheadMs, foundAtMs } = event
    const others = seen.filter((other) => other.feed === feed && other.aheadMs >= 0)
    const unread = others.filter((one) => one.atMs <= foundAtMs && one.foundAtMs >= atMs)
    const ahead = others.filter((one) => one.atMs <= foundAtMs && dateOf(one) > atMs)
    const isLast = ahead.every((one) => dateOf(one) <= dateOf(event))
    const amongAhead = isLast ? unread : ahead
    const toRead = aheadMs === 0 ? unread.filter((one) => one.aheadMs === 0) : amongAhead
    // a pass may end with an empty page behind the last
    const pages = (isLast || aheadMs === 0 ? 1 : 2) + Math.floor(toRead.length / itemsPerRead)
    // a rescan is planned for full pages; more are read with its share of the lane, in the one under way,
    // which may have passed the date, and in the next; on the whole, a read shows `2 * itemsPerRead`
    const morePages = Math.floor(seen.length / itemsPerRead) - Math.floor(seen.length / pageSize)
    const readMs = (morePages * secondMs) / (perSecond * rescanShare)
    const readPast = others.filter((one) => one.atMs <= atMs && dateOf(one) <= atMs + secondMs)
    const lateMs = Math.max(...readPast.map(dateOf), atMs) - dateOf(event)
    const boundMs =
      lateMs > 0
        ? maxFindDelayMs(windows, plan, lateMs) + twoPollsMs(reading) + (morePages && readMs)
        : pages * twoPollsMs(reading)
    const tookMs = foundAtMs - atMs
    return tookMs <= boundMs ? [] : [`${aheadMs} ms ahead took ${tookMs} ms, at most ${boundMs} ms`]
  })
}

type End = Habits['end']
const ends: End[] = ['null', 'absent', 'empty', 'echo', 'inclusive']

const fleets = ends.flatMap((end): [number, End][] => [
  [1, end],
  [10, end],
])

test.each(
  allOr<[number, End]>(fleets, [
    [1, 'null'],
    [10, 'inclusive'],
  ]),
)(
  'among %i feeds one that ends with %s is not led by an event of tomorrow',
  async (feeds, end) => {
    const arrivals: Arrival[] = [{ feed: 0, atMs: 2 * minuteMs, aheadMs: 14 * hourMs, count: 1 }]
    for (let at = 3; at < 8; at += 1)
      arrivals.push({ feed: 0, atMs: at * minuteMs, aheadMs: 0, count: 1 })
    const reading = await readInTime({ tests, feeds, habits: { end }, arrivals, untilMs })
    expect(foundTooLate(reading)).toEqual([])
  },
  hangMs,
)

/** A source whose clock is a year ahead has shown 400 events, and goes on every other minute. */
test.each(allOr<End>(ends, ['inclusive']))(
  'with %s for an end, behind 40 pages of a year ahead a new one is found in time',
  async (end) => {
    const arrivals: Arrival[] = [{ feed: 0, atMs: 0, aheadMs: 365 * dayMs, count: 400 }]
    for (let at = 16; at < 38; at += 2)
      arrivals.push(
        { feed: 0, atMs: at * minuteMs, aheadMs: 365 * dayMs, count: 1 },
        { feed: 0, atMs: (at + 1) * minuteMs, aheadMs: 0, count: 1 },
      )
    const reading = await readInTime({ tests, feeds: 1, habits: { end }, arrivals, untilMs })
    expect(foundTooLate(reading)).toEqual([])
  },
  hangMs,
)

test.each(allOr<End>(ends, ['null']))(
  'with %s for an end, pages in the order of arrival are read on, one in five a year ahead',
  async (end) => {
    const arrivals: Arrival[] = []
    for (let at = 1; at < 38; at += 3)
      for (let one = 0; one < 25; one += 1)
        arrivals.push({
          feed: 0,
          atMs: at * minuteMs + one,
          aheadMs: one % 5 === 2 ? 365 * dayMs : 0,
          count: 1,
        })
    const habits = { end, order: 'ascending' } as const
    const reading = await readInTime({ tests, feeds: 1, habits, arrivals, untilMs })
    expect(foundTooLate(reading)).toEqual([])
  },
  hangMs,
)

test.each(
  allOr<[End, number]>(
    [
      ['null', 500],
      ['null', 400],
      ['empty', 500],
      ['empty', 400],
    ],
    [['empty', 400]],
  ),
)(
  'with %s for an end, a first page beyond that always fails with %i costs nothing else',
  async (end, status) => {
    const isBroken = (from: string | null): boolean => {
      const id = Number(from?.split('.')[1] ?? 0)
      return id > 0 && id < 20
    }
    const reason = status === 400 ? 'rejected' : 'unavailable'
    const failure = (from: string | null, atMs: number): UpstreamError | undefined =>
      atMs > 10 * minuteMs && isBroken(from)
        ? new UpstreamError(reason, `the script answers ${status}`, { status })
        : undefined
    const arrivals: Arrival[] = [{ feed: 0, atMs: 0, aheadMs: 365 * dayMs, count: 25 }]
    for (let at = 12; at < 38; at += 2)
      arrivals.push(
        { feed: 0, atMs: at * minuteMs, aheadMs: 365 * dayMs, count: 1 },
        { feed: 0, atMs: (at + 1) * minuteMs, aheadMs: 0, count: 1 },
      )
    const scene = { tests, feeds: 1, habits: { end }, arrivals, failure, untilMs }
    expect(foundTooLate(await readInTime(scene))).toEqual([])
  },
  hangMs,
)

test.each(allOr<End>(ends, ['null']))(
  'with %s for an end, what comes behind a date of the coming second is late, not lost',
  async (end) => {
    const arrivals: Arrival[] = [
      { feed: 0, atMs: 81_444, aheadMs: 244_987, count: 1 },
      { feed: 0, atMs: 326_430, aheadMs: 0, count: 1 },
      { feed: 0, atMs: 326_430, aheadMs: 2_000, count: 1 },
    ]
    const reading = await readInTime({ tests, feeds: 1, habits: { end }, arrivals, untilMs })
    expect(foundTooLate(reading)).toEqual([])
  },
  hangMs,
)

/** Short pages show nothing now and then, and one item at least with every second read. */
const shortPages = { places: 3, repeats: true }

test.each(allOr<End>(ends, ['inclusive']))(
  'with %s for an end, pages that are short or empty in the middle hide nothing dated ahead',
  async (end) => {
    const arrivals: Arrival[] = [{ feed: 0, atMs: 0, aheadMs: 365 * dayMs, count: 30 }]
    for (let at = 4; at < 30; at += 2)
      arrivals.push(
        { feed: 0, atMs: at * minuteMs, aheadMs: 365 * dayMs, count: 1 },
        { feed: 0, atMs: (at + 1) * minuteMs, aheadMs: 0, count: 1 },
      )
    const habits = { end, ...shortPages }
    const reading = await readInTime({ tests, feeds: 1, habits, arrivals, untilMs })
    expect(foundTooLate(reading, 1 / 2)).toEqual([])
  },
  hangMs,
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

test.each(
  allOr<[number, End]>(fleets, [
    [1, 'inclusive'],
    [10, 'null'],
  ]),
)(
  'of %i feeds that end with %s each event of any date is found in time, once',
  async (feeds, end) => {
    const histories = fc.array(arrival(feeds), { minLength: 1, maxLength: 20 })
    const skews = fc.constantFrom(0, -dayMs, 4 * dayMs)
    const pages = fc.constantFrom({}, { repeats: true }, shortPages)
    await fc.assert(
      fc.asyncProperty(histories, skews, pages, async (arrivals, skewMs, given) => {
        const scene = { tests, feeds, habits: { end, ...given }, arrivals, skewMs, untilMs }
        const itemsPerRead = given === shortPages ? 1 / 2 : pageSize
        expect(foundTooLate(await readInTime(scene), itemsPerRead)).toEqual([])
      }),
      { numRuns, ...seeded() },
    )
  },
  hangMs,
)

describe('where pages are short, or follow no dates', () => {
  test.each(['byTime', 'ascending', 'shuffled', 'newest'] as const)(
    'as %s, each event that is dated now is found, once',
    async (order) => {
      const histories = fc.array(arrival(1), { minLength: 1, maxLength: 20 })
      await fc.assert(
        fc.asyncProperty(histories, fc.constantFrom(...ends), async (arrivals, end) => {
          const scene = { tests, feeds: 1, habits: { end, order, places: 3 }, arrivals, untilMs }
          const { seen } = await readInTime(scene)
          const missed = seen.filter(
            ({ aheadMs, foundAtMs }) => aheadMs === 0 && foundAtMs > untilMs,
          )
          expect(missed).toEqual([])
        }),
        { numRuns: runs({ short: 1, long: 20 }), ...seeded() },
      )
    },
    hangMs,
  )
})
