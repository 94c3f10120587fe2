import { expect, test } from 'vitest'
import {
  findConditions,
  findMany,
  type Condition,
  type Snapshot,
} from '../../../../src/operator/alerts/conditions.ts'
import { conditionId, parseConditionId } from '../../../../src/operator/alerts/troubles.ts'
import { aProblem } from '../../../support/self-alerts.ts'

const minute = 60_000
const nowMs = 100 * 24 * 60 * minute
const since = new Date(nowMs - minute).toISOString()

function found(overrides: Partial<Snapshot>, afterMs = 5 * minute): Condition[] {
  const well = { atMs: nowMs, problems: [], redis: { isFull: false }, deafSinks: [] }
  const lagObjectiveMs = (): number => 5 * minute
  return findConditions({ ...well, ...overrides }, { afterMs, lagObjectiveMs })
}

test.each<[kind: Parameters<typeof aProblem>[0], conditions: object[]]>([
  ['feed-paused', []],
  ['sink-paused', []],
  ['feed-failing', []],
  [
    'account-refused',
    [{ id: 'account-refused-x', waitMs: 0, sinceMs: nowMs - minute, cause: 'why' }],
  ],
  ['account-left', [{ id: 'account-left-x', waitMs: 5 * minute }]],
  [
    'feed-stalled',
    [
      {
        id: 'feed-stalled-x',
        waitMs: 10 * minute,
        coveredBy: ['feed-unreadable-x', 'redis-full'],
      },
    ],
  ],
  [
    'feed-unreadable',
    [
      { id: 'feed-unreadable-x', waitMs: 0, coveredBy: [] },
      { id: 'feed-stalled-x', coveredBy: ['feed-unreadable-x'] },
    ],
  ],
  [
    'items-quarantined',
    [{ id: 'items-quarantined-x', waitMs: 0, coveredBy: ['feed-unreadable-x'] }],
  ],
  ['circuit-open', [{ waitMs: 5 * minute, coveredBy: ['sink-disabled-x'] }]],
  [
    'sink-disabled',
    [
      { id: 'sink-disabled-x', waitMs: 0 },
      { id: 'circuit-open-x', coveredBy: ['sink-disabled-x'] },
    ],
  ],
  ['dead-letters', [{ id: 'dead-letters-x', waitMs: 5 * minute }]],
  ['unaccounted', [{ id: 'unaccounted-x', waitMs: 5 * minute }]],
])('the problem %s is alerted as its row says', (kind, conditions) => {
  const all = found({ problems: [aProblem(kind, 'x', { since })] })
  expect(all).toMatchObject(conditions)
  expect(all).toHaveLength(conditions.length)
})

test('trouble of a feed whose key is refused stands, and the key explains it', () => {
  const problems = [aProblem('feed-stalled', 'x', { since, behindAccount: 'acme' })]
  expect(found({ problems })).toMatchObject([
    { id: 'feed-stalled-x', coveredBy: expect.arrayContaining(['account-refused-acme']) },
  ])
})

test('a Redis that is full or has lost the ledger is a condition of its own', () => {
  expect(found({ redis: { isFull: true, loss: { atMs: nowMs, stateMs: 0 } } })).toMatchObject([
    { id: 'redis-full', waitMs: 5 * minute },
    { id: 'ledger-lost', sinceMs: nowMs, waitMs: 0, cause: expect.stringContaining('nothing of') },
  ])
})

test('a longer after holds for a feed, and not for what no time mends', () => {
  const hour = 60 * minute
  const waits = found(
    { problems: [aProblem('feed-stalled', 'x'), aProblem('account-refused', 'x')] },
    hour,
  )
  expect(waits.map(({ waitMs }) => waitMs)).toEqual([hour - 5 * minute, 0])
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
  const stalled = Array.from({ length: 11 }, (_none, n) =>
    aProblem('feed-stalled', `feed-${n}`, { since }),
  )
  const due = found({ problems: [...stalled, aProblem('circuit-open', 'soc')] })
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
