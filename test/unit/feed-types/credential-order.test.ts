import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findFeedType } from '../../../src/feed-types/feed-types.ts'
import { advance, tailScan } from '../../../src/feeds/scan.ts'
import type { FeedState } from '../../../src/store/feed-state.ts'
import { aCredentialFeed, aFeedState, aTenantCredentialFeed } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const limitMs = nowMs + 10_000
const feed = aCredentialFeed()
const { unordered } = findFeedType(feed)

interface Turn {
  state: FeedState
  /** The cursors that were sent. */
  asked: (string | null)[]
  /** Whether a whole known page would have ended the walk, page by page. */
  wouldEnd: boolean[]
}

/** One walk of the feed over `ids` in this order, `size` a page, to its very end. */
function readAll(state: FeedState, ids: readonly number[], size = 20): Turn {
  let walk = tailScan(feed, state)
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
    walk = { ...moved.scan, notes: unordered!.note(walk, { items, next }, { isEnd, limitMs }) }
  }
  return { state: { ...state, scan: walk, isEnded: true }, asked, wouldEnd }
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
  const walk = { ...tailScan(feed, opened), cursor: '20' }
  expect(unordered!.endsWhenKnown(walk)).toBe(false)
  const state = { ...opened, scan: walk, isEnded: true }
  expect(tailScan(feed, state).cursor).toBeNull()
})

describe('the credentials of the tenant, asked for in ascending order', () => {
  const tenant = aTenantCredentialFeed({ everyMs: 60_000 })
  const order = findFeedType(tenant).unordered!
  const hourMs = 3_600_000

  interface Item {
    id: number
    imported_at?: string
  }

  /** One reading over these items, twenty a page, to its end. */
  function read(
    state: FeedState,
    items: readonly Item[],
  ): { state: FeedState; first: string | null } {
    let walk = tailScan(tenant, state)
    const first = walk.cursor
    for (let isEnd = false; !isEnd;) {
      const start = Number(walk.cursor ?? 0)
      const next = start + 20 < items.length ? String(start + 20) : null
      const page = { items: items.slice(start, start + 20), next }
      const moved = advance(walk, page)
      isEnd = moved.isCaughtUp
      walk = { ...moved.scan, notes: order.note(walk, page, { isEnd, limitMs }) }
    }
    return { state: { ...state, scan: walk, isEnded: true, isBackfilling: false }, first }
  }

  const many = Array.from({ length: 50 }, (_, i) => i)
  const at = (ms: number): string => new Date(nowMs + ms).toISOString()
  const shuffledIds = many.map((i) => (i * 17) % 50)

  test.each([
    ['ids that grow', many.map((id) => ({ id }))],
    [
      'import times that grow, whatever the ids',
      shuffledIds.map((id, i) => ({ id, imported_at: at(i - (i % 3)) })),
    ],
  ])('are resumed after a whole reading showed %s', (_what, items) => {
    const { state } = read(opened, items)
    expect(read(state, items).first).toBe('40')
  })

  test.each([
    ['neither ids nor times grow', shuffledIds.map((id) => ({ id, imported_at: at(-id) }))],
    [
      'ids do not grow and all have one time',
      shuffledIds.map((id) => ({ id, imported_at: at(0) })),
    ],
    ['ids do not grow and there is no time', shuffledIds.map((id) => ({ id }))],
    [
      'times go back within a page',
      shuffledIds.map((id, i) => ({ id, imported_at: at(i % 2 === 0 ? i + 1 : i - 1) })),
    ],
    [
      'times go back from one page to the next',
      shuffledIds.map((id, i) => ({ id, imported_at: at((i % 20) - 100 * Math.floor(i / 20)) })),
    ],
    [
      'times grow beyond now, where what comes next is passed by',
      shuffledIds.map((id, i) => ({ id, imported_at: at(i < 49 ? i : 14 * hourMs) })),
    ],
    ['the newest come first', many.map((i) => ({ id: 99 - i, imported_at: at(-i) }))],
  ])('are read from the start to a known page where %s', (_what, items) => {
    const { state } = read(opened, items)
    expect(read(state, items).first).toBeNull()
    expect(order.endsWhenKnown(state.scan!)).toBe(true)
  })

  test('that came in two batches prove no order: each poll reads all', () => {
    const items = shuffledIds.map((id, i) => ({ id, imported_at: at(i < 30 ? 1 : 2) }))
    const { state } = read(opened, items)
    expect(read(state, items).first).toBeNull()
    expect(order.endsWhenKnown(state.scan!)).toBe(false)
  })

  test('that stop growing are read from the start again', () => {
    const proven = read(
      opened,
      many.map((id) => ({ id })),
    )
    const broken = read(
      proven.state,
      [...many, 99, 98].map((id) => ({ id })),
    )
    expect(broken.first).toBe('40')
    expect(read(broken.state, []).first).toBeNull()
  })
})
