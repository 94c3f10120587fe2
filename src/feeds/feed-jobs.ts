/**
 * One perpetual job for each feed, and one for its sweep: at the end of a turn it goes back to sleep
 * until the next one is due. The job's id exists once, so one replica does it at a time; the commit's
 * fence, not the job, is what makes that safe. A sweep that waits for spare budget never holds up the
 * feed itself.
 */
import { DelayedError, Queue, Worker, type Job } from 'bullmq'
import { jobOptions, queueSettings, workerSettings } from '../redis/job-settings.ts'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { within, type Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { createStandStill } from '../runtime/stand-still.ts'
import type { Timings } from '../runtime/timings.ts'
import type { PolledFeed } from './polled-feed.ts'
import { nextPollMs } from './next-poll.ts'
import type { PollOutcome, Poller, TurnAsked } from './poller.ts'

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
  timings: Timings
}

export function createFeedJobs(options: FeedJobsOptions): FeedJobs {
  const { feeds, redis, keys, clock, logger, isActive, timings } = options
  const byJob = new Map(feeds.flatMap(worksOf).map((work) => [jobIdOf(work), work]))
  const turn = createTurn(options)
  const left = new Set<string>()
  const stopping = new AbortController()
  const connection = { connection: redis, prefix: keys.queuePrefix }
  const queue = new Queue('feeds', { ...connection, ...queueSettings })
  const worker = new Worker('feeds', process, {
    ...connection,
    ...workerSettings(timings),
    autorun: false,
    concurrency: Math.max(1, Math.min(byJob.size, 100)),
  })
  queue.on('error', (error) => logger.debug({ err: error }, 'queue error'))
  worker.on('error', (error) => logger.debug({ err: error }, 'feed worker error'))
  const standStill = createStandStill(worker, stopping.signal, clock)
  worker.on('error', standStill.afterError)

  async function process(job: Job, token?: string): Promise<void> {
    const work = byJob.get(job.id ?? '')
    if (!work) return // a feed of another configuration: its own replicas poll it
    const nextMs = isForOthers(work) ? await leaveIt() : await turn(work, stopping.signal)
    await job.moveToDelayed(nextMs, token)
    throw new DelayedError()
  }

  /** True at most every other time: nobody else may be there. */
  function isForOthers(work: FeedWork): boolean {
    const id = jobIdOf(work)
    if (isActive() || left.delete(id)) return false
    left.add(id)
    return true
  }

  /** The same replica may otherwise be the first to ask, time after time. */
  async function leaveIt(): Promise<number> {
    const { headStartMs } = timings
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

/** Why a feed is not polled although nothing failed. */
const waitingFor: Partial<Record<PollOutcome['status'], string>> = {
  superseded: 'a newer configuration polls this feed; this replica does not',
  full: 'Redis has used 70 % of its memory: nothing more is taken in until there is room',
  paused: 'the feed is paused by an operator; "feeds resume" lets it go on',
  refused: 'the service refuses what the feed asks for: it asks again once a day',
  quota: 'the searches left have reached quota_reserve: the feed asks again once a day',
}

/** What a job does for a feed. */
interface FeedWork {
  feed: PolledFeed
  kind: TurnAsked['kind']
}

function worksOf(feed: PolledFeed): FeedWork[] {
  return [{ feed, kind: 'feed' }, ...(feed.sweep ? [{ feed, kind: 'sweep' } as const] : [])]
}

/** One turn of one feed; resolves with the time of the next one and never throws. */
function createTurn(
  options: FeedJobsOptions,
): (work: FeedWork, signal: AbortSignal) => Promise<number> {
  const { clock, timings } = options
  const failures = new Map<string, number>()
  const due = new Map<string, number>()
  const sayWaiting = createWaitingWords(options.logger)

  return async (work, signal) => {
    const startedMs = clock.now()
    const id = jobIdOf(work)
    const dueSinceMs = Math.min(due.get(id) ?? startedMs, startedMs)
    const outcome = await poll(options, work, { signal, dueSinceMs })
    const count = outcome.status === 'failed' ? (failures.get(id) ?? 0) + 1 : 0
    failures.set(id, count)
    if (work.kind === 'feed') sayWaiting(work.feed, outcome.status)
    const times = { startedMs, nowMs: clock.now(), failures: count }
    const nextMs = nextOf(work, outcome, times, timings)
    due.set(id, nextMs)
    return nextMs
  }
}

async function poll(
  { poller, logger }: FeedJobsOptions,
  { feed, kind }: FeedWork,
  asked: { signal: AbortSignal; dueSinceMs: number },
): Promise<PollOutcome> {
  try {
    return await poller.pollOnce(feed, { kind, ...asked })
  } catch (error) {
    const said = `${kind === 'sweep' ? 'sweep' : 'poll'} broke off; it starts again from the ledger`
    const cause = error instanceof Error ? error.name : 'unknown'
    const fields = { feed: feed.name, err: error }
    logger.repeated.error(fields, said, { cause, list: 'feeds', name: feed.name })
    return { status: 'failed', reason: 'unavailable', retryAfterMs: undefined }
  }
}

/** A sweep that is read to its end asks at once when the next one is due. */
function nextOf(
  { feed, kind }: FeedWork,
  outcome: PollOutcome,
  times: { startedMs: number; nowMs: number; failures: number },
  timings: Timings,
): number {
  if (kind === 'sweep' && outcome.status === 'caught_up') return times.nowMs
  return nextPollMs(feed, outcome, times, timings)
}

/** Once when it begins: the job comes back every few seconds. */
function createWaitingWords(
  logger: Logger,
): (feed: PolledFeed, status: PollOutcome['status']) => void {
  const waiting = new Map<string, string | undefined>()
  return ({ name: feed }, status) => {
    const why = waitingFor[status]
    if (why !== undefined && waiting.get(feed) !== why)
      logger.repeated.warn({ feed }, why, { cause: status, list: 'feeds', name: feed })
    waiting.set(feed, why)
  }
}

function jobIdOf({ feed, kind }: FeedWork): string {
  return `${kind}.${feed.account}.${feed.name}`
}
