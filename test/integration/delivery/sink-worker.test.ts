import { expect, test } from 'vitest'
import { createDeliverer } from '../../../src/delivery/deliverer.ts'
import { createSendPace } from '../../../src/delivery/send-pace.ts'
import { createSinkWorkers, type SinkWorkers } from '../../../src/delivery/sink-workers.ts'
import { readAccounting } from '../../../src/ledger/accounting.ts'
import type { Book } from '../../../src/ledger/book.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createMetrics } from '../../../src/runtime/metrics.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { aDeliveryRig, type DeliveryRig } from '../../support/delivery.ts'
import { expectConservation, redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { until } from '../../support/rehearsal.ts'

const tests = redisForTests()

interface Rig extends DeliveryRig {
  book: Book
  keys: Keys
  workers: SinkWorkers
  /** Takes events in and queues their work. */
  bring: (count: number) => Promise<void>
  stop: () => Promise<void>
}

async function rig(sink: Sink): Promise<Rig> {
  const keys = tests.keys()
  const book = await tests.book({ keys })
  const parts = aDeliveryRig({ redis: tests.redis, keys, book, sinks: [sink] })
  const clock = systemClock
  const shared = { redis: tests.redis, keys, clock, logger: silent }
  const deliverer = createDeliverer({
    book: () => book,
    serviceLink: () => null,
    circuit: parts.circuit,
    pace: createSendPace(tests.redis, keys, clock),
    replica: 'r1',
    clock,
    logger: silent,
    metrics: createMetrics({ clock }),
  })
  const sinks = new Map([[sink.name, sink]])
  const workers = createSinkWorkers({
    ...shared,
    sinks,
    book: () => book,
    deliverer,
    queue: parts.queue,
  })
  let brought = 0
  return {
    ...parts,
    book,
    keys,
    workers,
    async bring(count) {
      const events = Array.from({ length: count }, () =>
        routed({ uid: `a/b/${(brought += 1)}` }, [sink.name]),
      )
      const accepted = await takeIn(book, events)
      if (accepted.status === 'committed') await parts.queue.addMade('main', accepted.made)
    },
    async stop() {
      await workers.stop(2_000)
      await parts.queue.close()
    },
  }
}

async function pendingIn(book: Book, state: string): Promise<number> {
  return (await readAccounting(book)).sinks['soc']?.pending[state] ?? 0
}

test('while the circuit is open the worker stands still: the backlog stays where it is, unopened', async () => {
  const soc = aRehearsedSink('soc', { concurrency: 2 })
  const { book, keys, circuit, workers, bring, stop } = await rig(soc)
  await circuit.report('soc', 'broken')
  await bring(20)
  workers.start()
  const delayed = `${keys.queuePrefix}:sink-soc:delayed`
  const waiting = `${keys.queuePrefix}:sink-soc:prioritized`
  await until('it met the open circuit', async () => (await tests.redis.zcard(delayed)) > 0)
  await bring(1)
  expect(await tests.redis.zcard(waiting)).toBeGreaterThanOrEqual(21 - 2 * soc.concurrency)
  expect(await pendingIn(book, 'queued')).toBe(21)
  expect(soc.received).toEqual([])
  await stop()
})

test('when the circuit lets it, the worker goes on and drains everything', async () => {
  const soc = aRehearsedSink('soc', { concurrency: 2 })
  const { book, keys, circuit, workers, bring, stop } = await rig(soc)
  await circuit.report('soc', 'broken')
  await tests.redis.hset(keys.shared('circuit', 'soc'), 'until', Date.now() + 300)
  await bring(12)
  workers.start()
  await until(
    'all delivered',
    async () => (await pendingIn(book, 'queued')) === 0 && soc.received.length === 12,
  )
  await stop()
  const accounting = await expectConservation(book)
  expect(accounting.sinks['soc']).toMatchObject({ delivered: 12 })
})

test('a stop cuts off what hangs, which counts as an answer lost, and gives the job back', async () => {
  const soc = aRehearsedSink('soc', {
    send: (_delivery, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('cut off')))
      }),
  })
  const { book, keys, workers, bring, queue } = await rig(soc)
  await bring(1)
  workers.start()
  await until('it is being sent', async () => (await pendingIn(book, 'sending')) === 1)
  await workers.stop(50)
  expect(await pendingIn(book, 'retrying')).toBe(1)
  expect(await tests.redis.zcard(`${keys.queuePrefix}:sink-soc:delayed`)).toBe(1)
  await queue.close()
  await expectConservation(book)
})
