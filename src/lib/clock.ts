import { randomBytes } from 'node:crypto'

/** Time as the parts see it: handed in, so that tests set it. The only home of timers and `Date.now`. */
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
 * A signal that aborts after `ms` (rounded up; none left: as soon as may be), or when one of
 * `parents` does. Its timer never keeps the process alive.
 */
export function timeoutSignal(ms: number, ...parents: (AbortSignal | undefined)[]): AbortSignal {
  const given = parents.filter((parent) => parent !== undefined)
  const delayMs = Math.min(Math.max(0, Math.ceil(ms)), longestTimerMs)
  return AbortSignal.any([AbortSignal.timeout(delayMs), ...given])
}

/** Waits for `work`, but no longer than `ms`; what it still does then is nobody's concern. */
export async function waitAtMost(
  ms: number,
  promise: Promise<unknown>,
  clock: Clock,
): Promise<void> {
  const ended = new AbortController()
  const settled = promise.catch(() => undefined).then(() => ended.abort())
  await Promise.race([settled, clock.sleep(ms, ended.signal)])
}

/**
 * The durations that a running daemon keeps by itself, milliseconds. No configuration sets them: the
 * composition root hands the defaults to every part, and tests of the whole daemon hand in shorter ones.
 */
export interface Timings {
  /** How long a BullMQ job stays in the hands of a process that does not renew it. */
  jobLockMs: number
  /** How often BullMQ looks for jobs whose lock has expired. */
  stalledCheckMs: number

  /** Pauses between two passes of the process' loops. */
  redisWatchMs: number
  /** How often a process confirms that its configuration is the active one. */
  generationMs: number
  /** How often it asks what others have made due, and looks at every account for what nobody told. */
  hintsMs: number
  healMs: number
  silencesMs: number
  groupsMs: number
  failoverMs: number
  accountsMs: number
  lanesMs: number
  /** What metrics and self-alerts show; a long pass is followed by a longer pause, see build-state.ts. */
  stateMs: number
  /** Audits, ledger audits, retention and self-alerts: how often each looks whether it is due. */
  housekeepingMs: number

  /** How long replicas of an older version get to end what they send before their store is taken over. */
  upgradeMs: number
  /** And when the jobs are removed that they added after that. */
  upgradeLookMs: number
  /** How long what a process claimed stays its own while it does not renew that. */
  claimLeaseMs: number
  /** What is due for a sink that the configuration does not have is left alone for so long. */
  orphanGraceMs: number

  /** For how long a replica reads a lane before it gives it back. */
  laneHoldMs: number
  /** No feed is polled again sooner. */
  minPollIntervalMs: number
  /** After a failed poll; doubles with each further one, up to sixty times as long. */
  pollBackoffMs: number
  /** How long a feed's rescans are believed not to be due. */
  rescanLookMs: number
  /** When a feed looks again that is not due, paused, without room in Redis, or another configuration's. */
  notDueLookMs: number
  pausedLookMs: number
  fullLookMs: number
  supersededLookMs: number
  /** An older configuration leaves a due job for so long to the active one. */
  headStartMs: number

  /** How long a request to the service may take. */
  requestTimeoutMs: number
  /** After the service has refused a key; doubles with each further refusal, up to 15 min. */
  keyPauseMs: number
  /** How long an item waits for its full event before the message goes without; and between two tries. */
  detailWaitMs: number
  detailRetryMs: number

  /** How long a sink's circuit stays open at first; doubles with each probe that fails, up to 15 min. */
  circuitOpenMs: number
  /** How long the items that a fallback takes over wait for each other. */
  fallbackWaitMs: number
}

export const defaultTimings: Readonly<Timings> = Object.freeze({
  jobLockMs: 10_000,
  stalledCheckMs: 2_000,

  redisWatchMs: 2_000,
  generationMs: 2_000,
  hintsMs: 500,
  healMs: 10_000,
  silencesMs: 2_000,
  groupsMs: 1_000,
  failoverMs: 5_000,
  accountsMs: 5_000,
  lanesMs: 10_000,
  stateMs: 5_000,
  housekeepingMs: 15_000,

  upgradeMs: 10_000,
  upgradeLookMs: 600_000,
  claimLeaseMs: 10_000,
  orphanGraceMs: 3_000,

  laneHoldMs: 30_000,
  minPollIntervalMs: 5_000,
  pollBackoffMs: 5_000,
  rescanLookMs: 300_000,
  notDueLookMs: 15_000,
  pausedLookMs: 5_000,
  fullLookMs: 10_000,
  supersededLookMs: 2_000,
  headStartMs: 1_000,

  requestTimeoutMs: 30_000,
  keyPauseMs: 30_000,
  detailWaitMs: 20_000,
  detailRetryMs: 2_000,

  circuitOpenMs: 30_000,
  fallbackWaitMs: 15_000,
})

/** Names this process: in the stories of deliveries, and on the jobs in its hands. Starts with its id. */
export const replicaId = `${process.pid}-${randomBytes(3).toString('hex')}`
