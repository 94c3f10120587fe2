/**
 * Scans, pure: which request a feed makes next, and what a page's `next` means. The tail is the
 * scan that follows new events. It never waits for old ones to be read again. A scan that replaces
 * another begins shortly before the newest event, and a rescan reads what lies behind that
 * (`behind`, rescan.ts).
 */
import { createHash } from 'node:crypto'
import { scanPageSize, usualPageSize } from './types/feed-type.ts'
import type { PolledFeed } from './types/polled-feed.ts'
import { findFeedType } from './types/feed-types.ts'
import type { FeedState, Scan, ScanReason, ScanSpan } from '../store/feed-state.ts'
import { UpstreamError } from '../upstream/error.ts'

/**
 * How far a new tail reaches back behind the newest event that was taken in, ms. Rescans read what
 * lies further back; every page of overlap delays the new events of other feeds.
 */
export const overlapMs = 600_000

/** The same for a feed without rescans. */
const overlapWithoutRescanMs = 3_600_000

/** Changes with the configuration and the start bound; then a stored cursor must not be reused. */
export function scanFingerprint(feed: PolledFeed, startBoundMs: number): string {
  const { type, account, scope } = feed
  const configured = JSON.stringify([
    type,
    account,
    scope,
    ...findFeedType(feed).fingerprintParts(feed),
    startBoundMs,
  ])
  return createHash('sha256').update(configured).digest('hex').slice(0, 16)
}

/**
 * The stored scan while it fits the configuration, otherwise a new one that overlaps it, above the
 * start bound.
 */
export function tailScan(feed: PolledFeed, state: FeedState): Scan {
  const { scan, startBoundMs } = state
  const rewound = state.isRewound ? ('rewound' as const) : undefined
  if (!scan) {
    return beginScan(feed, state, { span: { fromMs: startBoundMs }, reason: rewound ?? 'first' })
  }
  if (rewound || scan.fingerprint !== scanFingerprint(feed, startBoundMs)) {
    return beginScan(feed, state, {
      span: { fromMs: resumeFromMs(feed, state) },
      reason: rewound ?? 'configuration_changed',
    })
  }
  const next = state.isEnded ? nextScan(feed, { ...state, scan }) : scan
  return extendBehind(feed, state, next)
}

/** When `rescan.back` has grown, leaves the range that it newly covers to a rescan. */
function extendBehind(feed: PolledFeed, state: FeedState, scan: Scan): Scan {
  const { nowMs, startBoundMs } = state
  if (!isBehindRescanned(feed)) return scan
  const fromMs = nowMs - feed.rescan.backMs
  const lowestMs = rescanFromMs(scan, startBoundMs)
  if (fromMs >= lowestMs - overlapMs) return scan // only a clock that was set back
  const toMs = pendingSnapshot(state)?.toMs ?? lowestMs
  return { ...scan, behind: { id: String(nowMs), fromMs, toMs } }
}

/** After its end a scan continues at its cursor, where the API keeps an order. */
function nextScan(feed: PolledFeed, state: FeedState & { scan: Scan }): Scan {
  const { scan } = state
  const { unordered } = findFeedType(feed)
  if (!unordered) return scan
  const { fromStart, cursor = null, notes, ...next } = unordered.nextScan(state, feed)
  const { passed: _past, ...same } = scan
  if (!fromStart) return { ...same, cursor, notes }
  const { span = { fromMs: state.startBoundMs } } = next
  const { small } = scan // pages stay small for as many as were left
  const pageSize = scanPageSize(scan)
  return {
    ...beginScan(feed, state, { span, reason: 'again', pageSize }),
    ...(small && { small }),
    notes,
  }
}

/**
 * The scan that replaces one whose cursor the API refused. `asked` is the scan as requested, if it
 * differs from the stored one: the API may refuse a cursor with another page size.
 */
export function restartAfterRefusal(feed: PolledFeed, state: FeedState, asked = state.scan): Scan {
  const span = windowSpan(feed, state.scan) ?? { fromMs: resumeFromMs(feed, state) }
  const isNewSize = asked?.small && !state.scan?.small
  const pageSize = asked && (isNewSize ? scanPageSize(asked) : usualPageSize(asked))
  return beginScan(feed, state, { span, reason: 'cursor_refused', pageSize })
}

/** Pages of more items are shrunk after a timeout: the gateway gives up after about 30 s. */
const slowPageSize = 10

/**
 * The same scan at the same cursor, for ten pages of a tenth of the size, after a page that was too
 * large or too slow. undefined where that does not help.
 */
export function shrinkPages(scan: Scan, error: unknown): Scan | undefined {
  if (!(error instanceof UpstreamError)) return undefined
  const size = scanPageSize(scan)
  const isSlow = error.status === 504 || error.reason === 'timeout'
  const isTooLarge = error.fault === 'too_large'
  if (!(isTooLarge || isSlow) || !(size > (isTooLarge ? 1 : slowPageSize))) return undefined
  const smaller = Math.max(1, Math.floor(size / 10))
  const small = { usual: usualPageSize(scan), left: Math.ceil(size / smaller) }
  return { ...scan, body: { ...scan.body, size: smaller }, small }
}

/**
 * A tail that skips an unreadable page: it continues from now, and a rescan retries what lies
 * behind it until it can be read. For feeds without such rescans, as after a refused cursor.
 */
export function skipPage(feed: PolledFeed, state: FeedState): Scan {
  const { nowMs } = state
  const reason = 'page_too_large'
  if (!isBehindRescanned(feed)) return { ...restartAfterRefusal(feed, state), reason }
  const fromMs = resumeFromMs(feed, state)
  const restarted = beginScan(feed, state, { span: { fromMs }, reason })
  const unread = pendingSnapshot({ ...state, scan: restarted })
  const behindFromMs = Math.min(fromMs, unread?.fromMs ?? Infinity)
  return {
    ...restarted,
    ...scanRequest(feed, { fromMs: nowMs }),
    behind: { id: String(nowMs), fromMs: behindFromMs, toMs: nowMs },
  }
}

/**
 * Where items have no order in time, any part of a scan's window may be unread until the scan ends.
 */
function windowSpan(feed: PolledFeed, scan: Scan | undefined): ScanSpan | undefined {
  return findFeedType(feed).unordered?.byTime ? scan?.span : undefined
}

/** Whether a rescan reads what lies behind a tail; if not, the tail itself has to. */
export function isBehindRescanned(
  feed: PolledFeed,
): feed is PolledFeed & { rescan: NonNullable<PolledFeed['rescan']> } {
  return feed.rescan !== undefined && !findFeedType(feed).unordered
}

/** Whether the tail begins at the start bound, as the first one did. */
export function beginsAtStartBound(feed: PolledFeed, { scan, isRewound }: FeedState): boolean {
  return !scan || (isRewound && !isBehindRescanned(feed))
}

/** Without a rescan of what lies behind it, the tail reaches back as far as `rescan.back`. */
function resumeFromMs(feed: PolledFeed, state: FeedState): number {
  const { newestMs, nowMs, startBoundMs, isBackfilling, scan } = state
  const span = windowSpan(feed, scan)
  const isAnew = newestMs === undefined || beginsAtStartBound(feed, state)
  if (isAnew || (span && isBackfilling)) return startBoundMs
  const unreadMs = span?.toMs === undefined ? Infinity : span.fromMs
  const backMs = isBehindRescanned(feed)
    ? overlapMs
    : Math.max(overlapWithoutRescanMs, feed.rescan?.backMs ?? 0)
  return Math.max(startBoundMs, Math.min(newestMs, nowMs, unreadMs) - backMs)
}

/** From when on this request was read, as far as known; ms. */
export function scannedFromMs({ readsFromMs, span }: Scan): number | undefined {
  return readsFromMs ?? span?.fromMs
}

/** The earliest time that rescans may read, ms: this request never read anything before it. */
export function rescanFromMs(scan: Scan, startBoundMs: number): number {
  return Math.min(scannedFromMs(scan) ?? startBoundMs, scan.behind?.fromMs ?? Infinity)
}

/** What the tail left behind it and no rescan has read yet. */
export function pendingSnapshot({ scan, rescans }: FeedState): Scan['behind'] {
  return scan?.behind && scan.behind.id !== rescans.snapshotId ? scan.behind : undefined
}

interface ScanStart {
  span: ScanSpan
  reason: ScanReason
  pageSize?: number | undefined
}

function beginScan(
  feed: PolledFeed,
  state: FeedState,
  { span, reason, pageSize }: ScanStart,
): Scan {
  const { startBoundMs, nowMs, scan: before } = state
  const fingerprint = scanFingerprint(feed, startBoundMs)
  const same = before?.fingerprint === fingerprint && !state.isRewound ? before : undefined
  const behind = same ? same.behind : findBehind(feed, state, span.fromMs)
  return {
    fingerprint,
    readsFromMs: Math.min(span.fromMs, (same && scannedFromMs(same)) ?? Infinity),
    ...scanRequest(feed, span, pageSize),
    cursor: null,
    reason,
    startedAtMs: nowMs,
    ...(behind && { behind }),
  }
}

function scanRequest(
  feed: PolledFeed,
  span: ScanSpan,
  pageSize = findFeedType(feed).pageSize,
): Pick<Scan, 'body' | 'span'> {
  return { body: findFeedType(feed).body(feed, span, pageSize), span }
}

/**
 * What a tail with a new request leaves to a rescan, up to where the tail begins. It starts at
 * `rescan.back` before now, or earlier where the operator moved the start bound or the previous tail
 * left more unread. undefined: nothing, or no rescan reads this feed by time.
 */
function findBehind(feed: PolledFeed, state: FeedState, tailFromMs: number): Scan['behind'] {
  const { startBoundMs, nowMs, isRewound, scan } = state
  if (!isBehindRescanned(feed)) return undefined
  const backMs = nowMs - feed.rescan.backMs
  const earlierMs = isRewound && scan ? startBoundMs : (pendingSnapshot(state)?.fromMs ?? Infinity)
  const fromMs = Math.min(earlierMs, backMs)
  return fromMs < tailFromMs ? { id: String(nowMs), fromMs, toMs: tailFromMs } : undefined
}

/** Starts the scan of a rescan: a window whose two ends are fixed. */
export function beginRescan(
  feed: PolledFeed,
  { startBoundMs, nowMs }: FeedState,
  { span, body, notes }: { span: ScanSpan; body?: Scan['body']; notes: Record<string, unknown> },
): Scan {
  const { pageSize } = findFeedType(feed)
  return {
    fingerprint: scanFingerprint(feed, startBoundMs),
    body: body ?? findFeedType(feed).body(feed, span, pageSize),
    cursor: null,
    reason: 'again',
    startedAtMs: nowMs,
    span,
    notes,
  }
}

/**
 * Advances a scan by a page. A `next` that is null, absent or empty is the end; an empty or a short
 * page is not. A `next` that repeats the cursor just sent is the end when the page has no items,
 * and otherwise (`stands`) once all its items are known. The last non-null cursor stays.
 */
export function advance(
  scan: Scan,
  page: { next?: string | null | undefined; items: readonly unknown[] },
): { scan: Scan; isCaughtUp: boolean; hasMore: boolean; stands: boolean } {
  const next = page.next === undefined || page.next === '' ? null : page.next
  const stands = next !== null && next === scan.cursor
  const isCaughtUp = next === null || (stands && page.items.length === 0)
  const { passed: _past, ...rest } = scan
  const passed = next === null || stands ? undefined : trackCursor(scan, next)
  return {
    scan: { ...countSmallPage(rest), cursor: next ?? scan.cursor, ...(passed && { passed }) },
    isCaughtUp,
    hasMore: next !== null && !stands,
    stands,
  }
}

/** By how much clocks of the service and of whoever dates its items may differ, ms. */
export const clockToleranceMs = 10_000

/** The service states its time in whole seconds. */
const clockStepMs = 1_000

interface PageDates {
  /** The earliest and the latest date of the page's items, ms; undefined: none has a date. */
  earliestMs: number | undefined
  latestMs: number | undefined
  /** The service's clock, ms. */
  nowMs: number
}

interface HeldTail {
  scan: Scan
  hasMore: boolean
  /** All before now was read. */
  isAtNow: boolean
  /** The page lies beyond now, and says nothing of the tail. */
  isBeyond: boolean
}

/**
 * Keeps a tail in front of items that are dated ahead of now: a cursor behind them shows nothing that
 * is dated between. It reads the page again until the date has passed. What lies beyond is read by
 * turns with it, a page at a time. One place follows the end, where a wrong clock puts what is new;
 * another passes over all again and again. `asked` is the scan of the page, `read` the one after it.
 */
export function holdTail(
  asked: Scan,
  read: { scan: Scan; hasMore: boolean },
  dates: PageDates,
): HeldTail {
  const { held, beyond, ignoresDates, ...moved } = read.scan
  if (held) return readBeyond(asked, read, { ...dates, held })
  const limitMs = dates.nowMs + clockStepMs
  const { hasMore } = read
  const goesOn = { hasMore, isAtNow: false, isBeyond: false }
  // what one odd item proved holds until a page in order
  if (!((dates.latestMs ?? 0) > limitMs))
    return { scan: { ...moved, ...(hasMore && beyond && { beyond }) }, ...goesOn }
  if (ignoresDates) return { scan: hasMore ? read.scan : { ...moved, ignoresDates }, ...goesOn }
  const { passed: _past, ...stays } = { ...moved, cursor: asked.cursor }
  const front = { scan: stays, hasMore: false, isAtNow: true, isBeyond: false }
  if (!hasMore || moved.cursor === null) return front
  const known = beyond?.places ?? []
  const isPassDue = !known.some(isPass) && dates.nowMs >= (beyond?.retry?.atMs ?? 0)
  const [place, ...places] = isPassDue ? [{ cursor: moved.cursor, limitMs }, ...known] : known
  if (!place) return { ...front, scan: { ...stays, ...(beyond && { beyond }) } }
  const scan = {
    ...stays,
    cursor: place.cursor,
    held: { cursor: asked.cursor, limitMs: place.limitMs },
    beyond: { ...beyond, places },
  }
  return { ...front, scan, hasMore: true }
}

/** A page beyond. An earlier date in a pass proves that pages follow no dates: nothing is held. */
function readBeyond(
  asked: Scan,
  { scan: read, hasMore }: { scan: Scan; hasMore: boolean },
  { held, earliestMs = Infinity, nowMs }: PageDates & { held: NonNullable<Scan['held']> },
): HeldTail {
  const { held: _held, beyond, ...moved } = read
  const { cursor, limitMs } = held
  if (limitMs !== undefined && earliestMs <= limitMs)
    return { scan: { ...moved, ignoresDates: true }, hasMore, isAtNow: false, isBeyond: false }
  const { passed: _past, ...stays } = { ...moved, cursor }
  const { places: others = [], ...before } = beyond ?? {}
  const isOfPass = limitMs !== undefined
  const next = { cursor: moved.cursor, limitMs }
  const goesOn = isOfPass ? [...others, next] : [next, ...others]
  const places = hasMore ? goesOn : [...others.filter(isPass), { cursor: asked.cursor }]
  const isPassed = !hasMore && isOfPass
  const about = isPassed ? { passMs: nowMs + clockStepMs - limitMs } : before
  const scan = { ...stays, beyond: { ...about, places } }
  return { scan, hasMore, isAtNow: false, isBeyond: true }
}

function isPass({ limitMs }: NonNullable<Scan['beyond']>['places'][number]): boolean {
  return limitMs !== undefined
}

/** How long after a page beyond failed no pass begins, ms; doubles until one is whole. */
const beyondWaitMs = { first: 60_000, longest: 960_000 }

/**
 * A tail that leaves a page beyond now and is back at its own cursor; undefined: it is there. The
 * place is given up: a cursor may be refused for good. The others are read on.
 */
export function leaveBeyond(
  { held, beyond, passed: _past, ...scan }: Scan,
  nowMs: number,
): Scan | undefined {
  if (!held) return undefined
  const { first, longest } = beyondWaitMs
  const waitMs = Math.min(2 * (beyond?.retry?.waitMs ?? first / 2), longest)
  const retry = { waitMs, atMs: nowMs + waitMs }
  return { ...scan, cursor: held.cursor, beyond: { places: [], ...beyond, retry } }
}

function countSmallPage(scan: Scan): Scan {
  const { small, ...usual } = scan
  if (!small) return scan
  if (small.left > 1) return { ...scan, small: { ...small, left: small.left - 1 } }
  return { ...usual, body: { ...scan.body, size: small.usual } }
}

/** Whether the scan is at a cursor it had before in this pass: its pages never end. */
export function isLooping({ passed }: Scan): boolean {
  return passed?.isCircle === true
}

/**
 * Brent's cycle detection: one remembered cursor, replaced after 2, 4, 8 … steps, detects every
 * cycle within three times its length.
 */
function trackCursor({ passed }: Scan, next: string): NonNullable<Scan['passed']> {
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
