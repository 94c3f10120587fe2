/**
 * One perpetual job for each lane, so that replicas share the lanes: whoever has the job reads the lane for up
 * to 30 s and gives it back. The commit's fence, not the job, makes that safe. A lane that waits costs nothing:
 * a process may hold all of them at once, so none waits for another.
 */
import { DelayedError, Queue, WaitingError, Worker, type Job } from 'bullmq'
import { jobOptions, queueSettings, workerSettings } from '../redis/connection.ts'
import { within } from '../lib/clock.ts'
import { createStandStill } from '../lib/loop.ts'
import type { FeedPlace } from './next-feed.ts'
import { createLaneReader, type LaneLimit, type LaneOptions } from './lane.ts'

export interface Lanes {
  /** What this process knows of a feed whose lane it holds, or gave back less than a turn ago. */
  known: (feed: { account: string; name: string }) => Readonly<FeedPlace> | undefined
  start(): void
  /** Adds the job of every lane that this process does not hold; one that exists stays as it is. */
  ensure(): Promise<void>
  /** Ends what runs at its next step; resolves when all jobs are given back, or at the deadline. */
  stop(deadlineMs: number): Promise<void>
}

export interface LanesOptions extends LaneOptions {
  /** Whether this replica's configuration is the one started last. */
  isActive: () => boolean
}

export function createLanes(options: LanesOptions): Lanes {
  const { clock, logger, isActive, timings } = options
  const reader = createLaneReader(options)
  const held = new Map<string, Holding>()
  const left = new Set<string>()
  const stopping = new AbortController()
  const closed = new AbortController()
  const { queue, worker } = openQueue(options, process)
  const standStill = createStandStill(worker, stopping.signal, clock)
  worker.on('error', standStill.afterError)

  async function process(job: Job, token?: string): Promise<void> {
    const id = job.id ?? ''
    const lane = reader.lanes().get(id)
    // of a configuration before, or of an organization whose id is known by now; one of a newer stays
    if (!lane && isActive()) return
    if (!lane || isForOthers(id, left, isActive)) return postpone(job, token, await leaveIt())
    const isOurs = await hold(lane.limit, token ?? '')
    if (!isOurs) throw new WaitingError() // another process has the job by now
    return giveBack(job, token)
  }

  /** Whether the lock of the job was kept to the end. */
  async function hold(lane: LaneLimit, token: string): Promise<boolean> {
    const lost = new AbortController()
    held.set(lane.id, { token, lost })
    await reader.hold(lane, beginTurn(options, AbortSignal.any([stopping.signal, lost.signal])))
    if (held.get(lane.id)?.token === token) held.delete(lane.id)
    if (!reader.lanes().has(lane.id)) await ensure() // its feeds have come to a lane that may be new
    return !lost.signal.aborted
  }

  /**
   * BullMQ renews locks by the id of a job, and forgets a job that it fetches again before its last turn has quite
   * ended: the lane would be taken for stalled, and be held twice.
   */
  async function renewLocks(): Promise<void> {
    while (!closed.signal.aborted) {
      await clock.sleep(timings.jobLockMs / 3, closed.signal)
      const holdings = [...held]
      const ids = holdings.map(([id]) => id)
      const tokens = holdings.map(([, { token }]) => token)
      const failed = await extendLocks(worker, ids, tokens, timings.jobLockMs)
      for (const [id, { lost }] of holdings) if (failed.has(id)) lost.abort()
    }
  }

  /** The same replica may otherwise be the first to ask, time after time. */
  async function leaveIt(): Promise<number> {
    const { headStartMs } = timings
    await standStill.until(clock.now() + 2 * headStartMs)
    return clock.now() + headStartMs
  }

  async function ensure(): Promise<void> {
    const all = reader.lanes()
    worker.concurrency = Math.max(1, all.size)
    for (const id of all.keys()) {
      if (!held.has(id)) await queue.add('lane', {}, { ...jobOptions, jobId: id })
    }
  }

  return {
    known: reader.known,
    start() {
      if (worker.isRunning()) return // after an error of its connection it goes on by itself
      void renewLocks()
      worker.run().catch((error: unknown) => logger.error({ err: error }, 'lane worker ended'))
    },
    ensure,
    async stop(deadlineMs) {
      stopping.abort()
      const ended = Promise.all([reader.abort(), worker.close()])
      await within(
        deadlineMs,
        ended.then(() => queue.close()),
        clock,
      )
      closed.abort()
    },
  }
}

/** A lane that this process reads: by which right, and what ends when that is lost. */
interface Holding {
  token: string
  lost: AbortController
}

/** Those whose lock another holder has, or nobody; none where Redis does not answer. */
async function extendLocks(
  worker: Worker,
  ids: string[],
  tokens: string[],
  lockMs: number,
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const failed = worker.extendJobLocks(ids, tokens, lockMs).catch(() => [])
  return new Set(await failed)
}

async function postpone(job: Job, token: string | undefined, untilMs: number): Promise<never> {
  await job.moveToDelayed(untilMs, token)
  throw new DelayedError()
}

/** Without a time, which would be this machine's: its clock may be ahead of the others'. */
async function giveBack(job: Job, token: string | undefined): Promise<never> {
  await job.moveToWait(token)
  throw new WaitingError()
}

/** Whether an older configuration leaves the lane: every other time at most, nobody else may be there. */
function isForOthers(id: string, left: Set<string>, isActive: () => boolean): boolean {
  if (isActive() || left.delete(id)) return false
  left.add(id)
  return true
}

/** Whether the turn that begins now is over. */
function beginTurn(options: LanesOptions, stopping: AbortSignal): () => boolean {
  const { clock, timings, isActive } = options
  // an older configuration has every lane for a moment only: its feeds may be nobody else's
  const wasActive = isActive()
  const endMs = clock.monotonic() + (wasActive ? timings.laneTurnMs : timings.headStartMs)
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
