/** A clock that goes on only when a test says so. */
import type { Clock } from '../../src/lib/clock.ts'

export interface StillClock extends Clock {
  /** Lets time go by; waits stay. */
  pass(ms: number): void
  /** What is waited for, s. */
  waits(): number[]
  /** Ends the waits of that many seconds; left out: all. */
  expire(seconds?: number): void
}

export function stillClock(): StillClock {
  let passedMs = 0
  const pending = new Set<{ seconds: number; end: () => void }>()
  return {
    now: () => Date.UTC(2026, 10, 1, 12, 34, 56) + passedMs,
    monotonic: () => passedMs,
    pass: (ms) => void (passedMs += ms),
    sleep(ms, signal) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const wait = { seconds: ms / 1000, end: resolve }
      pending.add(wait)
      signal?.addEventListener('abort', () => {
        pending.delete(wait)
        resolve()
      })
      return promise
    },
    waits: () => [...pending].map(({ seconds }) => seconds),
    expire(seconds) {
      for (const wait of Array.from(pending)) {
        if (seconds !== undefined && wait.seconds !== seconds) continue
        pending.delete(wait)
        wait.end()
      }
    },
  }
}
