/**
 * Fetches the full event once for all sinks of a record, after routing and only where a feed asks. Its
 * items are held meanwhile; when the time is up they go with the search item, and the message says so.
 */
import { DelayedError, Queue, Worker, type Job } from 'bullmq'
import type { EventDetail } from '../events/threat-event.ts'
import { releaseDetail, type MadeWork, type SinkModes } from '../ledger/collecting.ts'
import type { Book } from '../ledger/book.ts'
import { readPayload } from '../ledger/records.ts'
import { parseRef } from '../ledger/refs.ts'
import { jobOptions, queueSettings, workerSettings } from '../redis/job-settings.ts'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { signalWithin, within, type Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { createStandStill } from '../runtime/stand-still.ts'
import type { Timings } from '../runtime/timings.ts'

export interface DetailJobs {
  start(): void
  /** Queues one job for each record of which an item is held for its detail. */
  add(account: string, made: MadeWork[]): Promise<void>
  /** One record: fetch, store, send its items on. */
  fetchOnce(work: DetailWork, signal: AbortSignal): Promise<void>
  stop(deadlineMs: number): Promise<void>
}

export interface DetailWork {
  account: string
  recordId: string
  deadlineMs: number
}

export interface DetailJobsOptions {
  book: (account: string) => Book | undefined
  /** Handed in: 'unavailable' when it is not to be had before `signal` aborts. */
  fetchDetail(
    account: string,
    uid: string,
    signal: AbortSignal,
  ): Promise<EventDetail | 'unavailable'>
  modes: SinkModes
  release: (account: string, made: MadeWork[]) => Promise<void>
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  timings: Timings
}

/**
 * Full events that a process waits for at once. One that waits for its organization's slot costs nothing, and
 * gives up when its time is over; so no organization keeps another's waiting.
 */
const mostAtOnce = 2_000

export function createDetailJobs(options: DetailJobsOptions): DetailJobs {
  const { redis, keys, clock, logger, timings } = options
  const connection = { connection: redis, prefix: keys.queuePrefix }
  const stopping = new AbortController()
  const queue = new Queue<DetailWork>('detail', { ...connection, ...queueSettings })
  const worker = new Worker<DetailWork>('detail', process, {
    ...connection,
    ...workerSettings(timings),
    autorun: false,
    concurrency: mostAtOnce,
  })
  queue.on('error', (error) => logger.debug({ err: error }, 'queue error'))
  worker.on('error', (error) => logger.debug({ err: error }, 'detail worker error'))
  worker.on('error', createStandStill(worker, stopping.signal, clock).afterError)

  async function process(job: Job<DetailWork>, token?: string): Promise<void> {
    try {
      await fetchOnce(options, job.data, stopping.signal)
    } catch (error) {
      // the items go on when their time is up: they are due then
      const { account } = job.data
      const cause = error instanceof Error ? error.name : 'unknown'
      const about = { cause, list: 'accounts', name: account } as const
      logger.repeated.warn({ account, err: error }, 'full event not fetched', about)
    }
    if (!stopping.signal.aborted) return
    await job.moveToDelayed(clock.now(), token) // another replica fetches it
    throw new DelayedError()
  }

  return {
    start() {
      if (worker.isRunning()) return // after an error of its connection it goes on by itself
      worker.run().catch((error: unknown) => logger.error({ err: error }, 'worker ended'))
    },
    async add(account, made) {
      const records = made.filter(({ kind }) => kind === 'detail').map(({ ref }) => recordOf(ref))
      const deadlineMs = clock.now() + timings.detailWaitMs
      const jobs = [...new Set(records)].map((recordId) => ({
        name: 'detail',
        data: { account, recordId, deadlineMs },
        opts: { ...jobOptions, jobId: `${account}.${recordId}` },
      }))
      if (jobs.length > 0) await queue.addBulk(jobs)
    },
    fetchOnce: (work, signal) => fetchOnce(options, work, signal),
    async stop(deadlineMs) {
      stopping.abort()
      const closed = worker.close().then(() => queue.close())
      await within(deadlineMs, closed, clock)
    },
  }
}

async function fetchOnce(
  options: DetailJobsOptions,
  work: DetailWork,
  signal: AbortSignal,
): Promise<void> {
  const book = options.book(work.account)
  const payload = book && (await readPayload(book, work.recordId))
  if (!book || !payload) return
  const leftMs = Math.max(0, work.deadlineMs - options.clock.now())
  const detail =
    payload.detail ??
    (await options.fetchDetail(work.account, payload.event.uid, signalWithin(leftMs, signal)))
  if (signal.aborted) return
  const made = await releaseDetail(book, work.recordId, options.modes, { ...payload, detail })
  await options.release(work.account, made)
}

function recordOf(ref: string): string {
  const parsed = parseRef(ref)
  return parsed.kind === 'item' ? parsed.recordId : ''
}
