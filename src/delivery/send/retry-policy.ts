/** Decides what follows a failed attempt: one pure table over the reasons of SinkError. */
import { isAnswerLost, type SinkError, type SinkReason } from '../../sinks/sink.ts'

/** Waits between counted tries; the last one repeats until the age limit. */
const scheduleMs = [
  5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000,
  43_200_000,
]

/** An undelivered item becomes a dead letter at this age. */
export const maxAgeMs = 72 * 3_600_000

/**
 * A refusal that may be temporary, such as 404 during a deployment, is retried for about an hour.
 */
const maxRejectedTries = 5

/** A batch that the receiver refused so often is halved: one of its events may be to blame. */
const maxBatchTries = 3

/**
 * So many messages more are made by splits without any sign that others pass. It is as many as it
 * takes to find one event in a batch of fifty.
 */
const maxBlindParts = 6

const defaultRateLimitMs = 10_000

export type RetryDecision =
  | { act: 'retry'; afterMs: number; counts: boolean }
  | { act: 'dead' }
  | { act: 'split' }

export interface Failure {
  reason: SinkReason
  /** Counted tries before this one. */
  tries: number
  /** Time since the delivery was created or replayed. */
  ageMs: number
  retryAfterMs: number | undefined
  /** How many items the message carries. */
  members: number
  /** Attempts before this one, counted or not. */
  attempts: number
  /** The message may be to blame, because the receiver had it in hand. */
  mayBeMessages: boolean
  /** The sink has accepted others since this message, or the batch it was in, failed before. */
  hasAcceptedOthers: boolean
  /** It is a half of a batch that was refused, and was not tried before. */
  isNewHalf: boolean
  /** How many messages more a split makes: one of a batch, which is halved. */
  newParts: number
  /** How many were made so since the sink accepted anything. */
  blindParts: number
  /** In [0, 1); varies the waits by up to 20 % either way. */
  random: number
}

export function decideRetry(failure: Failure): RetryDecision {
  const { reason, tries, ageMs, retryAfterMs = 0, members } = failure
  if (members > 1 && isLasting(failure)) return { act: 'split' }
  if (reason === 'invalid') return { act: 'dead' }
  // items for a disabled sink do not expire: they wait until an operator acts
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

/** Whether a batch would fail again as it is. */
function isLasting({ reason, attempts, ...failure }: Failure): boolean {
  const isOften = attempts + 1 >= maxBatchTries || failure.isNewHalf
  const isFew = failure.blindParts + failure.newParts <= maxBlindParts
  const maySplit = failure.hasAcceptedOthers || (isOften && isFew)
  return reason === 'invalid' || (failure.mayBeMessages && maySplit)
}

function waitMs(reason: SinkReason, tries: number): number {
  if (reason === 'rate_limited') return defaultRateLimitMs
  if (needsOperator(reason)) return 30_000
  return scheduleMs[Math.min(tries, scheduleMs.length - 1)] ?? maxAgeMs
}

/** Whether its circuit decides when the next send goes, or whoever enables the sink. */
export function needsOperator(reason: SinkReason): boolean {
  const effect = effectOn(reason)
  return effect === 'broken' || effect === 'gone'
}

function addJitter(ms: number, random: number): number {
  return Math.round(ms * (0.8 + 0.4 * random))
}

/**
 * Returns how long the sink as a whole must be left alone, ms; undefined: no pause. A 429 without
 * Retry-After pauses only sinks with a rate limit of their own.
 */
export function pauseAfter(
  { reason, retryAfterMs }: Pick<SinkError, 'reason' | 'retryAfterMs'>,
  limitPerSecond: number | undefined,
): number | undefined {
  const hasLimit = limitPerSecond !== undefined
  return retryAfterMs ?? (reason === 'rate_limited' && hasLimit ? defaultRateLimitMs : undefined)
}

/** Whether the failure says nothing of the sink's other destinations. */
export function concernsDestination({ reason, scope }: SinkError): boolean {
  const isRecipients = reason === 'recipient_refused' || reason === 'recipient_deferred'
  return scope === 'destination' || isRecipients
}

/** Whether no answer says if the destination failed, or the whole sink. */
export function isUnexplained({ reason, status, scope }: SinkError): boolean {
  const isOfDestination = reason === 'unavailable' && scope === 'destination'
  return status === undefined && (isOfDestination || isAnswerLost(reason))
}

/**
 * Whether the message itself may be to blame: the receiver had it in hand and did not take it, so
 * another one may fare better. A firewall may refuse one by 403, nobody does by 401.
 */
export function mayBeMessages(error: SinkError): boolean {
  const { reason, status } = error
  if (isAnswerLost(reason)) return true
  const isRefusal = reason === 'unavailable' || reason === 'rejected' || status === 403
  return status !== undefined && isRefusal && !concernsDestination(error)
}

/**
 * What a reason says about the sink as a whole: it answers, has a fault, is broken until somebody
 * acts, is gone, or nothing.
 */
export type CircuitEffect = 'answered' | 'fault' | 'broken' | 'gone' | 'none'

export function effectOn(reason: SinkReason): CircuitEffect {
  switch (reason) {
    case 'rate_limited':
      return 'none'
    case 'invalid':
    case 'recipient_refused':
      return 'answered'
    case 'recipient_deferred':
    case 'rejected': // one wrong path makes the sink reject everything
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
