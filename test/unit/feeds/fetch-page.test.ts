/** What is asked for after a request that failed, and against which limit each request counts. */
import { callBy } from '../../support/call.ts'
import { describe, expect, test } from 'vitest'
import type { PolledFeed } from '../../../src/feeds/types/polled-feed.ts'
import { findFeedType } from '../../../src/feeds/types/feed-types.ts'
import { type FetchedPage, fetchPage } from '../../../src/feeds/fetch.ts'
import type { PolledAccount, PollerOptions, PollRun } from '../../../src/feeds/poll-run.ts'
import type { RescanPlace } from '../../../src/feeds/rescan.ts'
import { beginRescan, tailScan } from '../../../src/feeds/scan.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import type { FeedState, Scan } from '../../../src/store/feed-state.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { UpstreamError, type UpstreamReason } from '../../../src/upstream/error.ts'
import { scraped } from '../../support/feed-rig.ts'
import {
  aCookieFeed,
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
const dayMs = 86_400_000
const feed = aFeed()

function failure(reason: UpstreamReason, given: { status?: number; fault?: 'too_large' } = {}) {
  return new UpstreamError(reason, `it failed: ${reason}`, given)
}

const refusal = failure('rejected', { status: 400 })
const tooLarge = failure('contract', { fault: 'too_large' })

interface Asked {
  from: string | undefined
  size: number
}

/** A service that fails so, one error after the other, and then has an empty page. */
async function fetchWith(
  errors: readonly unknown[],
  given: {
    of?: PolledFeed
    scan: Scan
    place?: RescanPlace
    state?: Partial<FeedState>
    isAborted?: boolean
    /** Cursors that were refused in this turn before. */
    refused?: number
  },
) {
  const { of = feed, scan: walk, place } = given
  const asked: Asked[] = []
  const left = [...errors]
  const aborting = new AbortController()
  const search = (_name: string, body: Asked): Promise<unknown> => {
    asked.push({ from: body.from, size: body.size })
    if (given.isAborted) aborting.abort()
    if (left.length > 0) return Promise.reject(left.shift() as Error)
    return Promise.resolve({ page: { items: [], next: null }, requestedAtMs: nowMs })
  }
  const lines: string[] = []
  const write = (line: string): void => void lines.push(line)
  const metrics = createMetrics({ clock: systemClock })
  const options = {
    clock: systemClock,
    logger: createLogger({ destination: { write } }),
    metrics,
  } as unknown as PollerOptions
  const turn: PollRun = {
    feed: of,
    account: { client: { call: callBy(search), clockSkewMs: () => 0 } } as unknown as PolledAccount,
    kind: place ? 'rescan' : 'feed',
    signal: aborting.signal,
    dueSinceMs: nowMs,
    refusals: { count: given.refused ?? 0 },
  }
  const scan = place && { [place]: { ...aFeedState({ nowMs }).whole, scan: walk } }
  const state = aFeedState({ nowMs, scan: walk, newestMs: nowMs, ...scan, ...given.state })
  const fetched = await fetchPage(options, turn, state, { scan: walk, place }).catch(
    (error: unknown) => error,
  )
  return { asked, fetched: fetched as FetchedPage, lines, metrics }
}

const tail: Scan = { ...tailScan(feed, aFeedState({ nowMs: nowMs - dayMs })), cursor: 'c1' }
const rescan: Scan = {
  ...beginRescan(feed, aFeedState({ nowMs }), {
    span: { fromMs: nowMs - dayMs, toMs: nowMs },
    notes: { kind: 'rung', rung: 1, lateBeforeMs: null },
  }),
  cursor: 'c1',
}

describe('a page of what is dated ahead of now', () => {
  const beyond: Scan = { ...tail, cursor: 'c9', held: { cursor: 'c1', limitMs: nowMs } }

  test.each([
    ['is refused', refusal],
    ['comes too late', failure('timeout')],
    ['is nonsense', failure('contract')],
  ])(
    'that %s is left and told, fails no poll of the tail, and the tail asked at once',
    async (_how, error) => {
      const { asked, fetched, lines, metrics } = await fetchWith([error], { scan: beyond })
      expect(asked.map(({ from }) => from)).toEqual(['c9', 'c1'])
      const { beyond: left, ...itself } = fetched.scan
      expect(itself).toEqual(tail)
      expect(left).toMatchObject({ places: [], retry: { waitMs: 60_000 } })
      expect(lines.join()).toContain('a page of what is dated ahead of now was not read')
      const failed = `feed_polls_failed_total{feed="brand",reason="${error.reason}"}`
      expect((await scraped(metrics, failed)) ?? 0).toBe(0)
    },
  )

  test('that is too large is read in small pages, and where one item is too much, noted', async () => {
    const shrunk = await fetchWith([tooLarge], { scan: beyond })
    expect(shrunk.asked.map(({ from, size }) => [from, size])).toEqual([
      ['c9', 10],
      ['c9', 1],
    ])
    const { asked, fetched } = await fetchWith([tooLarge, tooLarge], { scan: beyond })
    expect(asked.map(({ from }) => from)).toEqual(['c9', 'c9', 'c1'])
    expect(fetched.skipped).toMatchObject([{ request: { from: 'c9' } }])
  })

  test('fails the poll where any other request would fail, too', async () => {
    const error = failure('rate_limited', { status: 429 })
    const { asked, fetched } = await fetchWith([error], { scan: beyond })
    expect(asked).toHaveLength(1)
    expect(fetched).toBe(error)
  })
})

describe('a cursor that the service refuses', () => {
  test.each([
    ['with a status that refuses requests', refusal],
    ['as one that leads round in a circle', failure('invalid')],
  ])('%s is followed by a walk without it', async (_how, error) => {
    const { asked, fetched, lines, metrics } = await fetchWith([error], { scan: tail })
    expect(asked.map(({ from }) => from)).toEqual(['c1', undefined])
    expect(fetched).toMatchObject({ scan: { reason: 'cursor_refused', cursor: null }, skipped: [] })
    expect(fetched.scan.span?.fromMs).toBe(nowMs - 600_000)
    expect(lines.join()).toContain('a new scan begins; what lies behind it is read again')
    const resets = 'feed_cursor_resets_total{feed="brand",reason="cursor_refused"}'
    expect(await scraped(metrics, resets)).toBe(1)
  })

  test('ends the turn after three: such a service takes none of its cursors', async () => {
    expect((await fetchWith([refusal], { scan: tail, refused: 2 })).asked).toHaveLength(2)
    const { asked, fetched } = await fetchWith([refusal], { scan: tail, refused: 3 })
    expect(asked).toHaveLength(1)
    expect(fetched).toBe(refusal)
  })

  test('is left by a rescan, which reads its window again in the same request', async () => {
    const small = { usual: 10, left: 4 }
    const walk = { ...rescan, small, body: { ...rescan.body, size: 1 } }
    const { asked, fetched } = await fetchWith([refusal], { scan: walk, place: 'recent' })
    expect(asked).toEqual([
      { from: 'c1', size: 1 },
      { from: undefined, size: 1 },
    ])
    expect(fetched.scan).toMatchObject({ span: rescan.span, notes: rescan.notes })
    expect(fetched.scan).not.toHaveProperty('small')
  })
})

test.each([
  ['a request without a cursor', refusal, { ...tail, cursor: null }],
  ['a service that is down', failure('unavailable', { status: 503 }), tail],
  ['a key that is refused', failure('auth', { status: 403 }), tail],
  ['a limit', failure('rate_limited', { status: 429 }), tail],
  ['an answer that makes no sense', failure('contract'), tail],
  ['a gateway that gives up on ten items', failure('unavailable', { status: 504 }), tail],
  ['a mistake in the program', new TypeError('no'), tail],
])('%s ends the turn: another request would fare no better', async (_what, error, walk) => {
  const { asked, fetched } = await fetchWith([error], { scan: walk })
  expect(asked).toHaveLength(1)
  expect(fetched).toBe(error)
})

test('after a stop nothing more is asked', async () => {
  const { asked, fetched } = await fetchWith([refusal], { scan: tail, isAborted: true })
  expect(asked).toHaveLength(1)
  expect(fetched).toBe(refusal)
})

test.each([failure('unavailable', { status: 504 }), failure('timeout')])(
  'a large page that comes too late is asked for in tenths: %s',
  async (error) => {
    const of = aCredentialSearch()
    const { asked, fetched } = await fetchWith([error], {
      of,
      scan: { ...tailScan(of, aFeedState({ nowMs })), cursor: 'c1' },
    })
    expect(asked).toEqual([
      { from: 'c1', size: 100 },
      { from: 'c1', size: 10 },
    ])
    expect(fetched.scan.small).toEqual({ usual: 100, left: 10 })
  },
)

describe('a page that is too large', () => {
  test('is asked for item by item at the same cursor, and is no new walk', async () => {
    const { asked, fetched, lines } = await fetchWith([tooLarge], { scan: tail })
    expect(asked).toEqual([
      { from: 'c1', size: 10 },
      { from: 'c1', size: 1 },
    ])
    expect(fetched).toMatchObject({ scan: { small: { usual: 10, left: 10 } }, skipped: [] })
    expect(lines).toEqual([])
  })

  test('is passed by where one item is too much, and named with its request', async () => {
    const { asked, fetched } = await fetchWith([tooLarge, tooLarge], { scan: tail })
    expect(asked).toHaveLength(3)
    expect(asked[2]).toEqual({ from: undefined, size: 10 })
    expect(fetched.scan).toMatchObject({ reason: 'page_too_large', span: { fromMs: nowMs } })
    expect(fetched.skipped).toEqual([
      {
        request: expect.objectContaining({ from: 'c1', size: 1, order: 'asc' }),
        problem: 'a page was not read: it failed: contract',
      },
    ])
  })

  test('of a rescan stays where it is', async () => {
    const { asked, fetched } = await fetchWith([tooLarge, tooLarge], {
      scan: rescan,
      place: 'long',
    })
    expect(asked.map(({ size }) => size)).toEqual([10, 1])
    expect(fetched).toBe(tooLarge)
  })
})

test.each([
  [aFeed(), 'events.search-group', { identifier_group_id: 1042 }],
  [aTenantFeed(), 'events.search-tenant', {}],
  [anIdentifierFeed(), 'events.search-identifier', { identifier_id: 77 }],
  [anEventSearch(), 'events.search', {}],
  [aCredentialFeed(), 'credentials.feed', { identifier_id: 77 }],
  [aTenantCredentialFeed(), 'credentials.tenant-feed', {}],
  [aCredentialSearch(), 'credentials.search', {}],
  [aCredentialSearch({ astp: true }), 'credentials.search-astp', {}],
  [
    aCookieFeed({ names: ['sid'], paths: ['/'] }),
    'cookies.search',
    { domain: 'vpn.example.com', names: ['sid'], paths: ['/'] },
  ],
] as const)(
  'pages of %o count against the limit that its configuration names',
  async (given, operation, about) => {
    const of = { ...given, tier: 'basic' } as PolledFeed
    const calls: unknown[][] = []
    const call = callBy((...called) => {
      calls.push(called)
      return Promise.resolve({ page: { items: [], next: null }, requestedAtMs: nowMs })
    })
    const client = { call }
    const walk = { ...tailScan(of, aFeedState({ nowMs })), cursor: 'c1' }
    const { signal } = new AbortController()
    const turn = { kind: 'feed', name: of.name, dueSinceMs: nowMs } as const
    await findFeedType(of).fetch(of, {
      client: client as unknown as UpstreamClient,
      scan: walk,
      slot: turn,
      signal,
    })
    const asked = { tier: 'basic', slot: turn, signal }
    expect(calls).toEqual([[operation, expect.objectContaining(about), asked]])
  },
)
