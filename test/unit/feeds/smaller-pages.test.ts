import { describe, expect, test } from 'vitest'
import {
  advance,
  restartAfterRefusal,
  tailScan,
  restartWithSmallerPages,
  shrinkPages,
  skipPage,
} from '../../../src/feeds/scan.ts'
import type { FeedState, Scan } from '../../../src/store/feed-state.ts'
import { unconstrainedPlan } from '../../../src/feeds/rescan-plan.ts'
import { nextRescan } from '../../../src/feeds/rescan.ts'
import { aCredentialFeed, aCredentialSearch, aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const feed = aFeed({ startMs: 3 * dayMs, rescan: { everyMs: hourMs, backMs: dayMs } })

describe('a walk in smaller pages', () => {
  const search = aCredentialSearch({ rescan: { everyMs: hourMs, backMs: dayMs } })

  function rescanOf(state: FeedState): Scan {
    const next = nextRescan(search, state, { plan: unconstrainedPlan })
    if (!('rescan' in next)) throw new Error('no rescan is due')
    return next.rescan.scan
  }

  test('takes the next size each time, and there is an end to it', () => {
    const sizes: unknown[] = []
    let walk: Scan | undefined = tailScan(search, aFeedState({ nowMs }))
    while (walk) {
      sizes.push(walk.body['size'])
      walk = restartWithSmallerPages(search, aFeedState({ nowMs }), walk)
    }
    expect(sizes).toEqual([100, 50, 25, 10])
    for (const other of [feed, aCredentialFeed()]) {
      const state = aFeedState({ nowMs })
      expect(restartWithSmallerPages(other, state, tailScan(other, state))).toBeUndefined()
    }
  })

  test('stays small for a day from when the gateway gave up, and for another day where it gives up again', () => {
    const floorMs = nowMs - 9 * dayMs
    const at = (hours: number, walk?: Scan): FeedState =>
      aFeedState({
        nowMs: nowMs + hours * hourMs,
        startBoundMs: floorMs,
        scan: walk,
        isEnded: true,
      })
    const next = (hours: number, walk: Scan): Scan => tailScan(search, at(hours, walk))
    const smaller = (hours: number, walk: Scan): Scan =>
      restartWithSmallerPages(search, at(hours, walk), walk)!
    const sizes = (...walks: Scan[]): unknown[] => walks.map(({ body }) => body['size'])

    const first = next(1, tailScan(search, at(0)))
    expect(sizes(next(25, smaller(2, first)), next(26, smaller(2, first)))).toEqual([50, 100])
    const large = next(30, first)
    const small = smaller(30, large)
    const [soon, late] = [next(53, small), next(54, small)]
    expect(sizes(large, small, soon, late, next(54, soon))).toEqual([100, 50, 50, 100, 100])
    const again = smaller(54, next(54, soon))
    expect(sizes(again, next(77, again), next(78, again))).toEqual([50, 50, 100])
  })

  test('reads the same window: without an order in time any part of it may be unread', () => {
    const walk = { ...tailScan(search, aFeedState({ nowMs })), cursor: 'c1' }
    const state = aFeedState({
      nowMs,
      startBoundMs: nowMs - 9 * dayMs,
      scan: walk,
      newestMs: nowMs - hourMs,
    })
    expect(restartWithSmallerPages(search, state, walk)).toMatchObject({
      cursor: null,
      reason: 'page_size_changed',
      span: walk.span,
    })
    const done = { ...state.rescans, snapshotId: walk.behind?.id }
    const read = tailScan(search, aFeedState({ nowMs, startBoundMs: state.startBoundMs }))
    const ended = { ...state, scan: read, lastCaughtUpMs: nowMs, isEnded: true, rescans: done }
    const rescan = { ...rescanOf(ended), cursor: 'c1' }
    const later = { ...ended, nowMs: nowMs + hourMs, newestMs: nowMs + hourMs }
    const smaller = restartWithSmallerPages(search, later, rescan)!
    expect(smaller).toMatchObject({ cursor: null, span: rescan.span, notes: rescan.notes })
    expect(smaller.startedAtMs).toBe(later.nowMs)
    expect(smaller.body).toEqual({ ...rescan.body, size: 50 })
  })

  test('stays small after a refused cursor and for a day; then the usual size is tried again', () => {
    const first = tailScan(search, aFeedState({ nowMs }))
    const small = restartWithSmallerPages(search, aFeedState({ nowMs }), first)!
    const state = aFeedState({ nowMs, scan: { ...small, cursor: 'c1' }, isEnded: true })
    expect(restartAfterRefusal(search, state).body['size']).toBe(50)
    const next = tailScan(search, { ...state, nowMs: nowMs + hourMs })
    expect(next.body['size']).toBe(50)
    const last = { ...state, scan: next, nowMs: nowMs + dayMs - 1 }
    expect(tailScan(search, last).body['size']).toBe(50)
    const tried = tailScan(search, { ...last, nowMs: nowMs + dayMs })
    expect(tried).toMatchObject({ cursor: null, reason: 'again' })
    expect(tried.body['size']).toBe(100)
    const running = { ...last, isEnded: false, nowMs: nowMs + dayMs }
    expect(tailScan(search, running)).toBe(next)
  })
})

test('a page that cannot be read is asked for in tenths, down to one item and no further', () => {
  const walk = { ...tailScan(feed, aFeedState({ nowMs })), body: { size: 10 } }
  const one = shrinkPages(walk)
  expect(one).toMatchObject({ body: { size: 1 }, small: { usual: 10, left: 10 } })
  expect(shrinkPages(one!)).toBeUndefined()
  const sizes: unknown[] = []
  let next = one!
  for (let page = 0; page < 11; page += 1) {
    sizes.push(next.body['size'])
    next = advance(next, { items: [{}], next: `c${page}` }).scan
  }
  expect(sizes).toEqual([...Array.from({ length: 10 }, () => 1), 10])
  const two = shrinkPages({ ...walk, body: { size: 25 } })
  expect(two).toMatchObject({ body: { size: 2 }, small: { usual: 25, left: 13 } })
  expect(shrinkPages(two!)).toMatchObject({ body: { size: 1 }, small: { usual: 25, left: 2 } })
})

describe('a tail that goes round a page leaves to the rescan', () => {
  const oldFloorMs = nowMs - 3 * dayMs
  const first = tailScan(feed, aFeedState({ nowMs: nowMs - dayMs, startBoundMs: oldFloorMs }))
  const read = {
    nowMs,
    startBoundMs: oldFloorMs,
    scan: { ...first, cursor: 'c1' },
    newestMs: nowMs - hourMs,
    rescans: { ...aFeedState({ nowMs }).rescans, snapshotId: first.behind?.id },
  }

  test('what it had not read yet itself, and no more', () => {
    expect(skipPage(feed, aFeedState(read))).toMatchObject({
      span: { fromMs: nowMs },
      behind: { fromMs: nowMs - hourMs - 600_000, toMs: nowMs },
    })
  })

  test('all that an operator asked to be read again', () => {
    const rewound = aFeedState({ ...read, isRewound: true, startBoundMs: nowMs - 9 * dayMs })
    expect(skipPage(feed, rewound).behind).toMatchObject({ fromMs: nowMs - 9 * dayMs, toMs: nowMs })
  })
})

test('a tail that goes round a page, and that nothing reads again, reads from an hour before the newest event', () => {
  const alone = aFeed({ rescan: undefined })
  const walk = { ...tailScan(alone, aFeedState({ nowMs: nowMs - dayMs })), cursor: 'c1' }
  const past = skipPage(alone, aFeedState({ nowMs, scan: walk, newestMs: nowMs - hourMs }))
  expect(past).toMatchObject({ reason: 'page_too_large', span: { fromMs: nowMs - 2 * hourMs } })
  expect(past).not.toHaveProperty('behind')
})
