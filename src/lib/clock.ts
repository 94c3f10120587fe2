import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'

/**
 * Time and timers. The clock is passed in, so that tests control it. The only file with timers and
 * `Date.now`.
 */
export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number
  /** A clock that never jumps, milliseconds; for measuring spans. */
  monotonic(): number
  /** Resolves after `ms`, or at once (without error) when `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => sleep(ms, signal),
}

/** Node fires a timer that is set further ahead at once. */
const longestTimerMs = 2 ** 31 - 1

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  // a timer takes a millisecond at least
  if (ms < 1) return new Promise((resolve) => void setImmediate(resolve))
  const endMs = performance.now() + ms
  let leftMs = ms
  do {
    await sleepOnce(Math.min(leftMs, longestTimerMs), signal)
    leftMs = endMs - performance.now()
  } while (leftMs > 0 && !signal?.aborted)
}

function sleepOnce(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(finish, Math.max(0, ms))
    function finish(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    signal?.addEventListener('abort', finish, { once: true })
  })
}

/**
 * Runs `work` with a signal that aborts after `ms` (rounded up, at least 0), or when one of
 * `parents` does. When `work` has settled, the signal is let go and its timer with it. The timer
 * never keeps the process alive.
 *
 * `AbortSignal.any` and `AbortSignal.timeout` say the same, but V8 keeps what their weak references
 * reach until the next full collection: the garbage of every request.
 */
export async function withTimeout<T>(
  ms: number,
  parents: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController()
  const delayMs = Math.min(Math.max(0, Math.ceil(ms)), longestTimerMs)
  const timer = setTimeout(() => {
    own.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
  }, delayMs).unref()
  function follow({ target }: Event): void {
    own.abort((target as AbortSignal).reason)
  }
  for (const parent of parents) {
    if (parent?.aborted) own.abort(parent.reason)
    parent?.addEventListener('abort', follow, { once: true })
  }
  try {
    return await work(own.signal)
  } finally {
    clearTimeout(timer)
    for (const parent of parents) parent?.removeEventListener('abort', follow)
  }
}

/** Waits for `promise`, but at most `ms`; a later result or error is ignored. */
export async function waitAtMost(
  ms: number,
  promise: Promise<unknown>,
  clock: Clock,
): Promise<void> {
  const ended = new AbortController()
  const settled = promise.catch(() => undefined).then(() => ended.abort())
  await Promise.race([settled, clock.sleep(ms, ended.signal)])
}

/** Node destroys a socket of an HTTP server on which nothing moves for so long. */
export function limitSilence(socket: Socket, ms: number): void {
  socket.setTimeout(ms)
}

/**
 * Durations of a running daemon, milliseconds. No configuration sets them: the composition root
 * passes the defaults to every part, and tests of the whole daemon pass shorter ones.
 */
const timings = {
  /** How long a process keeps a BullMQ job whose lock it does not renew. */
  jobLockMs: 10_000,
  /** How often BullMQ looks for jobs whose lock has expired. */
  stalledCheckMs: 2_000,

  /** Pause between two passes of the Redis watch. */
  redisWatchMs: 2_000,
  /** A probe sends a line and some headers; a request that takes longer only holds a connection. */
  httpRequestMs: 5_000,
  /** How often a process confirms that its configuration is the active one. */
  generationMs: 2_000,
  /** Pauses between two passes of the process's loops: `healMs` of the one that looks for due work. */
  healMs: 10_000,
  silencesMs: 2_000,
  groupsMs: 1_000,
  failoverMs: 5_000,
  accountsMs: 5_000,
  lanesMs: 10_000,
  /** Metrics and self-alerts; a long pass is followed by a longer pause, see daemon/state.ts. */
  stateMs: 5_000,
  /**
   * Audits, consistency checks, retention, self-alerts: how often each checks whether it is due.
   */
  housekeepingMs: 15_000,

  /** How long a process keeps a claim that it does not renew. */
  claimLeaseMs: 10_000,

  /** How long a replica reads a lane before it gives it back. */
  laneHoldMs: 30_000,
  /** No feed is polled again sooner. */
  minPollIntervalMs: 5_000,
  /** After a failed poll; doubles with each further one, up to sixty times as long. */
  pollBackoffMs: 5_000,
  /** A feed without a due rescan is looked at again after at most this time. */
  rescanLookMs: 300_000,
  /**
   * When a feed is looked at again that is not due, paused, without room in Redis, or of another
   * configuration.
   */
  notDueLookMs: 15_000,
  pausedLookMs: 5_000,
  fullLookMs: 10_000,
  supersededLookMs: 2_000,
  /**
   * How long an older configuration leaves a due job to the active one, and how long it then reads
   * a lane.
   */
  headStartMs: 1_000,

  /** How long an upstream request may take. */
  requestTimeoutMs: 30_000,
  /** After upstream refused a key; doubles with each further refusal, up to 15 min. */
  keyPauseMs: 30_000,
  /**
   * How long an item waits for its full event before it is sent without, and the pause between two
   * tries.
   */
  detailWaitMs: 20_000,
  detailRetryMs: 2_000,

  /**
   * How long a sink's circuit stays open at first; doubles with each probe that fails, up to 15
   * min.
   */
  circuitOpenMs: 30_000,
  /** How often a shut circuit is read again: another replica's probe may have closed it. */
  circuitRecheckMs: 5_000,
  /** How long rerouted items wait for each other at the fallback. */
  fallbackWaitMs: 15_000,
}

export type Timings = Readonly<Record<keyof typeof timings, number>>

export const defaultTimings: Timings = Object.freeze(timings)

/**
 * Names this process in delivery histories and on the jobs it holds. Starts with the process id.
 */
export const replicaId = `${process.pid}-${randomBytes(3).toString('hex')}`
