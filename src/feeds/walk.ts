/** Walks, pure: which request a feed makes next, and what a page's `next` means. */
import { createHash } from 'node:crypto'
import type { FeedState, Walk, WalkReason, WalkSpan } from '../ledger/feed-state.ts'
import { typeOf } from './feed-types.ts'
import type { PolledFeed } from './polled-feed.ts'

const leastOverlapMs = 3_600_000

/** How far a new walk reaches back behind the newest event that was taken in. */
export function overlapMs({ sweep }: PolledFeed): number {
  return Math.max(leastOverlapMs, sweep?.backMs ?? 0)
}

/** Changes when what the operator configured, or the floor, changes; then a cursor must not be reused. */
export function fingerprintOf(feed: PolledFeed, floorMs: number): string {
  const { type, account, scope } = feed
  const configured = JSON.stringify([type, account, scope, ...typeOf(feed).asked(feed), floorMs])
  return createHash('sha256').update(configured).digest('hex').slice(0, 16)
}

/** The stored walk while it fits the configuration, otherwise a new one with overlap above the floor. */
export function walkFor(feed: PolledFeed, state: FeedState): Walk {
  const { walk, floorMs } = state
  if (!walk) {
    return beginWalk(feed, state, {
      span: { fromMs: floorMs },
      reason: state.isRewound ? 'rewound' : 'first',
    })
  }
  if (walk.fingerprint !== fingerprintOf(feed, floorMs)) {
    return beginWalk(feed, state, {
      span: { fromMs: resumeFrom(feed, state) },
      reason: 'configuration_changed',
    })
  }
  return state.isEnded ? following(feed, { ...state, walk }) : walk
}

/** After its end a walk goes on at its cursor, where the service keeps an order. */
function following(feed: PolledFeed, state: FeedState & { walk: Walk }): Walk {
  const { walk, nowMs } = state
  const type = typeOf(feed)
  if (type.unordered) {
    const { fromStart, notes } = type.unordered.following(state)
    if (!fromStart) return { ...walk, notes }
    return {
      ...beginWalk(feed, state, { span: { fromMs: state.floorMs }, reason: 'again' }),
      notes,
    }
  }
  const isSmaller = pageSizeOf(walk) < type.pageSizes[0]
  if (!isSmaller || nowMs - walk.startedAtMs < smallPagesMs) return walk
  return beginWalk(feed, state, { span: { fromMs: resumeFrom(feed, state) }, reason: 'again' })
}

/** How long small pages are kept after the gateway had given up on larger ones. */
const smallPagesMs = 86_400_000

/** A walk that takes the place of one whose cursor the service refused. */
export function walkAfterRefusal(feed: PolledFeed, state: FeedState): Walk {
  const span = { fromMs: resumeFrom(feed, state) }
  const pageSize = state.walk && pageSizeOf(state.walk)
  return beginWalk(feed, state, { span, reason: 'cursor_refused', pageSize })
}

/** The same walk anew with the next smaller pages; undefined where there are none. */
export function walkInSmallerPages(
  feed: PolledFeed,
  state: FeedState,
  walk: Walk,
): Walk | undefined {
  const pageSize = typeOf(feed).pageSizes.find((size) => size < pageSizeOf(walk))
  if (pageSize === undefined) return undefined
  const span = walk.span?.toMs === undefined ? { fromMs: resumeFrom(feed, state) } : walk.span
  const fresh = beginWalk(feed, state, { span, reason: 'page_size_changed', pageSize })
  return walk.notes ? { ...fresh, notes: walk.notes } : fresh
}

/** When the next sweep begins, ms; undefined: not before the feed was read to its end. */
export function sweepDueMs({ sweep, startMs }: PolledFeed, state: FeedState): number | undefined {
  const isRead = state.walk && !state.isBackfilling && state.lastCaughtUpMs !== undefined
  if (!sweep || !isRead) return undefined
  const firstPollMs = state.floorMs + startMs
  return (state.sweep.walk?.startedAtMs ?? firstPollMs) + sweep.everyMs
}

/** The sweep that runs, or the one that is due; undefined: none. Its window is fixed when it begins. */
export function sweepFor(feed: PolledFeed, state: FeedState): Walk | undefined {
  const { sweep, floorMs, nowMs, newestMs } = state
  if (!state.walk || state.isBackfilling) return undefined // the tail reads it all just now
  const fits = sweep.walk?.fingerprint === fingerprintOf(feed, floorMs)
  if (sweep.walk && !sweep.isDone && fits) return sweep.walk
  const dueMs = sweepDueMs(feed, state)
  if (dueMs === undefined || dueMs > nowMs) return undefined
  const fromMs = Math.max(floorMs, nowMs - (feed.sweep?.backMs ?? 0))
  const pageSize = pageSizeOf(state.walk) // what the gateway bears, the tail knows
  const walk = beginWalk(feed, state, { span: { fromMs, toMs: nowMs }, reason: 'again', pageSize })
  return { ...walk, notes: { lateBeforeMs: newestMs ?? null } }
}

/** Events created before it that a sweep finds are late; undefined: nothing was taken in before. */
export function lateBeforeMs({ notes }: Walk): number | undefined {
  const noted = notes?.['lateBeforeMs']
  return typeof noted === 'number' ? noted : undefined
}

function resumeFrom(feed: PolledFeed, { newestMs, nowMs, floorMs }: FeedState): number {
  if (newestMs === undefined) return floorMs
  return Math.max(floorMs, Math.min(newestMs, nowMs) - overlapMs(feed))
}

/** From when on the request of a walk was read, as far as anybody knows; ms. */
export function readsFrom({ readsFromMs, span }: Walk): number | undefined {
  return readsFromMs ?? span?.fromMs
}

interface WalkBegin {
  span: WalkSpan
  reason: WalkReason
  pageSize?: number | undefined
}

function beginWalk(
  feed: PolledFeed,
  { floorMs, nowMs, walk: before }: FeedState,
  { span, reason, pageSize = typeOf(feed).pageSizes[0] }: WalkBegin,
): Walk {
  const fingerprint = fingerprintOf(feed, floorMs)
  const isSame = before?.fingerprint === fingerprint
  return {
    fingerprint,
    readsFromMs: Math.min(span.fromMs, (isSame ? readsFrom(before) : undefined) ?? Infinity),
    body: typeOf(feed).body(feed, span, pageSize),
    cursor: null,
    reason,
    startedAtMs: nowMs,
    span,
  }
}

function pageSizeOf({ body }: Walk): number {
  return Number(body['size'])
}

/**
 * What a page says about the walk. `next` null, absent or empty is the end; an empty or a short page
 * is not; the cursor just sent, returned with no items, is the end too, and so it is with items
 * (`stands`) once all of them are known. The last non-null cursor stays.
 */
export function advance(
  walk: Walk,
  page: { next?: string | null | undefined; items: readonly unknown[] },
): { walk: Walk; isCaughtUp: boolean; hasMore: boolean; stands: boolean } {
  const next = page.next === undefined || page.next === '' ? null : page.next
  const stands = next !== null && next === walk.cursor
  return {
    walk: { ...walk, cursor: next ?? walk.cursor },
    isCaughtUp: next === null || (stands && page.items.length === 0),
    hasMore: next !== null && !stands,
    stands,
  }
}
