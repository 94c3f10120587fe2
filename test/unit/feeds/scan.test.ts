import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { EventsFeedConfig } from '../../../src/feeds/types/config.ts'
import {
  advance,
  scanFingerprint,
  isLooping,
  overlapMs,
  restartAfterRefusal,
  tailScan,
} from '../../../src/feeds/scan.ts'
import { bodyWithCursor } from '../../../src/feeds/types/feed-type.ts'
import type { GroupSearchBody } from '../../../src/upstream/resources/events.ts'
import type { FeedState, Scan } from '../../../src/store/feed-state.ts'
import {
  aCredentialFeed,
  aCredentialSearch,
  aFeed,
  aFeedState,
  anEventSearch,
  anIdentifierFeed,
  aTenantCredentialFeed,
  aTenantFeed,
} from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)

function aState(overrides: Partial<FeedState> = {}): FeedState {
  return aFeedState({ nowMs, ...overrides })
}

function beginOf(walk: Scan): number {
  return Date.parse(bodyWithCursor<GroupSearchBody>(walk).filters?.estimated_created_at?.gte ?? '')
}

const next = fc.option(fc.constantFrom('', 'c1', 'c2', 'c3'), { nil: null })
const page = fc.record(
  { items: fc.array(fc.constant({}), { maxLength: 10 }), next },
  { requiredKeys: ['items'] },
)
const filters: fc.Arbitrary<EventsFeedConfig['filters']> = fc.record(
  {
    severity: fc.constantFrom('high', 'low'),
    type: fc.array(fc.constantFrom('leak', 'paste'), { maxLength: 2 }),
    is_ignored: fc.boolean(),
  },
  { requiredKeys: [] },
)

describe('a walk', () => {
  test('keeps its request, whatever the pages say; only the cursor moves, and never back to none', () => {
    fc.assert(
      fc.property(fc.array(page), (pages) => {
        const first = tailScan(aFeed(), aState())
        let walk = first
        for (const shown of pages) {
          const moved = advance(walk, shown).scan
          const { passed: _passed, ...kept } = moved
          expect({ ...kept, cursor: null }).toEqual({ ...first, cursor: null })
          expect(moved.cursor).toBe(shown.next ? shown.next : walk.cursor)
          const { from, ...body } = bodyWithCursor<GroupSearchBody>(moved)
          expect(body).toEqual(bodyWithCursor<GroupSearchBody>(first))
          expect(from ?? null).toBe(moved.cursor)
          walk = moved
        }
      }),
    )
  })

  test('ends where next is null, absent or empty, and not at a short or an empty page', () => {
    fc.assert(
      fc.property(page, fc.option(fc.constantFrom('c1', 'c4'), { nil: null }), (shown, cursor) => {
        const walk = { ...tailScan(aFeed(), aState()), cursor }
        const { isCaughtUp, hasMore, stands } = advance(walk, shown)
        const repeats = Boolean(shown.next) && shown.next === cursor
        expect(stands).toBe(repeats)
        expect(isCaughtUp).toBe(!shown.next || (repeats && shown.items.length === 0))
        expect(hasMore).toBe(Boolean(shown.next) && !repeats)
      }),
    )
  })

  test('goes on after a restart as it was stored', () => {
    fc.assert(
      fc.property(filters, (given) => {
        const feed = aFeed({ filters: given })
        const walk = { ...tailScan(feed, aState()), cursor: 'c1' }
        const stored = JSON.parse(JSON.stringify(walk)) as Scan
        expect(tailScan(feed, aState({ scan: stored }))).toBe(stored)
        expect(JSON.stringify(bodyWithCursor<GroupSearchBody>(stored))).toBe(
          JSON.stringify(bodyWithCursor<GroupSearchBody>(walk)),
        )
      }),
    )
  })
})

describe('a new walk', () => {
  test('begins at the floor on the first poll and after a rewind', () => {
    const first = tailScan(aFeed(), aState())
    expect(first).toMatchObject({ cursor: null, reason: 'first' })
    expect(beginOf(first)).toBe(nowMs - 86_400_000)
    expect(tailScan(aFeed(), aState({ isRewound: true })).reason).toBe('rewound')
  })

  test('never reaches below the floor nor starts behind the overlap of what was taken in', () => {
    const times = fc.record({
      startBoundMs: fc.integer({ min: nowMs - 1e10, max: nowMs }),
      newestMs: fc.option(fc.integer({ min: 0, max: nowMs + 1e10 }), { nil: undefined }),
    })
    fc.assert(
      fc.property(times, fc.boolean(), (given, isRefused) => {
        const walk = { ...tailScan(aFeed(), aState(given)), cursor: 'c1' }
        const state = aState({ ...given, scan: walk })
        const other = aFeed({ filters: { severity: 'low' } })
        const fresh = isRefused ? restartAfterRefusal(aFeed(), state) : tailScan(other, state)
        expect(fresh.cursor).toBeNull()
        expect(fresh.reason).toBe(isRefused ? 'cursor_refused' : 'configuration_changed')
        expect(beginOf(fresh)).toBeGreaterThanOrEqual(given.startBoundMs)
        const highWater = Math.min(given.newestMs ?? given.startBoundMs, nowMs)
        expect(beginOf(fresh)).toBeLessThanOrEqual(
          Math.max(given.startBoundMs, highWater - overlapMs),
        )
      }),
    )
  })
})

test('each page is as large as its operation gives: smaller ones take more of the limit on requests', () => {
  const sizes = [
    aFeed(),
    aTenantFeed(),
    anIdentifierFeed(),
    anEventSearch(),
    aCredentialFeed(),
    aTenantCredentialFeed(),
    aCredentialSearch(),
  ].map((feed) => tailScan(feed, aState()).body['size'])
  expect(sizes).toEqual([10, 10, 10, 10, 20, 20, 100])
})

describe('the fingerprint', () => {
  test('changes with what is asked and with the floor', () => {
    const base = scanFingerprint(aFeed(), 1)
    const others = [
      scanFingerprint(aFeed(), 2),
      scanFingerprint(aFeed({ identifierGroup: 7 }), 1),
      scanFingerprint(aFeed({ account: 'other' }), 1),
      scanFingerprint(aFeed({ scope: 'https://api.example.com 43' }), 1),
      scanFingerprint(aFeed({ filters: { severity: ['high'] } }), 1),
      scanFingerprint(aFeed({ filters: { severity: ['critical'] } }), 1),
    ]
    expect(new Set([base, ...others]).size).toBe(others.length + 1)
    expect(base).toMatch(/^[\da-f]{16}$/u) // with another length each feed would begin anew after an upgrade
  })

  test('stays when only the rhythm, the labels or the order of the filters change', () => {
    const base = aFeed({ filters: { severity: 'high', is_ignored: false } })
    const same = aFeed({
      filters: { is_ignored: false, severity: 'high' },
      longestMs: 5_000,
      labels: { team: 'x' },
      detail: ['high'],
    })
    expect(scanFingerprint(same, 1)).toBe(scanFingerprint(base, 1))
  })
})

test('after its end a walk goes on at its cursor, and asks for nothing twice', () => {
  const feed = aFeed()
  const walk = { ...tailScan(feed, aState()), cursor: 'c1' }
  const later = { ...aState({ scan: walk, isEnded: true }), nowMs: nowMs + 3_600_000 }
  expect(tailScan(feed, later)).toMatchObject({ cursor: 'c1', body: walk.body })
})

/** So many pages are read of a feed whose cursors go round, `length` of them, before that is noticed. */
function pagesUntilNoticed(length: number): number {
  let walk = tailScan(aFeed(), aState())
  let pages = 0
  for (; !isLooping(walk) && pages < 2_000; pages += 1)
    walk = advance(walk, { next: `c${pages % length}`, items: [{}] }).scan
  return pages
}

test('cursors that go round are noticed within three times their number, and no others', () => {
  const lengths = [2, 3, 5, 10, 50, 100, 300]
  const pages = lengths.map(pagesUntilNoticed)
  expect(pages).toEqual([3, 6, 12, 25, 113, 227, 811])
  for (const [at, length] of lengths.entries()) expect(pages[at]).toBeLessThanOrEqual(3 * length)
  expect(pagesUntilNoticed(Infinity)).toBe(2_000)
})

describe('a longer time that is read again than before', () => {
  const dayMs = 86_400_000
  const back = (backMs: number) => aFeed({ rescan: { everyMs: undefined, backMs } })
  const floorMs = nowMs - 3 * dayMs
  const first = tailScan(back(dayMs), aState({ startBoundMs: floorMs }))
  const walkWith = (backMs: number, given: Partial<FeedState>) =>
    tailScan(back(backMs), aState({ startBoundMs: floorMs, scan: first, ...given }))

  test('leaves what it newly covers to a rescan, and the tail where it is', () => {
    expect(walkWith(5 * dayMs, {})).toEqual({
      ...first,
      behind: { id: String(nowMs), fromMs: nowMs - 5 * dayMs, toMs: floorMs },
    })
    expect(walkWith(3 * dayMs + overlapMs, {})).toBe(first)
    expect(walkWith(3 * dayMs + overlapMs + 1, {})).not.toBe(first)
  })

  test('does not leave out what was still to be read', () => {
    const behind = { id: 'b', fromMs: nowMs - 4 * dayMs, toMs: nowMs - dayMs }
    const walk = { ...first, behind }
    expect(walkWith(5 * dayMs, { scan: walk }).behind).toMatchObject({ toMs: nowMs - dayMs })
    const rescans = { ...aState().rescans, snapshotId: 'b' }
    expect(walkWith(5 * dayMs, { scan: walk, rescans }).behind).toMatchObject({
      toMs: nowMs - 4 * dayMs,
    })
  })
})

test('a walk that is not at its end goes on at its cursor, also where the service keeps no order', () => {
  for (const feed of [aFeed(), aCredentialFeed(), aTenantCredentialFeed()]) {
    const walk = { ...tailScan(feed, aState()), cursor: 'c1' }
    expect(tailScan(feed, aState({ scan: walk }))).toBe(walk)
  }
})
