/** What has to go so that the rest fits: of each account the oldest settled first, unsettled never; and when to look (pure). */
import type { KeepingNote } from './keeping-log.ts'

/** What was weighed: bytes that cannot go, and bytes that can, by the minute in which they were settled. */
export interface Weights {
  unsettledBytes: number
  settledBytes: Map<number, number>
}

const minuteMs = 60_000

/** So much of the limit is left after a trim, so that not every walk has to trim. */
const keptShare = 0.9

export function noWeights(): Weights {
  return { unsettledBytes: 0, settledBytes: new Map() }
}

export function addSettled({ settledBytes }: Weights, settledAtMs: number, bytes: number): void {
  const minute = Math.floor(settledAtMs / minuteMs)
  settledBytes.set(minute, (settledBytes.get(minute) ?? 0) + bytes)
}

export function totalOf({ unsettledBytes, settledBytes }: Weights): number {
  return [...settledBytes.values()].reduce((sum, bytes) => sum + bytes, unsettledBytes)
}

export interface Cutoff {
  /** What was settled before goes; ms. */
  beforeMs: number
  /** What is left then. */
  leftBytes: number
}

/**
 * undefined: it fits as it is. Never more than needed but for a minute, and more than fits is left only
 * where all that is settled goes.
 */
export function cutoffOf(weights: Weights, maxBytes: number): Cutoff | undefined {
  let leftBytes = totalOf(weights)
  if (leftBytes <= maxBytes) return undefined
  let beforeMs = 0
  for (const [minute, bytes] of [...weights.settledBytes].toSorted(([a], [b]) => a - b)) {
    if (leftBytes <= keptShare * maxBytes) break
    leftBytes -= bytes
    beforeMs = (minute + 1) * minuteMs
  }
  return { beforeMs, leftBytes }
}

/**
 * How much each account may keep once all of them together exceed `maxBytes`: an equal share, and what the
 * smaller ones leave over goes to the larger ones. What an account has not settled counts against its own share;
 * beyond it, it is nobody else's loss.
 */
export function fairShareOf(accounts: readonly Weights[], maxBytes: number): number {
  const sizes = accounts.map((weights) => {
    return { bytes: totalOf(weights), leastBytes: weights.unsettledBytes }
  })
  let shareBytes = maxBytes / Math.max(1, sizes.length)
  let tooMuchBytes = Math.max(shareBytes, ...sizes.map(({ bytes }) => bytes))
  for (let step = 0; step < shareSteps; step += 1) {
    const betweenBytes = (shareBytes + tooMuchBytes) / 2
    const kept = sizes.map(({ bytes, leastBytes }) => {
      return Math.max(leastBytes, Math.min(bytes, betweenBytes))
    })
    if (kept.reduce((sum, bytes) => sum + bytes, 0) <= maxBytes) shareBytes = betweenBytes
    else tooMuchBytes = betweenBytes
  }
  return shareBytes
}

/** Halvings of the range in which the share lies: then it is exact to less than a byte. */
const shareSteps = 60

const shortestPauseMs = 60_000
const longestPauseMs = 3_600_000

/** Until the next walk: half of the time in which it would be full, as it has grown since the last one. */
export function pauseOf(
  bytes: number,
  maxBytes: number,
  grown: { bytes: number; inMs: number } | undefined,
): number {
  if (!grown) return shortestPauseMs
  const bytesPerMs = Math.max(0, grown.bytes) / Math.max(1, grown.inMs)
  const fullInMs = bytesPerMs === 0 ? Infinity : Math.max(0, maxBytes - bytes) / bytesPerMs
  return Math.min(longestPauseMs, Math.max(shortestPauseMs, fullInMs / 2))
}

/** Growth that is none, as a share of the limit: jobs come and go. */
const noiseShare = 0.01

/** Whether a walk is due: by its time, for a lower limit, or because Redis took more than was left then. */
export function isWalkDue(
  { dueAtMs, bytes, maxBytes, usedBytes }: KeepingNote,
  now: { nowMs: number; maxBytes: number; usedBytes: number },
): boolean {
  const waitMs = dueAtMs - now.nowMs
  if (waitMs <= 0 || waitMs > longestPauseMs) return true // written by a clock that was ahead
  if (maxBytes !== now.maxBytes && bytes > now.maxBytes) return true
  const roomBytes = Math.max(now.maxBytes - bytes, noiseShare * now.maxBytes)
  return now.usedBytes - usedBytes > roomBytes
}
