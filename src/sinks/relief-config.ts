/** What becomes of a sink's items when it takes none, or too many wait; the same keys on every type. */
import { duration, name, wholeNumber } from '../runtime/config-fields.ts'

export interface ReliefConfig {
  /** The sink that gets what this one cannot; undefined: it waits here. */
  fallback: string | undefined
  /** How long the circuit must have been open before that. */
  fallbackAfterMs: number
  /** Beyond so many pending items the least severe are given up. */
  pendingMax: number
}

export const reliefKeys = {
  fallback: name('The sink that gets what this one cannot be sent.').optional(),
  fallback_after: duration(
    'How long the circuit is open before the fallback gets what waits.',
  ).prefault('5m'),
  pending_max: wholeNumber({
    describe: 'Pending items beyond which the least severe become dead letters.',
    min: 1,
    max: 10_000_000,
  }).prefault(100_000),
}

interface ReliefKeys {
  fallback?: string | undefined
  fallback_after: number
  pending_max: number
}

export function reliefIn(file: ReliefKeys): ReliefConfig {
  return {
    fallback: file.fallback,
    fallbackAfterMs: file.fallback_after,
    pendingMax: file.pending_max,
  }
}
