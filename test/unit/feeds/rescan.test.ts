import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createRescanBudget,
  maxFindDelayMs,
  unconstrainedPlan,
  planRescans,
  rungIntervals,
  rungWindows,
  type Ladder,
  type RescanPlan,
} from '../../../src/feeds/rescan-plan.ts'
import {
  fieldsAtEnd,
  nextRescan,
  readNotes,
  rescanDueMs,
  type Rescan,
} from '../../../src/feeds/rescan.ts'
import { tailScan } from '../../../src/feeds/scan.ts'
import type { FeedState, Scan } from '../../../src/store/feed-state.ts'
import type { EventsFeedConfig } from '../../../src/feeds/types/config.ts'
import type { Polled } from '../../../src/feeds/types/polled-feed.ts'
import { aCredentialFeed, aFeed, aFeedState } from '../../support/feeds.ts'

type PolledEvents = Polled<EventsFeedConfig>

const nowMs = Date.UTC(2026, 10, 1)
const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const feed = aFeed({ startMs: 3 * dayMs, rescan: { everyMs: hourMs, backMs: dayMs } })
const week = aFeed({ rescan: { everyMs: undefined, backMs: 7 * dayMs } })

/** Read to its end just now; first polled four days ago unless `floorMs` says otherwise. */
function aState(overrides: Partial<FeedState> = {}, of = feed): FeedState {
  const floorMs = overrides.startBoundMs ?? nowMs - 4 * dayMs
  const opened = aFeedState({ nowMs: floorMs + of.startMs, startBoundMs: floorMs })
  const walk = tailScan(of, opened)
  const done = walk.behind && { ...opened.rescans, snapshotId: walk.behind.id }
  return {
    ...opened,
    nowMs,
    scan: walk,
    isEnded: true,
    lastCaughtUpMs: nowMs - 1_000,
    ...(done && { rescans: done }),
    ...overrides,
  }
}

function next(
  of: typeof feed,
  state: FeedState,
  world: { plan?: RescanPlan; matchClockMs?: number } = {},
): Rescan | number | undefined {
  const found = nextRescan(of, state, { plan: unconstrainedPlan, ...world })
  return 'rescan' in found ? found.rescan : found.dueMs
}

function begun(...given: Parameters<typeof next>): Rescan {
  const found = next(...given)
  if (typeof found !== 'object') throw new Error(`nothing is due before ${found}`)
  return found
}

/** All rungs of the ladder were read `agoMs` ago. */
function ladderRead(agoMs: number, of = feed): FeedState['rescans'] {
  const rungMs = rungWindows(of.rescan?.backMs ?? 0).map(() => nowMs - agoMs)
  return { ...aState({}, of).rescans, rungMs }
}

function rescanned(given: Partial<FeedState['whole']>): FeedState {
  return aState({ rescans: ladderRead(0), whole: { ...aState().whole, ...given } })
}

describe('a rescan of the whole window', () => {
  test('is not due where the feed has none, was not read to its end, or reads its first pages', () => {
    expect(rescanDueMs(aFeed({ rescan: undefined }), aState())).toBeUndefined()
    for (const state of [
      aFeedState({ nowMs }),
      aState({ lastCaughtUpMs: undefined }),
      aState({ isBackfilling: true }),
      aState({ isRewound: true }),
    ]) {
      expect(rescanDueMs(feed, state)).toBeUndefined()
      expect(next(feed, state)).toBeUndefined()
    }
  })

  test('is due one interval after the first poll, then one after the one before began', () => {
    const { startBoundMs: floorMs } = aState()
    expect(rescanDueMs(feed, aState())).toBe(floorMs + 3 * dayMs + hourMs)
    const { scan: walk } = begun(feed, aState({ rescans: ladderRead(0) }))
    const ended = { scan: { ...walk, startedAtMs: nowMs - 1_800_000 }, isDone: true }
    expect(rescanDueMs(feed, rescanned(ended))).toBe(nowMs + 1_800_000)
  })

  test('reads its window, not below the start bound, up to now, and keeps the place of the tail', () => {
    const given = fc.record({
      ageMs: fc.integer({ min: 3 * dayMs + hourMs, max: 20 * dayMs }),
      newestMs: fc.option(fc.integer({ min: nowMs - dayMs, max: nowMs }), { nil: undefined }),
    })
    fc.assert(
      fc.property(given, ({ ageMs, newestMs }) => {
        const floorMs = nowMs - ageMs
        const { place, scan: walk } = begun(
          feed,
          aState({ startBoundMs: floorMs, newestMs, rescans: ladderRead(0) }),
        )
        expect(place).toBe('whole')
        expect(walk.span).toEqual({ fromMs: Math.max(floorMs, nowMs - dayMs), toMs: nowMs })
        expect(walk).toMatchObject({ cursor: null, reason: 'again', startedAtMs: nowMs })
        const [from, to] = [walk.span?.fromMs ?? 0, nowMs].map((ms) => new Date(ms).toISOString())
        const filters = { estimated_created_at: { gte: from, lte: to } }
        expect(walk.body).toMatchObject({ filters })
        const stored = JSON.parse(JSON.stringify(walk)) as Scan
        expect(readNotes(stored)).toMatchObject({ kind: 'whole', lateBeforeMs: newestMs ?? null })
      }),
    )
  })

  test('reads below the start bound too, once it is known what stood there', () => {
    const state = aState({ rescans: ladderRead(0, week) }, week)
    const fromMs = nowMs - 7 * dayMs
    expect(state.startBoundMs).toBeGreaterThan(fromMs)
    const behind = { id: 'b', fromMs: fromMs - 1, toMs: state.startBoundMs }
    const given = { ...state, scan: { ...state.scan!, behind } }
    const read = { ...given, rescans: { ...given.rescans, snapshotId: 'b' } }
    expect(begun(week, read).scan.span).toEqual({ fromMs, toMs: nowMs })
  })

  test('is left for what a tail with another request left behind it', () => {
    const { scan: walk } = begun(feed, aState({ rescans: ladderRead(0) }))
    const state = rescanned({ scan: walk })
    const behind = { id: 'b', fromMs: nowMs - 2 * dayMs, toMs: nowMs - dayMs }
    const left = { ...state, scan: { ...state.scan!, behind } }
    expect(readNotes(begun(feed, left).scan)).toMatchObject({ snapshotOf: 'b' })
    const begunIt = { ...left, whole: { ...left.whole, scan: begun(feed, left).scan } }
    expect(begun(feed, begunIt).scan).toBe(begunIt.whole.scan)
  })

  test('goes on as it began until it was read to its end, however long that takes', () => {
    const { scan: walk } = begun(feed, aState({ rescans: ladderRead(0) }))
    const running = { ...walk, cursor: 'c1', startedAtMs: nowMs - 5 * hourMs }
    expect(begun(feed, rescanned({ scan: running })).scan).toBe(running)
    expect(begun(feed, rescanned({ scan: running, isDone: true })).scan).not.toBe(running)
  })
})

describe('what a tail left behind it', () => {
  test('is read before anything else of the rescan, once, up to where the tail began', () => {
    const changed = aFeed({ ...week, filters: { severity: 'low' } })
    const before = aState({ newestMs: nowMs - 5 * minuteMs }, week)
    const tail = tailScan(changed, before)
    expect(tail.span).toEqual({ fromMs: nowMs - 15 * minuteMs })
    const state = { ...before, scan: tail, rescans: { ...before.rescans, rungMs: [] } }
    const { place, scan: walk } = begun(changed, state)
    expect(place).toBe('whole')
    expect(walk.span).toEqual({ fromMs: nowMs - 7 * dayMs, toMs: tail.span!.fromMs })
    expect(readNotes(walk)).toMatchObject({ kind: 'snapshot', isBacklog: true, lateBeforeMs: null })
    const rescans = { ...state.rescans, ...Object.fromEntries(fieldsAtEnd(walk)) }
    expect(rescans).toMatchObject({ snapshot_of: tail.behind!.id, per_week: '0' })
    const ended = { ...state, rescans: { ...state.rescans, snapshotId: tail.behind!.id } }
    expect(
      rescanDueMs(changed, { ...ended, whole: { ...ended.whole, scan: walk, isDone: true } }),
    ).toBe(nowMs + unconstrainedPlan.wholeEveryMs)
  })

  test('of a rewind it begins at the new start bound, though that is earlier than the window', () => {
    const floorMs = nowMs - 30 * dayMs
    const rewound = {
      ...aState({ newestMs: nowMs - minuteMs }, week),
      startBoundMs: floorMs,
      isRewound: true,
    }
    const tail = tailScan(week, rewound)
    expect(tail).toMatchObject({ reason: 'rewound', span: { fromMs: nowMs - 11 * minuteMs } })
    expect(tail.behind).toMatchObject({ fromMs: floorMs, toMs: tail.span!.fromMs })
  })

  test('is not forgotten where another filter comes before it was read', () => {
    const floorMs = nowMs - 30 * dayMs
    const rewound = {
      ...aState({ newestMs: nowMs - minuteMs }, week),
      startBoundMs: floorMs,
      isRewound: true,
    }
    const state = { ...rewound, isRewound: false, scan: tailScan(week, rewound) }
    const changed = aFeed({ ...week, filters: { severity: 'low' } })
    expect(tailScan(changed, state).behind).toMatchObject({ fromMs: floorMs })
    const rescans = { ...state.rescans, snapshotId: state.scan.behind!.id }
    expect(tailScan(changed, { ...state, rescans }).behind).toMatchObject({
      fromMs: nowMs - 7 * dayMs,
    })
  })

  test('of a first poll it is what stood below the start bound, within the window', () => {
    const opened = aFeedState({ nowMs })
    const tail = tailScan(week, opened)
    expect(tail.behind).toMatchObject({ fromMs: nowMs - 7 * dayMs, toMs: opened.startBoundMs })
    expect(tailScan(aFeed({ rescan: { everyMs: undefined, backMs: hourMs } }), opened).behind).toBe(
      undefined,
    )
  })
})

/** Requests a second of a feed that is read as the ladder says: each time the longest window that is due. */
function readLadder(perWeek: number, ladder: Ladder): number {
  const windows = rungWindows(7 * dayMs)
  const times = rungIntervals(windows, ladder)
  const shortestMs = Math.min(...times.filter((everyMs) => everyMs !== undefined))
  const looks = 2 ** windows.length
  let pages = 0
  for (let look = 1; look <= looks; look += 1) {
    const isDue = (everyMs = Infinity): boolean => look % (everyMs / shortestMs) === 0
    const windowMs = windows[times.findLastIndex(isDue)] ?? 0
    pages += Math.max(1, Math.ceil((perWeek * windowMs) / (7 * dayMs) / 10))
  }
  return (pages * 1_000) / (looks * shortestMs)
}

test.each([
  ['off by hours', 5 * hourMs, 5 * hourMs],
  ['behind by a day', -dayMs, -dayMs],
  ['as good as right', 9_000, 0],
])('a window ends now by the clock of the service, where ours is %s', (_what, skewMs, toMs) => {
  const matching = { plan: unconstrainedPlan, clockMs: nowMs + skewMs }
  const read = ladderRead(6 * minuteMs, week)
  const ladder = nextRescan(week, aState({ rescans: read }, week), matching)
  expect('rescan' in ladder && ladder.rescan.scan.span).toEqual({
    fromMs: nowMs + toMs - 20 * minuteMs,
    toMs: nowMs + toMs,
  })
  const whole = nextRescan(feed, aState({ rescans: ladderRead(0) }), matching)
  expect('rescan' in whole && whole.rescan.scan.span).toMatchObject({ toMs: nowMs + toMs })
})

describe('the ladder', () => {
  test('doubles its windows from ten minutes, and reads each after a quarter of its length', () => {
    const windows = rungWindows(7 * dayMs)
    expect(windows.slice(0, 3)).toEqual([10 * minuteMs, 20 * minuteMs, 40 * minuteMs])
    expect(windows).toHaveLength(10)
    expect(rungWindows(20 * minuteMs)).toEqual([10 * minuteMs]) // the whole window is the rescan's
    expect(rungWindows(20 * minuteMs + 1)).toEqual([10 * minuteMs, 20 * minuteMs])
    expect(rungWindows(10 * minuteMs)).toEqual([])
    const times = rungIntervals(windows, unconstrainedPlan.ladder)
    expect(times.slice(0, 2)).toEqual([2.5 * minuteMs, 5 * minuteMs])
    expect(times).toHaveLength(10)
  })

  test('leaves windows out, but of a feed that has none of its own reads the longest', () => {
    const ladder = { rungs: [1, 3], fraction: 1 / 2 }
    const none = undefined
    expect(rungIntervals(rungWindows(3 * hourMs), ladder)).toEqual([
      none,
      10 * minuteMs,
      none,
      40 * minuteMs,
      none,
    ])
    expect(rungIntervals(rungWindows(20 * minuteMs), ladder)).toEqual([10 * minuteMs])
    expect(rungIntervals(rungWindows(3 * hourMs), { ...ladder, rungs: [] })).toEqual(
      Array.from({ length: 5 }, () => none),
    )
  })

  test('scans the longest window that is due, which counts for the shorter ones', () => {
    const state = aState({ rescans: ladderRead(6 * minuteMs, week) }, week)
    const { place, scan: walk } = begun(week, state)
    expect(place).toBe('recent')
    expect(walk.span).toEqual({ fromMs: nowMs - 20 * minuteMs, toMs: nowMs })
    expect(fieldsAtEnd(walk)).toEqual([
      ['rung:0', String(nowMs)],
      ['rung:1', String(nowMs)],
    ])
  })

  test('scans windows of up to six hours beside the longer ones', () => {
    const windows = rungWindows(week.rescan!.backMs)
    const places = windows.map((_windowMs, rung) => {
      const rescans = ladderRead(0, week)
      const rungMs = rescans.rungMs.with(rung, 1)
      return begun(week, aState({ rescans: { ...rescans, rungMs } }, week)).place
    })
    const shortOnes = windows.filter((windowMs) => windowMs <= 6 * hourMs)
    expect(places.slice(0, shortOnes.length)).toEqual(shortOnes.map(() => 'recent'))
    expect(new Set(places.slice(shortOnes.length))).toEqual(new Set(['long']))
  })

  test('is not put off by a tail that begins anew, as after a refused cursor', () => {
    const state = aState({ rescans: ladderRead(6 * minuteMs, week) }, week)
    const walk = { ...state.scan!, startedAtMs: nowMs - 1_000 }
    expect(begun(week, { ...state, scan: walk }).scan.span?.fromMs).toBe(nowMs - 20 * minuteMs)
  })

  test('does not wait for a time that was written while the clock was ahead, nor does a rescan', () => {
    const ahead = ladderRead(-dayMs, week)
    const late = { ...ahead, firstPollMs: nowMs + dayMs }
    const before = aState({ rescans: late }, week)
    const state = { ...before, scan: { ...before.scan!, startedAtMs: nowMs + dayMs } }
    expect(begun(week, state).place).toBe('recent')
    const whole = { ...state.whole, scan: state.scan, isDone: true }
    expect(rescanDueMs(week, { ...state, whole })).toBeLessThanOrEqual(nowMs)
  })

  test('is not climbed by feeds whose pages cost quota or that take no times', () => {
    expect(next(aCredentialFeed() as never, aState())).toBeUndefined()
  })

  test('of many feeds finds what is late by minutes within the hour, with half of what rescans may use', () => {
    const load = { backMs: 7 * dayMs, everyMs: undefined, isMatched: false }
    const planFor = (count: number, perWeek: number): RescanPlan =>
      planRescans(
        Array.from({ length: count }, () => ({ ...load, perWeek })),
        0.7,
      )
    const windows = rungWindows(7 * dayMs)
    const alone = planFor(1, 1_000)
    expect(alone.wholeEveryMs).toBe(hourMs)
    expect(maxFindDelayMs(windows, alone, 0)).toBe(2.5 * minuteMs)
    expect(maxFindDelayMs(windows, alone, 31 * minuteMs)).toBe(20 * minuteMs)
    const sixty = planFor(60, 1_000)
    for (const lateMs of [0, 10 * minuteMs, 30 * minuteMs])
      expect(maxFindDelayMs(windows, sixty, lateMs)).toBeLessThan(hourMs)
    expect(sixty.wholeEveryMs).toBeCloseTo((6_000 / 0.035) * 1_000)
    const tooMany = planFor(500, 20_000)
    expect(tooMany.ladder.rungs).toEqual([]) // one look at each event is more than the budget
    expect(tooMany.wholeEveryMs).toBeCloseTo((1_000_000 / 0.07) * 1_000, -1)
  })

  test.each([
    ['all that are sooner read than the whole window', [1, 1_000], [0, 1, 2, 3, 4]],
    ['every second one', [8, 5_000], [1, 3, 5]],
    ['every third one', [60, 1_000], [3, 6]],
    ['a single one', [5, 20_000], [2]],
  ] as const)('has, of its windows, %s', (_which, [count, perWeek], rungs) => {
    const load = { perWeek, backMs: 7 * dayMs, everyMs: undefined, isMatched: false }
    const feeds = Array.from({ length: count }, () => load)
    expect(planRescans(feeds, 1).ladder.rungs).toEqual(rungs)
  })

  test.each([
    [1, 20_000],
    [8, 1_000],
    [60, 1_000],
  ])('of %i feeds with %i events a week costs no more than it may', (count, perWeek) => {
    const load = { perWeek, backMs: 7 * dayMs, everyMs: undefined, isMatched: false }
    const { ladder } = planRescans(
      Array.from({ length: count }, () => load),
      1,
    )
    expect(count * readLadder(perWeek, ladder)).toBeLessThanOrEqual(0.050_001)
    const sooner = { ...ladder, fraction: 0.9 * ladder.fraction }
    const isCheapest = ladder.fraction === 1 / 4
    expect(isCheapest || count * readLadder(perWeek, sooner) > 0.05).toBe(true)
  })
})

describe('pages of a turn', () => {
  const places = ['recent', 'long', 'whole'] as const
  const { scan: walk } = begun(week, aState({ rescans: ladderRead(hourMs, week) }, week))

  function placesOf(running: readonly (typeof places)[number][]): (string | undefined)[] {
    const fresh = aState({ rescans: ladderRead(0, week) }, week)
    const scans = running.map((place) => [place, { ...fresh[place], scan: walk }] as const)
    const whole = { ...fresh.whole, scan: { ...walk, startedAtMs: nowMs }, isDone: true }
    const state = { ...fresh, whole, ...Object.fromEntries(scans) }
    return Array.from({ length: 8 }, (_none, page) => {
      const next = nextRescan(week, state, { plan: unconstrainedPlan }, page)
      return 'rescan' in next ? next.rescan.place : undefined
    })
  }

  test('go to each scan that is on its way, every second one to the shortest', () => {
    const four = ['recent', 'whole', 'recent', 'long']
    expect(placesOf(places)).toEqual([...four, ...four])
  })

  test.each(places)('all go to the %s scan where it is the only one', (place) => {
    expect(new Set(placesOf([place]))).toEqual(new Set([place]))
  })
})

describe('where the service filters by match time', () => {
  const matchedNowMs = nowMs + 5_000

  test('the first window begins with what the tail left behind it', () => {
    const state = aState({ newestMs: nowMs - hourMs }, week)
    const behind = { id: 'b', fromMs: nowMs - 2 * dayMs, toMs: nowMs - dayMs }
    const { scan: walk } = begun(
      week,
      { ...state, scan: { ...state.scan!, behind } },
      { matchClockMs: matchedNowMs },
    )
    expect(walk.span?.fromMs).toBe(nowMs - 2 * dayMs)
  })

  test('closed windows follow each other with overlap, and end a minute before the service’s clock', () => {
    const state = aState({ newestMs: nowMs - hourMs }, week)
    const first = begun(week, state, { matchClockMs: matchedNowMs })
    expect(first.place).toBe('recent')
    expect(first.scan.span).toEqual({ fromMs: state.startBoundMs, toMs: matchedNowMs - minuteMs })
    expect(first.scan.body).toMatchObject({
      filters: { materialized_at: { gte: new Date(state.startBoundMs).toISOString() } },
    })
    expect(readNotes(first.scan)).toMatchObject({ isBacklog: true, lateBeforeMs: nowMs - hourMs })
    const [[name, value] = []] = fieldsAtEnd(first.scan)
    expect(name).toBe('matched')
    const matched = JSON.parse(value!) as { fingerprint: string; toMs: number }
    const whole = { ...state.whole, scan: { ...first.scan, startedAtMs: nowMs }, isDone: true }
    const after = { ...state, whole, rescans: { ...state.rescans, matched } }
    expect(next(week, after, { matchClockMs: matchedNowMs })).toBe(nowMs + minuteMs)
    const later = { ...after, nowMs: nowMs + minuteMs }
    const second = begun(week, later, { matchClockMs: matchedNowMs + minuteMs })
    expect(second.scan.span).toEqual({
      fromMs: matched.toMs - 10 * minuteMs,
      toMs: matched.toMs + minuteMs,
    })
    expect(readNotes(second.scan).isBacklog).toBeUndefined()
  })

  test('a window that was begun is left when the service no longer does, so that the ladder goes on', () => {
    const { scan: walk } = begun(week, aState({ newestMs: nowMs - hourMs }, week), {
      matchClockMs: matchedNowMs,
    })
    const rescans = ladderRead(hourMs, week)
    const state = aState(
      { rescans, recent: { ...aState().recent, scan: walk, isDone: false } },
      week,
    )
    expect(readNotes(begun(week, state, { matchClockMs: matchedNowMs }).scan).kind).toBe('matched')
    expect(readNotes(begun(week, state).scan).kind).toBe('rung')
  })

  test('nothing is read from before what is remembered: it would be told a second time', () => {
    const state = aState({ startBoundMs: nowMs - 400 * dayMs, newestMs: nowMs }, week)
    const world = { plan: unconstrainedPlan, matchClockMs: matchedNowMs, rememberedMs: 90 * dayMs }
    const first = nextRescan(week, state, world)
    expect(first).toMatchObject({ rescan: { scan: { span: { fromMs: nowMs - 90 * dayMs } } } })
  })

  test('the whole window is read once a day as a proof', () => {
    const state = aState({}, week)
    expect(rescanDueMs(week, state, { plan: unconstrainedPlan, matchClockMs: matchedNowMs })).toBe(
      state.startBoundMs + week.startMs + dayMs,
    )
  })
})

describe('the plan of an organization', () => {
  const [mine, other] = ['mine', 'other'].map((account) =>
    Array.from({ length: 60 }, (_, n) => aFeed({ ...week, account, name: `${account}-${n}` })),
  ) as [PolledEvents[], PolledEvents[]]
  const known = { perWeek: undefined, isMatched: false }

  test('is made of its own feeds, whichever they turn out to be', () => {
    let isOne = false
    let asked = 0
    const budget = createRescanBudget(
      [...mine, ...other],
      ({ account }) => {
        asked += 1
        return isOne ? 'one' : account
      },
      () => 1,
    )
    const alone = budget.plan(mine[0]!, known)
    expect(budget.plan(other[0]!, { perWeek: 100_000, isMatched: false })).not.toEqual(alone)
    expect(budget.plan(mine[0]!, known)).toEqual(alone)
    asked = 0
    isOne = true // both accounts are of one organization, as an answer of the service says
    for (const one of [...mine, ...other]) budget.plan(one, known)
    const together = budget.plan(mine[0]!, known)
    expect(together.wholeEveryMs).toBeCloseTo(2 * alone.wholeEveryMs)
    expect(asked).toBe(121 + 120) // each plan asks for its own feed, and one of them for all
  })

  test('counts feeds of which nothing is known yet as usual ones that are read by the ladder', () => {
    const budget = createRescanBudget(
      mine,
      ({ account }) => account,
      () => 1,
    )
    const load = { perWeek: 1_000, backMs: 7 * dayMs, everyMs: undefined, isMatched: false }
    expect(budget.plan(mine[0]!, known)).toEqual(
      planRescans(
        mine.map(() => load),
        1,
      ),
    )
  })
})
