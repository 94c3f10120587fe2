import type { Clock } from './clock.ts'

/** What can be told to take no new work and to take it again: a BullMQ worker. */
export interface Pausable {
  pause(doNotWaitActive?: boolean): Promise<void>
  resume(): Promise<void>
}

/** After an error of a worker: one that cannot fetch asks again at once, thousands of times a second. */
const errorRestMs = 1_000

export interface StandStill {
  /** Takes no new work until then; more calls meanwhile change nothing. */
  until: (untilMs: number) => Promise<void>
  /** For a worker's errors: a full or read-only Redis refuses what a connection error never reaches. */
  afterError: () => void
}

export function createStandStill(
  worker: Pausable,
  stopping: AbortSignal,
  clock: Clock,
): StandStill {
  let isStanding = false

  async function goOn(untilMs: number): Promise<void> {
    await clock.sleep(untilMs - clock.now(), stopping)
    isStanding = false
    if (!stopping.aborted) await worker.resume()
  }

  async function until(untilMs: number): Promise<void> {
    if (isStanding || stopping.aborted) return
    isStanding = true
    await worker.pause(true)
    void goOn(untilMs)
  }

  return { until, afterError: () => void until(clock.now() + errorRestMs) }
}
