import type { Condition } from './conditions.ts'

/** What Redis holds of a condition, the same for all replicas. */
export interface Noted {
  /** When it began, ms; part of the notices' uids, so it stays once the begin is said. */
  sinceMs: number
  /** When it was first seen, ms. */
  seenMs: number
  /** When it was decided that its begin is to be said, ms: from then on it is, whatever happens. */
  dueMs?: number
  /** The sink that its begin goes through; null: none was fit for it. An older version noted none. */
  via?: string | null
  /** When that was done, ms. */
  saidMs?: number
  /** When a condition whose begin was said was seen to be over, ms. */
  goneMs?: number
}

/** `say_…`: say it first, then note `to` (undefined: forget), so that a crash between loses nothing. */
export interface Step {
  verb: 'note' | 'say_begin' | 'say_end'
  to: Noted | undefined
}

/**
 * How long a condition stays away before its end is said, ms. One that comes back within this time
 * is the same one: it was never said to be over, and its begin is not said again.
 */
export const settleMs = 10 * 60_000

/** What is to be done next about one condition; undefined: nothing, for now. `via`: the way at this look. */
export function nextStep(
  noted: Noted | undefined,
  condition: Pick<Condition, 'sinceMs' | 'waitMs' | 'steadyMs'> | undefined,
  { nowMs, isCovered, via }: { nowMs: number; isCovered: boolean; via: string | null },
): Step | undefined {
  if (noted?.dueMs !== undefined && noted.saidMs === undefined) {
    return { verb: 'say_begin', to: { ...noted, saidMs: nowMs } }
  }
  if (condition === undefined) return noted && whenGone(noted, nowMs)
  const sinceMs = condition.sinceMs ?? noted?.sinceMs ?? nowMs
  if (noted === undefined) return { verb: 'note', to: { sinceMs, seenMs: nowMs } }
  if (noted.goneMs !== undefined) {
    const { goneMs: _over, ...still } = noted
    return { verb: 'note', to: still }
  }
  if (noted.saidMs !== undefined) return undefined
  if (noted.sinceMs !== sinceMs) return { verb: 'note', to: { ...noted, sinceMs } }
  const hasLasted = nowMs - sinceMs >= condition.waitMs
  const isSteady = nowMs - noted.seenMs >= condition.steadyMs
  if (isCovered || !hasLasted || !isSteady) return undefined
  return { verb: 'note', to: { ...noted, dueMs: nowMs, via } }
}

function whenGone(noted: Noted, nowMs: number): Step | undefined {
  if (noted.saidMs === undefined) return { verb: 'note', to: undefined }
  if (noted.goneMs === undefined) return { verb: 'note', to: { ...noted, goneMs: nowMs } }
  return nowMs - noted.goneMs >= settleMs ? { verb: 'say_end', to: undefined } : undefined
}
