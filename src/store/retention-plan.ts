/** How much each account may keep of the limit, and when to weigh again (pure). */

/** What an account takes: bytes that cannot go, and bytes that can. */
export interface Weights {
  unsettledBytes: number
  settledBytes: number
}

export function totalOf({ unsettledBytes, settledBytes }: Weights): number {
  return unsettledBytes + settledBytes
}

/** So much of its share is left of an account that was trimmed, so that not every pass has to trim. */
const keptShare = 0.9

/** How many bytes an account gives up; 0: it fits as it is. What is not settled never goes. */
export function excessOf(weights: Weights, shareBytes: number): number {
  const bytes = totalOf(weights)
  if (bytes <= shareBytes) return 0
  return Math.min(weights.settledBytes, Math.ceil(bytes - keptShare * shareBytes))
}

/**
 * How much each account may keep once all of them together exceed `maxBytes`: an equal share, and what the
 * smaller ones leave over goes to the larger ones. What an account has not settled counts against its own share;
 * beyond it, it is nobody else's loss. There is at least one.
 */
export function fairShareOf(accounts: readonly Weights[], maxBytes: number): number {
  const sizes = accounts.map((weights) => {
    return { bytes: totalOf(weights), leastBytes: weights.unsettledBytes }
  })
  let shareBytes = maxBytes / sizes.length
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

/** Until records are weighed again: half of the time in which it would be full, as it has grown since the last one. */
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

/** What the last pass found, for metrics and the next one. */
export interface RetentionNote {
  endedAtMs: number
  /** What records and payloads take, after what had to go was dropped. */
  bytes: number
  /** The limit that it kept to. */
  maxBytes: number
  /** What Redis used then for everything, less what was dropped. */
  usedBytes: number
  /** When the next pass is due at the latest. */
  dueAtMs: number
}

/** Whether records are to be weighed again: by its time, for a lower limit, or because Redis took more than was left then. */
export function isPassDue(
  { dueAtMs, bytes, maxBytes, usedBytes }: RetentionNote,
  now: { nowMs: number; maxBytes: number; usedBytes: number },
): boolean {
  const waitMs = dueAtMs - now.nowMs
  if (waitMs <= 0 || waitMs > longestPauseMs) return true // written by a clock that was ahead
  if (maxBytes !== now.maxBytes && bytes > now.maxBytes) return true
  const roomBytes = Math.max(now.maxBytes - bytes, noiseShare * now.maxBytes)
  return now.usedBytes - usedBytes > roomBytes
}
