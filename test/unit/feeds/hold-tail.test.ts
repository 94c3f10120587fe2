/** Where a tail stands, and what is read next, when pages hold items that are dated ahead of now. */
import { describe, expect, test } from 'vitest'
import { advance, holdTail, leaveBeyond, tailScan } from '../../../src/feeds/scan.ts'
import type { Scan } from '../../../src/store/feed-state.ts'
import { aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const hourMs = 3_600_000
const tail: Scan = { ...tailScan(aFeed(), aFeedState({ nowMs })), cursor: 'c1' }

/** A page whose latest item is dated so far ahead of now; null: it has no date. */
interface ReadPage {
  aheadMs: number | null
  next?: string | null
}

/** The scan after these pages, and the cursors with which they were asked for. */
function read(scan: Scan, pages: readonly ReadPage[], laterMs = 0) {
  let walk = scan
  const asked: (string | null)[] = []
  const beyond: boolean[] = []
  for (const { aheadMs, next = null } of pages) {
    asked.push(walk.cursor)
    const latestMs = aheadMs === null ? undefined : nowMs + aheadMs
    const now = { latestMs, nowMs: nowMs + laterMs, isBeyondLeft: false }
    const after = holdTail(walk, advance(walk, { items: [{}], next }), now)
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

test('a page that nothing follows is simply read again', () => {
  const { walk, asked } = read(tail, [ahead(), ahead(), ahead()])
  expect(asked).toEqual(['c1', 'c1', 'c1', 'c1'])
  expect(walk).toEqual(tail)
})

test('pages beyond are read by turns with the tail, one after the other and over again', () => {
  const pages = [ahead('c2'), ahead('c3'), ahead('c2'), ahead('c4'), ahead('c2'), ahead()]
  const { walk, asked, beyond } = read(tail, [...pages, ahead('c2')])
  expect(asked).toEqual(['c1', 'c2', 'c1', 'c3', 'c1', 'c4', 'c1', 'c2'])
  expect(beyond).toEqual([false, true, false, true, false, true, false])
  expect(walk.body).toBe(tail.body)
})

test('what comes before them moves the tail, and the pages beyond go on where they were', () => {
  const { asked } = read(tail, [ahead('c3'), ahead('c4'), past('c2'), ahead('c3'), ahead()])
  expect(asked).toEqual(['c1', 'c3', 'c1', 'c2', 'c4', 'c2'])
})

test('an end before now forgets the pages beyond: nothing is dated ahead any more', () => {
  const { walk } = read(tail, [ahead('c2'), ahead('c3'), past()])
  expect(walk).toEqual(tail)
})

test('once the date has passed, the tail goes on behind it', () => {
  const { walk } = read(tail, [ahead('c2'), ahead('c3')])
  const { walk: later, asked } = read(walk, [ahead('c2'), past('c3')], 15 * hourMs)
  expect(asked).toEqual(['c1', 'c2', 'c3'])
  expect(later).not.toHaveProperty('held')
})

test('where pages do not follow dates, the tail goes on behind the first that has past ones alone', () => {
  const { walk, asked, beyond } = read(tail, [ahead('c2'), past('c3'), past('c4'), ahead('c5')])
  expect(asked).toEqual(['c1', 'c2', 'c3', 'c4', 'c5'])
  expect(beyond).toEqual([false, false, false, false])
  expect(walk.held?.cursor).toBe('c4')
})

test('a date that passes meanwhile does not let the tail leap over what was not read again', () => {
  const soon = { aheadMs: 5_000, next: 'c2' }
  const { walk, beyond } = read(read(tail, [soon]).walk, [{ aheadMs: 5_000, next: 'c3' }], hourMs)
  expect(walk).toMatchObject({ cursor: 'c1', beyond: 'c3' })
  expect(beyond).toEqual([true])
})

test('a page beyond without any date says nothing', () => {
  const { walk } = read(tail, [ahead('c2'), { aheadMs: null, next: 'c3' }])
  expect(walk).toMatchObject({ cursor: 'c1', beyond: 'c3' })
})

test('pages beyond that lead in a circle are no circle of the tail', () => {
  let walk = tail
  for (let pages = 0; pages < 50; pages += 1) walk = read(walk, [ahead(`c${2 + (pages % 3)}`)]).walk
  expect(walk.passed).toBeUndefined()
})

describe('a page beyond that fails', () => {
  test('gives the tail back, at its own cursor and without a place beyond', () => {
    const { walk } = read(tail, [ahead('c2')])
    expect(leaveBeyond(walk)).toEqual(tail)
  })

  test('is none of a tail that is not beyond', () => {
    expect(leaveBeyond(tail)).toBeUndefined()
    expect(leaveBeyond(read(tail, [ahead('c2'), ahead('c3')]).walk)).toBeUndefined()
  })
})
