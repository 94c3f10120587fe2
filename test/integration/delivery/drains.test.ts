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
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { SinkError, type Sink } from '../../../src/sinks/sink.ts'
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
import { expectConservation, redisForTests, redisMs, routed, takeIn } from '../../support/ledger.ts'
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

test.concurrent('one message tries whether a sink is back, whoever else has something for it', async () => {
  const sending = Promise.withResolvers<void>()
  const soc = aRehearsedSink('soc', { concurrency: 8 })
  soc.next(async () => {
    await sending.promise
    throw new SinkError('unavailable', 'still down')
  })
  const { ledger, keys, circuit, drains } = await rig(soc)
  await circuit.report('soc', 'broken')
  await tests.redis.hset(keys.shared('circuit', 'soc'), 'until', 1)
  await bring(ledger, 'soc', 20)
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('it is tried', () => soc.received.length === 1)
  const other = aDeliveryRig({ redis: tests.redis, keys, ledger: ledger, sinks: [soc] })
  other.drains.start()
  await other.drains.announce('main', [{ sink: 'soc' }])
  expect(await pendingIn(ledger)).toEqual({ queued: 19, sending: 1 })
  sending.resolve()
  await until('it failed', async () => (await pendingIn(ledger))['retrying'] === 1)
  await until('its circuit is open again', async () => {
    const { state } = await circuit.read('soc', Date.now())
    return state === 'open'
  })
  for (const one of [drains, other.drains]) await one.stop(1_000)
  expect(soc.received).toHaveLength(1)
  expect(await pendingIn(ledger)).toEqual({ queued: 19, retrying: 1 })
})

test.concurrent('a sink that asks for a pause gets it from a replica that has claims, too, and gets one message', async () => {
  const asked = Promise.withResolvers<void>()
  const [soc, same] = [1, 2].map(() => aRehearsedSink('soc', { limitPerSecond: 0.5 }))
  soc!.next(async () => {
    await asked.promise
    throw new SinkError('rate_limited', 'slower', { retryAfterMs: 60_000 })
  })
  const { ledger, drains, with: process } = await rig(soc!)
  const other = process([same!], { drain: { holder: { owner: 'other', leaseMs: 10_000 } } })
  await bring(ledger, 'soc', 20)
  for (const one of [drains, other.drains]) one.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('it is tried', () => soc!.received.length === 1)
  await other.drains.announce('main', [{ sink: 'soc' }])
  const holders = (): Promise<string[]> => tests.redis.hvals(ledger.key('claims'))
  await until('the other has claims', async () => /other/.test(String(await holders())))
  asked.resolve()
  await until('all is given back', async () => (await holders()).length === 0)
  for (const one of [drains, other.drains]) await one.stop(1_000)
  expect(soc!.received.length + same!.received.length).toBe(1)
  expect(await pendingIn(ledger)).toEqual({ queued: 19, retrying: 1 })
})

test.concurrent('a sink without a limit that asks for a pause is left alone with all that was claimed for it', async () => {
  let aheadMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  const ending = Promise.withResolvers<void>()
  const soc = aRehearsedSink('soc')
  soc.next(() => ending.promise)
  const { ledger, circuit, with: process } = await rig()
  const { drains } = process([soc], { clock, drain: { clock } })
  await bring(ledger, 'soc', 8)
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('it is being sent', () => soc.received.length === 1)
  await circuit.report('soc', 'none', { pauseMs: 60_000 }) // by another replica
  aheadMs += 300
  ending.resolve()
  await until(
    'the rest is given back',
    async () => (await tests.redis.hlen(ledger.key('claims'))) === 0,
  )
  await drains.stop(1_000)
  expect(soc.received).toHaveLength(1)
  expect(await pendingIn(ledger)).toEqual({ queued: 7 })
})

test.concurrent('a replica that finds nothing to send leaves the place to one that does', async () => {
  const soc = aRehearsedSink('soc', { limitPerSecond: 0.01 })
  const { drains, hints, options } = await rig(soc)
  await hints.write([{ account: 'main', sink: 'soc', inMs: 0 }])
  drains.start()
  await drains.readHintsOnce()
  await until('it looked', async () => (await hints.read(10)).length === 0)
  await drains.stop(1_000)
  expect(await options.pace.take(soc)).toMatchObject({ isTaken: true })
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

test('a pass over the leases ends when they are renewed, so that no second one begins beside it', async () => {
  let aheadMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  const waits: number[] = []
  const sleep: Clock['sleep'] = (ms, signal) => {
    waits.push(ms)
    return clock.sleep(ms, signal)
  }
  const [sending, answering] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const soc = aRehearsedSink('soc')
  soc.next(() => sending.promise)
  const { ledger, with: process } = await rig()
  const { drains } = process([soc], { clock: { ...clock, sleep }, drain: { clock } })
  await bring(ledger, 'soc', 1)
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('it is being sent', async () => (await pendingIn(ledger))['sending'] === 1)
  let isAsked = false
  around(ledger, async (_script, run, ...args) => {
    if (!String(args[0]).includes('"renew":[')) return run()
    isAsked = true
    await answering.promise
    return run()
  })
  aheadMs += 4_000
  let isOver = false
  waits.length = 0
  const pass = drains.renewOnce().then(() => (isOver = true))
  // where Redis hangs it ends, too, before the next third of the lease is over
  expect(waits).toEqual([expect.toSatisfy((ms: number) => ms < 10_000 / 3)])
  await until('a lease is being renewed', () => isAsked)
  expect(isOver).toBe(false)
  answering.resolve()
  await pass
  sending.resolve()
  await drains.stop(1_000)
})

test('a process that stops waits for nothing that is due later', async () => {
  const { drains } = await rig(aRehearsedSink('soc'))
  drains.start()
  await drains.announce('main', [{ sink: 'soc', inMs: 600_000 }])
  // longer than the test may take
  await expect(drains.stop(600_000)).resolves.toBeUndefined()
})

test.concurrent('a process that stops keeps the lease of what it still sends: nobody repeats it', async () => {
  const sending = Promise.withResolvers<void>()
  const soc = aRehearsedSink('soc')
  soc.next(() => sending.promise)
  const { ledger, with: process } = await rig()
  const leaseMs = 30_000
  // time of the process passes a hundred times as fast
  const clock: Clock = {
    ...systemClock,
    monotonic: () => 100 * systemClock.monotonic(),
    sleep: (ms, signal) => systemClock.sleep(ms / 100, signal),
  }
  const holder = { owner: 'r1', leaseMs }
  const { drains } = process([soc], { leaseMs, clock, drain: { holder, clock } })
  await bring(ledger, 'soc', 1)
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('it is being sent', async () => (await pendingIn(ledger))['sending'] === 1)
  let renewals = 0
  around(ledger, (_script, run, ...args) => {
    renewals += String(args[0]).includes('"renew":[') ? 1 : 0
    return run()
  })
  const stopped = drains.stop(60_000_000)
  await until('its lease was renewed for as long as two leases', () => renewals >= 8)
  const asked = { sink: 'soc', max: 1, leastRank: 1 }
  expect((await claimDue(ledger, { owner: 'r2', leaseMs }, asked)).claims).toEqual([])
  sending.resolve()
  await stopped
  await expectConservation(ledger)
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

test.concurrent('a process that was frozen for long sends nothing that it claimed before', async () => {
  let frozenMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + frozenMs }
  const soc = aRehearsedSink('soc')
  const { ledger, with: process } = await rig(soc)
  const { drains } = process([soc], { clock, drain: { clock } })
  await bring(ledger, 'soc', 1)
  around(ledger, async (script, run, ...args) => {
    const answer = await run()
    if (script === 'advance-claims' && String(args[0]).includes('"begin":[{')) frozenMs += 6_000
    return answer
  })
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await until('it woke', () => frozenMs > 0)
  await drains.stop(1_000)
  expect(soc.received).toEqual([])
  expect(await itemOf(ledger, 'a/high/0')).toMatchObject({ attempts: 0, repeatRisks: 0 })
  await expectConservation(ledger)
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

const away = (): Promise<never> => Promise.reject(new Error('its shard is away'))
const hanging = (): Promise<never> => new Promise(() => undefined)

test.concurrent.each([
  ['fails', 'claim-due', away],
  ['fails', 'advance-claims', away],
  ['hangs', 'claim-due', hanging],
  ['hangs', 'advance-claims', hanging],
] as const)(
  'an account whose part of Redis %s at %s delays no other account of its sink',
  async (_how, script, answer) => {
    const soc = aRehearsedSink('soc')
    const keys = tests.keys()
    const [broken, whole] = [
      await tests.ledger({ keys, account: 'broken' }),
      await tests.ledger({ keys, account: 'whole' }),
    ]
    await bring(broken, 'soc', 5, 'critical')
    await bring(whole, 'soc', 5, 'low')
    let asked = 0
    around(broken, (name, run) => {
      if (name !== script) return run()
      asked += 1
      return answer()
    })
    const find = (name: string): AccountLedger => (name === 'broken' ? broken : whole)
    const shared = { redis: tests.redis, keys, ledger: whole, sinks: [soc] }
    const { drains } = aDeliveryRig({ ...shared, drain: { findLedger: find } })
    const beganMs = systemClock.monotonic()
    drains.start()
    await drains.announce('broken', [{ sink: 'soc', rank: 5 }])
    await drains.announce('whole', [{ sink: 'soc', rank: 2 }])
    await allLeft(whole)
    const seconds = (systemClock.monotonic() - beganMs) / 1_000
    await drains.stop(100)
    expect(asked).toBeLessThan(5 + seconds) // once a second
    expect(soc.received.map(({ members }) => members[0]?.account)).toEqual(
      Array.from({ length: 5 }, () => 'whole'),
    )
  },
)

test.concurrent('where one part of Redis hangs, the leases of the others are renewed on time', async () => {
  const ending = Promise.withResolvers<void>()
  const soc = aRehearsedSink('soc', {
    concurrency: 2,
    send: async () => {
      await ending.promise
      return { answer: '' }
    },
  })
  const keys = tests.keys()
  const [hung, whole] = [
    await tests.ledger({ keys, account: 'hung' }),
    await tests.ledger({ keys, account: 'whole' }),
  ]
  for (const ledger of [hung, whole]) await bring(ledger, 'soc', 1)
  let hangs = false
  around(hung, (_script, run) => (hangs ? hanging() : run()))
  const find = (name: string): AccountLedger => (name === 'hung' ? hung : whole)
  let aheadMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  // what hangs is given up after a quarter of a lease
  const shared = { redis: tests.redis, keys, ledger: whole, sinks: [soc], leaseMs: 400 }
  const { drains } = aDeliveryRig({ ...shared, clock, drain: { findLedger: find, clock } })
  drains.start()
  for (const name of ['hung', 'whole']) await drains.announce(name, [{ sink: 'soc' }])
  for (const ledger of [hung, whole]) {
    await until('it is being sent', async () => (await pendingIn(ledger))['sending'] === 1)
  }
  hangs = true
  const due = whole.key('due', 'soc')
  const [ref = ''] = await tests.redis.zrange(due, '0', '-1')
  for (let renewals = 0; renewals < 3; renewals += 1) {
    const beforeMs = Number(await tests.redis.zscore(due, ref))
    aheadMs += 2_000
    await drains.renewOnce()
    await expect
      .poll(async () => Number(await tests.redis.zscore(due, ref)))
      .toBeGreaterThan(beforeMs)
  }
  ending.resolve()
  await allLeft(whole)
  await drains.stop(100)
})

test.concurrent('a circuit that closes holds nothing up while the tries that wait are brought forward', async () => {
  const soc = aRehearsedSink('soc')
  const { ledger, keys, circuit, with: process } = await rig()
  await circuit.report('soc', 'broken')
  await tests.redis.hset(keys.shared('circuit', 'soc'), 'until', 1)
  await bring(ledger, 'soc', 5)
  const { drains } = process([soc], { drain: { retryNow: { retryAll: hanging } } })
  drains.start()
  await drains.announce('main', [{ sink: 'soc' }])
  await allLeft(ledger)
  await drains.stop(100)
  expect(soc.received).toHaveLength(5)
})

test.concurrent.each([-60_000, 60_000])(
  'a try comes again when the table says, by a clock of the process that is %s ms off, too',
  async (offMs) => {
    const clock = { ...systemClock, now: () => Date.now() + offMs }
    const soc = aRehearsedSink('soc')
    soc.next('unavailable')
    const { ledger, with: process } = await rig()
    const { drains } = process([soc], { clock, drain: { clock } })
    await bring(ledger, 'soc', 1)
    drains.start()
    const sinceMs = Date.now()
    await drains.announce('main', [{ sink: 'soc' }])
    await until('it failed', async () => (await pendingIn(ledger))['retrying'] === 1)
    const { atMs } = await itemOf(ledger, 'a/high/0')
    await drains.stop(1_000)
    expect(atMs! - sinceMs).toBeGreaterThanOrEqual(4_000)
    expect(atMs!).toBeLessThanOrEqual(Date.now() + 6_000)
  },
)

test.concurrent.each(['accepted', 'split'])(
  'what was written is counted once, though the reply was lost: %s',
  async (how) => {
    const siem = aRehearsedSink('siem', { batch: { ...batch, waitMs: 1 } })
    if (how === 'split') siem.next('invalid')
    const { ledger, drains, options } = await rig(siem)
    await takeIn(
      ledger,
      ['a/b/1', 'a/b/2'].map((uid) => routed({ uid }, ['siem'])),
      { batchWaitMs: 1 },
    )
    let lost = 0
    around(ledger, async (script, run, ...args) => {
      const answer = await run()
      const isSettling = script === 'advance-claims' && String(args[0]).includes('"settle":[{')
      if (isSettling && (lost += 1) === 1) throw new Error('the reply was lost')
      return answer
    })
    drains.start()
    await drains.announce('main', [{ sink: 'siem' }])
    await allLeft(ledger, 'siem')
    await drains.stop(1_000)
    const { body } = await options.metrics.render()
    const counted = body
      .split('\n')
      .filter((line) => /^tocsin_deliveries_total\{.* [^0]/.test(line))
    expect(
      counted.map((line) => /outcome="(\w+)".* (\d+)$/.exec(line)?.slice(1).join(' ')),
    ).toEqual(how === 'split' ? ['split 1', 'delivered 2'] : ['delivered 1'])
    await expectConservation(ledger)
  },
)

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
