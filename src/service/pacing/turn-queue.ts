/** The requests of this process that wait for slots of one lane; at most one slot is reserved at a time. */
import type { Clock } from '../../runtime/clock.ts'
import type { Lane } from './organizations.ts'
import { leastShare, pickNext, type Turn, type TurnKind } from './pick-next.ts'
import { ServiceError } from '../service-error.ts'
import type { TierLimiter } from './tier-limiter.ts'

export interface TakenTurn {
  /** Wall clock ms. */
  slotAtMs: number
  waitedMs: number
}

export interface TakeOptions {
  signal?: AbortSignal | undefined
  maxWaitMs?: number | undefined
}

export interface TurnQueue {
  join(turn: Turn, options: TakeOptions): Promise<TakenTurn>
  /** Slots used within the last minute. */
  usedInMinute(): number
}

export interface TurnQueueOptions {
  lane: Lane
  limiter: TierLimiter
  clock: Clock
  closing: AbortSignal
}

interface Waiter extends Turn {
  taken: PromiseWithResolvers<TakenTurn>
  sinceMs: number
}

const minuteMs = 60_000

export function createTurnQueue({ lane, limiter, clock, closing }: TurnQueueOptions): TurnQueue {
  const waiting = new Set<Waiter>()
  let recent: TurnKind[] = []
  let usedAtMs: number[] = []
  let isServing = false

  async function serve(): Promise<void> {
    if (isServing) return
    isServing = true
    try {
      while (waiting.size > 0) {
        const slotAtMs = await limiter.nextSlot(lane, closing, () => isPatient(waiting))
        if (slotAtMs === undefined) throw tooLate()
        hand(slotAtMs)
      }
    } catch (error) {
      for (const waiter of waiting) waiter.taken.reject(error)
    } finally {
      isServing = false
    }
  }

  /** Nobody may be left who wants it. */
  function hand(slotAtMs: number): void {
    const chosen = pickNext([...waiting], recent)
    if (!chosen) return
    waiting.delete(chosen)
    const nowMs = clock.monotonic()
    recent = [...recent, chosen.kind].slice(1 - leastShare)
    usedAtMs = [...usedAtMs, nowMs].filter((at) => at > nowMs - minuteMs)
    chosen.onSlot?.()
    chosen.taken.resolve({ slotAtMs, waitedMs: nowMs - chosen.sinceMs })
  }

  return {
    async join(turn, { signal, maxWaitMs }) {
      const taken = Promise.withResolvers<TakenTurn>()
      const waiter = { ...turn, taken, sinceMs: clock.monotonic() }
      const settled = new AbortController()
      const giveUp = (): void => taken.reject(tooLate())
      signal?.addEventListener('abort', giveUp, { once: true })
      if (maxWaitMs !== undefined)
        void clock.sleep(maxWaitMs, settled.signal).then(() => settled.signal.aborted || giveUp())
      waiting.add(waiter)
      turn.onJoin?.()
      void serve()
      try {
        return await taken.promise
      } finally {
        waiting.delete(waiter)
        settled.abort()
        signal?.removeEventListener('abort', giveUp)
      }
    },
    usedInMinute: () => usedAtMs.filter((at) => at > clock.monotonic() - minuteMs).length,
  }
}

/** Sweeps, and what an operator asks for, give way to the feeds of other processes too. */
function isPatient(waiting: ReadonlySet<Turn>): boolean {
  return [...waiting].every(({ kind }) => kind === 'command' || kind === 'sweep')
}

export function tooLate(): ServiceError {
  return new ServiceError('timeout', 'no turn came in time under the rate limit')
}
