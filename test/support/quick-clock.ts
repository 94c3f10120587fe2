/** Time that passes as soon as everybody sleeps: hours in moments, whatever the machine is like. */
import type { Clock } from '../../src/lib/clock.ts'

export interface QuickClock {
  clock: Clock
  /** Lets time pass until `work` has ended. */
  run: (work: Promise<unknown>) => Promise<void>
}

/** `settle` resolves once nobody waits for anything but time. */
export function createQuickClock(settle: () => Promise<unknown>): QuickClock {
  let nowMs = Date.UTC(2026, 0, 5)
  const sleepers = new Set<{ atMs: number; wake: () => void }>()
  const clock: Clock = {
    now: () => nowMs,
    monotonic: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        const sleeper = { atMs: nowMs + Math.max(0, ms), wake }
        function wake(): void {
          sleepers.delete(sleeper)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        signal?.addEventListener('abort', wake, { once: true })
        sleepers.add(sleeper)
      }),
  }
  async function run(work: Promise<unknown>): Promise<void> {
    let isOver = false
    void work.finally(() => (isOver = true))
    for (;;) {
      await settle()
      if (isOver) return
      const next = [...sleepers].toSorted((a, b) => a.atMs - b.atMs)[0]
      if (!next) continue
      nowMs = Math.max(nowMs, next.atMs)
      next.wake()
    }
  }
  return { clock, run }
}
