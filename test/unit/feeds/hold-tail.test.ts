/** Where a tail stands, and what is read next, when pages hold items that are dated ahead of now. */
import { describe, expect, test } from 'vitest'
import { advance, holdTail, leaveBeyond, tailScan } from '../../../src/feeds/scan.ts'
import type { Scan } from '../../../src/store/feed-state.ts'
import { aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const hourMs = 3_600_000
const tail: Scan = { ...tailScan(aFeed(), aFeedState({ nowMs })), cursor: 'c1' }

/** A page with an item dated so far ahead of now, and maybe an earlier one; null: without a date. */
interface ReadPage {
  aheadMs: number | null
  earliestMs?: number
  next?: string | null
}

/** The scan after these pages, and the cursors with which they were asked for. */
function read(scan: Scan, pages: readonly ReadPage[], laterMs = 0) {
  let walk = scan
  const asked: (string | null)[] = []
  const beyond: boolean[] = []
  for (const { aheadMs, next = null, earliestMs = aheadMs } of pages) {
    asked.push(walk.cursor)
    const dateOf = (ms: number | null) => (ms === null ? undefined : nowMs + ms)
    const dates = { earliestMs: dateOf(earliestMs), latestMs: dateOf(aheadMs) }
    const page = advance(walk, { items: [{}], next })
    const after = holdTail(walk, page, { ...dates, nowMs: nowMs + laterMs })
    walk = after.scan
    beyond.push(after.isBeyond)
  }
  return { walk, asked: [...asked, walk.cursor], beyond }
}

const ahead = (next?: string): ReadPage => ({ aheadMs: 14 * hourMs, ...(next && { next }) })
const past = (next?: string): ReadPage => ({ aheadMs: -hourMs, ...(next && { next }) })

test.each([
  ['a date of the past', -hourMs, 'c2'],
  ['a date within the second that the service states', 1_000, 'c2'],
  ['a date ahead of that', 1_001, 'c1'],
  ['no date', null, 'c2'],
])('a page that ends with %s leaves the tail at its cursor, or not', (_what, aheadMs, cursor) => {
  const { walk, beyond } = read(tail, [{ aheadMs, next: 'c2' }])
  expect(walk.held?.cursor ?? walk.cursor).toBe(cursor)
  expect(beyond).toEqual([false])
})

/** Pages as a service with this list of cursors gives them: the tail at `c1`, those beyond after it. */
function readList(scan: Scan, last: number, pages: number) {
  let walk = scan
  const asked: (string | null)[] = []
  for (let page = 0; page < pages; page += 1) {
    const at = Number(walk.cursor?.slice(1))
    asked.push(walk.cursor)
    walk = read(walk, [ahead(at < last ? `c${at + 1}` : undefined)]).walk
  }
  return { walk, asked }
}

test('pages beyond are read by turns with the tail, one after the other to the end', () => {
  const { asked, walk } = readList(tail, 4, 6)
  expect(asked).toEqual(['c1', 'c2', 'c1', 'c3', 'c1', 'c4'])
  expect(walk).toMatchObject({ cursor: 'c1', beyond: { places: [{ cursor: 'c4' }] } })
  expect(walk.body).toBe(tail.body)
})

test('then every second page beyond is the end, where a wrong clock puts what is new', () => {
  const { walk } = readList(tail, 4, 6)
  const { asked } = readList(walk, 4, 12)
  const beyond = asked.filter((cursor) => cursor !== 'c1')
  expect(beyond).toEqual(['c2', 'c4', 'c3', 'c4', 'c4', 'c2'])
})

test('the end moves with what is new there, at once', () => {
  const { walk } = readList(tail, 4, 8)
  const { asked } = readList(walk, 6, 10)
  expect(asked.filter((cursor) => cursor !== 'c1')).toEqual(['c4', 'c5', 'c6', 'c3', 'c6'])
})

test('how long a pass took is kept, from its first page to its last', () => {
  const first = read(tail, [ahead('c2')]).walk
  const { walk } = read(first, [ahead('c3'), ahead('c2'), ahead()], hourMs)
  expect(walk.beyond?.passMs).toBe(hourMs)
  expect(read(walk, [ahead('c2'), ahead('c3')]).walk.beyond?.passMs).toBe(hourMs)
})

test('what comes before them moves the tail, and the pages beyond go on where they were', () => {
  const { asked } = read(tail, [ahead('c3'), ahead('c4'), past('c2'), ahead('c3'), ahead()])
  expect(asked).toEqual(['c1', 'c3', 'c1', 'c2', 'c4', 'c2'])
})

test('an end before now forgets the pages beyond: nothing is dated ahead any more', () => {
  const { walk } = read(tail, [ahead('c2'), ahead('c3'), past()])
  expect(walk).toEqual(tail)
})

describe('where a page beyond has any earlier date, pages do not follow dates', () => {
  const mixed = { ...ahead('c3'), earliestMs: -hourMs }

  test('and the tail goes on behind it, and is held by no date again', () => {
    const { walk, asked, beyond } = read(tail, [ahead('c2'), mixed, ahead('c4'), ahead(), ahead()])
    expect(asked).toEqual(['c1', 'c2', 'c3', 'c4', 'c4', 'c4'])
    expect(beyond).toEqual([false, false, false, false, false])
    expect(walk).not.toHaveProperty('beyond')
  })

  test('until a page is in order again: one odd item blinds no tail for good', () => {
    const { walk } = read(tail, [ahead('c2'), mixed, past('c4')])
    expect(walk).toMatchObject({ cursor: 'c4' })
    expect(read(walk, [ahead('c5')]).walk).toMatchObject({ held: { cursor: 'c4' } })
  })

  test('unless the date has passed since the pass began', () => {
    const soon = { aheadMs: 5_000, next: 'c2' }
    const { walk, beyond } = read(read(tail, [soon]).walk, [{ aheadMs: 5_000, next: 'c3' }], hourMs)
    expect(walk).toMatchObject({ cursor: 'c1', beyond: { places: [{ cursor: 'c3' }] } })
    expect(beyond).toEqual([true])
    const later = read(walk, [ahead('c2'), { aheadMs: hourMs, next: 'c4' }], 2 * hourMs)
    expect(later.walk).not.toHaveProperty('ignoresDates')
  })

  test('but at the end, where the tail may be before long, it proves nothing', () => {
    const { walk } = readList(tail, 3, 6)
    const { walk: atEnd } = read(walk, [ahead('c2')])
    expect(atEnd.cursor).toBe('c3')
    expect(read(atEnd, [{ ...ahead(), earliestMs: -hourMs }]).beyond).toEqual([true])
  })
})

describe('a page beyond that fails', () => {
  const { walk } = read(tail, [ahead('c2')])
  const fail = (scan: Scan, atMs: number) => leaveBeyond(scan, atMs) as Scan

  test('gives the tail back, at its own cursor and without the place that failed', () => {
    const { beyond, ...left } = fail(walk, nowMs)
    expect(left).toEqual(tail)
    expect(beyond?.places).toEqual([])
  })

  test('lets a pass begin again after a minute, then after twice as long, up to 16 minutes', () => {
    let left = fail(walk, nowMs)
    let laterMs = 0
    for (const minutes of [1, 2, 4, 8, 16, 16]) {
      const waitMs = minutes * 60_000
      expect(left.beyond?.retry).toEqual({ waitMs, atMs: nowMs + laterMs + waitMs })
      expect(read(left, [ahead('c2')], laterMs + waitMs - 1).walk).toEqual(left)
      laterMs += waitMs
      const { walk: again } = read(left, [ahead('c2')], laterMs)
      expect(again).toMatchObject({ cursor: 'c2', held: { cursor: 'c1' } })
      left = fail(again, nowMs + laterMs)
    }
    const partly = read(left, [ahead('c2'), ahead('c3')], laterMs + 960_000).walk
    expect(partly.beyond).toHaveProperty('retry')
    const whole = read(partly, [ahead('c2'), ahead()], laterMs + 960_000).walk
    expect(whole.beyond).not.toHaveProperty('retry')
  })

  test('costs the end nothing, which each poll reads meanwhile', () => {
    const passed = readList(tail, 4, 6).walk
    const left = fail(read(passed, [ahead('c2')]).walk, nowMs)
    expect(left).toMatchObject({ cursor: 'c1', beyond: { places: [{ cursor: 'c4' }] } })
    expect(readList(left, 5, 6).asked).toEqual(['c1', 'c4', 'c1', 'c5', 'c1', 'c5'])
    expect(readList(left, 5, 6).walk.beyond).toHaveProperty('retry')
  })

  test('costs a pass nothing where it is the end, which the pass finds again', () => {
    const atEnd = readList(tail, 4, 9).walk
    expect(atEnd).toMatchObject({ cursor: 'c4', held: { cursor: 'c1' } })
    const { asked, walk: found } = readList(fail(atEnd, nowMs), 4, 4)
    expect(asked).toEqual(['c1', 'c3', 'c1', 'c4'])
    expect(found.beyond).toEqual({ places: [{ cursor: 'c4' }], passMs: expect.any(Number) })
  })
})
