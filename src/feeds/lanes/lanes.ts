/**
 * Shares the lanes between replicas. Each lane has one perpetual job, and whoever has the job reads
 * the lane for up to 30 s and gives it back. The fence of the commit makes this safe, not the job.
 * A waiting lane costs nothing, so a process may hold all lanes at once and none waits for another.
 */
import { Queue, WaitingError, Worker, type Job } from 'bullmq'
import { jobOptions, queueSettings, workerSettings } from '../../redis/connection.ts'
import { waitAtMost } from '../../lib/clock.ts'
import { createLoop, createWorkerPause } from '../../lib/loop.ts'
import type { FeedPlace } from './next-feed.ts'
import { createLaneReader, type LaneOptions } from './lane.ts'

export interface Lanes {
  /** What this process knows of a feed; undefined unless it holds the lane. */
  feedPlace: (feed: { account: string; name: string }) => Readonly<FeedPlace> | undefined
  start(): void
  /** Adds the job of every lane that this process does not hold; an existing job stays as it is. */
  ensure(): Promise<void>
  /** Ends each run at its next step; resolves when all jobs are given back, or at the deadline. */
  stop(deadlineMs: number): Promise<void>
}

export interface LanesOptions extends LaneOptions {
  /** Whether this replica's configuration is the one that was started last. */
  isActive: () => boolean
}

export function createLanes(options: LanesOptions): Lanes {
  const { clock, logger, isActive, timings } = options
  const reader = createLaneReader(options)
  const stopping = new AbortController()
  const { queue, worker } = openQueue(options, process)
  const locks = createLocks(worker, options)
  const standStill = createWorkerPause(worker, stopping.signal, clock)
  worker.on('error', standStill.afterError)

  async function process(job: Job, token?: string): Promise<void> {
    const id = job.id ?? ''
    const lane = reader.lanes().get(id)
    // the job is from an older configuration, or from before an organization became known; a job of
    // a newer configuration stays
    if (!lane && isActive()) return
    if (!lane) return leave(job, token)
    const lock = locks.keep(id, token ?? '')
    const isOver = startHold(options, AbortSignal.any([stopping.signal, lock.lost]))
    await reader.hold(lane.limit, isOver)
    lock.release()
    if (!reader.lanes().has(id)) await ensure() // its feeds have moved to a lane that may be new
    if (lock.lost.aborted) throw new WaitingError() // the job waits already, or another has it
    return isActive() ? giveBack(job, token) : leave(job, token)
  }

  /** An older configuration gives others a head start: it might fetch the job first every time. */
  async function leave(job: Job, token: string | undefined): Promise<never> {
    await standStill.until(clock.now() + 2 * timings.headStartMs)
    return giveBack(job, token)
  }

  async function ensure(): Promise<void> {
    const all = reader.lanes()
    worker.concurrency = Math.max(1, all.size)
    for (const id of all.keys()) {
      if (!locks.has(id)) await queue.add('lane', {}, { ...jobOptions, jobId: id })
    }
  }

  return {
    feedPlace: reader.feedPlace,
    start() {
      if (worker.isRunning()) return // after a connection error the worker recovers by itself
      locks.start()
      worker.run().catch((error: unknown) => logger.error({ err: error }, 'lane worker ended'))
    },
    ensure,
    async stop(deadlineMs) {
      stopping.abort()
      const ended = Promise.all([reader.abort(), worker.close()])
      const closed = ended.then(() => queue.close())
      await waitAtMost(deadlineMs, closed, clock)
      void locks.stop()
    },
  }
}

interface Lock {
  /** Aborts when another holder, or nobody, has the lock. */
  lost: AbortSignal
  /** Stops renewing the lock. */
  release(): void
}

interface Locks {
  /** Whether this process holds the lane. */
  has(id: string): boolean
  keep(id: string, token: string): Lock
  /** Renews all held locks until stopped. */
  start(): void
  stop(): Promise<void>
}

/**
 * Keeps the locks of jobs. BullMQ would renew them by job id. It forgets a job that it fetches
 * again before the previous hold has quite ended: the lane would count as stalled and be held
 * twice.
 */
function createLocks(
  worker: Worker,
  { clock, logger, timings: { jobLockMs: lockMs } }: LanesOptions,
): Locks {
  const kept = new Map<string, { token: string; lost: AbortController }>()
  const renewing = createLoop({
    name: 'lane-locks',
    everyMs: lockMs / 3,
    clock,
    logger,
    tick: renew,
  })

  async function renew(): Promise<void> {
    const now = [...kept]
    if (now.length === 0) return
    const ids = now.map(([id]) => id)
    const tokens = now.map(([, { token }]) => token)
    // when Redis does not answer, the locks may still be held
    const failed = new Set(await worker.extendJobLocks(ids, tokens, lockMs).catch(() => []))
    for (const [id, { lost }] of now) if (failed.has(id)) lost.abort()
  }

  return {
    has: (id) => kept.has(id),
    keep(id, token) {
      const lost = new AbortController()
      kept.set(id, { token, lost })
      const release = (): void => void (kept.get(id)?.token === token && kept.delete(id))
      return { lost: lost.signal, release }
    },
    start: () => renewing.start(),
    stop: () => renewing.stop(),
  }
}

/** Passes no time: it would be this machine's, whose clock may be ahead of the others'. */
async function giveBack(job: Job, token: string | undefined): Promise<never> {
  await job.moveToWait(token)
  throw new WaitingError()
}

/** Starts a hold; returns whether it is over. */
function startHold(options: LanesOptions, stopping: AbortSignal): () => boolean {
  const { clock, timings, isActive } = options
  // an older configuration holds each lane only briefly: its feeds may be in no other configuration
  const wasActive = isActive()
  const endMs = clock.monotonic() + (wasActive ? timings.laneHoldMs : timings.headStartMs)
  return () => stopping.aborted || clock.monotonic() >= endMs || (wasActive && !isActive())
}

function openQueue(
  { redis, keys, logger, timings }: LanesOptions,
  process: (job: Job, token?: string) => Promise<void>,
): { queue: Queue; worker: Worker } {
  const connection = { connection: redis, prefix: keys.queuePrefix }
  const queue = new Queue('lanes', { ...connection, ...queueSettings })
  const worker = new Worker('lanes', process, {
    ...connection,
    ...workerSettings(timings),
    skipLockRenewal: true,
    autorun: false,
  })
  queue.on('error', (error) => logger.debug({ err: error }, 'queue error'))
  worker.on('error', (error) => logger.debug({ err: error }, 'lane worker error'))
  return { queue, worker }
}
