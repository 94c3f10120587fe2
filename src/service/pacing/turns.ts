/**
 * Hands the slots of the rate limits to those who wait. It is decided only when a slot comes who gets
 * it; a slot that nobody wants any more goes unused.
 */
import { systemClock, type Clock } from '../../runtime/clock.ts'
import type { Lane } from './organizations.ts'
import type { Turn } from './pick-next.ts'
import type { TierLimiter } from './tier-limiter.ts'
import {
  createTurnQueue,
  tooLate,
  type TakenTurn,
  type TakeOptions,
  type TurnQueue,
} from './turn-queue.ts'

export interface Turns {
  /** Resolves when the request may go out, which it must at once; ServiceError `timeout` otherwise. */
  take(turn: Turn, lane: Lane, options?: TakeOptions): Promise<TakenTurn>
  /** After a 429: nobody gets a slot of the lane for so long, in any replica. */
  pause(lane: Lane, ms: number): Promise<void>
  /** Share of the lane's rate that this process used within the last minute, 0 to 1. */
  utilization(lane: Lane): number
  close(): void
}

export function createTurns(options: { limiter: TierLimiter; clock?: Clock }): Turns {
  const { limiter, clock = systemClock } = options
  const queues = new Map<string, TurnQueue>()
  const closing = new AbortController()

  function queueOf(lane: Lane): TurnQueue {
    const name = `${lane.organization}:${lane.tier}`
    const known = queues.get(name)
    const queue = known ?? createTurnQueue({ lane, limiter, clock, closing: closing.signal })
    queues.set(name, queue)
    return queue
  }

  return {
    async take(turn, lane, takeOptions = {}) {
      if (takeOptions.signal?.aborted || closing.signal.aborted) throw tooLate()
      return queueOf(lane).join(turn, takeOptions)
    },
    pause: (lane, ms) => limiter.pause(lane, ms),
    utilization: (lane) => Math.min(1, queueOf(lane).usedInMinute() / (60 * limiter.limitOf(lane))),
    close: () => closing.abort(),
  }
}
