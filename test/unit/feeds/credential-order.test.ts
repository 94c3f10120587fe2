import fc from 'fast-check'
import { expect, test } from 'vitest'
import { typeOf } from '../../../src/feeds/feed-types.ts'
import { advance, walkFor } from '../../../src/feeds/walk.ts'
import type { FeedState } from '../../../src/ledger/feed-state.ts'
import { aCredentialFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const feed = aCredentialFeed()
const { unordered } = typeOf(feed)

interface Turn {
  state: FeedState
  /** The cursors that were sent. */
  asked: (string | null)[]
  /** Whether a whole known page would have ended the walk, page by page. */
  wouldEnd: boolean[]
}

/** One walk of the feed over `ids` in this order, `size` a page, to its very end. */
function readAll(state: FeedState, ids: readonly number[], size = 20): Turn {
  let walk = walkFor(feed, state)
  const asked: Turn['asked'] = []
  const wouldEnd: boolean[] = []
  for (let isEnd = false; !isEnd;) {
    asked.push(walk.cursor)
    wouldEnd.push(unordered!.endsWhenKnown(walk))
    const start = Number(walk.cursor ?? 0)
    const items = ids.slice(start, start + size).map((id) => ({ id }))
    const next = start + size < ids.length ? String(start + size) : null
    const moved = advance(walk, { items, next })
    isEnd = moved.isCaughtUp
    walk = { ...moved.walk, notes: unordered!.note(walk, { items, next }, isEnd) }
  }
  return { state: { ...state, walk, isEnded: true }, asked, wouldEnd }
}

const opened = aFeedState({ nowMs })
const manyIds = fc
  .uniqueArray(fc.nat(1e9), { minLength: 41, maxLength: 90 })
  .map((ids) => ids.toSorted((a, b) => a - b))

test('the first walk goes to the end, however much of it is known', () => {
  fc.assert(
    fc.property(manyIds, (ids) => {
      expect(readAll(opened, ids).wouldEnd).not.toContain(true)
    }),
  )
})

test('growing ids through a whole walk are proof: the next one begins at the last cursor', () => {
  fc.assert(
    fc.property(manyIds, fc.nat(60), (ids, more) => {
      const first = readAll(opened, ids)
      const grown = [...ids, ...Array.from({ length: more }, (_, i) => 2e9 + i)]
      const second = readAll(first.state, grown)
      expect(second.asked[0]).toBe(first.asked.at(-1))
      expect(second.wouldEnd).not.toContain(true)
      expect(readAll(second.state, grown).asked[0]).toBe(second.asked.at(-1))
    }),
  )
})

test('in any other order a walk begins at the start, and a known page ends it', () => {
  const orders = fc.tuple(manyIds, fc.boolean()).chain(([ids, isNewest]) => {
    if (isNewest) return fc.constant(ids.toReversed())
    return fc.shuffledSubarray(ids, { minLength: ids.length })
  })
  fc.assert(
    fc.property(
      orders.filter((ids) => ids.some((id, at) => id < (ids[at - 1] ?? -1))),
      (ids) => {
        const first = readAll(opened, ids)
        const second = readAll(first.state, ids)
        expect(second.asked[0]).toBeNull()
        expect(second.wouldEnd).not.toContain(false)
      },
    ),
  )
})

test('one page in growing order proves nothing, but what is new may stand behind it', () => {
  const first = readAll(opened, [1, 2, 3])
  const second = readAll(first.state, [1, 2, 3])
  expect(second).toMatchObject({ asked: [null], wouldEnd: [false] })
})

test('ids that stop growing end the proof: the next walk reads everything again', () => {
  const ids = Array.from({ length: 50 }, (_, i) => i)
  const proven = readAll(opened, ids)
  const broken = readAll(proven.state, [...ids, 99, 98])
  expect(broken.asked).not.toContain(null)
  const after = readAll(broken.state, [...ids, 99, 98])
  expect(after.asked[0]).toBeNull()
  expect(after.wouldEnd).not.toContain(true)
})

test('an item without an id neither proves nor disproves an order', () => {
  const ids = Array.from({ length: 50 }, (_, i) => (i === 25 ? Number.NaN : i))
  const proven = readAll(opened, ids)
  expect(readAll(proven.state, ids).asked[0]).toBe('40')
})

test('notes of a feed whose stored walk has none, or of another version, are read as a beginning', () => {
  const walk = { ...walkFor(feed, opened), cursor: '20' }
  expect(unordered!.endsWhenKnown(walk)).toBe(false)
  const state = { ...opened, walk, isEnded: true }
  expect(walkFor(feed, state).cursor).toBeNull()
})
