/** Counts by day: what they hold of each way in which an item ends, and that records say the same. */
import { expect, test } from 'vitest'
import { ownFeed } from '../../../src/event.ts'
import { mutedGroup } from '../../../src/grouping/placement.ts'
import type { RoutedEvent } from '../../../src/store/intake.ts'
import {
  discardItem,
  moveItem,
  resendItem,
  toStoredGroup,
  suppressItems,
} from '../../../src/store/pending-items.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { type DatedCount, readCounts } from '../../../src/store/history/dated-counts.ts'
import { readItems, readRecord } from '../../../src/store/records.ts'
import { beginAttempt, settleAttempt } from '../../support/attempts.ts'
import { expectConservation, redisForTests, redisMs, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

const dayMs = 86_400_000

/** The counts of yesterday and today. */
async function readDays(ledger: AccountLedger): Promise<DatedCount[]> {
  const toMs = await redisMs(ledger.redis)
  return readCounts(ledger, { by: 'day', fromMs: toMs - dayMs, toMs })
}

async function countsOf(ledger: AccountLedger): Promise<object[]> {
  return (await readDays(ledger)).map(({ account: _account, atMs: _at, ...rest }) => rest)
}

function refOf(ledger: AccountLedger, uid: string, sink = 'soc', index = 0): string {
  return `i:${ledger.fingerprints.recordId(uid)}:${index}:${sink}`
}

async function deliver(ledger: AccountLedger, ref: string): Promise<void> {
  await beginAttempt(ledger, ref, 't', 30_000)
  await settleAttempt(ledger, { ref, token: 't', replica: 'r1' }, { outcome: 'delivered' })
}

test('every way in which an item ends is counted once, by destination, severity and reason', async () => {
  const ledger = await tests.ledger()
  const nowMs = await redisMs(ledger.redis)
  const event = { severity: 'high', matchedAtMs: nowMs - 7_000 }
  const uids = ['told', 'silenced', 'given-up', 'moved', 'failed'].map((id) => `a/b/${id}`)
  const events = uids.map((uid) => routed({ ...event, uid }))
  const shadowed = routed({ ...event, uid: 'a/b/shadow', severity: 'grave' })
  shadowed.items[0]!.isShadow = true
  await takeIn(ledger, [...events, shadowed], { requestedAtMs: nowMs })
  const [told, silenced, givenUp, moved, failed] = uids.map((uid) => refOf(ledger, uid))

  await deliver(ledger, told!)
  await suppressItems(ledger, [{ ref: silenced!, act: 'suppress', reason: 'silence', rule: 's1' }])
  await discardItem(ledger, givenUp!, 'by ann')
  const record = (await readRecord(ledger, ledger.fingerprints.recordId('a/b/moved')))!
  const lake = { sink: 'lake', destination: 'lake', batchWaitMs: undefined }
  await moveItem(ledger, { ref: moved!, record, item: record.items[0]! }, [lake], 'ann')
  await beginAttempt(ledger, failed!, 't', 30_000)
  const attempt = { ref: failed!, token: 't', replica: 'r1' }
  await settleAttempt(ledger, attempt, { outcome: 'dead', reason: 'gone', answer: '410' })

  const ended = { kind: 'ended', destination: 'soc', severity: 'high', count: 1 }
  expect(await countsOf(ledger)).toEqual(
    expect.arrayContaining([
      { kind: 'event', severity: 'high', count: 5 },
      { kind: 'event', severity: 'unknown', count: 1 },
      { kind: 'new', feed: 'brand', severity: 'high', count: 5 },
      { kind: 'new', feed: 'brand', severity: 'unknown', count: 1 },
      { ...ended, outcome: 'delivered', reason: '' },
      { ...ended, outcome: 'suppressed', reason: 'silence' },
      { ...ended, severity: 'unknown', outcome: 'suppressed', reason: 'shadow' },
      { ...ended, outcome: 'dead', reason: 'discarded' },
      { ...ended, outcome: 'dead', reason: 'gone' },
      { ...ended, outcome: 'diverted', reason: 'moved' },
      { kind: 'message', destination: 'soc', count: 1 },
      { kind: 'told', destination: 'soc', severity: 'high', withinS: 10, count: 1 },
      { kind: 'route', route: 'root', severity: 'high', count: 5 },
      { kind: 'route', route: 'root', severity: 'unknown', count: 1 },
      { kind: 'rule', reason: 'silence', rule: 's1', severity: 'high', count: 1 },
      { kind: 'rule', reason: 'shadow', rule: 'root', severity: 'unknown', count: 1 },
    ]),
  )
  expect(await countsOf(ledger)).toHaveLength(16)
  await expectConservation(ledger)
})

test('what is sent again counts as delivered again, and not as told later', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'low' })])
  const ref = refOf(ledger, 'a/b/1')
  await deliver(ledger, ref)
  await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'ann' })
  await deliver(ledger, ref)
  const counts = await readDays(ledger)
  const kinds = counts.map(({ kind, count }) => `${kind} ${count}`)
  expect(kinds.toSorted()).toEqual([
    'ended 2',
    'event 1',
    'message 2',
    'new 1',
    'route 1',
    'told 1',
  ])
})

test('an event is visible since it matched, and what stood there before since it was read', async () => {
  const ledger = await tests.ledger()
  const nowMs = await redisMs(ledger.redis)
  const matched = { matchedAtMs: nowMs - 3_000_000 }
  const ahead = { matchedAtMs: nowMs + 3_000_000 }
  const page = { requestedAtMs: nowMs }
  await takeIn(ledger, [routed({ ...matched, uid: 'a/b/old' })], { ...page, isBackfilling: true })
  await takeIn(ledger, [routed({ ...matched, uid: 'a/b/late' })], page)
  await takeIn(ledger, [routed({ ...ahead, uid: 'a/b/ahead' })], page)
  await takeIn(ledger, [routed({ matchedAtMs: null, uid: 'a/b/none' })], page)
  const uids = ['old', 'late', 'ahead', 'none'].map((id) => `a/b/${id}`)
  const since = uids.map(async (uid) => {
    const record = await readRecord(ledger, ledger.fingerprints.recordId(uid))
    return nowMs - record!.sightings[0]!.visibleMs
  })
  expect(await Promise.all(since)).toEqual([0, 3_000_000, 0, 0])
})

test('a dead letter that is sent again is told for the first time', async () => {
  const ledger = await tests.ledger()
  const nowMs = await redisMs(ledger.redis)
  const event = routed({ uid: 'a/b/1', severity: 'high', matchedAtMs: nowMs - 100_000 })
  await takeIn(ledger, [event], { requestedAtMs: nowMs })
  const ref = refOf(ledger, 'a/b/1')
  await beginAttempt(ledger, ref, 't', 30_000)
  const attempt = { ref, token: 't', replica: 'r1' }
  await settleAttempt(ledger, attempt, { outcome: 'dead', reason: 'gone', answer: '410' })
  await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'ann' })
  await deliver(ledger, ref)
  expect(await countsOf(ledger)).toContainEqual({
    kind: 'told',
    destination: 'soc',
    severity: 'high',
    withinS: 120,
    count: 1,
  })
})

test('an event of two feeds is one event, and what Tocsin itself tells is none', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'low' })])
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'low' })], { feed: 'leaks' })
  await takeIn(ledger, [routed({ uid: 'canary/tocsin/1' }, ['lake'])], { feed: ownFeed })
  await deliver(ledger, refOf(ledger, 'canary/tocsin/1', 'lake'))
  expect(await countsOf(ledger)).toEqual(
    expect.arrayContaining([
      { kind: 'event', severity: 'low', count: 1 },
      { kind: 'new', feed: 'brand', severity: 'low', count: 1 },
      { kind: 'new', feed: 'leaks', severity: 'low', count: 1 },
      { kind: 'route', route: 'root', severity: 'low', count: 1 },
    ]),
  )
  expect(await countsOf(ledger)).toHaveLength(4)
  await expectConservation(ledger)
})

test('a route and those above it count an event once, however many feeds and routes take it, and how often', async () => {
  const ledger = await tests.ledger()
  const taken = (severity: string, ...routes: string[]): RoutedEvent => ({
    ...routed({ uid: 'a/b/1', severity }),
    decisions: routes.map((route) => ({ route, path: ['root', route], why: [] })),
  })
  await takeIn(ledger, [taken('low', 'soc', 'lake', 'lake')])
  await takeIn(ledger, [taken('low', 'soc', 'a|b')], { feed: 'leaks' })
  await takeIn(ledger, [taken('high', 'soc', 'oncall')])
  await takeIn(ledger, [{ ...taken('low', 'soc'), isBaseline: true }], { feed: 'third' })
  const counts = (await readDays(ledger)).flatMap((one) =>
    one.kind === 'route' ? `${one.route} ${one.severity} ${one.count}` : [],
  )
  expect(counts.toSorted()).toEqual([
    'a|b low 1',
    'lake low 1',
    'oncall high 1',
    'root low 1',
    'soc low 1',
  ])
})

test('a rule counts what it suppresses, and once what it begins to hold and holds on', async () => {
  const ledger = await tests.ledger()
  const uids = ['a/b/1', 'a/b/2', 'a/b/3']
  await takeIn(
    ledger,
    uids.map((uid) => routed({ uid, severity: 'low' })),
  )
  const [first, second, third] = uids.map((uid) => refOf(ledger, uid))
  const suppress = { act: 'suppress', rule: 'r|1' } as const
  const ignored = { ref: second!, ...suppress, reason: 'ignored' } as const
  await suppressItems(ledger, [{ ref: first!, ...suppress, reason: 'inhibition' }, ignored])
  await holdInMute(ledger, third!, 'nights')
  await holdInMute(ledger, third!, 'nights')
  await holdInMute(ledger, third!, 'weekends')
  const counts = (await readDays(ledger)).flatMap((one) =>
    one.kind === 'rule' ? `${one.reason} ${one.rule} ${one.severity} ${one.count}` : [],
  )
  expect(counts.toSorted()).toEqual([
    'inhibition r|1 low 1',
    'mute nights low 1',
    'mute weekends low 1',
  ])
})

/** As a flush of the group does in which the item waits, or a claim where it does not wait yet. */
async function holdInMute(ledger: AccountLedger, ref: string, rule: string): Promise<void> {
  const untilMs = (await redisMs(ledger.redis)) + dayMs
  const group = mutedGroup('soc', rule, untilMs)
  const held = (await readItems(ledger, [ref]))[0]!.item.groupId
  if (held === undefined) {
    await suppressItems(ledger, [{ ref, act: 'hold', rule, untilMs, group }])
    return
  }
  const opened = await ledger.redis.hget(ledger.key('group', held), 'opened')
  const member = { r: ref, a: 'hold', reason: 'mute', rule, at: untilMs }
  const ask = { lead: held, opened, seq: 0, storm: false, bid: 'b', retention: ledger.retention }
  const members = [{ ...member, place: toStoredGroup(group) }]
  expect(await ledger.run('freeze-members', JSON.stringify({ ...ask, members }))).toBe(1)
}

test('days go with the history, and none before', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' })])
  await deliver(ledger, refOf(ledger, 'a/b/1'))
  const today = Math.floor((await redisMs(ledger.redis)) / dayMs)
  const last = today - Math.floor(ledger.retention.history / dayMs)
  await ledger.redis.hset(ledger.key('counters'), 'first_day', last - 3)
  for (const day of [last - 3, last - 2, last + 1]) {
    await ledger.redis.hset(ledger.key('day', String(day)), 'event|high', 1)
  }
  for (const _twice of [1, 2]) await ledger.run('trim-records', ledger.retention.history, 0)
  const names = await ledger.redis.keys(ledger.key('day', '*'))
  const days = [last + 1, today].map((day) => ledger.key('day', String(day)))
  expect(names.toSorted()).toEqual(days.toSorted())
})

test('a summary whose outcome is settled twice is one message', async () => {
  const ledger = await tests.ledger()
  const group = { id: 'g', kind: 'group', wait: 0, about: '{}' }
  const batch = {
    k: 'soc',
    d: 'soc',
    m: [],
    n: 1,
    st: 'sending',
    c: 1,
    rk: 4,
    tok: 't',
    kind: group.kind,
  }
  await ledger.redis.set(ledger.key('batch', 'b1'), JSON.stringify(batch))
  const settled = { ref: 'b:b1:soc', token: 't', replica: 'r1' }
  for (const _twice of [1, 2]) await settleAttempt(ledger, settled, { outcome: 'delivered' })
  expect(await countsOf(ledger)).toEqual([{ kind: 'message', destination: 'soc', count: 1 }])
})

test('an hour has what its day has of it, for two days', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' })])
  await deliver(ledger, refOf(ledger, 'a/b/1'))
  const toMs = await redisMs(ledger.redis)
  const hours = await readCounts(ledger, { by: 'hour', fromMs: toMs - 3_600_000, toMs })
  const places = new Set(hours.map(({ atMs }) => atMs))
  expect([...places].every((atMs) => atMs % 3_600_000 === 0 && toMs - atMs < 7_200_000)).toBe(true)
  expect(hours.map(({ atMs: _at, ...one }) => one)).toEqual(
    (await readDays(ledger)).map(({ atMs: _at, ...one }) => one),
  )
  const name = ledger.key('hour', String([...places][0]! / 3_600_000))
  expect(await ledger.redis.pttl(name)).toBeLessThanOrEqual(2 * dayMs)
})
