/** Events that arrive by themselves: a Poisson process, a share of it late. */
import { systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { createLoop, type Loop } from '../../runtime/loop.ts'
import type { Random } from '../random.ts'

export interface ArrivalOptions {
  /** Mean; above 0. */
  perSecond: number
  lateShare: number
  /** How long before its arrival a late event was created, at least and at most. */
  lateMinMs: number
  lateMaxMs: number
  random: Random
  logger: Logger
  /** `ageMs`: how long before now the event was created. */
  arrive: (ageMs: number) => void
}

const everyMs = 25

export function createArrivals(options: ArrivalOptions): Loop {
  const { perSecond, lateShare, lateMinMs, lateMaxMs, random, logger, arrive } = options
  const gapMs = (): number => random.exponential(1000 / perSecond)
  let nextAt = systemClock.monotonic() + gapMs()

  function arriveDue(): void {
    const now = systemClock.monotonic()
    while (nextAt <= now) {
      const isLate = random.chance(lateShare)
      arrive(isLate ? random.int(lateMinMs, lateMaxMs) : Math.floor(now - nextAt))
      nextAt += gapMs()
    }
  }

  return createLoop({
    name: 'sandbox arrivals',
    everyMs,
    logger,
    tick: (): Promise<void> => Promise.resolve(arriveDue()),
  })
}
