/**
 * Fetches the full event of a record once for all sinks, after routing, if its feed asks for it.
 * The record's items wait meanwhile; when the time is up they are sent with the search item, and
 * the message says so.
 */
import { type Job, Queue, WaitingError, Worker } from 'bullmq'
import type { EventDetail, ThreatEvent, Victims } from '../../event.ts'
import { type Clock, type Timings, waitAtMost, withTimeout } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { createWorkerPause } from '../../lib/loop.ts'
import { withholdIn } from '../../masking/masking.ts'
import { titleOf } from '../../messages/message.ts'
import { readVictims } from '../../messages/types/victims.ts'
import type { Redis } from '../../redis/client.ts'
import { jobOptions, queueSettings, workerSettings } from '../../redis/connection.ts'
import type { Keys } from '../../redis/keys.ts'
import { type AccountLedger, parseRef } from '../../store/account-ledger.ts'
import { type ItemChange, releaseDetail, type SinkBatchWaits } from '../../store/pending-items.ts'
import { readPayload, readRecord } from '../../store/records.ts'
import { termText } from '../../store/history/terms.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError, type UpstreamReason } from '../../upstream/error.ts'

export interface DetailJobs {
  start(): void
  /** Queues one job for each record with an item that waits for its full event. */
  add(account: string, changes: ItemChange[]): Promise<void>
  /** Fetches and stores the full event of one record, and releases its items. */
  fetchOnce(job: DetailJob, signal: AbortSignal): Promise<void>
  stop(deadlineMs: number): Promise<void>
}

interface DetailJob {
  account: string
  recordId: string
  deadlineMs: number
}

export interface DetailJobsOptions {
  findLedger: (account: string) => AccountLedger | undefined
  /** Whether a newer configuration brought the account: its replicas fetch. */
  isForeign: (account: string) => boolean
  /** Resolves with 'unavailable' if there is no full event, or none before `signal` aborts. */
  fetchDetail(
    account: string,
    uid: string,
    signal: AbortSignal,
  ): Promise<EventDetail | 'unavailable'>
  batchWaits: SinkBatchWaits
  release: (account: string, made: ItemChange[]) => void
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  timings: Timings
}

/**
 * Full events that one process waits for at the same time. A fetch that waits for its
 * organization's API slot costs nothing and stops when its time is up, so no organization delays
 * another.
 */
const maxConcurrentFetches = 2_000

/** How long a process that leaves a fetch to others takes none: it would get it again at once. */
const leftMs = 2_000

export function createDetailJobs(options: DetailJobsOptions): DetailJobs {
  const { redis, keys, clock, logger, timings } = options
  const connection = { connection: redis, prefix: keys.queuePrefix }
  const stopping = new AbortController()
  const queue = new Queue<DetailJob>('detail', { ...connection, ...queueSettings })
  const worker = new Worker<DetailJob>('detail', process, {
    ...connection,
    ...workerSettings(timings),
    autorun: false,
    concurrency: maxConcurrentFetches,
  })
  queue.on('error', (error) => logger.debug({ err: error }, 'queue error'))
  worker.on('error', (error) => logger.debug({ err: error }, 'detail worker error'))
  const standStill = createWorkerPause(worker, stopping.signal, clock)
  worker.on('error', standStill.afterError)

  async function process(job: Job<DetailJob>, token?: string): Promise<void> {
    const { account, deadlineMs } = job.data
    if (options.isForeign(account) || !options.findLedger(account)) {
      if (clock.now() >= deadlineMs) return
      await standStill.until(clock.now() + leftMs)
      return giveBack(job, token)
    }
    try {
      await fetchOnce(options, job.data, stopping.signal)
    } catch (error) {
      // the items become due when their time is up
      const cause = error instanceof Error ? error.name : 'unknown'
      const about = { cause, list: 'accounts', name: account } as const
      logger.repeated.warn({ account, err: error }, 'full event not fetched', about)
    }
    if (stopping.signal.aborted) return giveBack(job, token)
  }

  return {
    start() {
      if (worker.isRunning()) return // a worker resumes by itself after a connection error
      worker.run().catch((error: unknown) => logger.error({ err: error }, 'worker ended'))
    },
    async add(account, changes) {
      const records = changes
        .filter(({ kind }) => kind === 'detail')
        .map(({ ref }) => parseRecordId(ref))
      const deadlineMs = clock.now() + timings.detailWaitMs
      const jobs = [...new Set(records)].map((recordId) => ({
        name: 'detail',
        data: { account, recordId, deadlineMs },
        opts: { ...jobOptions, jobId: `${account}.${recordId}` },
      }))
      if (jobs.length > 0) await queue.addBulk(jobs)
    },
    fetchOnce: (job, signal) => fetchOnce(options, job, signal),
    async stop(deadlineMs) {
      stopping.abort()
      const closed = worker.close().then(() => queue.close())
      await waitAtMost(deadlineMs, closed, clock)
    },
  }
}

/** Passes no time: it would be this machine's. */
async function giveBack(job: Job<DetailJob>, token?: string): Promise<never> {
  await job.moveToWait(token)
  throw new WaitingError()
}

async function fetchOnce(
  options: DetailJobsOptions,
  job: DetailJob,
  signal: AbortSignal,
): Promise<void> {
  const ledger = options.findLedger(job.account)
  const payload = ledger && (await readPayload(ledger, job.recordId))
  if (!ledger || !payload) return
  const [first] = (await readRecord(ledger, job.recordId))?.sightings ?? []
  const leftMs = Math.max(0, job.deadlineMs - options.clock.now())
  const detail =
    payload.detail ??
    (await withTimeout(leftMs, [signal], (own) =>
      options.fetchDetail(job.account, payload.event.uid, own),
    ))
  if (signal.aborted) return
  const changes = await releaseDetail(ledger, job.recordId, options.batchWaits, {
    payload: { ...payload, detail },
    title: titleOf({ feed: first?.feed ?? '', event: payload.event, detail }),
    victims: findNewVictims(payload.event, detail === 'unavailable' ? null : detail),
  })
  options.release(job.account, changes)
}

/** The machine that only the full event names. Logins are as they matched: intake has noted them. */
function findNewVictims(event: ThreatEvent, detail: EventDetail | null): Victims {
  const known = new Set(readVictims(event).hosts.map(termText))
  const { hosts } = readVictims(event, detail)
  return { logins: [], hosts: hosts.filter((host) => !known.has(termText(host))) }
}

function parseRecordId(ref: string): string {
  const parsed = parseRef(ref)
  return parsed.kind === 'item' ? parsed.recordId : ''
}

/** Errors that a retry does not mend. */
const permanentReasons: ReadonlySet<UpstreamReason> = new Set(['rejected', 'invalid', 'contract'])

/**
 * Fetches the full event and withholds what may hold a secret. Returns 'unavailable' if upstream has none for this
 * type, or none arrives before `signal` aborts; the search item is enough for a message.
 */
export async function fetchDetail(
  client: UpstreamClient,
  uid: string,
  { signal, clock, timings }: { signal: AbortSignal; clock: Clock; timings: Timings },
): Promise<EventDetail | 'unavailable'> {
  const slot = { kind: 'detail' as const, name: uid, dueSinceMs: clock.now() }
  while (!signal.aborted) {
    try {
      const answer = await client.getEvent({ uid, slot, signal })
      return answer.kind === 'detail' ? withholdIn(answer.data, uid) : 'unavailable'
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      if (permanentReasons.has(error.reason)) return 'unavailable'
      await clock.sleep(Math.max(error.retryAfterMs ?? 0, timings.detailRetryMs), signal)
    }
  }
  return 'unavailable'
}
