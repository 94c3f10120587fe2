/**
 * Everything between the ledger and the sinks, with real Redis and sinks that are rehearsed. What waits for a
 * lease or a pause runs beside others, each with a ledger of its own.
 */
import { expect, test } from 'vitest'
import { readAccounting } from '../../../src/store/accounts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readPendingRefs } from '../../../src/store/pending-items.ts'
import { readPayload, readRecord, type Item } from '../../../src/store/records.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type Sink } from '../../../src/sinks/sink.ts'
import { claimDue } from '../../../src/delivery/claims.ts'
import {
  beginAttempt,
  makeDue,
  peekBatch,
  sealBatch,
  settleAttempt,
} from '../../support/attempts.ts'
import { aDeliveryRig, type DeliveryRig, type DeliveryRigOptions } from '../../support/delivery.ts'
import { around } from '../../support/grouping.ts'
import {
  aStanding,
  expectConservation,
  redisForTests,
  redisMs,
  routed,
  takeIn,
} from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { until } from '../../support/rehearsal.ts'

const tests = redisForTests()
const batch = { max: 10, waitMs: 500, maxBytes: 100_000 }

interface Rig extends DeliveryRig {
  ledger: AccountLedger
  keys: Keys
  /** The same ledger in another process, or under another configuration. */
  with: (sinks: Sink[], options?: Partial<DeliveryRigOptions>) => DeliveryRig
}

async function rig(...sinks: Sink[]): Promise<Rig> {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const shared = { redis: tests.redis, keys, ledger: ledger }
  return {
    ledger: ledger,
    keys,
    ...aDeliveryRig({ ...shared, sinks }),
    with: (others, options = {}) => aDeliveryRig({ ...shared, sinks: others, ...options }),
  }
}

async function itemOf(ledger: AccountLedger, uid: string, index = 0): Promise<Item> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(uid)))!.items[index]!
}

async function bring(
  ledger: AccountLedger,
  sink: string,
  count: number,
  severity = 'high',
): Promise<void> {
  const events = Array.from({ length: count }, (_, i) =>
    routed({ uid: `a/${severity}/${i}`, severity }, [sink]),
  )
  await takeIn(ledger, events)
}

async function pendingIn(ledger: AccountLedger, sink = 'soc'): Promise<Record<string, number>> {
  const { pending = {} } = (await readAccounting(ledger)).sinks[sink] ?? {}
  return Object.fromEntries(Object.entries(pending).filter(([, count]) => count > 0))
}

async function allLeft(ledger: AccountLedger, sink = 'soc'): Promise<void> {
  await until('nothing waits', async () => Object.keys(await pendingIn(ledger, sink)).length === 0)
}

test('the slow pass finds what no hint names: queued, retrying, interrupted, frozen, collected', async () => {
  const [soc, siem] = [aRehearsedSink('soc'), aRehearsedSink('siem', { batch })]
  const { ledger, drains } = await rig(soc, siem)
  for (const uid of ['a/b/1', 'a/b/2', 'a/b/3']) await takeIn(ledger, [routed({ uid }, ['soc'])])
  const ref = (uid: string): string => `i:${ledger.fingerprints.recordId(uid)}:0:soc`
  await beginAttempt(ledger, ref('a/b/2'), 't', 1)
  await beginAttempt(ledger, ref('a/b/3'), 't', 1_000)
  const retry = { outcome: 'retry' as const, inMs: 0 }
  await settleAttempt(ledger, { ref: ref('a/b/3'), token: 't', replica: 'r' }, retry)
  await takeIn(ledger, [routed({ uid: 'a/b/4' }, ['siem'])], { batchWaitMs: 1 })
  const [collected] = await peekBatch(ledger, 'siem', 1)
  await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, [collected!.ref])
  await takeIn(ledger, [routed({ uid: 'a/b/5' }, ['siem'])], { batchWaitMs: 1 })

  drains.start()
  await drains.reconcileOnce()
  await allLeft(ledger, 'soc')
  await until('the batches went', async () => {
    await drains.reconcileOnce()
    return Object.keys(await pendingIn(ledger, 'siem')).length === 0
  })
  await drains.stop(1_000)
  expect(soc.received.filter(({ mayBeRepeat }) => mayBeRepeat)).toHaveLength(1)
  expect(soc.received).toHaveLength(3)
  expect(siem.received.map(({ members }) => members.length)).toEqual([1, 1])
  await expectConservation(ledger)
})

test('items that wait too long for their full event go without it, and their message will say so', async () => {
  const [soc, siem] = [aRehearsedSink('soc'), aRehearsedSink('siem')]
  const { ledger, drains } = await rig(soc, siem)
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc', 'siem'], true)])
  const recordId = ledger.fingerprints.recordId('a/b/1')
  for (const [index, sink] of ['soc', 'siem'].entries()) {
    await makeDue(ledger, `i:${recordId}:${index}:${sink}`)
  }
  drains.start()
  await drains.reconcileOnce()
  for (const sink of ['soc', 'siem']) await allLeft(ledger, sink)
  await drains.stop(1_000)
  expect((await readPayload(ledger, recordId))?.detail).toBe('unavailable')
  expect([soc, siem].map(({ received }) => received[0]?.members[0]?.detail)).toEqual([
    'unavailable',
    'unavailable',
  ])
  await expectConservation(ledger)
})

test('who makes work tells the other processes: they take it up without looking at every account', async () => {
  const soc = aRehearsedSink('soc')
  const { ledger, with: other } = await rig(soc)
  const maker = other([soc])
  const listener = other([soc])
  listener.drains.start()
  await bring(ledger, 'soc', 3)
  await maker.drains.announce('main', [{ sink: 'soc' }])
  await listener.drains.readHintsOnce()
  await allLeft(ledger)
  await listener.drains.readHintsOnce()
  await until('the hint is cleared', async () => (await maker.hints.read(10)).length === 0)
  await listener.drains.stop(1_000)
  expect(soc.received).toHaveLength(3)
})

test('of two configurations only the active one holds or takes back: nothing goes to and fro', async () => {
  const soc = aRehearsedSink('soc')
  const { ledger, with: under } = await rig()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc'])])
  const active = under([])
  const older = under([soc], { standing: aStanding({ isActive: false, isNewest: false }) })
  for (const { drains } of [older, active]) drains.start()
  await active.drains.reconcileOnce()
  expect(await itemOf(ledger, 'a/b/1')).toMatchObject({ state: 'held', heldFor: 'orphaned' })
  await older.drains.reconcileOnce()
  await active.drains.reconcileOnce()
  expect(await itemOf(ledger, 'a/b/1')).toMatchObject({ state: 'held', heldFor: 'orphaned' })
  expect(soc.received).toEqual([])
  const again = under([soc])
  again.drains.start()
  await again.drains.reconcileOnce()
  await allLeft(ledger)
  expect(soc.received).toHaveLength(1)
  for (const { drains } of [older, active, again]) await drains.stop(1_000)
  await expectConservation(ledger)
})

test.concurrent('while the circuit is open the backlog stays where it is, unopened, and goes when it lets it', async () => {
  const soc = aRehearsedSink('soc', { concurrency: 2 })
  const { ledger, keys, circuit, drains } = await rig(soc)
  await circuit.report('soc', 'broken')
  await bring(ledger, 'soc', 20)
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  expect(await pendingIn(ledger)).toEqual({ queued: 20 })
  await tests.redis.hset(keys.shared('circuit', 'soc'), 'until', 1)
  const again = aDeliveryRig({ redis: tests.redis, keys, ledger: ledger, sinks: [soc] })
  again.drains.start()
  await again.drains.reconcileOnce()
  await allLeft(ledger)
  for (const one of [drains, again.drains]) await one.stop(1_000)
  expect(soc.received).toHaveLength(20)
  await expectConservation(ledger)
})

test.concurrent('a stop cuts off what hangs, which counts as an answer lost, and gives back the rest unmarked', async () => {
  const soc = aRehearsedSink('soc', {
    concurrency: 1,
    send: (_delivery, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('cut off')))
      }),
  })
  const { ledger, drains } = await rig(soc)
  await bring(ledger, 'soc', 5)
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('it is being sent', async () => (await pendingIn(ledger))['sending'] === 1)
  await drains.stop(50)
  expect(await pendingIn(ledger)).toEqual({ queued: 4, retrying: 1 })
  const due = await readPendingRefs(ledger, 'soc', { offset: 0, count: 10 })
  const asked = { sink: 'soc', max: 10, leastRank: 1 }
  const ours = await claimDue(ledger, { owner: 'other', leaseMs: 1_000 }, asked)
  expect(due).toHaveLength(5)
  expect(ours.claims).toHaveLength(4)
  await expectConservation(ledger)
})

test.concurrent('a send that outlasts its lease stays one: the lease is renewed, and nobody repeats it', async () => {
  const sending = Promise.withResolvers<void>()
  const soc = aRehearsedSink('soc')
  soc.next(() => sending.promise)
  const { ledger, with: process } = await rig(soc)
  let aheadMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  const one = process([soc], { clock, drain: { clock } })
  await bring(ledger, 'soc', 1)
  one.drains.start()
  await one.drains.announce('main', [{ sink: 'soc' }])
  await until('it is being sent', async () => (await pendingIn(ledger))['sending'] === 1)
  const other = process([soc])
  other.drains.start()
  const due = ledger.key('due', 'soc')
  const [ref = ''] = await tests.redis.zrange(due, '0', '-1')
  for (let renewals = 0; renewals < 5; renewals += 1) {
    const soonMs = (await redisMs(tests.redis)) + 8_000 // two seconds of the lease are over
    await tests.redis.zadd(due, soonMs, ref)
    aheadMs += 2_000
    await one.drains.renewOnce()
    expect(Number(await tests.redis.zscore(due, ref))).toBeGreaterThan(soonMs)
    await other.drains.reconcileOnce()
  }
  sending.resolve()
  await allLeft(ledger)
  for (const { drains } of [one, other]) await drains.stop(1_000)
  expect(soc.received).toHaveLength(1)
})

test('a process that stops waits for nothing that is due later', async () => {
  const { drains } = await rig(aRehearsedSink('soc'))
  drains.start()
  await drains.announce('main', [{ sink: 'soc', inMs: 600_000 }])
  // longer than the test may take
  await expect(drains.stop(600_000)).resolves.toBeUndefined()
})

test.concurrent('what still hangs when a stop gives up is renewed no longer: another process takes it up', async () => {
  const soc = aRehearsedSink('soc')
  soc.next(() => new Promise(() => undefined))
  const { ledger, with: process } = await rig()
  const leaseMs = 300
  const { drains } = process([soc], { leaseMs, drain: { holder: { owner: 'r1', leaseMs } } })
  await bring(ledger, 'soc', 1)
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('it is being sent', async () => (await pendingIn(ledger))['sending'] === 1)
  await drains.stop(100)
  const asked = { sink: 'soc', max: 1, leastRank: 1 }
  const claim = () => claimDue(ledger, { owner: 'r2', leaseMs }, asked)
  await until('its lease ends', async () => (await claim()).claims.length === 1)
  expect((await readRecord(ledger, ledger.fingerprints.recordId('a/high/0')))?.items).toHaveLength(
    1,
  )
})

test.concurrent('a sink that batches goes on batch after batch, and keeps its wait for the rest', async () => {
  const siem = aRehearsedSink('siem', { batch: { ...batch, waitMs: 300 }, concurrency: 2 })
  const { ledger, with: process } = await rig(siem)
  const leaseMs = 600_000 // a batch for each lease would take longer than the test may
  const { drains } = process([siem], { leaseMs, drain: { holder: { owner: 'r1', leaseMs } } })
  const events = Array.from({ length: 95 }, (_, i) => routed({ uid: `a/b/${i}` }, ['siem']))
  await takeIn(ledger, events, { batchWaitMs: 300 })
  drains.start()
  await drains.announce('main', [{ sink: 'siem', inMs: 300 }])
  await allLeft(ledger, 'siem')
  await drains.stop(1_000)
  expect(siem.received.map(({ members }) => members.length).toSorted((a, b) => a - b)).toEqual([
    5,
    ...Array.from({ length: 9 }, () => 10),
  ])
  await expectConservation(ledger)
})

test.concurrent('a stop on a Redis that takes nothing any more ends, and never spins', async () => {
  const soc = aRehearsedSink('soc', { limitPerSecond: 1_000 })
  const { ledger, drains } = await rig(soc)
  await bring(ledger, 'soc', 5)
  let isReadOnly = false
  around(ledger, (script, run, ...args) => {
    isReadOnly ||= script === 'advance-claims' && String(args[0]).includes('"begin":[{')
    return isReadOnly ? Promise.reject(new Error('READONLY')) : run()
  })
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('a begin was refused', () => isReadOnly)
  await drains.stop(300)
  let turns = 0
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      turns += 1
      if (turns === 3) resolve(clearInterval(timer))
    }, 10)
  })
  expect(turns).toBe(3) // timers fire
  expect(soc.received).toEqual([])
})

test.concurrent('a message that cannot be made ends no process: it comes again, and the next ones go', async () => {
  const soc = aRehearsedSink('soc', { concurrency: 1 })
  const { ledger, with: process } = await rig(soc)
  let calls = 0
  const serviceLink = (): null => {
    calls += 1
    if (calls === 1) throw new Error('a defect')
    return null
  }
  const { drains } = process([soc], { drain: { serviceLink } })
  await bring(ledger, 'soc', 3)
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('the others went', () => soc.received.length === 2)
  await drains.stop(1_000)
  expect(await pendingIn(ledger)).toEqual({ retrying: 1 })
  await expectConservation(ledger)
})
