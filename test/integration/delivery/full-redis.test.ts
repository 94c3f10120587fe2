import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSinkWorkers } from '../../../src/delivery/sink-workers.ts'
import { createDeliverer } from '../../../src/delivery/deliverer.ts'
import { createSendPace } from '../../../src/delivery/send-pace.ts'
import { openBook, type Book } from '../../../src/ledger/book.ts'
import { readAccounting } from '../../../src/ledger/accounting.ts'
import { hasRoom } from '../../../src/redis/safety.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import type { Redis } from '../../../src/redis/connection.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { createMetrics } from '../../../src/runtime/metrics.ts'
import { aDeliveryRig } from '../../support/delivery.ts'
import {
  connectTo,
  expectConservation,
  ledgerConfig,
  routed,
  takeIn,
} from '../../support/ledger.ts'
import { startRedis, type TestRedis } from '../../support/redis.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { until } from '../../support/rehearsal.ts'

let server: TestRedis
let redis: Redis

beforeAll(async () => {
  server = await startRedis({ settings: ['maxmemory 20mb'] })
  redis = connectTo(server.url)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

/** Until Redis refuses to take any more. */
async function fill(): Promise<void> {
  for (const size of [100_000, 1_000, 1]) {
    let isFull = false
    for (let i = 0; !isFull; i += 1) {
      const set = redis.set(`filler:${size}:${i}`, 'x'.repeat(size))
      isFull = await set.then(
        () => false,
        () => true,
      )
    }
  }
}

async function rig(prefix: string) {
  const keys = createKeys(prefix)
  const book: Book = await openBook({ redis, keys, account: 'main', config: ledgerConfig })
  const siem = aRehearsedSink('siem', { limitPerSecond: 1_000 })
  return { keys, book, siem, ...aDeliveryRig({ redis, keys, book, sinks: [siem] }) }
}

test('a full Redis takes no page in, and what it holds is delivered all the same', async () => {
  const { book, siem, deliver } = await rig('drain')
  const accepted = await takeIn(book, [routed({ uid: 'a/b/1' }, ['siem'])])
  const [made] = accepted.status === 'committed' ? accepted.made : []
  expect(await hasRoom(redis)).toBe(true)
  await fill()
  expect(await hasRoom(redis)).toBe(false)
  await expect(takeIn(book, [routed({ uid: 'a/b/2' }, ['siem'])])).rejects.toThrow(/OOM/)
  expect(await deliver(siem, made!.ref)).toEqual({ next: 'done', halves: [] })
  const accounting = await expectConservation(book)
  expect(accounting.feeds['brand']).toMatchObject({ fetched: 1 })
  expect(accounting.sinks['siem']).toMatchObject({ created: 1, delivered: 1 })
  await redis.flushall()
})

test('workers of a full Redis ask now and then instead of spinning, and go on when there is room', async () => {
  const { keys, book, siem, queue, circuit } = await rig('spin')
  const accepted = await takeIn(book, [routed({ uid: 'a/b/1' }, ['siem'])])
  await queue.addMade('main', accepted.status === 'committed' ? accepted.made : [])
  await fill()
  let errors = 0
  const destination = { write: (line: string) => void (errors += Number(/OOM/.test(line))) }
  const logger = createLogger({ level: 'debug', destination })
  const clock = systemClock
  const pace = createSendPace(redis, keys, clock)
  const deliverer = createDeliverer({
    book: () => book,
    serviceLink: () => null,
    circuit,
    pace,
    replica: 'r',
    clock,
    logger,
    metrics: createMetrics({ clock }),
  })
  const sinks = new Map([['siem', siem]])
  const parts = { sinks, deliverer, queue, redis, keys, clock, logger }
  const workers = createSinkWorkers({ ...parts, book: () => book })
  workers.start()
  await until('the worker meets the full Redis', () => errors > 0)
  const sinceMs = clock.monotonic()
  await until('a second is over', () => clock.monotonic() - sinceMs > 1_000)
  expect(errors).toBeLessThan(20)
  for (const name of await redis.keys('filler:*')) await redis.del(name)
  await until('it goes on', async () => (await readAccounting(book)).sinks['siem']?.delivered === 1)
  await workers.stop(1_000)
  await queue.close()
})
