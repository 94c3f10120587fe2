/** A store of version 0.4.0, with the BullMQ queues that its replicas worked off. */
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { beforeEach, expect, test } from 'vitest'
import { drainOldQueues, upgradeStore } from '../../../src/delivery/upgrade.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { claimSchema, readSchema } from '../../../src/redis/health.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import {
  isIndexed,
  isMigrationScanDone,
  runMigrationScan,
} from '../../../src/store/record-index.ts'
import { aDeliveryRig } from '../../support/delivery.ts'
import { expectConservation, redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'
import { until } from '../../support/rehearsal.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { loadStoreOf04 } from '../../support/store-of-0.4.ts'

const tests = redisForTests()
const keys = createKeys('tocsin')
let ledger: AccountLedger

beforeEach(async () => {
  await loadStoreOf04(tests.redis)
  await tests.redis.set(keys.shared('schema'), 1)
  ledger = await tests.ledger({ keys, account: 'main' })
})

function upgrade(sinks: string[]): Promise<void> {
  const shared = { redis: tests.redis, keys, ledgers: [ledger], clock: systemClock, logger: silent }
  return upgradeStore({ ...shared, sinks, waitMs: 50 })
}

test('running replicas of the older version idle from then on, and none starts again', async () => {
  const connection = { connection: tests.redis, prefix: keys.queuePrefix }
  const queue = new Queue('sink-lake', connection)
  await queue.add('item', { account: 'main', ref: 'i:0a:0:lake' }, { jobId: 'waiting' })
  await queue.add('item', { account: 'main', ref: 'i:0b:0:lake' }, { delay: 3_600_000 })
  await upgrade(['lake'])
  const taken: string[] = []
  const old = new Worker('sink-lake', async ({ id }) => void taken.push(id ?? ''), connection)
  await old.waitUntilReady()
  await queue.add('item', { account: 'main', ref: 'i:0c:0:lake' }, { jobId: 'by a reconciler' })
  expect(await queue.isPaused()).toBe(true)
  expect(await queue.getDelayedCount()).toBe(0)
  expect(await queue.getJob('waiting')).toBeUndefined()
  expect(await readSchema(tests.redis, keys)).toBe(2)
  await old.close()
  expect(taken).toEqual([])
  await queue.close()
})

test('a backlog of jobs is removed in steps, so that Redis serves others meanwhile', async () => {
  const queue = new Queue('sink-lake', { connection: tests.redis, prefix: keys.queuePrefix })
  const jobs = Array.from({ length: 1_300 }, (_none, n) => {
    return {
      name: 'item',
      data: {},
      opts: n % 3 === 0 ? { delay: 3_600_000 } : { priority: n % 3 },
    }
  })
  await queue.addBulk(jobs)
  const watching = new Redis(tests.server.url)
  const monitor = await watching.monitor()
  const removedByScript = [0]
  let isSeen = false
  monitor.on('monitor', (_time: string, [name = '', key = '']: string[], source: string) => {
    isSeen ||= key === 'the end'
    if (source !== 'lua') removedByScript.push(0)
    else if (name.toLowerCase() === 'del' && key.includes('sink-lake'))
      removedByScript.push((removedByScript.pop() ?? 0) + 1)
  })
  await upgrade(['lake'])
  await tests.redis.get('the end')
  await until('all was seen', async () => isSeen)
  monitor.disconnect()
  watching.disconnect()
  expect(await queue.getJobCountByTypes('waiting', 'prioritized', 'delayed')).toBe(0)
  expect(removedByScript.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(1_300)
  expect(Math.max(...removedByScript)).toBeLessThanOrEqual(510)
  await queue.close()
})

test('jobs that an older replica adds after the upgrade are removed once, later, and never looked for again', async () => {
  const connection = { connection: tests.redis, prefix: keys.queuePrefix }
  const queues = ['feeds', 'sink-lake', 'sink-soc'].map((name) => new Queue(name, connection))
  for (const queue of queues) await queue.add('job', {}, { jobId: 'from before' })
  const waits: number[] = []
  const clock = { ...systemClock, sleep: async (ms: number) => void waits.push(ms) }
  const again = { redis: tests.redis, keys, clock, logger: silent, afterMs: 600_000 }
  const empty = (): Promise<void> => drainOldQueues(again, new AbortController().signal)
  const count = async (): Promise<number[]> =>
    Promise.all(queues.map((queue) => queue.getJobCountByTypes('waiting', 'delayed')))
  await empty()
  expect(await count()).toEqual([1, 1, 1])
  await upgrade(['lake'])
  expect(await count()).toEqual([0, 0, 0])
  for (const queue of queues) await queue.add('job', {}, { jobId: 'from a replica', delay: 1_000 })
  await empty()
  expect(waits).toEqual([600_000])
  expect(await count()).toEqual([0, 0, 0])
  expect(await Promise.all(queues.map((queue) => queue.isPaused()))).toEqual([true, true, true])
  await empty()
  expect(waits).toEqual([600_000])
  await Promise.all(queues.map((queue) => queue.close()))
})

test('what was on its way in the older version arrives: nothing is lost, nothing is left', async () => {
  await upgrade(['lake'])
  const looking = { holder: 'r', mayGoOn: () => Promise.resolve(true) }
  expect(await runMigrationScan({ redis: tests.redis, keys }, looking)).toBe(true)
  const sinks = ['lake', 'soc', 'siem', 'oncall'].map((name) => aRehearsedSink(name))
  const { drains } = aDeliveryRig({ redis: tests.redis, keys, ledger: ledger, sinks })
  const due = await tests.redis.zrange(ledger.key('due', 'lake'), '0', '-1')
  for (const ref of due) await tests.redis.zadd(ledger.key('due', 'lake'), 1, ref) // years have passed
  drains.start()
  await drains.reconcileOnce()
  await until('what was due went', async () => {
    return (await tests.redis.zcard(ledger.key('due', 'lake'))) === 0
  })
  await drains.stop(1_000)
  expect(sinks[0]?.received.length).toBeGreaterThan(0)
  const { lake } = (await expectConservation(ledger)).sinks
  expect(lake?.pending['queued'] ?? 0).toBe(0)
  expect(lake?.pending['retrying'] ?? 0).toBe(0)
  expect((await readAccounting(ledger)).sinks['lake']?.delivered).toBeGreaterThan(0)
})

test('who went back to 0.4 and comes again finds everything in the index, that of new accounts too', async () => {
  const { redis } = tests
  const looking = { holder: 'r', mayGoOn: () => Promise.resolve(true) }
  await upgrade(['lake'])
  await runMigrationScan({ redis, keys }, looking)
  await redis.set(keys.shared('schema'), 1)
  const names = await redis.keys(ledger.key('rec', '*'))
  const [gone = '', kept = ''] = names
  await redis.del(gone)
  await redis.copy(kept, ledger.key('rec', 'f'.repeat(24)))
  await redis.set(keys.account('added', 'mark-key'), 'ab'.repeat(32))
  await redis.copy(kept, keys.account('added', 'rec', 'e'.repeat(24)))
  const added = await tests.ledger({ keys, account: 'added' })

  await upgrade(['lake'])
  expect(await isIndexed(ledger)).toBe(false)
  expect(await runMigrationScan({ redis, keys }, looking)).toBe(true)
  const of = async (one: AccountLedger): Promise<[number, number, boolean]> => [
    Number(await redis.zcard(one.key('records'))),
    Number(await redis.hget(one.key('counters'), 'records')),
    await isIndexed(one),
  ]
  expect(await of(ledger)).toEqual([names.length, names.length, true])
  expect(await of(added)).toEqual([1, 1, true])
})

test('an account that a replica of 0.4 added after the look is looked for once more', async () => {
  const place = { redis: tests.redis, keys }
  const looking = { holder: 'r', mayGoOn: () => Promise.resolve(true) }
  await runMigrationScan(place, looking)
  await tests.redis.set(keys.account('added', 'mark-key'), 'ab'.repeat(32))
  const added = await tests.ledger({ keys, account: 'added' })
  expect(await isMigrationScanDone(place)).toBe(false)
  expect(await runMigrationScan(place, looking)).toBe(true)
  expect(await isIndexed(added)).toBe(true)
})

test('a command leaves the layout as it is, a daemon that finds it taken over waits for nothing', async () => {
  await claimSchema(tests.redis, keys)
  expect(await readSchema(tests.redis, keys)).toBe(1)
  await upgrade(['lake'])
  let slept = 0
  const clock = { ...systemClock, sleep: async () => void (slept += 1) }
  const shared = { redis: tests.redis, keys, ledgers: [ledger], clock, logger: silent }
  await upgradeStore({ ...shared, sinks: ['lake'], waitMs: 10_000 })
  expect(slept).toBe(0)
})

test('of two replicas that start at once the second leaves alone what the first has begun', async () => {
  const place = { redis: tests.redis, keys }
  const counts = async (): Promise<number[]> => [
    await tests.redis.zcard(ledger.key('records')),
    Number(await tests.redis.hget(ledger.key('counters'), 'records')),
  ]
  const firstIsDone = async (): Promise<void> => {
    await upgrade(['lake'])
    await takeIn(ledger, [routed({ uid: 'a/b/new' }, ['lake'])])
    await runMigrationScan(place, { holder: 'r', mayGoOn: () => Promise.resolve(true) })
  }
  const clock = { ...systemClock, sleep: firstIsDone }
  const shared = { ...place, ledgers: [ledger], clock, logger: silent }
  await upgradeStore({ ...shared, sinks: ['lake'], waitMs: 10_000 })
  const stored = await tests.redis.keys(ledger.key('rec', '*'))
  expect(await counts()).toEqual([stored.length, stored.length])
  expect(await isMigrationScanDone(place)).toBe(true)
})

test('a layout newer than this version is refused in words that say what to do', async () => {
  await tests.redis.set(keys.shared('schema'), 3)
  await expect(upgrade(['lake'])).rejects.toThrow(/layout 3, this version writes 2: run the newer/)
})
