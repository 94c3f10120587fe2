import { randomBytes } from 'node:crypto'
import { createCircuit, type Circuit } from '../delivery/circuit.ts'
import { createDeliverer } from '../delivery/deliverer.ts'
import { createDetailJobs, type DetailJobs } from '../delivery/detail-jobs.ts'
import { createReconciler, type Reconciler } from '../delivery/reconciler.ts'
import { createSendPace } from '../delivery/send-pace.ts'
import { createSinkWorkers, type SinkWorkers } from '../delivery/sink-workers.ts'
import { createWorkQueue, type WorkQueue } from '../delivery/work-queue.ts'
import { fetchDetail } from '../feeds/detail.ts'
import { detailWaitMs } from '../intake/intake.ts'
import type { Book } from '../ledger/book.ts'
import type { MadeWork, SinkModes } from '../ledger/collecting.ts'
import { confirmGeneration } from '../ledger/generation.ts'
import type { Sink } from '../sinks/sink.ts'
import type { Service } from './build-service.ts'
import { buildSink } from './build-sinks.ts'
import { findBook, type Shared } from './shared.ts'

export interface DeliveryParts {
  sinks: Map<string, Sink>
  modes: SinkModes
  queue: WorkQueue
  circuit: Circuit
  workers: SinkWorkers
  detailJobs: DetailJobs
  reconciler: Reconciler
}

export function buildDelivery(shared: Shared, service: Service): DeliveryParts {
  const { config, redis, keys, clock, logger, metrics } = shared
  const parts = { redis, keys, clock, logger }
  const sinks = new Map(config.sinks.map((sink) => [sink.name, buildSink(sink, shared)]))
  const modes: SinkModes = Object.fromEntries(
    [...sinks.values()].map((sink) => [sink.name, sink.batch?.waitMs ?? false]),
  )
  const book = (account: string): Book | undefined => findBook(shared, account)
  const queue = createWorkQueue(redis, keys, sinks)
  const release = (account: string, made: MadeWork[]): Promise<void> => queue.addMade(account, made)
  const circuit = createCircuit(redis, keys)
  const deliverer = createDeliverer({
    circuit,
    pace: createSendPace(redis, keys, clock),
    replica: `${process.pid}-${randomBytes(3).toString('hex')}`,
    clock,
    logger,
    metrics,
  })
  const workers = createSinkWorkers({ ...parts, sinks, book, deliverer, queue })
  const detailJobs = createDetailJobs({
    ...parts,
    book,
    modes,
    release,
    waitMs: detailWaitMs,
    fetchDetail: (account, uid, signal) =>
      fetchDetail(service.client(account), uid, { signal, clock }),
  })
  const reconciler = createReconciler({
    books: shared.books,
    modes,
    queue,
    release,
    confirmGeneration: () => confirm(shared),
    clock,
    logger,
  })
  return { sinks, modes, queue, circuit, workers, detailJobs, reconciler }
}

/** Whether this configuration is the active one; it may have become so because the other one is gone. */
async function confirm({ redis, keys, generation, metrics }: Shared): Promise<boolean> {
  const number = await confirmGeneration(redis, keys, generation.hash)
  generation.isActive = number !== undefined
  if (number === undefined) return false
  generation.number = number
  metrics.configGeneration.set(number)
  return true
}
