import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findFeedType } from '../../../../src/feeds/types/feed-types.ts'
import { advance, tailScan } from '../../../../src/feeds/scan.ts'
import type { FeedState } from '../../../../src/store/feed-state.ts'
import { aCredentialFeed, aFeedState } from '../../../support/feeds.ts'

const feed = aCredentialFeed()
const unordered = findFeedType(feed).unordered!
const opened = aFeedState({ nowMs: Date.UTC(2026, 10, 1) })

/** One poll of the list, twenty a page: what it read, and the cursors that it sent. */
function poll(state: FeedState, list: readonly number[], known: ReadonlySet<number>) {
  const read = new Set<number>()
  const asked: (string | null)[] = []
  for (let now = state; ;) {
    const scan = tailScan(feed, now)
    asked.push(scan.cursor)
    const start = Number(scan.cursor ?? 0)
    const items = list.slice(start, start + 20)
    const next = start + 20 < list.length ? String(start + 20) : null
    const moved = advance(scan, { items, next })
    const isKnown = items.every((id) => known.has(id))
    const notes = unordered.note(scan, moved.isCaughtUp)
    const after = { ...moved.scan, notes }
    const isEnded = moved.isCaughtUp || (isKnown && unordered.endsWhenKnown(scan))
    items.forEach((id) => read.add(id))
    now = { ...now, scan: after, isEnded }
    if (isEnded && !unordered.goesOn!(after)) return { state: now, read, asked }
  }
}

const ids = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => from + i)

test.each([
  ['at its front', (old: number[], fresh: number[]) => [...fresh, ...old]],
  ['at its end', (old: number[], fresh: number[]) => [...old, ...fresh]],
  [
    'at both',
    (old: number[], fresh: number[]) => [...fresh.slice(2), ...old, ...fresh.slice(0, 2)],
  ],
])('a poll finds what a list shows %s, however long both are', (_where, grow) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 90 }), fc.integer({ min: 2, max: 60 }), (old, fresh) => {
      const before = ids(0, old)
      const first = poll(opened, before, new Set())
      expect([...first.read]).toEqual(before)
      const list = grow(before, ids(1_000, fresh))
      const second = poll(first.state, list, new Set(before))
      expect([...second.read]).toEqual(expect.arrayContaining(ids(1_000, fresh)))
      const third = poll(second.state, list, new Set(list))
      expect(third.asked.length).toBeLessThanOrEqual(list.length > 20 ? 3 : 1)
    }),
  )
})

test('a poll of a long list that stays asks for its first page and its last', () => {
  const list = ids(0, 50)
  const { state, asked } = poll(opened, list, new Set())
  expect(asked).toEqual([null, '20', '40'])
  expect(poll(state, list, new Set(list)).asked).toEqual([null, '40'])
})

test('a scan whose end is not known reads the list whole', () => {
  const scan = { ...tailScan(feed, opened), cursor: '20' }
  expect(unordered.endsWhenKnown(scan)).toBe(false)
  expect(poll({ ...opened, scan }, ids(0, 50), new Set(ids(0, 50))).asked).toEqual(['20', '40'])
})
