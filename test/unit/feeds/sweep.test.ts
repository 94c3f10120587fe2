import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lateBeforeMs, sweepDueMs, sweepFor, walkFor } from '../../../src/feeds/walk.ts'
import { walkAfterRefusal, walkInSmallerPages } from '../../../src/feeds/walk.ts'
import type { FeedState, Walk } from '../../../src/ledger/feed-state.ts'
import { aCredentialFeed, aCredentialSearch, aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const feed = aFeed({ startMs: 3 * dayMs, sweep: { everyMs: hourMs, backMs: dayMs } })

/** Read to its end just now, never swept. */
function aState(overrides: Partial<FeedState> = {}): FeedState {
  const floorMs = nowMs - 4 * dayMs
  const opened = aFeedState({ nowMs, floorMs })
  const walk = walkFor(feed, opened)
  return { ...opened, walk, isEnded: true, lastCaughtUpMs: nowMs - 1_000, ...overrides }
}

function swept(given: Partial<FeedState['sweep']>): FeedState {
  return aState({ sweep: { ...aState().sweep, ...given } })
}

describe('a sweep', () => {
  test('is not due where the feed has none, was not read to its end, or reads its first pages', () => {
    expect(sweepDueMs(aFeed({ sweep: undefined }), aState())).toBeUndefined()
    for (const state of [
      aFeedState({ nowMs }),
      aState({ lastCaughtUpMs: undefined }),
      aState({ isBackfilling: true }),
      aState({ walk: undefined, isRewound: true }),
    ]) {
      expect(sweepDueMs(feed, state)).toBeUndefined()
      expect(sweepFor(feed, state)).toBeUndefined()
    }
  })

  test('is due one interval after the first poll, then one after the one before began', () => {
    const { floorMs } = aState()
    expect(sweepDueMs(feed, aState())).toBe(floorMs + 3 * dayMs + hourMs)
    const walk = { ...sweepFor(feed, aState())!, startedAtMs: nowMs - 1_800_000 }
    const state = swept({ walk, isDone: true })
    expect(sweepDueMs(feed, state)).toBe(nowMs + 1_800_000)
    expect(sweepFor(feed, state)).toBeUndefined()
    expect(sweepFor(feed, { ...state, nowMs: nowMs + 1_800_000 })).toBeDefined()
  })

  test('reads from its window or the floor, whichever is later, up to now, and keeps the tail’s place', () => {
    const given = fc.record({
      backMs: fc.integer({ min: hourMs, max: 30 * dayMs }),
      ageMs: fc.integer({ min: 3 * dayMs + hourMs, max: 20 * dayMs }),
      newestMs: fc.option(fc.integer({ min: nowMs - dayMs, max: nowMs }), { nil: undefined }),
    })
    fc.assert(
      fc.property(given, ({ backMs, ageMs, newestMs }) => {
        const floorMs = nowMs - ageMs
        const sweeping = aFeed({ ...feed, sweep: { everyMs: hourMs, backMs } })
        const walk = sweepFor(sweeping, aState({ floorMs, newestMs }))!
        expect(walk.span).toEqual({ fromMs: Math.max(floorMs, nowMs - backMs), toMs: nowMs })
        expect(walk).toMatchObject({ cursor: null, reason: 'again', startedAtMs: nowMs })
        expect(lateBeforeMs(walk)).toBe(newestMs)
        expect(lateBeforeMs(JSON.parse(JSON.stringify(walk)) as Walk)).toBe(newestMs)
      }),
    )
  })

  test('goes on as it began until it was read to its end, however long that takes', () => {
    const walk = { ...sweepFor(feed, aState())!, cursor: 'c1', startedAtMs: nowMs - 5 * hourMs }
    expect(sweepFor(feed, swept({ walk }))).toBe(walk)
    expect(sweepFor(feed, swept({ walk, isDone: true }))).not.toBe(walk)
  })

  test('begins anew where the configuration or the floor is another one', () => {
    const walk = { ...sweepFor(feed, aState())!, cursor: 'c1', startedAtMs: nowMs - 2 * hourMs }
    const other = aFeed({ ...feed, filters: { severity: 'low' } })
    expect(sweepFor(other, swept({ walk }))).toMatchObject({ cursor: null, startedAtMs: nowMs })
    const moved = { ...swept({ walk }), floorMs: nowMs - 2 * dayMs }
    expect(sweepFor(feed, moved)).toMatchObject({ cursor: null })
  })
})

describe('a walk in smaller pages', () => {
  const search = aCredentialSearch({ sweep: { everyMs: hourMs, backMs: dayMs } })

  test('takes the next size each time, and there is an end to it', () => {
    const sizes: unknown[] = []
    let walk: Walk | undefined = walkFor(search, aFeedState({ nowMs }))
    while (walk) {
      sizes.push(walk.body['size'])
      walk = walkInSmallerPages(search, aFeedState({ nowMs }), walk)
    }
    expect(sizes).toEqual([100, 50, 25, 10])
    for (const other of [feed, aCredentialFeed()]) {
      const state = aFeedState({ nowMs })
      expect(walkInSmallerPages(other, state, walkFor(other, state))).toBeUndefined()
    }
  })

  test('begins with overlap behind what was taken in; of a sweep it reads the same window', () => {
    const walk = { ...walkFor(search, aFeedState({ nowMs })), cursor: 'c1' }
    const state = aFeedState({ nowMs, floorMs: nowMs - 9 * dayMs, walk, newestMs: nowMs - hourMs })
    expect(walkInSmallerPages(search, state, walk)).toMatchObject({
      cursor: null,
      reason: 'page_size_changed',
      span: { fromMs: nowMs - hourMs - dayMs },
    })
    const ended = { ...state, lastCaughtUpMs: nowMs, isEnded: true }
    const sweep = { ...sweepFor(search, ended)!, cursor: 'c1' }
    const later = { ...ended, nowMs: nowMs + hourMs, newestMs: nowMs + hourMs }
    const smaller = walkInSmallerPages(search, later, sweep)!
    expect(smaller).toMatchObject({ cursor: null, span: sweep.span, notes: sweep.notes })
    expect(smaller.body).toEqual({ ...sweep.body, size: 50 })
  })

  test('stays small after a refused cursor and for a day; then the usual size is tried again', () => {
    const first = walkFor(search, aFeedState({ nowMs }))
    const small = walkInSmallerPages(search, aFeedState({ nowMs }), first)!
    const state = aFeedState({ nowMs, walk: { ...small, cursor: 'c1' }, isEnded: true })
    expect(walkAfterRefusal(search, state).body['size']).toBe(50)
    expect(walkFor(search, { ...state, nowMs: nowMs + dayMs - 1 })).toBe(state.walk)
    const tried = walkFor(search, { ...state, nowMs: nowMs + dayMs })
    expect(tried).toMatchObject({ cursor: null, reason: 'again' })
    expect(tried.body['size']).toBe(100)
    const running = { ...state, isEnded: false, nowMs: nowMs + dayMs }
    expect(walkFor(search, running)).toBe(state.walk)
  })
})
