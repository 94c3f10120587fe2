/**
 * A sink's worker. A job is a wake-up: what it finds in the ledger decides. While the sink's circuit is
 * open the worker stands still and the backlog stays where it is.
 */
import { DelayedError, Worker, type Job } from 'bullmq'
import type { Book } from '../ledger/book.ts'
import { workerSettings } from '../redis/job-settings.ts'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { createStandStill } from '../runtime/stand-still.ts'
import { defaultTimings, type Timings } from '../runtime/timings.ts'
import type { Sink } from '../sinks/sink.ts'
import { flushOnce, type FlushOptions } from './batcher.ts'
import type { Deliverer } from './deliverer.ts'
import { queueNameOf, type WorkJob, type WorkQueue } from './work-queue.ts'

export interface SinkWorker {
  start(): void
  /** Resolves when the running jobs have ended. */
  close(): Promise<void>
}

export interface SinkWorkerOptions extends Omit<FlushOptions, 'nowMs'> {
  book: (account: string) => Book | undefined
  deliverer: Deliverer
  queue: WorkQueue
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  timings?: Timings
}

/** One job in this worker's hands. */
interface Held {
  job: Job<WorkJob>
  token: string
  signal: AbortSignal
  sinceMs: number
}

/** After a failure that is no sink's: Redis, or a defect. */
const breakOffMs = 5_000

export function createSinkWorker(
  sink: Sink,
  stopping: AbortSignal,
  options: SinkWorkerOptions,
): SinkWorker {
  const { redis, keys, clock, logger, timings = defaultTimings } = options
  const running = new Map<string, AbortController>()
  const worker = new Worker<WorkJob>(queueNameOf(sink.name), process, {
    connection: redis,
    prefix: keys.queuePrefix,
    ...workerSettings(timings),
    autorun: false,
    concurrency: sink.concurrency,
  })
  const standStill = createStandStill(worker, stopping, clock)
  worker.on('error', (error) => logger.debug({ sink: sink.name, err: error }, 'sink worker error'))
  worker.on('error', standStill.afterError)
  worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => running.get(id)?.abort()))

  async function process(job: Job<WorkJob>, token = ''): Promise<void> {
    const lost = new AbortController()
    running.set(job.id ?? '', lost)
    try {
      const signal = AbortSignal.any([lost.signal, stopping])
      const held = { job, token, signal, sinceMs: clock.monotonic() }
      const next = await workSafely(options, sink, held)
      if (next?.isCircuitOpen) await standStill.until(next.atMs)
      if (!next) return
      await job.moveToDelayed(next.atMs, token)
    } finally {
      running.delete(job.id ?? '')
    }
    throw new DelayedError()
  }

  return {
    start() {
      const ended = (error: unknown): void =>
        logger.error({ sink: sink.name, err: error }, 'sink worker ended')
      worker.run().catch(ended)
    },
    close: () => worker.close(),
  }
}

/** When the job is to come again; undefined: never. */
interface Next {
  atMs: number
  isCircuitOpen: boolean
}

async function workSafely(
  options: SinkWorkerOptions,
  sink: Sink,
  held: Held,
): Promise<Next | undefined> {
  const { job } = held
  try {
    const book = options.book(job.data.account)
    if (!book) return undefined // an account of another configuration
    return await (job.name === 'collection'
      ? flush(options, sink, book)
      : deliver(options, sink, book, held))
  } catch (error) {
    const fields = { sink: sink.name, ref: job.data.ref, err: error }
    options.logger.repeated.error(fields, 'work broke off; it comes again', {
      cause: `${sink.name} ${error instanceof Error ? error.name : 'unknown'}`,
      list: 'records',
      name: job.data.ref,
    })
    return { atMs: options.clock.now() + breakOffMs, isCircuitOpen: false }
  }
}

async function flush(
  options: SinkWorkerOptions,
  sink: Sink,
  book: Book,
): Promise<Next | undefined> {
  const { gate, onSuppressed } = options
  const flushing = { nowMs: options.clock.now(), gate, onSuppressed }
  const flushed = await flushOnce(book, sink, flushing)
  await addBatches(options, sink, book, flushed.batches)
  return flushed.next === 'later' ? { atMs: flushed.atMs, isCircuitOpen: false } : undefined
}

async function deliver(
  options: SinkWorkerOptions,
  sink: Sink,
  book: Book,
  { job, token, signal, sinceMs }: Held,
): Promise<Next | undefined> {
  const { jobLockMs } = options.timings ?? defaultTimings
  const outcome = await options.deliverer.deliverOnce({
    book,
    sink,
    ref: job.data.ref,
    signal,
    async isStillMine() {
      // one that waited for its turn for long asks whether it still holds its lock
      if (options.clock.monotonic() - sinceMs < jobLockMs / 2) return true
      return (await job.extendLock(token, jobLockMs)) !== 0
    },
  })
  if (outcome.next === 'later') return outcome
  await addBatches(options, sink, book, outcome.halves)
  return undefined
}

function addBatches(
  { queue }: SinkWorkerOptions,
  sink: Sink,
  book: Book,
  refs: string[],
): Promise<void> {
  return queue.add(
    book.account,
    refs.map((ref) => ({ ref, sink: sink.name, severity: 'high' })),
  )
}
