/** What a fetched page means: where its walk stands, and how people hear of what it shows. */
import { describe, expect, test } from 'vitest'
import type { PolledFeed } from '../../../src/feeds/types/polled-feed.ts'
import type { FetchedPage } from '../../../src/feeds/fetch.ts'
import { buildPage } from '../../../src/feeds/parse.ts'
import type { PollerOptions, PollRun } from '../../../src/feeds/poll-run.ts'
import type { RescanNotes, RescanPlace } from '../../../src/feeds/rescan.ts'
import { beginRescan, tailScan } from '../../../src/feeds/scan.ts'
import type { FeedState, Scan } from '../../../src/store/feed-state.ts'
import { aCredentialFeed, aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const feed = aFeed({ labels: { team: 'red' } })
const begun = aFeedState({ nowMs: nowMs - dayMs, startBoundMs: nowMs - dayMs })
const tail: Scan = { ...tailScan(feed, begun), cursor: 'c1' }

function rescanOf(notes: Partial<RescanNotes>): Scan {
  const span = { fromMs: nowMs - 2 * dayMs, toMs: nowMs - dayMs }
  const known = { kind: 'rung', lateBeforeMs: nowMs - hourMs, ...notes }
  return { ...beginRescan(feed, aFeedState({ nowMs }), { span, notes: known }), cursor: 'c1' }
}

let uids = 0

function item(agoMs = hourMs): unknown {
  uids += 1
  const [at, later] = [nowMs - agoMs, nowMs - agoMs + 1].map((ms) => new Date(ms).toISOString())
  return {
    metadata: { uid: `paste/x/${uids}`, estimated_created_at: at, matched_at: later },
  }
}

const items = (count: number): unknown[] => Array.from({ length: count }, () => item())

interface Shown {
  of?: PolledFeed
  scan?: Scan
  place?: RescanPlace
  state?: Partial<FeedState>
  skipped?: FetchedPage['skipped']
  requestedAtMs?: number
  /** How far the service's clock is ahead. */
  skewMs?: number
}

/** A page of a feed that was read to its end before, unless `state` says otherwise. */
function shown(page: { items: unknown[]; next?: string | null }, given: Shown = {}) {
  const { of = feed, scan: walk = tail, place, skipped: passed = [] } = given
  const told: { isBacklog: boolean; isFresh: boolean }[] = []
  const options = {
    clock: { now: () => nowMs },
    generation: () => 3,
    plan: (_event: unknown, _feed: unknown, about: (typeof told)[number]) => {
      told.push(about)
      return { decisions: [], items: [] }
    },
  } as unknown as PollerOptions
  const state = aFeedState({
    nowMs,
    scan: tail,
    sequence: 5,
    recent: { ...aFeedState({ nowMs }).recent, sequence: 8 },
    lastCaughtUpMs: nowMs - hourMs,
    newestMs: nowMs - hourMs,
    ...given.state,
  })
  const { requestedAtMs = nowMs } = given
  const fetched = {
    page: { next: null, ...page },
    requestedAtMs,
    scan: walk,
    skipped: passed,
  } as FetchedPage
  const account = { client: { clockSkewMs: () => given.skewMs } }
  const asked = { feed: of, account, refusals: { count: 0 } } as unknown as PollRun
  return { ...buildPage(options, asked, { state, fetched, aheadMs: 250, place }), told }
}

test('a page says whose it is, behind which fence, and when it was asked for by the clock of Redis', () => {
  expect(shown({ items: [] }).page).toMatchObject({
    feed: 'brand',
    labels: { team: 'red' },
    sequence: 5,
    generation: 3,
    requestedAtMs: nowMs + 250,
    rescan: undefined,
  })
  const { page } = shown({ items: [] }, { scan: rescanOf({}), place: 'recent' })
  expect(page).toMatchObject({
    sequence: 8,
    rescan: { place: 'recent', lateBeforeMs: nowMs - hourMs, isSnapshot: false },
  })
  expect(page.rescan?.fieldsAtEnd).toContainEqual(['per_week', '0'])
})

describe('the walk', () => {
  test.each([
    ['goes on', { items: items(10), next: 'c2' }, { isCaughtUp: false, hasMore: true }],
    ['ends without a cursor', { items: items(10) }, { isCaughtUp: true, hasMore: false }],
    [
      'stands, where it ends once all is known',
      { items: items(10), next: 'c1' },
      { isCaughtUp: false, hasMore: false, endsWhenKnown: true },
    ],
    [
      'ends where it stands over nothing',
      { items: [], next: 'c1' },
      { isCaughtUp: true, hasMore: false, endsWhenKnown: true },
    ],
  ])('%s', (_how, given, expected) => {
    const { page, hasMore } = shown(given)
    expect({ ...page, hasMore }).toMatchObject({ endsWhenKnown: false, ...expected })
  })

  test('of a rescan that stands still is over: it is not asked again and again', () => {
    const given = { scan: rescanOf({}), place: 'recent' } as const
    expect(shown({ items: items(10), next: 'c1' }, given)).toMatchObject({
      page: { isCaughtUp: true },
      hasMore: false,
    })
    expect(shown({ items: items(10), next: 'c2' }, given).page.isCaughtUp).toBe(false)
  })

  test('of a rescan counts what it was shown', () => {
    const given = { scan: rescanOf({ fetched: 7 }), place: 'recent' } as const
    const counted = shown({ items: items(4) }, given).page.scan.notes
    expect(counted).toMatchObject({ fetched: 11, pages: 1 })
    const { fetched: _none, ...first } = rescanOf({}).notes as Record<string, unknown>
    const unread = { ...given, scan: { ...rescanOf({}), notes: first } }
    expect(shown({ items: items(4) }, unread).page.scan.notes).toMatchObject({ fetched: 4 })
    expect(shown({ items: items(4) }).page.scan).not.toHaveProperty('notes')
  })
})

describe('a page that ends with what is dated ahead of now', () => {
  const ahead = { items: [...items(9), item(-hourMs)], next: 'c2' }
  const beyond: Scan = { ...tail, cursor: 'c2', held: { cursor: 'c1', limitMs: nowMs } }

  test('ends the tail, whose next page is the one beyond', () => {
    expect(shown(ahead)).toMatchObject({
      page: { isCaughtUp: true, isBeyond: false, scan: beyondOf('c1', 'c2') },
      hasMore: true,
    })
  })

  test('ends the poll until what lies beyond is asked for again: a page of it has failed', () => {
    const retry = { waitMs: 60_000, atMs: nowMs + 1 }
    const scan: Scan = { ...tail, beyond: { places: [], retry } }
    const { page, hasMore } = shown(ahead, { scan })
    expect({ ...page, hasMore }).toMatchObject({ isCaughtUp: true, hasMore: false })
    expect(page.scan).toEqual(scan)
    const first = shown(ahead, { scan, state: { isBackfilling: true } })
    expect(first.page).toMatchObject({ isCaughtUp: true, isBackfilling: false })
    expect(shown({ items: items(10), next: 'c2' }, { scan }).hasMore).toBe(true)
    expect(shown(ahead, { scan, skewMs: 1 }).hasMore).toBe(true)
  })

  test('is judged by the clock of the service, whatever ours says', () => {
    expect(shown(ahead, { skewMs: hourMs }).page.scan.cursor).toBe('c2')
    expect(shown(ahead, { skewMs: hourMs }).page.scan).not.toHaveProperty('held')
    const early = { items: items(10), next: 'c2' } // by our clock an hour ago
    expect(shown(early, { skewMs: -2 * hourMs }).page.scan).toMatchObject(beyondOf('c1', 'c2'))
    expect(shown(early, { skewMs: -2 * hourMs }).page.limitMs).toBe(nowMs - 2 * hourMs + 10_000)
  })

  test('goes on to the end of all in a first scan, whose backlog is one', () => {
    const given = { state: { isBackfilling: true } }
    expect(shown(ahead, given).page).toMatchObject({ isCaughtUp: false, isBackfilling: true })
    const { page, told } = shown({ items: [item(-hourMs)] }, { ...given, scan: beyond })
    expect(page).toMatchObject({ isCaughtUp: true, isBeyond: false, isBackfilling: false })
    expect(told).toEqual([{ isBacklog: true, isFresh: false }])
  })

  test('is followed by pages that say nothing of the tail, and end the poll once all is known', () => {
    const { page } = shown({ items: [item(-hourMs)], next: 'c3' }, { scan: beyond })
    expect(page).toMatchObject({ isBeyond: true, isCaughtUp: false, endsWhenKnown: true })
    expect(page.scan).toMatchObject({ cursor: 'c1', beyond: { places: [{ cursor: 'c3' }] } })
  })

  test('is followed to the end at once where the end has moved, though all of its page is known', () => {
    const scan = { ...beyond, held: { cursor: 'c1' } }
    const { page, hasMore } = shown({ items: [item(-hourMs)], next: 'c3' }, { scan })
    expect({ ...page, hasMore }).toMatchObject({ endsWhenKnown: false, hasMore: true })
  })

  test('is nothing to a rescan, or to a feed in no order', () => {
    const rescan = shown(ahead, { scan: rescanOf({}), place: 'recent' })
    expect(rescan.page.scan.cursor).toBe('c2')
    const ids = { items: [{ id: 5, imported_at: new Date(nowMs + hourMs).toISOString() }] }
    const credentials = shown({ ...ids, next: 'c2' }, { of: aCredentialFeed() })
    expect(credentials.page.scan.cursor).toBe('c2')
  })

  function beyondOf(cursor: string, next: string): Partial<Scan> {
    return { cursor: next, held: { cursor, limitMs: expect.any(Number) as number } }
  }
})

describe('a feed in no order', () => {
  const of = aCredentialFeed()
  const walk = { ...tailScan(of, begun), cursor: 'c1' }
  const known = { hasCompleted: true, isAtEnd: false, end: 'c9' }

  test('ends by its own rule once all of a page is known, and keeps notes', () => {
    const page = { items: [{ id: 1 }], next: 'c2' }
    expect(shown(page, { of, scan: walk }).page).toMatchObject({
      endsWhenKnown: false,
      scan: { notes: { isAtEnd: false } },
    })
    expect(shown(page, { of, scan: { ...walk, notes: known } }).page.endsWhenKnown).toBe(true)
  })
})

describe('how people hear of an event', () => {
  const old = [item(8 * dayMs)] // older than the window that is read again
  const anew = { ...tail, behind: { id: 'b', fromMs: 0, toMs: 1 } }

  test.each([
    ['of the tail, on its way', items(1), {}, [false, true]],
    ['of the first walk', items(1), { state: { isBackfilling: true } }, [true, false]],
    ['of the very first page', items(1), { state: { scan: undefined } }, [true, false]],
    [
      'of a rewound feed that nothing reads again',
      items(1),
      { of: aFeed({ rescan: undefined }), state: { isRewound: true } },
      [true, false],
    ],
    ['of a rewound feed', items(1), { state: { isRewound: true } }, [false, true]],
    ['of a rescan', items(1), { scan: rescanOf({}), place: 'recent' }, [false, false]],
    [
      'that a new tail left behind it',
      items(1),
      { scan: rescanOf({ kind: 'snapshot', isBacklog: true }), place: 'whole' },
      [true, false],
    ],
    ['that was matched late', old, { state: { startBoundMs: 0 } }, [true, true]],
    [
      'as old as the window is long',
      [item(7 * dayMs - 250)],
      { state: { startBoundMs: 0 } },
      [false, true],
    ],
    [
      'of a feed that is not read again',
      old,
      { of: aFeed({ rescan: undefined }), state: { startBoundMs: 0 } },
      [false, true],
    ],
    [
      'of a feed without a window',
      old,
      { of: aFeed({ rescan: { everyMs: 1, backMs: 0 } }), state: { startBoundMs: 0 } },
      [false, true],
    ],
    [
      'of a feed whose backlog is sent',
      items(1),
      { of: aFeed({ initialPoll: 'send' }), state: { isBackfilling: true } },
      [false, false],
    ],
    ['of a tail that began anew', items(1), { scan: anew, state: { scan: anew } }, [false, true]],
  ] satisfies [string, unknown[], Shown, boolean[]][])(
    '%s',
    (_what, given, about, [isBacklog, isFresh]) => {
      expect(shown({ items: given }, about).told).toEqual([{ isBacklog, isFresh }])
    },
  )

  test('a first walk goes on until its end', () => {
    const given = { state: { isBackfilling: true } }
    expect(shown({ items: items(10), next: 'c2' }, given).page.isBackfilling).toBe(true)
    expect(shown({ items: items(10) }, given).page.isBackfilling).toBe(false)
    expect(shown({ items: items(10), next: 'c2' }).page.isBackfilling).toBe(false)
  })
})

describe('what stood below the start bound', () => {
  const below = { items: [item(2 * dayMs)] }
  const behind = { id: 'b1', fromMs: 0, toMs: 1 }
  const read = { ...aFeedState({ nowMs }).rescans, snapshotId: 'b1' }
  const left = { ...tail, behind }

  test.each([
    ['is learned while nothing reads what lies behind', {}, true],
    ['is learned until that is read', { scan: left, state: { scan: left } }, true],
    ['is new afterwards', { scan: left, state: { scan: left, rescans: read } }, false],
    [
      'is new to a rescan afterwards too',
      { scan: rescanOf({}), place: 'recent', state: { scan: left, rescans: read } },
      false,
    ],
    [
      'is learned by a tail with another request',
      { scan: { ...tail, fingerprint: 'other' }, state: { scan: left, rescans: read } },
      true,
    ],
    [
      'is new by match time, however old it is',
      { scan: rescanOf({ kind: 'matched' }), place: 'recent' },
      false,
    ],
  ] satisfies [string, Shown, boolean][])('%s', (_what, given, isBaseline) => {
    const [event] = shown(below, given).page.events
    expect(event?.isBaseline).toBe(isBaseline)
  })
})

test('a page that was passed by stands first among what cannot be read, without its secrets', () => {
  const request = { size: 1, password: 'hunter22', from: 'c1' }
  const passed = [{ request, problem: 'a page was not read: too large' }]
  const { malformed } = shown({ items: [{}] }, { skipped: passed }).page
  expect(malformed).toHaveLength(2)
  expect(malformed[0]).toEqual({
    uid: null,
    problem: 'a page was not read: too large',
    raw: '{"from":"c1","password":"h••••2","size":1}',
  })
})
