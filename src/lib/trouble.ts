/** What is in the way of a feed, an account or a sink: how it is kept, and how it is said. */
import { formatDuration } from './time-zone.ts'

/** Kept from the first failure until something gets through again. */
export interface Trouble {
  /** The kind of the last failure, such as `timeout`. */
  reason: string
  /** What the other side answered last, or what happened instead; hostile text. '': not known. */
  answer: string
  sinceMs: number
  lastMs: number
  /** Failures since then. */
  count: number
  /** undefined: nothing is tried until somebody acts, or that is not known. */
  nextTryMs?: number | undefined
}

/** As much of an answer as a trouble keeps. */
export const maxTroubleAnswer = 200

/**
 * `failing since 2026-11-01 03:12 UTC (42 min), 17 times, last: timeout, no answer within 30 s;
 * next try 03:56:10 UTC`.
 */
export function formatTrouble(trouble: Trouble, nowMs: number): string {
  const { reason, answer, sinceMs, count, nextTryMs } = trouble
  const lasted = formatDuration(Math.max(0, nowMs - sinceMs))
  const times = count === 1 ? 'once' : `${count} times`
  const last = answer === '' ? reason : `${reason}, ${answer}`
  const since = `failing since ${isoMinute(sinceMs)} UTC (${lasted}), ${times}, last: ${last}`
  return nextTryMs === undefined ? since : `${since}; ${formatNextTry(nextTryMs, nowMs)}`
}

/** A try that is long due says that nobody makes it. */
function formatNextTry(nextTryMs: number, nowMs: number): string {
  if (nextTryMs < nowMs) return `next try has been due for ${formatDuration(nowMs - nextTryMs)}`
  const second = new Date(nextTryMs).toISOString().slice(11, 19)
  return `next try ${second} UTC`
}

function isoMinute(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')
}
