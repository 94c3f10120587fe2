/** What becomes of a failed attempt: one pure table over the reasons of SinkError. */
import type { SinkError, SinkReason } from '../sinks/sink.ts'

/** Waits before the tries that follow; the last one repeats until the age limit. */
const scheduleMs = [
  5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000,
  43_200_000,
]

/** After this, an item that never got through becomes a dead letter. */
export const maxAgeMs = 72 * 3_600_000

/** A refusal that may heal, such as 404 during a deployment, is tried for about an hour. */
const maxRejectedTries = 5

const defaultRateLimitMs = 10_000

export type RetryDecision =
  | { act: 'retry'; afterMs: number; counts: boolean }
  | { act: 'dead' }
  | { act: 'split' }

export interface Failure {
  reason: SinkReason
  /** Tries used up before this one. */
  tries: number
  /** Since the delivery was created, or replayed. */
  ageMs: number
  retryAfterMs: number | undefined
  /** How many items the message carries. */
  members: number
  /** In [0, 1); spreads the waits by a fifth either way. */
  random: number
}

export function decideRetry(failure: Failure): RetryDecision {
  const { reason, tries, ageMs, retryAfterMs = 0, members } = failure
  if (reason === 'invalid') return members > 1 ? { act: 'split' } : { act: 'dead' }
  // of a sink that is gone nothing ages: its backlog is parked until an operator acts
  const isTooOld = ageMs >= maxAgeMs && reason !== 'gone'
  if (reason === 'recipient_refused' || isTooOld) return { act: 'dead' }
  if (reason === 'rejected' && tries >= maxRejectedTries) return { act: 'dead' }
  const afterMs = Math.max(retryAfterMs, addJitter(waitMs(reason, tries), failure.random))
  return {
    act: 'retry',
    afterMs,
    counts: !needsOperator(reason) && reason !== 'rate_limited',
  }
}

function waitMs(reason: SinkReason, tries: number): number {
  if (reason === 'rate_limited') return defaultRateLimitMs
  if (needsOperator(reason)) return 30_000 // the circuit decides when the next one goes
  return scheduleMs[Math.min(tries, scheduleMs.length - 1)] ?? maxAgeMs
}

function needsOperator(reason: SinkReason): boolean {
  const effect = effectOn(reason)
  return effect === 'broken' || effect === 'gone'
}

function addJitter(ms: number, random: number): number {
  return Math.round(ms * (0.8 + 0.4 * random))
}

/** For how long the sink as a whole asked to be left alone, ms; a limit of its own is kept by a pause in any case. */
export function pauseAfter(
  { reason, retryAfterMs }: Pick<SinkError, 'reason' | 'retryAfterMs'>,
  limitPerSecond: number | undefined,
): number | undefined {
  const hasLimit = limitPerSecond !== undefined
  return retryAfterMs ?? (reason === 'rate_limited' && hasLimit ? defaultRateLimitMs : undefined)
}

/** What a reason says of the sink as a whole: alive, faltering, broken until somebody acts, or no more. */
export type CircuitEffect = 'answered' | 'fault' | 'broken' | 'gone' | 'none'

export function effectOn(reason: SinkReason): CircuitEffect {
  switch (reason) {
    case 'rate_limited':
      return 'none'
    case 'invalid':
    case 'recipient_refused':
      return 'answered'
    case 'rejected': // one path that is wrong refuses everything
    case 'unavailable':
    case 'timeout':
    case 'connection_lost':
      return 'fault'
    case 'gone':
      return 'gone'
    case 'unauthorized':
    case 'redirected':
    case 'forbidden_address':
    case 'misconfigured':
      return 'broken'
  }
}
