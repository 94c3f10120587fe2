/**
 * The rate limit of an organization's tier, kept in Redis for all replicas and by Redis' clock: slots
 * stand a fixed spacing apart, without burst. Without Redis there is no slot, hence no request.
 */
import type { Redis } from '../../redis/connection.ts'
import type { Keys } from '../../redis/keys.ts'
import { runScript } from '../../redis/scripts.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Lane } from './organizations.ts'
import { leastShare } from './pick-next.ts'

export interface TierLimiter {
  /**
   * Resolves when a slot has come: the request must go out at once. `undefined` when `signal` aborted.
   * A process that was stopped over its slot's time gets another one, never an old one. While
   * `isPatient` it takes only slots that no process has asked for, or one in `leastShare`.
   */
  nextSlot(lane: Lane, signal: AbortSignal, isPatient?: () => boolean): Promise<number | undefined>
  /** Closes the tier for every replica; never shortens a longer pause. */
  pause(lane: Lane, ms: number): Promise<void>
  /** Requests per second. */
  limitOf(lane: Lane): number
}

export interface TierLimiterOptions {
  redis: Redis
  keys: Keys
  clock: Clock
  limitOf: (lane: Lane) => number
}

/** How long after its time a slot may be used, on a clock that never jumps. */
const slotValidMs = 250

/** Microseconds between two slots of a tier with `limit` requests per second: 3 % more than it asks. */
export function spacingMicros(limit: number): number {
  return Math.ceil((1.03 / limit) * 1_000_000)
}

export function createTierLimiter({
  redis,
  keys,
  clock,
  limitOf,
}: TierLimiterOptions): TierLimiter {
  function keysOf(lane: Lane): string[] {
    return [lane.organization, lane.baseUrl].map((name) => keys.shared('limit', name, lane.tier))
  }

  /** When the request for a slot that is ours now was made; `undefined` when there is none. */
  async function awaitSlot(
    lane: Lane,
    signal: AbortSignal,
    isPatient: boolean,
  ): Promise<number | undefined> {
    let askedAt = clock.monotonic()
    const asked = [spacingMicros(limitOf(lane)), isPatient ? leastShare : 0]
    const reply = await runScript(redis, 'reserve-slot', keysOf(lane), asked)
    const [slot, reserved] = reply as [number, number]
    let wait = reserved
    if (slot === 0) {
      await clock.sleep(Math.ceil(wait / 1000), signal)
      return undefined
    }
    while (wait > 0) {
      await clock.sleep(Math.ceil(wait / 1000), signal)
      if (signal.aborted) return undefined
      askedAt = clock.monotonic()
      wait = Number(await runScript(redis, 'claim-slot', keysOf(lane), [slot]))
    }
    return wait === 0 ? askedAt : undefined
  }

  return {
    limitOf,
    async nextSlot(lane, signal, isPatient = () => false) {
      while (!signal.aborted) {
        const claimedAt = await awaitSlot(lane, signal, isPatient())
        if (claimedAt !== undefined && clock.monotonic() - claimedAt <= slotValidMs) {
          return clock.now()
        }
      }
      return undefined
    },
    async pause(lane, ms) {
      await runScript(redis, 'pause-tier', keysOf(lane), [Math.ceil(ms)])
    },
  }
}
