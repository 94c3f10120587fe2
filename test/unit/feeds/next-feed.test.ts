import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  chooseNext,
  expectIntervals,
  clampFutureTimes,
  newFleetPlace,
  newFeedPlace,
  notePage,
  eventRate,
  type Candidate,
  type FeedPlace,
  type FeedTiming,
} from '../../../src/feeds/lanes/next-feed.ts'

const budget = { perSecond: 1, minIntervalMs: 5_000 }
const nowMs = 1_000_000

function candidate(feed: FeedTiming, place: Partial<FeedPlace> = {}): Candidate {
  return { feed, place: { ...newFeedPlace(), readAtMs: nowMs - 6_000, ...place } }
}

function choose(
  candidates: Candidate[],
  at = nowMs,
  given: typeof budget & { turnsSinceRetry?: number } = budget,
) {
  return chooseNext(candidates, newFleetPlace(0), given, at)
}

/** So many quiet feeds that nothing is overdue for a long time. */
function crowd(count: number): Candidate[] {
  return Array.from({ length: count }, (_none, at) => candidate({ id: `quiet-${at}` }))
}

describe('which feed is read next', () => {
  test('one that was never read goes first', () => {
    const fresh = candidate({ id: 'new' }, { readAtMs: undefined })
    expect(choose([...crowd(20), fresh])).toEqual({ feed: 'new', why: 'overdue' })
  })

  test('of two that wait equally long, the one that shows more events, or more urgent ones', () => {
    const busy = { events: 50, watchedSeconds: 7_200 }
    expect(choose([...crowd(20), candidate({ id: 'busy' }, busy)])).toEqual({
      feed: 'busy',
      why: 'rate',
    })
    const urgent = candidate({ id: 'urgent' }, { ...busy, urgent: 50 })
    expect(choose([...crowd(20), candidate({ id: 'busy' }, busy), urgent])).toMatchObject({
      feed: 'urgent',
    })
  })

  test('one urgent event weighs a quarter more while it is all that was seen', () => {
    const seen = (id: string, urgent: number, ageMs: number): Candidate =>
      candidate({ id }, { events: 1, watchedSeconds: 60, urgent, readAtMs: nowMs - ageMs })
    const against = (ageMs: number) =>
      choose([...crowd(20), seen('urgent', 1, 10_000), seen('older', 0, ageMs)])
    expect(against(10_000 * Math.sqrt(1.24))).toEqual({ feed: 'urgent', why: 'rate' })
    expect(against(10_000 * Math.sqrt(1.26))).toEqual({ feed: 'older', why: 'rate' })
  })

  test('a feed that waited for one and a half rounds goes before one with more pages or more events', () => {
    const late = candidate({ id: 'late' }, { readAtMs: nowMs - 34_000 })
    const busy = candidate({ id: 'busy' }, { events: 500, watchedSeconds: 7_200 })
    const more = candidate({ id: 'more' }, { hasMore: true, askedAtMs: nowMs - 1_000 })
    expect(choose([...crowd(19), busy, more, late])).toEqual({ feed: 'late', why: 'overdue' })
    expect(choose([...crowd(19), busy, more])).toEqual({ feed: 'more', why: 'more' })
  })

  test('feeds with more pages take turns, and one of them does not hold up the others for ever', () => {
    const [first, second] = [2_000, 1_000].map((ago) =>
      candidate({ id: `after ${ago}` }, { hasMore: true, askedAtMs: nowMs - ago, readAtMs: 0 }),
    )
    expect(choose([second!, first!])).toEqual({ feed: 'after 2000', why: 'more' })
    expect(choose([first!, second!])).toEqual({ feed: 'after 2000', why: 'more' })
  })

  test.each([
    ['overdue', { readAtMs: undefined }],
    ['more', { hasMore: true, askedAtMs: nowMs - 1_000 }],
    ['rate', {}],
  ])('of two that are alike the first goes first, where it is %s that decides', (why, place) => {
    const alike = ['a', 'b'].map((id) => candidate({ id }, place))
    expect(choose([...alike, ...crowd(20)])).toEqual({ feed: 'a', why })
  })

  test('no feed is read sooner than the floor, and then at once', () => {
    const feeds = [candidate({ id: 'a' }), candidate({ id: 'b' }, { readAtMs: nowMs - 4_000 })]
    const fast = { perSecond: 10, minIntervalMs: 7_000 }
    expect(choose(feeds, nowMs, fast)).toEqual({ atMs: nowMs + 1_000 })
    expect(choose(feeds, nowMs + 1_000, fast)).toMatchObject({ feed: 'a' })
  })

  test('a stated interval holds where all stated ones fit, and nobody is favoured where they do not', () => {
    const hurried = (count: number): Candidate[] =>
      Array.from({ length: count }, (_none, at) =>
        candidate({ id: `hurried-${at}`, longestMs: 10_000 }, { readAtMs: nowMs - 11_000 }),
      )
    const busy = candidate({ id: 'busy' }, { events: 5_000, watchedSeconds: 7_200 })
    expect(choose([...crowd(20), busy, ...hurried(1)])).toMatchObject({ why: 'overdue' })
    expect(choose([...crowd(20), busy, ...hurried(9)])).toEqual({ feed: 'busy', why: 'rate' })
  })

  test('a feed with a fixed interval is read when it has passed, never sooner', () => {
    const fixed = { id: 'fixed', everyMs: 3_600_000 }
    const asked = candidate(fixed, { readAtMs: nowMs - 3_599_000, askedAtMs: nowMs - 3_599_000 })
    expect(choose([asked])).toEqual({ atMs: nowMs + 1_000 })
    expect(choose([...crowd(20), asked], nowMs + 1_000)).toEqual({ feed: 'fixed', why: 'overdue' })
  })

  test('a feed that waits is left alone until its time', () => {
    const wait = { untilMs: nowMs + 30_000, why: 'the service does not answer' }
    const failing = candidate({ id: 'failing' }, { wait, readAtMs: 0 })
    expect(choose([failing])).toEqual({ atMs: nowMs + 30_000 })
    expect(choose([failing, ...crowd(1)])).toMatchObject({ feed: 'quiet-0' })
    expect(choose([failing], nowMs + 30_000)).toEqual({ feed: 'failing', why: 'overdue' })
    const over = { wait: { ...wait, untilMs: nowMs }, events: 50, watchedSeconds: 7_200 }
    expect(choose([...crowd(20), candidate({ id: 'over' }, over)])).toMatchObject({ feed: 'over' })
  })

  test('feeds that wait leave their part of the budget to the others, until their time', () => {
    const late = candidate({ id: 'late' }, { readAtMs: nowMs - 12_000 })
    const waiting = (untilMs: number): Candidate[] =>
      crowd(9).map(({ feed, place }) => ({
        feed,
        place: { ...place, wait: { untilMs, why: 'x' } },
      }))
    expect(choose([...waiting(nowMs + 1), late])).toEqual({ feed: 'late', why: 'overdue' })
    expect(choose([...waiting(nowMs), late])).toEqual({ feed: 'late', why: 'rate' })
  })

  test('feeds that failed come after all others but one time in five, or when nothing else is due', () => {
    const failing = candidate({ id: 'failing' }, { readAtMs: undefined, failures: 1 })
    const waiting = candidate({ id: 'waiting' }, { readAtMs: nowMs })
    const asked = (turnsSinceRetry: number, others: Candidate[]) =>
      choose([failing, ...others], nowMs, { ...budget, turnsSinceRetry })
    for (const turns of [0, 4])
      expect(asked(turns, crowd(9))).toEqual({ feed: 'quiet-0', why: 'rate' })
    expect(asked(5, crowd(9))).toEqual({ feed: 'failing', why: 'overdue' })
    expect(asked(0, [waiting])).toEqual({ feed: 'failing', why: 'overdue' })
  })

  test('whatever is known of the feeds, one of them is chosen, or a later time', () => {
    const place = fc.record({
      readAtMs: fc.option(fc.integer({ min: 0, max: nowMs }), { nil: undefined }),
      askedAtMs: fc.option(fc.integer({ min: 0, max: nowMs }), { nil: undefined }),
      hasMore: fc.boolean(),
      events: fc.nat({ max: 10_000 }),
      watchedSeconds: fc.nat({ max: 7_200 }),
      wait: fc.option(
        fc.record({ untilMs: fc.integer({ min: 0, max: 2 * nowMs }), why: fc.constant('x') }),
        { nil: undefined },
      ),
    })
    const feed = fc.record({
      everyMs: fc.option(fc.integer({ min: 5_000, max: nowMs }), { nil: undefined }),
      longestMs: fc.option(fc.integer({ min: 5_000, max: nowMs }), { nil: undefined }),
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(feed, place), { maxLength: 20 }), (given) => {
        const candidates = given.map(([one, known], at) =>
          candidate({ id: String(at), ...one }, known),
        )
        const choice = choose(candidates)
        const chosen = 'feed' in choice ? candidates[Number(choice.feed)]?.place : undefined
        const freeMs = 'feed' in choice ? (chosen?.wait?.untilMs ?? 0) : nowMs - 1
        expect(freeMs).toBeLessThanOrEqual(nowMs)
        expect('feed' in choice || choice.atMs > nowMs).toBe(true)
      }),
    )
  })
})

describe('what feeds may expect', () => {
  const feeds = (count: number, given: Partial<FeedTiming> = {}): FeedTiming[] =>
    Array.from({ length: count }, (_none, at) => ({ id: `feed-${at}`, ...given }))
  const fixed = { id: 'fixed', everyMs: 2_000 }

  test.each([
    ['a round of all, at the latest one and a half', feeds(30), 30_000, 45_000],
    ['no less than the floor', feeds(1), 5_000, 5_000],
    ['more where one with a fixed interval takes half', [fixed, ...feeds(30)], 60_000, 90_000],
    ['a tenth where such take all', [fixed, fixed, ...feeds(3)], 30_000, 45_000],
  ])('is %s', (_what, given, intervalMs, longestMs) => {
    expect(expectIntervals(given, budget)).toMatchObject({ intervalMs, longestMs })
  })

  test('is what they state where the budget carries just that', () => {
    const given = { perSecond: 1, minIntervalMs: 1_000 }
    const kept = [...feeds(2, { longestMs: 4_000 }), fixed]
    expect(expectIntervals(kept, given)).toMatchObject({ areStatedKept: true, neededPerSecond: 1 })
    const over = [...feeds(2, { longestMs: 3_999 }), fixed]
    expect(expectIntervals(over, given)).toMatchObject({ areStatedKept: false })
  })
})

describe('the rate of a feed', () => {
  const page = { newEvents: 0, urgentEvents: 0, hasMore: false, isBacklog: false }

  test('is the mean of the lane while little was seen, and its own after hours; it forgets', () => {
    const fleet = newFleetPlace(0)
    const place = newFeedPlace()
    for (let at = 0; at <= 6 * 3_600_000; at += 60_000)
      notePage(place, fleet, { ...page, askedAtMs: at, newEvents: 3 })
    expect(eventRate(place, fleet)).toBeCloseTo(0.05, 2)
    expect(eventRate(newFeedPlace(), fleet)).toBeGreaterThan(0.02)
    for (let at = 6 * 3_600_000; at <= 12 * 3_600_000; at += 60_000)
      notePage(place, fleet, { ...page, askedAtMs: at })
    expect(eventRate(place, fleet)).toBeLessThan(0.01)
  })

  test('what was there before the first end says nothing of it, nor does a backlog', () => {
    const [known, fleet] = [newFeedPlace(), newFleetPlace(0)]
    notePage(known, fleet, { ...page, askedAtMs: 0, newEvents: 10, hasMore: true })
    notePage(known, fleet, { ...page, askedAtMs: 1_000, newEvents: 10 })
    notePage(known, fleet, { ...page, askedAtMs: 9_000, newEvents: 10, isBacklog: true })
    expect(known.events).toBe(0)
    expect(fleet.events).toBe(0)
  })

  test('pages of one run count as one look, however many they are', () => {
    const [place, fleet] = [newFeedPlace(), newFleetPlace(0)]
    notePage(place, fleet, { ...page, askedAtMs: 0 })
    notePage(place, fleet, { ...page, askedAtMs: 60_000, newEvents: 10, hasMore: true })
    expect(place).toMatchObject({ hasMore: true, readAtMs: 0, watchedSeconds: 0 })
    expect(place.askedAtMs).toBe(60_000)
    notePage(place, fleet, { ...page, askedAtMs: 61_000, newEvents: 2 })
    expect(place).toMatchObject({ hasMore: false, readAtMs: 61_000, intervalMs: 61_000 })
    expect(fleet).toMatchObject({ events: 12, watchedSeconds: 61 })
  })

  test('of which nothing is known is a thousand a week, and the mean of a lane that was watched', () => {
    const week = 7 * 86_400
    expect(eventRate(newFeedPlace(), newFleetPlace(0))).toBeCloseTo(1_000 / week, 12)
    const quiet = { ...newFeedPlace(), watchedSeconds: 300 } // as long as the mean counts for
    expect(eventRate(quiet, newFleetPlace(0))).toBeCloseTo(500 / week, 12)
    const watched = { ...newFleetPlace(0), watchedSeconds: 3_000 } // as long as what is usual counts for
    expect(eventRate(newFeedPlace(), watched)).toBeCloseTo(500 / week, 12)
    expect(eventRate(newFeedPlace(), { ...watched, events: 300 })).toBeCloseTo(
      0.05 + 500 / week,
      10,
    )
  })

  test.each([
    ['by chance', 0, 0, 1],
    ['by chance, at the least', 0, 40, 1],
    ['in bursts', 190, 40, 4],
    ['in bursts, at the most', 1e6, 40, 20],
  ])(
    'where events come %s the mean counts for five minutes times %d',
    (_how, deviation, expected, times) => {
      const fleet = { ...newFleetPlace(0), deviation, expected }
      const seconds = 300 * times
      const place = { ...newFeedPlace(), watchedSeconds: seconds } // then half of the mean is left
      expect(eventRate(place, fleet)).toBeCloseTo(eventRate(newFeedPlace(), fleet) / 2, 12)
    },
  )
})

describe('what was written while a clock was ahead', () => {
  const ahead = nowMs + 1
  const longestMs = 16 * 60_000

  test('counts as written now, and keeps no feed waiting for longer than a failure does', () => {
    const place: FeedPlace = {
      ...newFeedPlace(),
      readAtMs: ahead,
      askedAtMs: ahead,
      wait: { untilMs: nowMs + longestMs + 1, why: 'x' },
      rescan: { atMs: nowMs + longestMs + 1, failures: 0, pages: 0 },
    }
    const fleet = newFleetPlace(ahead)
    clampFutureTimes({ place, fleet }, nowMs)
    expect(place).toMatchObject({ readAtMs: nowMs, askedAtMs: nowMs })
    expect([place.wait, place.rescan?.atMs]).toEqual([undefined, nowMs])
    expect(fleet.atMs).toBe(nowMs)
  })
})
