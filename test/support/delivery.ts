/** The parts of delivery on a real Redis, driven one pass at a time. */
import { createCircuit, type Circuit } from '../../src/delivery/circuit.ts'
import { createDeliverer, type DeliverOutcome, type Work } from '../../src/delivery/deliverer.ts'
import { createReconciler, type Reconciler } from '../../src/delivery/reconciler.ts'
import { createSendPace } from '../../src/delivery/send-pace.ts'
import { createWorkQueue, type WorkQueue } from '../../src/delivery/work-queue.ts'
import type { Book } from '../../src/ledger/book.ts'
import type { SinkModes } from '../../src/ledger/collecting.ts'
import type { Keys } from '../../src/redis/keys.ts'
import type { Redis } from '../../src/redis/connection.ts'
import { systemClock, type Clock } from '../../src/runtime/clock.ts'
import { createMetrics } from '../../src/runtime/metrics.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import { silent } from './ledger.ts'

export interface DeliveryRig {
  circuit: Circuit
  queue: WorkQueue
  reconciler: Reconciler
  /** `given`: where the process stops, or another one has the job by now. */
  deliver: (sink: Sink, ref: string, given?: Partial<Hold>) => Promise<DeliverOutcome>
}

type Hold = Pick<Work, 'signal' | 'isStillMine'>

export interface DeliveryRigOptions {
  redis: Redis
  keys: Keys
  book: Book
  sinks: Sink[]
  clock?: Clock
  confirmGeneration?: () => Promise<boolean>
}

export function aDeliveryRig(options: DeliveryRigOptions): DeliveryRig {
  const { redis, keys, book, clock = systemClock } = options
  const sinks = new Map(options.sinks.map((sink) => [sink.name, sink]))
  const modes: SinkModes = Object.fromEntries(
    options.sinks.map(({ name, batch }) => [name, batch?.waitMs ?? false]),
  )
  const queue = createWorkQueue(redis, keys, sinks)
  const circuit = createCircuit(redis, keys)
  const pace = createSendPace(redis, keys, clock)
  const metrics = createMetrics({ clock })
  const deliverer = createDeliverer({
    book: () => book,
    serviceLink: () => null,
    circuit,
    pace,
    replica: 'r1',
    clock,
    logger: silent,
    metrics,
  })
  const reconciler = createReconciler({
    books: [book],
    modes,
    queue,
    release: (account, made) => queue.addMade(account, made),
    returnPlaces: () => ({}),
    confirmGeneration: options.confirmGeneration ?? (() => Promise.resolve(true)),
    clock,
    logger: silent,
  })
  return {
    circuit,
    queue,
    reconciler,
    deliver: (sink, ref, given = {}) =>
      deliverer.deliverOnce({
        book,
        sink,
        ref,
        signal: new AbortController().signal,
        isStillMine: () => Promise.resolve(true),
        ...given,
      }),
  }
}

/** The wall clock, so much ahead: the future without waiting for it. Sleeps return at once. */
export function clockAhead(ms: number): Clock {
  return {
    now: () => systemClock.now() + ms,
    monotonic: () => systemClock.monotonic() + ms,
    sleep: () => Promise.resolve(),
  }
}
