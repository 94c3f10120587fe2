/**
 * One perpetual job for each feed: at the end of a turn it goes back to sleep until the next poll is
 * due. The job's id exists once, so one replica polls a feed at a time; the commit's fence, not the
 * job, is what makes that safe.
 */
import { DelayedError, Queue, Worker, type Job } from 'bullmq'
import { jobOptions, queueSettings, workerSettings } from '../redis/job-settings.ts'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { within, type Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { createStandStill } from '../runtime/stand-still.ts'
import type { PolledFeed } from './polled-feed.ts'
import { nextPollMs } from './next-poll.ts'
import type { PollOutcome, Poller } from './poller.ts'

export interface FeedJobs {
  start(): void
  /** Adds every feed's job where it is missing; one that exists stays as it is. */
  ensure(): Promise<void>
  /** Ends running turns at their next step; resolves when all jobs are given back, or at the deadline. */
  stop(deadlineMs: number): Promise<void>
}

export interface FeedJobsOptions {
  feeds: PolledFeed[]
  poller: Poller
  /** Whether this replica's configuration is the one started last. */
  isActive: () => boolean
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
}

export function createFeedJobs(options: FeedJobsOptions): FeedJobs {
  const { feeds, redis, keys, clock, logger, isActive } = options
  const byJob = new Map(feeds.map((feed) => [jobIdOf(feed), feed]))
  const turn = createTurn(options)
  const left = new Set<string>()
  const stopping = new AbortController()
  const connection = { connection: redis, prefix: keys.queuePrefix }
  const queue = new Queue('feeds', { ...connection, ...queueSettings })
  const worker = new Worker('feeds', process, {
    ...connection,
    ...workerSettings,
    autorun: false,
    concurrency: Math.max(1, Math.min(feeds.length, 100)),
  })
  queue.on('error', (error) => logger.debug({ err: error }, 'queue error'))
  worker.on('error', (error) => logger.debug({ err: error }, 'feed worker error'))
  const standStill = createStandStill(worker, stopping.signal, clock)
  worker.on('error', standStill.afterError)

  async function process(job: Job, token?: string): Promise<void> {
    const feed = byJob.get(job.id ?? '')
    if (!feed) return // a feed of another configuration: its own replicas poll it
    const nextMs = isForOthers(feed) ? await leaveIt() : await turn(feed, stopping.signal)
    await job.moveToDelayed(nextMs, token)
    throw new DelayedError()
  }

  /** True at most every other time: nobody else may be there. */
  function isForOthers({ name }: PolledFeed): boolean {
    if (isActive() || left.delete(name)) return false
    left.add(name)
    return true
  }

  async function leaveIt(): Promise<number> {
    await standStill.until(clock.now() + 2 * headStartMs)
    return clock.now() + headStartMs
  }

  return {
    start() {
      worker.run().catch((error: unknown) => logger.error({ err: error }, 'feed worker ended'))
    },
    async ensure() {
      for (const id of byJob.keys()) await queue.add('poll', {}, { ...jobOptions, jobId: id })
    },
    async stop(deadlineMs) {
      stopping.abort()
      const closed = worker.close().then(() => queue.close())
      await within(deadlineMs, closed, clock)
    },
  }
}

/**
 * An older configuration leaves a due job for so long to the active one: the same replica may otherwise
 * be the first to ask, time after time.
 */
const headStartMs = 1_000

/** Why a feed is not polled although nothing failed. */
const waitingFor: Partial<Record<PollOutcome['status'], string>> = {
  superseded: 'a newer configuration polls this feed; this replica does not',
  full: 'Redis has used 70 % of its memory: nothing more is taken in until there is room',
}

/** One turn of one feed; resolves with the time of the next one and never throws. */
function createTurn({
  poller,
  clock,
  logger,
}: FeedJobsOptions): (feed: PolledFeed, signal: AbortSignal) => Promise<number> {
  const failures = new Map<string, number>()
  const waiting = new Map<string, string | undefined>()

  async function poll(feed: PolledFeed, signal: AbortSignal): Promise<PollOutcome> {
    try {
      return await poller.pollOnce(feed, signal)
    } catch (error) {
      logger.error(
        { feed: feed.name, err: error },
        'poll broke off; it starts again from the ledger',
      )
      return { status: 'failed', reason: 'unavailable', retryAfterMs: undefined }
    }
  }

  /** Once when it begins: the job comes back every few seconds. */
  function sayWaiting({ name: feed }: PolledFeed, status: PollOutcome['status']): void {
    const why = waitingFor[status]
    if (why !== undefined && waiting.get(feed) !== why) logger.warn({ feed }, why)
    waiting.set(feed, why)
  }

  return async (feed, signal) => {
    const startedMs = clock.now()
    const outcome = await poll(feed, signal)
    const count = outcome.status === 'failed' ? (failures.get(feed.name) ?? 0) + 1 : 0
    failures.set(feed.name, count)
    sayWaiting(feed, outcome.status)
    return nextPollMs(feed, outcome, { startedMs, nowMs: clock.now(), failures: count })
  }
}

function jobIdOf(feed: PolledFeed): string {
  return `feed.${feed.account}.${feed.name}`
}
