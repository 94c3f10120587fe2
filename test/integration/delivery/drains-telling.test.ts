/** How processes tell each other of work, and what the slow pass looks at. */
import { expect, test } from 'vitest'
import { Drains } from '../../../src/delivery/drains.ts'
import type { GoneSinks } from '../../../src/delivery/relief/gone-sinks.ts'
import type { SinkDrain } from '../../../src/delivery/sink-drain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { aDeliveryRig, type DeliveryRig } from '../../support/delivery.ts'
import { aStanding, redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { until } from '../../support/rehearsal.ts'

const tests = redisForTests()

async function rig(...sinks: Sink[]): Promise<DeliveryRig & { ledger: AccountLedger; keys: Keys }> {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  return {
    ledger: ledger,
    keys,
    ...aDeliveryRig({ redis: tests.redis, keys, ledger: ledger, sinks }),
  }
}

/** In how many seconds somebody looks, up to the next ten: a slow machine may be late by so much. */
async function waits(keys: Keys): Promise<Record<string, number>> {
  const pairs = await tests.redis.zrange(keys.shared('work'), '0', '-1', 'WITHSCORES')
  const found = pairs.flatMap((pair, i) =>
    i % 2 === 0
      ? [[pair, 10 * Math.ceil((Number(pairs[i + 1]) - Date.now() - 1) / 10_000) + 0] as const]
      : [],
  )
  return Object.fromEntries(found)
}

test('of several pieces of work for one sink the earliest is told, and each sink once', async () => {
  const { drains, keys } = await rig()
  await drains.announce('main', [
    { sink: 'soc', inMs: 60_000 },
    { sink: 'soc', inMs: 30_000 },
    { sink: 'soc', inMs: 90_000 },
    { sink: 'siem' },
  ])
  expect(await waits(keys)).toEqual({ 'main|soc': 30, 'main|siem': 0 })
})

test('what a script made is told for when it leaves: at once, with its batch, or without its full event', async () => {
  const batch = { max: 10, waitMs: 90_000, maxBytes: 100_000 }
  const { drains, keys } = await rig(aRehearsedSink('siem', { batch }))
  const about = { ref: 'i:x:0:y', sv: 'high', rk: 4 }
  await drains.announceChanges('main', [
    { ...about, k: 'soc', kind: 'single' },
    { ...about, k: 'siem', kind: 'collect' },
    { ...about, k: 'gone', kind: 'collect' },
    { ...about, k: 'slow', kind: 'detail' },
    { ...about, k: 'people', kind: 'group' },
    { ...about, k: 'quiet', kind: 'suppressed' },
  ])
  expect(await waits(keys)).toEqual({
    'main|soc': 0,
    'main|siem': 90,
    'main|gone': 0,
    'main|slow': 20,
  })
})

test('a hint for a sink of another configuration is cleared, and the own ones are taken up', async () => {
  const soc = aRehearsedSink('soc')
  const { ledger, drains, keys } = await rig(soc)
  await takeIn(ledger, [routed({ uid: 'a/b/1' })])
  await drains.announce('main', [{ sink: 'soc' }, { sink: 'elsewhere' }])
  drains.start()
  await drains.readHintsOnce()
  expect(Object.keys(await waits(keys))).not.toContain('main|elsewhere')
  await until('it is sent', () => soc.received.length === 1)
  expect(drains.ledgersFor('soc')).toEqual([ledger])
  await drains.stop(1_000)
})

test('thousands of hints of a sink that is slow hide no later one, and all of them are read again', async () => {
  const [slow, soc] = [aRehearsedSink('slow'), aRehearsedSink('soc')]
  const { ledger, hints } = await rig(slow, soc)
  const nudged = new Map<string, string[]>([
    ['slow', []],
    ['soc', []],
  ])
  const drains = new Drains({
    noteGroups: () => undefined,
    sinks: new Map([slow, soc].map((sink) => [sink.name, sink])),
    createDrain: ({ name }) =>
      ({
        isIdle: true,
        nudge: (account: string) => void nudged.get(name)!.push(account),
      }) as unknown as SinkDrain,
    ledgers: [ledger],
    hints,
    goneSinks: {} as GoneSinks,
    standing: aStanding(),
    detailWaitMs: 0,
    leaseMs: 10_000,
    clock: systemClock,
    logger: silent,
  })
  const accounts = Array.from({ length: 2_500 }, (_none, at) => `a${at}`)
  await hints.write(accounts.map((account) => ({ account, sink: 'slow', inMs: -60_000 })))
  await hints.write([{ account: 'main', sink: 'soc', inMs: 0 }])
  drains.start()
  for (let reads = 0; reads < 3; reads += 1) await drains.readHintsOnce()
  expect(nudged.get('soc')).toEqual(['main'])
  expect(new Set(nudged.get('slow')).size).toBe(2_500)
  for (let reads = 0; reads < 3; reads += 1) await drains.readHintsOnce()
  expect(nudged.get('slow')).toHaveLength(5_000)
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
