import { systemClock, type Clock } from './clock.ts'
import type { Logger } from './logger.ts'

/** A loop of the process: `tick` in a rhythm, never twice at once, stopped within one tick. */
export interface Loop {
  start(): void
  stop(): Promise<void>
  /** When the last tick ended or the loop said that it waits, wall clock ms; liveness reads it. */
  lastProgressMs(): number
}

export interface LoopOptions {
  name: string
  everyMs: number
  logger: Logger
  clock?: Clock
  /** One pass. A thrown error is logged once and the loop goes on. */
  tick: (signal: AbortSignal) => Promise<void>
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

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await tick(stopping.signal)
      } catch (error) {
        if (!stopping.signal.aborted) logger.warn({ loop: name, err: error }, 'loop tick failed')
      }
      lastProgressMs = clock.now()
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
