import { expect, test } from 'vitest'
import {
  findConditions,
  findMany,
  type Condition,
  type Snapshot,
} from '../../../../src/operator/alerts/conditions.ts'
import { conditionId, parseConditionId } from '../../../../src/operator/alerts/troubles.ts'

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

const paused = { reason: 'maintenance', sinceMs: nowMs - day }
const disabled = { reason: 'the receiver answered 410', sinceMs: nowMs - minute }
const unreadable = { sinceMs: nowMs - minute, shown: 10, unread: 5, problem: 'no uid' }
const quarantined = { fresh: 5, newestMs: nowMs }
const late = nowMs - 6 * minute

test.each<[what: string, shown: Partial<Snapshot>, conditions: object[]]>([
  ['all is well', { feeds: [aFeed()], sinks: [aSink()], accounts: [{ name: 'main' }] }, []],
  ['a sink is paused', { sinks: [aSink({ paused })] }, []],
  ['a feed is paused', { feeds: [aFeed({ lastCaughtUpMs: undefined, isPaused: true })] }, []],
  [
    'accounts have left',
    { left: ['umbrella', 'quiet'].map((name, n) => ({ name, pending: 12 - 12 * n })) },
    [{ id: 'account-left-umbrella', waitMs: 5 * minute, cause: '12 by now' }],
  ],
  [
    'a key is refused',
    { accounts: [{ name: 'main', trouble: refusal }] },
    [{ id: 'account-refused-main', waitMs: 0, cause: saidRefusal }],
  ],
  [
    'a feed is behind its objective',
    { feeds: [aFeed({ lastCaughtUpMs: late })] },
    [
      {
        id: 'feed-stalled-brand',
        sinceMs: late,
        waitMs: 10 * minute,
        coveredBy: ['account-refused-main', 'redis-full'],
      },
    ],
  ],
  [
    'a feed was never read to its end',
    { feeds: [aFeed({ lastCaughtUpMs: undefined })] },
    [{ id: 'feed-stalled-brand', sinceMs: undefined }],
  ],
  [
    'a feed cannot be read',
    { feeds: [aFeed({ unreadable, quarantined })] },
    [
      {
        id: 'feed-unreadable-brand',
        sinceMs: nowMs - minute,
        waitMs: 0,
        cause: '5 of 10 items of a page, no uid',
      },
      { id: 'items-quarantined-brand', waitMs: 0, coveredBy: ['feed-unreadable-brand'] },
    ],
  ],
  [
    'single items cannot be read',
    { feeds: [aFeed({ quarantined })] },
    [{ id: 'items-quarantined-brand', cause: '5 within a day' }],
  ],
  [
    'a circuit is open',
    { sinks: [aSink({ circuit: 'open', trouble: refusal, pending: 35, relief: 'no fallback' })] },
    [
      {
        id: 'circuit-open-soc',
        waitMs: 5 * minute,
        cause: `${saidRefusal}; 35 items wait; no fallback`,
      },
    ],
  ],
  [
    'a circuit is half open',
    { sinks: [aSink({ circuit: 'half_open', pending: 1 })] },
    [{ id: 'circuit-open-soc', cause: '1 item waits' }],
  ],
  [
    'a sink is gone',
    { sinks: [aSink({ circuit: 'disabled', disabled })] },
    [
      {
        id: 'sink-disabled-soc',
        sinceMs: disabled.sinceMs,
        waitMs: 0,
        cause: expect.stringMatching(/^the receiver answered 410; .*; 0 items wait$/),
      },
      { id: 'circuit-open-soc', coveredBy: ['sink-disabled-soc'] },
    ],
  ],
  [
    'there are dead letters',
    { sinks: [aSink({ deadLetters: 3 })] },
    [{ id: 'dead-letters-soc', cause: '3 by now' }],
  ],
  [
    'Redis lost the ledger',
    { redis: { isFull: false, loss: { atMs: nowMs, stateMs: 0 } } },
    [
      {
        id: 'ledger-lost',
        sinceMs: nowMs,
        waitMs: 0,
        cause: expect.stringContaining('holds nothing of the ledger any more'),
      },
    ],
  ],
  ['Redis is full', { redis: { isFull: true } }, [{ id: 'redis-full', waitMs: 5 * minute }]],
  [
    'counters do not add up',
    { unaccounted: ['feed brand: 3', 'sink soc: -1'] },
    [{ id: 'unaccounted', cause: 'feed brand: 3, sink soc: -1' }],
  ],
])('%s', (_what, shown, conditions) => {
  expect(found(shown)).toMatchObject(conditions)
  expect(found(shown)).toHaveLength(conditions.length)
})

test('a longer after holds for a feed, and not for what no time mends', () => {
  expect(found({ feeds: [aFeed({ lastCaughtUpMs: late })] }, day)[0]?.waitMs).toBe(day - 5 * minute)
  expect(found({ accounts: [{ name: 'main', trouble: refusal }] }, day)[0]?.waitMs).toBe(0)
})

test.each([
  [{ trouble: refusal }, saidRefusal],
  [{ quota: { remaining: 10, reserve: 10 } }, '10 searches remain, 10 are reserved'],
  [
    { quota: { remaining: 11, reserve: 10 }, lastSuccessMs: undefined },
    'no poll has succeeded yet',
  ],
  [{ lastSuccessMs: late }, 'no poll succeeds'],
  [{}, 'pages come, yet not the last one: a long backlog, or too small a budget'],
])('of a stalled feed with %j it is said why', (known, cause) => {
  const [stalled] = found({ feeds: [aFeed({ lastCaughtUpMs: nowMs - day, ...known })] })
  expect(stalled?.cause).toBe(cause)
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
