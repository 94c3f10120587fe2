/**
 * Walks, pure: which request a feed makes next, and what a page's `next` means. The tail is the walk that
 * follows what is new. It never waits for a re-reading: a walk that takes the place of another begins
 * shortly before the newest event, and what lies behind that (`behind`) is read by a rescan (rescan.ts).
 */
import { createHash } from 'node:crypto'
import { pageSizeOf, type PolledFeed, usualSizeOf } from '../feed-types/feed-type.ts'
import { typeOf } from '../feed-types/feed-types.ts'
import type { FeedState, Walk, WalkReason, WalkSpan } from '../store/feed-state.ts'

/**
 * How far a new tail reaches back behind the newest event that was taken in. Rescans read what lies further
 * back; a new event of the last of many feeds waits for each page that this takes.
 */
export const overlapMs = 600_000

/** The same for a feed that nothing reads again. */
const soleOverlapMs = 3_600_000

/** Changes when what the operator configured, or the floor, changes; then a cursor must not be reused. */
export function fingerprintOf(feed: PolledFeed, floorMs: number): string {
  const { type, account, scope } = feed
  const configured = JSON.stringify([type, account, scope, ...typeOf(feed).asked(feed), floorMs])
  return createHash('sha256').update(configured).digest('hex').slice(0, 16)
}

/** The stored walk while it fits the configuration, otherwise a new one with overlap above the floor. */
export function walkFor(feed: PolledFeed, state: FeedState): Walk {
  const { walk, floorMs } = state
  const rewound = state.isRewound ? ('rewound' as const) : undefined
  if (!walk) {
    return beginWalk(feed, state, { span: { fromMs: floorMs }, reason: rewound ?? 'first' })
  }
  if (rewound || walk.fingerprint !== fingerprintOf(feed, floorMs)) {
    return beginWalk(feed, state, {
      span: { fromMs: resumeFrom(feed, state) },
      reason: rewound ?? 'configuration_changed',
    })
  }
  const goesOn = typeOf(feed).unordered?.goesOn?.(walk) ?? true
  const next = state.isEnded || !goesOn ? following(feed, { ...state, walk }) : walk
  return withinBack(feed, state, next)
}

/** With a longer `sweep.back` than before, what it newly covers is left to a rescan too. */
function withinBack(feed: PolledFeed, state: FeedState, walk: Walk): Walk {
  const { nowMs, floorMs } = state
  if (!isReadBehind(feed)) return walk
  const fromMs = nowMs - feed.sweep.backMs
  const lowestMs = reachOf(walk, floorMs)
  if (fromMs >= lowestMs - overlapMs) return walk // no more than a clock that was set back
  const toMs = pendingSnapshot(state)?.toMs ?? lowestMs
  return { ...walk, behind: { id: String(nowMs), fromMs, toMs } }
}

/**
 * Until when a feed that was read to its end waits, whatever its `every`; undefined: it does not. `isForgotten`:
 * nobody knows when it was last read, so `every` counts too.
 */
export function tailDueMs(
  feed: PolledFeed,
  state: FeedState,
  isForgotten = false,
): number | undefined {
  const { walk, isEnded, isRewound, floorMs, lastCaughtUpMs } = state
  if (!walk || !isEnded || isRewound || walk.fingerprint !== fingerprintOf(feed, floorMs))
    return undefined
  const { dueMs } = typeOf(feed).unordered?.following({ ...state, walk }, feed) ?? {}
  if (!isForgotten || feed.everyMs === undefined || lastCaughtUpMs === undefined) return dueMs
  return Math.max(dueMs ?? 0, lastCaughtUpMs + feed.everyMs)
}

/** After its end a walk goes on at its cursor, where the service keeps an order. */
function following(feed: PolledFeed, state: FeedState & { walk: Walk }): Walk {
  const { walk } = state
  const { unordered } = typeOf(feed)
  if (!unordered) return walk
  const { fromStart, notes, ...next } = unordered.following(state, feed)
  if (!fromStart) return { ...walk, notes }
  const { span = { fromMs: state.floorMs }, pageSize } = next
  return { ...beginWalk(feed, state, { span, reason: 'again', pageSize }), notes }
}

/**
 * A walk that takes the place of one whose cursor the service refused. `asked`: the walk as it was asked for,
 * where that is another than the stored one; a service may take no cursor with another page size.
 */
export function walkAfterRefusal(feed: PolledFeed, state: FeedState, asked = state.walk): Walk {
  const span = spanOfWindow(feed, state.walk) ?? { fromMs: resumeFrom(feed, state) }
  const isNewSize = asked?.small && !state.walk?.small
  const pageSize = asked && (isNewSize ? pageSizeOf(asked) : usualSizeOf(asked))
  return beginWalk(feed, state, { span, reason: 'cursor_refused', pageSize })
}

/**
 * The same walk where it stands, for ten pages of a tenth of their size; undefined where pages hold one item
 * already.
 */
export function walkInSmallPages(walk: Walk): Walk | undefined {
  const size = pageSizeOf(walk)
  if (!(size > 1)) return undefined
  const smaller = Math.max(1, Math.floor(size / 10))
  const small = { usual: usualSizeOf(walk), left: Math.ceil(size / smaller) }
  return { ...walk, body: { ...walk.body, size: smaller }, small }
}

/**
 * A tail that goes round a page that cannot be read: it goes on from now, and a rescan asks for what lies
 * behind it until it can be read. Where no rescan does, as after a refused cursor.
 */
export function walkPast(feed: PolledFeed, state: FeedState): Walk {
  const { nowMs } = state
  const reason = 'page_too_large'
  if (!isReadBehind(feed)) return { ...walkAfterRefusal(feed, state), reason }
  const fromMs = resumeFrom(feed, state)
  const again = beginWalk(feed, state, { span: { fromMs }, reason })
  const unread = pendingSnapshot({ ...state, walk: again })
  const behindFromMs = Math.min(fromMs, unread?.fromMs ?? Infinity)
  return {
    ...again,
    ...requestFrom(feed, { fromMs: nowMs }),
    behind: { id: String(nowMs), fromMs: behindFromMs, toMs: nowMs },
  }
}

/** The same walk anew with the next smaller pages; undefined where there are none. */
export function walkInSmallerPages(
  feed: PolledFeed,
  state: FeedState,
  walk: Walk,
): Walk | undefined {
  const pageSize = typeOf(feed).pageSizes.find((size) => size < pageSizeOf(walk))
  if (pageSize === undefined) return undefined
  const reason = 'page_size_changed'
  const span = walk.span?.toMs === undefined ? spanOfWindow(feed, walk) : walk.span
  if (span) {
    const body = typeOf(feed).body(feed, span, pageSize)
    return { ...walk, body, cursor: null, reason, startedAtMs: state.nowMs }
  }
  const fresh = beginWalk(feed, state, {
    span: { fromMs: resumeFrom(feed, state) },
    reason,
    pageSize,
  })
  return walk.notes ? { ...fresh, notes: walk.notes } : fresh
}

/** Whether the tail's walks read all that the service has, so that no sweep has to. */
export function readsAll(
  feed: Pick<PolledFeed, 'type'>,
  { walk }: Pick<FeedState, 'walk'>,
): boolean {
  return (walk && typeOf(feed).unordered?.readsAll?.(walk)) ?? false
}

/** Without an order in time, of what a walk was to read any part may be unread until it ends. */
function spanOfWindow(feed: PolledFeed, walk: Walk | undefined): WalkSpan | undefined {
  return typeOf(feed).unordered?.byTime ? walk?.span : undefined
}

/** Whether a rescan reads what lies behind a tail; where none does, the tail itself has to. */
export function isReadBehind(
  feed: PolledFeed,
): feed is PolledFeed & { sweep: NonNullable<PolledFeed['sweep']> } {
  return feed.sweep !== undefined && !typeOf(feed).unordered
}

/** Whether the tail begins at the start bound, as the first one did. */
export function isReadAnew(feed: PolledFeed, { walk, isRewound }: FeedState): boolean {
  return !walk || (isRewound && !isReadBehind(feed))
}

/** Where no rescan reads what lies behind a tail, the tail does, as far back as sweeps go. */
function resumeFrom(feed: PolledFeed, state: FeedState): number {
  const { newestMs, nowMs, floorMs, isBackfilling, walk } = state
  const span = spanOfWindow(feed, walk)
  const isAnew = newestMs === undefined || isReadAnew(feed, state)
  if (isAnew || (span && isBackfilling)) return floorMs
  const unreadMs = span?.toMs === undefined ? Infinity : span.fromMs
  const backMs = isReadBehind(feed) ? overlapMs : Math.max(soleOverlapMs, feed.sweep?.backMs ?? 0)
  return Math.max(floorMs, Math.min(newestMs, nowMs, unreadMs) - backMs)
}

/** From when on the request of a walk was read, as far as anybody knows; ms. */
export function readsFrom({ readsFromMs, span }: Walk): number | undefined {
  return readsFromMs ?? span?.fromMs
}

/** From when on rescans may read: what is earlier was never read by this request; ms. */
export function reachOf(walk: Walk, floorMs: number): number {
  return Math.min(readsFrom(walk) ?? floorMs, walk.behind?.fromMs ?? Infinity)
}

/** What the tail left behind it, until a rescan has read it. */
export function pendingSnapshot({ walk, rescans }: FeedState): Walk['behind'] {
  return walk?.behind && walk.behind.id !== rescans.snapshotOf ? walk.behind : undefined
}

interface WalkBegin {
  span: WalkSpan
  reason: WalkReason
  pageSize?: number | undefined
}

function beginWalk(
  feed: PolledFeed,
  state: FeedState,
  { span, reason, pageSize }: WalkBegin,
): Walk {
  const { floorMs, nowMs, walk: before } = state
  const fingerprint = fingerprintOf(feed, floorMs)
  const same = before?.fingerprint === fingerprint && !state.isRewound ? before : undefined
  const behind = same ? same.behind : findBehind(feed, state, span.fromMs)
  return {
    fingerprint,
    readsFromMs: Math.min(span.fromMs, (same && readsFrom(same)) ?? Infinity),
    ...requestFrom(feed, span, pageSize),
    cursor: null,
    reason,
    startedAtMs: nowMs,
    ...(behind && { behind }),
  }
}

function requestFrom(
  feed: PolledFeed,
  span: WalkSpan,
  pageSize = typeOf(feed).pageSizes[0],
): Pick<Walk, 'body' | 'span'> {
  return { body: typeOf(feed).body(feed, span, pageSize), span }
}

/**
 * What a tail with a new request leaves to a rescan: from `sweep.back` before now, or from earlier where the
 * operator moved the start bound there or the tail before left more unread, to where the tail begins.
 * undefined: nothing, or no rescan reads this feed by time.
 */
function findBehind(feed: PolledFeed, state: FeedState, tailFromMs: number): Walk['behind'] {
  const { floorMs, nowMs, isRewound, walk } = state
  if (!isReadBehind(feed)) return undefined
  const backMs = nowMs - feed.sweep.backMs
  const earlierMs = isRewound && walk ? floorMs : (pendingSnapshot(state)?.fromMs ?? Infinity)
  const fromMs = Math.min(earlierMs, backMs)
  return fromMs < tailFromMs ? { id: String(nowMs), fromMs, toMs: tailFromMs } : undefined
}

/** A walk of a rescan: a window with both ends, fixed when it begins. */
export function beginRescan(
  feed: PolledFeed,
  { floorMs, nowMs, walk: tail }: FeedState,
  { span, body, notes }: { span: WalkSpan; body?: Walk['body']; notes: Record<string, unknown> },
): Walk {
  const pageSize = tail ? usualSizeOf(tail) : typeOf(feed).pageSizes[0] // what the gateway bears
  return {
    fingerprint: fingerprintOf(feed, floorMs),
    body: body ?? typeOf(feed).body(feed, span, pageSize),
    cursor: null,
    reason: 'again',
    startedAtMs: nowMs,
    span,
    notes,
  }
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
  const isCaughtUp = next === null || (stands && page.items.length === 0)
  const { passed: _past, ...rest } = walk
  const passed = next === null || stands ? undefined : passCursor(walk, next)
  return {
    walk: { ...afterSmallPage(rest), cursor: next ?? walk.cursor, ...(passed && { passed }) },
    isCaughtUp,
    hasMore: next !== null && !stands,
    stands,
  }
}

function afterSmallPage(walk: Walk): Walk {
  const { small, ...usual } = walk
  if (!small) return walk
  if (small.left > 1) return { ...walk, small: { ...small, left: small.left - 1 } }
  return { ...usual, body: { ...walk.body, size: small.usual } }
}

/** Whether the walk stands at a cursor that it had in this pass before: its pages never end. */
export function isInCircle({ passed }: Walk): boolean {
  return passed?.isCircle === true
}

/**
 * Brent's cycle detection: one remembered cursor, replaced after 2, 4, 8 … steps, meets every circle
 * within three times its length.
 */
function passCursor({ passed }: Walk, next: string): NonNullable<Walk['passed']> {
  const digest = shortDigest(next)
  if (!passed) return { anchor: digest, steps: 0, limit: 2 }
  const { anchor, steps, limit } = passed
  if (digest === anchor) return { anchor, steps, limit, isCircle: true }
  if (steps + 1 < limit) return { anchor, steps: steps + 1, limit }
  return { anchor: digest, steps: 0, limit: limit * 2 }
}

function shortDigest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
