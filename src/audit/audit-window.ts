import { fingerprintOf, readsFrom } from '../feeds/walk.ts'
import { typeOf } from '../feeds/feed-types.ts'
import type { PolledFeed } from '../feeds/polled-feed.ts'
import type { Book } from '../ledger/book.ts'
import type { FeedState } from '../ledger/feed-state.ts'
import type { AuditWindow } from './finding.ts'

/** Why there is nothing to compare. */
export type NoWindow =
  /** Each report is asked for until it is there. */
  | 'reports'
  /** The feed was not read to its end yet: never, or since it was changed or rewound. */
  | 'not_read'
  /** The feed was last read to its end before all that is to be compared. */
  | 'behind'

/** What is kept, and since when all of it is: `trimmedUntilMs` of the ledger. */
export type Kept = Pick<Book, 'retention' | 'horizonMs'> & { trimmedUntilMs?: number }

/**
 * From `backMs` before now to where the feed was read to its end. Never further back than its floor, than
 * what its present request has read, or than marks and records are kept: of older ones nobody can tell what became.
 */
export function auditWindow(
  { retention, horizonMs, trimmedUntilMs = 0 }: Kept,
  feed: PolledFeed,
  state: FeedState | undefined,
  backMs: number,
): AuditWindow | NoWindow {
  if (feed.type === 'reports') return 'reports'
  const { walk, lastCaughtUpMs, floorMs, nowMs } = state ?? {}
  if (!state || !walk || floorMs === undefined || nowMs === undefined) return 'not_read'
  const isOld = walk.fingerprint !== fingerprintOf(feed, floorMs) || state.isRewound
  const isRead = lastCaughtUpMs !== undefined && lastCaughtUpMs >= firstStartMs(feed, state)
  if (isOld || !isRead || state.isBackfilling) return 'not_read'
  const fromMs = Math.max(
    floorMs,
    nowMs - Math.min(backMs, retention.story, horizonMs),
    trimmedUntilMs,
    coveredMs(feed, state),
  )
  return fromMs < lastCaughtUpMs ? { fromMs, toMs: lastCaughtUpMs } : 'behind'
}

/** Since when its end means something; where the service keeps no order, walks begin again and again. */
function firstStartMs(feed: PolledFeed, { walk }: FeedState): number {
  if (!typeOf(feed).unordered) return walk?.startedAtMs ?? 0
  return walk?.notes?.['hasCompleted'] === true ? 0 : Infinity
}

/** From when on the present request was read: by the tail's walks, or by a sweep that ended. */
function coveredMs(feed: PolledFeed, { walk, sweep, floorMs }: FeedState): number {
  const { unordered } = typeOf(feed)
  if (unordered && !unordered.byTime) return floorMs
  const tailMs = (walk && readsFrom(walk)) ?? floorMs
  const { fingerprint, fromMs = Infinity, toMs = 0 } = sweep.lastEnded ?? {}
  const isJoined = fingerprint === walk?.fingerprint && toMs >= tailMs // no gap lies between
  return isJoined ? Math.min(tailMs, fromMs) : tailMs
}
