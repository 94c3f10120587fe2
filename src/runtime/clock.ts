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
export function signalWithin(ms: number, ...parents: (AbortSignal | undefined)[]): AbortSignal {
  const given = parents.filter((parent) => parent !== undefined)
  const delayMs = Math.min(Math.max(0, Math.ceil(ms)), longestTimerMs)
  return AbortSignal.any([AbortSignal.timeout(delayMs), ...given])
}

/** Waits for `work`, but no longer than `ms`; what it still does then is nobody's concern. */
export async function within(ms: number, work: Promise<unknown>, clock: Clock): Promise<void> {
  const ended = new AbortController()
  const settled = work.catch(() => undefined).then(() => ended.abort())
  await Promise.race([settled, clock.sleep(ms, ended.signal)])
}
