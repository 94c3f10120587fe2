import { expect, test } from 'vitest'
import {
  findConditions,
  findMany,
  type Condition,
  type Snapshot,
} from '../../../src/self-alerts/conditions.ts'
import { conditionId, parseConditionId } from '../../../src/self-alerts/troubles.ts'

const minute = 60_000
const day = 24 * 60 * minute
const nowMs = 100 * day
const refusal = {
  reason: 'auth',
  answer: 'no',
  sinceMs: nowMs - 42 * minute,
  lastMs: nowMs,
  count: 7,
}
const saidRefusal = 'failing since 1970-04-10 23:18 UTC (42 min), 7 times, last: auth, no'

/** All is well; say only what is not. */
function aSnapshot(overrides: Partial<Snapshot> = {}): Snapshot {
  const redis = { isFull: false }
  const nothing = { feeds: [], accounts: [], left: [], sinks: [], unaccounted: [] }
  return { atMs: nowMs, ...nothing, redis, ...overrides }
}

function aFeed(overrides: Partial<Snapshot['feeds'][number]> = {}): Snapshot['feeds'][number] {
  return {
    name: 'brand',
    account: 'main',
    lagObjectiveMs: 5 * minute,
    isPaused: false,
    lastSuccessMs: nowMs,
    lastCaughtUpMs: nowMs - minute,
    ...overrides,
  }
}

function aSink(overrides: Partial<Snapshot['sinks'][number]> = {}): Snapshot['sinks'][number] {
  return {
    name: 'soc',
    circuit: 'closed',
    disabled: undefined,
    deadLetters: 0,
    paused: undefined,
    ...overrides,
  }
}

function found(overrides: Partial<Snapshot>, afterMs = 5 * minute): Condition[] {
  return findConditions(aSnapshot(overrides), { nowMs, afterMs })
}

test('where all is well, also where a sink or a feed is paused, nothing is found', () => {
  const accounts = [{ name: 'main' }]
  const paused = { reason: 'maintenance', sinceMs: nowMs - day }
  const feeds = [aFeed(), aFeed({ lastCaughtUpMs: undefined, isPaused: true })]
  expect(found({ feeds, sinks: [aSink(), aSink({ paused })], accounts })).toEqual([])
})

test('items that wait in an account that left are told of after notices.after, and nothing once they are settled', () => {
  const left = [
    { name: 'umbrella', pending: 12 },
    { name: 'quiet', pending: 0 },
  ]
  expect(found({ left })).toMatchObject([
    { id: 'account-left-umbrella', waitMs: 5 * minute, cause: '12 by now' },
  ])
})

test('a feed behind its objective counts from when it was read to its end, and waits for three times as long', () => {
  const lastCaughtUpMs = nowMs - 6 * minute
  const [stalled] = found({ feeds: [aFeed({ lastCaughtUpMs })] })
  expect(stalled).toMatchObject({
    id: 'feed-stalled-brand',
    sinceMs: lastCaughtUpMs,
    waitMs: 10 * minute,
  })
})

test('a longer notices.after holds for a feed too', () => {
  const feeds = [aFeed({ lastCaughtUpMs: nowMs - 6 * minute })]
  expect(found({ feeds }, 60 * minute)[0]).toMatchObject({ waitMs: 55 * minute })
})

test('a feed that was never read to its end counts from when that was first seen', () => {
  const [stalled] = found({ feeds: [aFeed({ lastCaughtUpMs: undefined })] })
  expect(stalled).toMatchObject({ id: 'feed-stalled-brand', sinceMs: undefined })
})

test.each([
  [{ trouble: refusal }, saidRefusal],
  [{ quota: { remaining: 10, reserve: 10 } }, '10 searches remain, 10 are reserved'],
  [
    { quota: { remaining: 11, reserve: 10 }, lastSuccessMs: undefined },
    'no poll has succeeded yet',
  ],
  [{ lastSuccessMs: undefined }, 'no poll has succeeded yet'],
  [{ lastSuccessMs: nowMs - 6 * minute }, 'no poll succeeds'],
  [{}, 'pages come, yet not the last one: a long backlog, or too small a budget'],
])('of a stalled feed with %j it is said why', (known, cause) => {
  const [stalled] = found({ feeds: [aFeed({ lastCaughtUpMs: nowMs - day, ...known })] })
  expect(stalled?.cause).toBe(cause)
})

test('a refused key and a full Redis explain why a feed stands still', () => {
  const [stalled] = found({ feeds: [aFeed({ lastCaughtUpMs: nowMs - day })] })
  const explaining = found({
    accounts: [{ name: 'main', trouble: refusal }],
    redis: { isFull: true },
  })
  expect(stalled?.coveredBy.toSorted()).toEqual(explaining.map(({ id }) => id).toSorted())
})

test('a refused key is said at once, whatever notices.after says', () => {
  const accounts = [{ name: 'main', trouble: refusal }]
  expect(found({ accounts }, day)[0]).toMatchObject({
    id: 'account-refused-main',
    waitMs: 0,
    cause: saidRefusal,
  })
})

test.each([
  [{ pending: 35, relief: 'it has no fallback' }, '; 35 items wait; it has no fallback'],
  [{ pending: 1, relief: 'mail takes what waits' }, '; 1 item waits; mail takes what waits'],
] as const)(
  'of a sink that takes nothing (%j) it is said why, what waits and who gets it',
  (about, said) => {
    const [open] = found({ sinks: [aSink({ circuit: 'open', trouble: refusal, ...about })] })
    expect(open?.cause).toBe(saidRefusal + said)
  },
)

test.each(['open', 'half_open'] as const)(
  'a circuit that is %s is trouble until it closes',
  (circuit) => {
    expect(found({ sinks: [aSink({ circuit })] })).toMatchObject([
      { id: 'circuit-open-soc', waitMs: 5 * minute },
    ])
  },
)

test('a sink that is gone is said at once, with what it answered and since when', () => {
  const disabled = { reason: 'the receiver answered 410', sinceMs: nowMs - minute }
  const relief = 'it has no fallback'
  const [gone, open] = found({ sinks: [aSink({ circuit: 'disabled', disabled, relief })] })
  expect(gone).toMatchObject({
    id: 'sink-disabled-soc',
    sinceMs: disabled.sinceMs,
    waitMs: 0,
    cause:
      'the receiver answered 410; until an operator acts, nothing is sent to it; 0 items wait; it has no fallback',
  })
  expect(open).toMatchObject({ id: 'circuit-open-soc', coveredBy: ['sink-disabled-soc'] })
})

test('dead letters are trouble until none is left, and are counted', () => {
  expect(found({ sinks: [aSink({ deadLetters: 3 })] })).toMatchObject([
    { id: 'dead-letters-soc', cause: '3 by now' },
  ])
})

test.each([
  [0, /^it holds nothing of the ledger any more: what waited/],
  [
    Date.UTC(2026, 10, 25),
    /^it holds an older state of the ledger, of 2026-11-25T00:00:00\.000Z: /,
  ],
])('a Redis that lost the ledger and has the state of %d is told at once', (stateMs, cause) => {
  const loss = { atMs: nowMs, stateMs }
  const [lost, ...others] = found({ redis: { isFull: false, loss } })
  expect(lost).toMatchObject({ id: 'ledger-lost', sinceMs: nowMs, waitMs: 0 })
  expect(lost?.cause).toMatch(cause)
  expect(others).toEqual([])
})

test('accounts that do not add up are told with where', () => {
  const unaccounted = ['feed brand: 3', 'sink soc: -1']
  expect(found({ unaccounted })).toMatchObject([
    { id: 'unaccounted', cause: 'feed brand: 3, sink soc: -1' },
  ])
})

test('the id of a condition tells its kind and whom it is about', () => {
  const troubles = [
    { kind: 'feed-stalled', name: 'a-b_1' },
    { kind: 'redis-full', name: null },
    { kind: 'dead-letters', name: 'open-x' },
    { kind: 'many', name: 'feed-stalled' },
  ] as const
  for (const trouble of troubles) expect(parseConditionId(conditionId(trouble))).toEqual(trouble)
  expect(parseConditionId('of-a-later-version')).toBeUndefined()
  expect(parseConditionId('many-of-a-later-version')).toBeUndefined()
})

test('more than ten of a kind are one, which begins when it is first seen and names three', () => {
  const feeds = Array.from({ length: 11 }, (_none, n) =>
    aFeed({ name: `feed-${n}`, lastCaughtUpMs: nowMs - (6 + n) * minute }),
  )
  const due = found({ feeds, sinks: [aSink({ circuit: 'open' })] })
  expect(findMany(due)).toMatchObject([
    {
      id: 'many-feed-stalled',
      sinceMs: undefined,
      waitMs: 0,
      cause: 'feed-0, feed-1, feed-2 and 8 others by now',
      coveredBy: [],
    },
  ])
  expect(findMany(due.slice(1))).toEqual([])
})

test('a feed that cannot be read is critical at once, and covers that items are set aside', () => {
  const quarantined = { fresh: 5, newestMs: nowMs }
  const unreadable = {
    sinceMs: nowMs - minute,
    shown: 10,
    unread: 5,
    problem: 'metadata.uid: none',
  }
  expect(found({ feeds: [aFeed({ unreadable, quarantined })] })).toMatchObject([
    {
      id: 'feed-unreadable-brand',
      sinceMs: nowMs - minute,
      waitMs: 0,
      cause: '5 of 10 items of a page, metadata.uid: none',
    },
    { id: 'items-quarantined-brand', waitMs: 0, coveredBy: ['feed-unreadable-brand'] },
  ])
  expect(found({ feeds: [aFeed({ quarantined })] })).toMatchObject([{ cause: '5 within a day' }])
})
