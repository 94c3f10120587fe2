/**
 * Everything between the ledger and the sinks, with real Redis and sinks that are rehearsed. What waits for a
 * lease or a pause runs beside others, each with a ledger of its own.
 */
import { expect, test } from 'vitest'
import { readAccounting } from '../../../src/store/accounts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readPayload } from '../../../src/store/records.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { type Sink } from '../../../src/sinks/sink.ts'
import { claimDue } from '../../../src/delivery/claims.ts'
import type { DueInfo } from '../../../src/delivery/due-accounts.ts'
import type { SinkDrain } from '../../../src/delivery/sink-drain.ts'
import {
  beginAttempt,
  makeDue,
  peekBatch,
  sealBatch,
  settleAttempt,
} from '../../support/attempts.ts'
import { aDeliveryRig, type DeliveryRig, type DeliveryRigOptions } from '../../support/delivery.ts'
import { around } from '../../support/grouping.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'
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

test('the slow pass finds what nobody announced: queued, retrying, interrupted, frozen, collected', async () => {
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

test('a process that saw a lease takes up the work when the lease ends, without another pass', async () => {
  const soc = aRehearsedSink('soc')
  const { ledger, drains } = await rig(soc)
  await bring(ledger, 'soc', 3)
  await claimDue(ledger, { owner: 'dead', leaseMs: 300 }, { sink: 'soc', max: 3, leastRank: 1 })
  drains.start()
  await drains.reconcileOnce()
  expect(soc.received).toEqual([])
  await allLeft(ledger)
  await drains.stop(1_000)
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
  drains.announce('main', [{ sink: 'soc' }])
  await until('it is being sent', async () => (await pendingIn(ledger))['sending'] === 1)
  await drains.stop(50)
  expect(await pendingIn(ledger)).toEqual({ queued: 4, retrying: 1 })
  const due = await ledger.redis.zrange(ledger.key('due', 'soc'), '0', '-1')
  const asked = { sink: 'soc', max: 10, leastRank: 1 }
  const ours = await claimDue(ledger, { owner: 'other', leaseMs: 60_000 }, asked)
  expect(due).toHaveLength(5)
  expect(ours.claims).toMatchObject(Array.from({ length: 4 }, () => ({ mayBeRepeat: false })))
  const cutOff = due.find((ref) => !ours.claims.some((one) => one.ref === ref))!
  await makeDue(ledger, cutOff)
  const later = await claimDue(ledger, { owner: 'other', leaseMs: 1_000 }, asked)
  expect(later.claims).toMatchObject([{ ref: cutOff, mayBeRepeat: true }])
  await expectConservation(ledger)
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
  drains.announce('main', [{ sink: 'soc' }])
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
    drains.announce('broken', [{ sink: 'soc', rank: 5 }])
    drains.announce('whole', [{ sink: 'soc', rank: 2 }])
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
  for (const name of ['hung', 'whole']) drains.announce(name, [{ sink: 'soc' }])
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
  drains.announce('main', [{ sink: 'soc' }])
  await allLeft(ledger)
  await drains.stop(100)
  expect(soc.received).toHaveLength(5)
})

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
    drains.announce('main', [{ sink: 'siem' }])
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
  drains.announce('main', [{ sink: 'soc' }])
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

test('what a script made is due at once, with its batch, or without its full event', async () => {
  const nudged: Record<string, DueInfo> = {}
  const keys = tests.keys()
  const sinks = ['soc', 'slow', 'people', 'quiet'].map((name) => aRehearsedSink(name))
  sinks.push(aRehearsedSink('siem', { batch: { ...batch, waitMs: 90_000 } }))
  const createDrain = ({ name }: Sink): SinkDrain => {
    const nudge = (_account: string, due: DueInfo): void => void (nudged[name] = due)
    return { isIdle: true, nudge } as unknown as SinkDrain
  }
  const drains = aDeliveryRig({
    redis: tests.redis,
    keys,
    ledger: await tests.ledger({ keys }),
    sinks,
    createDrain,
  }).drains
  drains.start()
  const about = { ref: 'i:x:0:y', sv: 'high', rk: 4 }
  drains.announceChanges('main', [
    { ...about, k: 'soc', kind: 'single' },
    { ...about, k: 'siem', kind: 'collect' },
    { ...about, k: 'slow', kind: 'detail' },
    { ...about, k: 'people', kind: 'group' },
    { ...about, k: 'quiet', kind: 'suppressed' },
    { ...about, k: 'of another configuration', kind: 'single' },
  ])
  expect(nudged).toEqual({
    soc: { rank: 4, inMs: 0 },
    siem: { rank: 4, inMs: 90_000 },
    slow: { rank: 4, inMs: 20_000 },
  })
})

test('the slow pass looks at every account, though one of them fails, and says so', async () => {
  const keys = tests.keys()
  const names = Array.from({ length: 41 }, (_, i) => `account-${i}`)
  const ledgers = await Promise.all(names.map((account) => tests.ledger({ keys, account })))
  const soc = aRehearsedSink('soc')
  for (const ledger of [ledgers[0]!, ledgers[40]!]) await takeIn(ledger, [routed({ uid: 'a/b/1' })])
  const [first] = ledgers
  const { redis } = first!
  Object.assign(ledgers[20]!, {
    redis: new Proxy(redis, {
      get: (target, name) => {
        if (name === 'smembers') return () => Promise.reject(new Error('its shard is away'))
        return Reflect.get(target, name) as unknown
      },
    }),
  })
  const find = (name: string): AccountLedger | undefined =>
    ledgers.find(({ account }) => account === name)
  const drain = { findLedger: find }
  const { drains } = aDeliveryRig({
    redis,
    keys,
    ledger: first!,
    ledgers: ledgers,
    sinks: [soc],
    drain,
  })
  drains.start()
  let alive = 0
  await expect(drains.reconcileOnce(undefined, () => void (alive += 1))).rejects.toThrow(
    'its shard',
  )
  expect(alive).toBe(3)
  await until('both are sent', () => soc.received.length === 2)
  const withItems = drains.ledgersFor('soc').map(({ account }) => account)
  expect(withItems).toEqual(['account-0', 'account-40'])
  alive = 0
  await drains.reconcileOnce(AbortSignal.abort(), () => void (alive += 1))
  expect(alive).toBe(0)
  await drains.stop(1_000)
})
