/** Walks, pure: which request a poll makes next, and what a page's `next` means. */
import { createHash } from 'node:crypto'
import type { FeedState, Walk, WalkReason } from '../ledger/feed-state.ts'
import type { WireSearchBody } from '../service/wire.ts'
import type { PolledFeed } from './polled-feed.ts'

/** How far a new walk reaches back behind the newest event that was taken in. */
export const overlapMs = 3_600_000

/** The service returns at most ten items a page (service description, Limits). */
const pageSize = 10

/** Changes when what the operator configured, or the floor, changes; then a cursor must not be reused. */
export function fingerprintOf(feed: PolledFeed, floorMs: number): string {
  const { type, account, scope, identifierGroup, filters } = feed
  const asked = [type, account, scope, identifierGroup, sorted(filters), floorMs]
  const configured = JSON.stringify(asked)
  return createHash('sha256').update(configured).digest('hex').slice(0, 16)
}

function sorted(filters: object): [string, unknown][] {
  return Object.entries(filters).toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** The stored walk while it fits the configuration, otherwise a new one with overlap above the floor. */
export function walkFor(feed: PolledFeed, state: FeedState): Walk {
  const { walk, floorMs } = state
  if (!walk) return beginWalk(feed, state, floorMs, state.isRewound ? 'rewound' : 'first')
  if (walk.fingerprint === fingerprintOf(feed, floorMs)) return walk
  return beginWalk(feed, state, resumeFrom(state), 'configuration_changed')
}

/** A walk that takes the place of one whose cursor the service refused. */
export function walkAfterRefusal(feed: PolledFeed, state: FeedState): Walk {
  return beginWalk(feed, state, resumeFrom(state), 'cursor_refused')
}

function resumeFrom({ newestMs, nowMs, floorMs }: FeedState): number {
  if (newestMs === undefined) return floorMs
  return Math.max(floorMs, Math.min(newestMs, nowMs) - overlapMs)
}

function beginWalk(
  feed: PolledFeed,
  { floorMs, nowMs }: FeedState,
  fromMs: number,
  reason: WalkReason,
): Walk {
  const body: WireSearchBody = {
    size: pageSize,
    order: 'asc',
    filters: { ...feed.filters, estimated_created_at: { gte: new Date(fromMs).toISOString() } },
  }
  return {
    fingerprint: fingerprintOf(feed, floorMs),
    body: { ...body },
    cursor: null,
    reason,
    startedAtMs: nowMs,
  }
}

/** The request for a walk's next page. */
export function bodyOf(walk: Walk): WireSearchBody {
  const body = walk.body as unknown as WireSearchBody
  return walk.cursor === null ? body : { ...body, from: walk.cursor }
}

/**
 * What a page says about the walk. `next` null, absent or empty is the end; an empty or a short page
 * is not; the cursor just sent, returned with no items, is the end too. The last non-null cursor stays.
 */
export function advance(
  walk: Walk,
  page: { next?: string | null | undefined; items: readonly unknown[] },
): { walk: Walk; isCaughtUp: boolean; hasMore: boolean } {
  const next = page.next === undefined || page.next === '' ? null : page.next
  const stands = next !== null && next === walk.cursor
  return {
    walk: { ...walk, cursor: next ?? walk.cursor },
    isCaughtUp: next === null || (stands && page.items.length === 0),
    hasMore: next !== null && !stands,
  }
}
