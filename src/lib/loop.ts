import { type Clock, systemClock } from './clock.ts'
import type { Logger } from './logger.ts'

/**
 * A loop of the process: calls `tick` at intervals, never concurrently, and stops within one tick.
 */
export interface Loop {
  start(): void
  stop(): Promise<void>
  /** When the loop started, last ended a tick or last reported progress; wall clock ms. */
  lastProgressMs(): number
}

export interface LoopOptions {
  name: string
  everyMs: number
  logger: Logger
  clock?: Clock
  /**
   * One pass. A thrown error is logged and the loop goes on. A long pass calls `alive()` now and
   * then, also while it waits for Redis: the liveness probe must not end the process for that.
   */
  tick: (signal: AbortSignal, alive: () => void) => Promise<void>
}

export function createLoop({
  name,
  everyMs,
  logger,
  clock = systemClock,
  tick,
}: LoopOptions): Loop {
  const stopping = new AbortController()
  let running: Promise<void> | undefined
  let lastProgressMs = clock.now()

  function alive(): void {
    lastProgressMs = clock.now()
  }

  async function run(): Promise<void> {
    alive()
    while (!stopping.signal.aborted) {
      try {
        await tick(stopping.signal, alive)
      } catch (error) {
        if (!stopping.signal.aborted) logger.warn({ loop: name, err: error }, 'loop tick failed')
      }
      alive()
      await clock.sleep(everyMs, stopping.signal)
    }
  }

  return {
    start() {
      running ??= run()
    },
    async stop() {
      stopping.abort()
      await running
    },
    lastProgressMs: () => lastProgressMs,
  }
}

/** A BullMQ worker, which can stop and resume taking work. */
interface Pausable {
  pause(doNotWaitActive?: boolean): Promise<void>
  resume(): Promise<void>
}

/**
 * Pause after a worker's error: a worker that cannot fetch would retry at once, thousands of times
 * a second.
 */
const errorRestMs = 1_000

interface WorkerPause {
  /** Takes no new work until then; further calls meanwhile change nothing. */
  until: (untilMs: number) => Promise<void>
  /**
   * For a worker's errors: a full or read-only Redis refuses commands without any connection error.
   */
  afterError: () => void
}

export function createWorkerPause(
  worker: Pausable,
  stopping: AbortSignal,
  clock: Clock,
): WorkerPause {
  let isStanding = false

  async function resumeAfter(untilMs: number): Promise<void> {
    await clock.sleep(untilMs - clock.now(), stopping)
    isStanding = false
    if (!stopping.aborted) await worker.resume()
  }

  async function until(untilMs: number): Promise<void> {
    if (isStanding || stopping.aborted) return
    isStanding = true
    await worker.pause(true)
    void resumeAfter(untilMs)
  }

  return { until, afterError: () => void until(clock.now() + errorRestMs) }
}
