/** What the ledger keeps of a feed: its floor, its fences, its walks and its times. */
import { expect, test } from 'vitest'
import { countQuarantined, openFeed, peekFeed, rewindFeed } from '../../../src/store/feed-state.ts'
import type { Page } from '../../../src/store/intake.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 86_400_000

test('half a page that cannot be read makes its feed unreadable, until a page reads better', async () => {
  const ledger = await tests.ledger()
  const bad = (n: number) => ({
    uid: null,
    problem: 'metadata.uid: there is none',
    raw: `{"n":${n}}`,
  })
  const events = [routed({ uid: 'a/b/1' }), routed({ uid: 'a/b/2' }), routed({ uid: 'a/b/3' })]
  const unreadable = async () => (await openFeed(ledger, 'brand', 0)).unreadable
  await takeIn(ledger, events, { malformed: [bad(1), bad(2)] })
  expect(await unreadable()).toBeUndefined()
  await takeIn(ledger, events.slice(0, 2), { malformed: [bad(1), bad(3)] }) // known ones count, too
  const first = await unreadable()
  expect(first).toMatchObject({ shown: 4, unread: 2, problem: 'metadata.uid: there is none' })
  await takeIn(ledger, [])
  expect(await unreadable()).toEqual(first)
  await takeIn(ledger, [], { malformed: [bad(4)] })
  expect(await unreadable()).toMatchObject({ sinceMs: first?.sinceMs, shown: 1, unread: 1 })
  expect(await countQuarantined(ledger)).toMatchObject({ brand: 4 })
  await takeIn(ledger, events)
  expect(await unreadable()).toBeUndefined()
  // a rescan of a quiet hour shows the odd one alone, again and again: nobody is woken for each
  await takeIn(ledger, [], { malformed: [bad(4)] })
  expect(await unreadable()).toBeUndefined()
})

test('a page of which nothing can be read makes its feed unreadable also where it goes in in two halves', async () => {
  const ledger = await tests.ledger()
  const malformed = Array.from({ length: 1_000 }, (_none, n) => {
    return { uid: null, problem: 'no event', raw: JSON.stringify({ n }) }
  })
  await takeIn(ledger, [], { malformed })
  const { unreadable, sequence } = await openFeed(ledger, 'brand', 0)
  expect(sequence).toBe(2)
  expect(unreadable).toMatchObject({ shown: 1_000, unread: 1_000 })
})

test('a page that was fetched before its feed was rewound is stale', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [])
  const { sequence } = await openFeed(ledger, 'brand', dayMs)
  await rewindFeed(ledger, 'brand', 5_000.5)
  expect(await takeIn(ledger, [routed({ uid: 'a/b/1' })], { sequence })).toEqual({
    status: 'stale',
  })
  expect(await openFeed(ledger, 'brand', dayMs)).toMatchObject({
    startBoundMs: 5_000,
    isRewound: true,
  })
})

test.each([true, undefined])(
  'of a rescan that was read to its end is kept what it read, and whether of a snapshot only: %s',
  async (isSnapshot) => {
    const ledger = await tests.ledger()
    const walk = { fingerprint: 'f', body: {}, cursor: 'c', reason: 'first', startedAtMs: 7 }
    await takeIn(ledger, [], {
      scan: { ...walk, span: { fromMs: 1, toMs: 5 } },
      rescan: {
        place: 'whole',
        lateBeforeMs: undefined,
        isSnapshot: isSnapshot === true,
        fieldsAtEnd: [
          ['per_week', '12'],
          ['rung:1', '5'],
          ['matched', '{"fingerprint":"f","toMs":9}'],
        ],
      },
      sequence: 0,
      requestedAtMs: 9,
    } as Partial<Page>)
    const { whole, rescans, scan: tail, lastSuccessMs } = await openFeed(ledger, 'brand', dayMs)
    const lastEnded = { fingerprint: 'f', begunMs: 7, fromMs: 1, toMs: 5, isSnapshot }
    expect(whole).toMatchObject({ sequence: 1, generation: 1, isDone: true, lastCompletedMs: 9 })
    expect(whole.lastEnded).toEqual(lastEnded)
    expect(rescans).toMatchObject({
      perWeek: 12,
      rungMs: [undefined, 5],
      matched: { fingerprint: 'f', toMs: 9 },
    })
    expect([tail, lastSuccessMs]).toEqual([undefined, undefined])
  },
)

test('the floor is fixed by the first poll and stays, and so is when that was', async () => {
  const ledger = await tests.ledger()
  const first = await openFeed(ledger, 'brand', 60_000)
  const second = await openFeed(ledger, 'brand', 999_000)
  expect(first.nowMs - first.startBoundMs).toBe(60_000)
  expect(second.startBoundMs).toBe(first.startBoundMs)
  expect(first.rescans.firstPollMs).toBe(first.nowMs)
  expect(second.rescans.firstPollMs).toBe(first.nowMs)
})

test('what a page says of a feed is kept: cursor, last success, end of the feed, newest event', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1', createdAtMs: 5_000 })], {
    isCaughtUp: false,
    isBackfilling: true,
  })
  const midway = await openFeed(ledger, 'brand', 0)
  expect(midway).toMatchObject({
    sequence: 1,
    newestMs: 5_000,
    lastCaughtUpMs: undefined,
    isBackfilling: true,
  })
  expect(midway.scan?.cursor).toBe('c')
  expect(midway.isEnded).toBe(false)
  await takeIn(ledger, [routed({ uid: 'a/b/2', createdAtMs: 4_000 })], { requestedAtMs: 6_000.5 })
  const ended = await openFeed(ledger, 'brand', 0)
  const scan = { sequence: 0, generation: 0, isDone: false }
  expect(ended).toEqual({
    nowMs: expect.any(Number),
    sequence: 2,
    generation: 1,
    startBoundMs: midway.startBoundMs,
    scan: { fingerprint: 'f', body: {}, cursor: 'c', reason: 'first', startedAtMs: 0 },
    isRewound: false,
    newestMs: 5_000,
    lastSuccessMs: 6_000,
    lastCaughtUpMs: 6_000,
    isBackfilling: false,
    isEnded: true,
    whole: scan,
    recent: scan,
    long: scan,
    rescans: { rungMs: [], firstPollMs: midway.rescans.firstPollMs },
  })
  expect(await peekFeed(ledger, 'brand', ended.nowMs)).toEqual(ended)
  expect(await peekFeed(ledger, 'never polled', 0)).toBeUndefined()
})

test('events that a rescan finds late are counted, and change nothing of the tail', async () => {
  const ledger = await tests.ledger()
  const requestedAtMs = 10_000_000_000
  const accepted = await takeIn(
    ledger,
    [60_000, 1].map((ageMs, n) => routed({ uid: `a/b/${n}`, createdAtMs: requestedAtMs - ageMs })),
    {
      requestedAtMs,
      rescan: {
        place: 'recent',
        isSnapshot: false,
        fieldsAtEnd: [],
        lateBeforeMs: requestedAtMs - 1,
      },
      sequence: 0,
    },
  )
  expect(accepted).toMatchObject({ counts: { new: 2, late: 1 } })
  const { newestMs, lastCaughtUpMs, recent } = await openFeed(ledger, 'brand', 0)
  expect([newestMs, lastCaughtUpMs]).toEqual([undefined, undefined])
  expect(recent).toMatchObject({ isDone: true, lastCompletedMs: requestedAtMs })
})

test('an event dated in the future does not carry the newest time past now', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1', createdAtMs: 32_503_680_000_000 })])
  const state = await openFeed(ledger, 'brand', 0)
  expect(state.newestMs).toBeLessThanOrEqual(state.nowMs)
})
