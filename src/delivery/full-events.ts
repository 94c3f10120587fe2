/**
 * Fetches the full event once for all sinks of a record, after routing and only where a feed asks. Its
 * items are held meanwhile; when the time is up they go with the search item, and the message says so.
 */
import { DelayedError, type Job, Queue, Worker } from 'bullmq'
import type { EventDetail } from '../event.ts'
import { type Clock, signalWithin, type Timings, within } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { createStandStill } from '../lib/loop.ts'
import { maskDetail } from '../masking/masking.ts'
import { jobOptions, queueSettings, type Redis, workerSettings } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { type Book, parseRef } from '../store/account-ledger.ts'
import { type MadeWork, releaseDetail, type SinkModes } from '../store/pending-items.ts'
import { readPayload } from '../store/records.ts'
import type { ServiceClient } from '../upstream/client.ts'
import { ServiceError, type ServiceReason } from '../upstream/error.ts'

export interface DetailJobs {
  start(): void
  /** Queues one job for each record of which an item is held for its detail. */
  add(account: string, made: MadeWork[]): Promise<void>
  /** One record: fetch, store, send its items on. */
  fetchOnce(work: DetailWork, signal: AbortSignal): Promise<void>
  stop(deadlineMs: number): Promise<void>
}

interface DetailWork {
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

/** What no repetition mends. */
const lasting: ReadonlySet<ServiceReason> = new Set(['rejected', 'invalid', 'contract'])

/**
 * The full event with its secrets masked; 'unavailable' when the service has none for this type, or
 * when it is not to be had before `signal` aborts. The search item is enough for a message.
 */
export async function fetchDetail(
  client: ServiceClient,
  uid: string,
  { signal, clock, timings }: { signal: AbortSignal; clock: Clock; timings: Timings },
): Promise<EventDetail | 'unavailable'> {
  const turn = { kind: 'detail' as const, name: uid, dueSinceMs: clock.now() }
  while (!signal.aborted) {
    try {
      const answer = await client.getEvent({ uid, turn, signal })
      return answer.kind === 'detail' ? maskDetail(answer.data, uid) : 'unavailable'
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      if (lasting.has(error.reason)) return 'unavailable'
      await clock.sleep(Math.max(error.retryAfterMs ?? 0, timings.detailRetryMs), signal)
    }
  }
  return 'unavailable'
}
