/**
 * The pages of an audit's window, however the API behaves; which window can be audited; and the
 * shapes of an audit's result.
 */
import type { FeedPage, FeedRequest, PolledFeed } from '../feed-types/feed-type.ts'
import { findFeedType } from '../feed-types/feed-types.ts'
import { advance, scanFingerprint, scannedFromMs, shrinkPages } from '../feeds/scan.ts'
import type { Clock } from '../lib/clock.ts'
import { TocsinError } from '../lib/errors.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { FeedState, Scan } from '../store/feed-state.ts'
import type { MalformedItem, RoutedEvent } from '../store/intake.ts'
import type { UpstreamClient } from '../upstream/client.ts'
import { UpstreamError } from '../upstream/error.ts'
import type { SlotRequest } from '../upstream/rate-limits.ts'

export interface PageOptions {
  client: UpstreamClient
  clock: Clock
  /** Whether a further search would use what `quota_reserve` keeps. */
  isReserveReached: () => Promise<boolean>
}

/** The API slots that an audit uses, and the signal that ends it. */
export interface AuditCaller {
  kind: SlotRequest['kind']
  signal: AbortSignal
}

/** After more pages in a row without an item the pages count as endless. */
const maxEmptyPages = 1_000

/**
 * Yields the items of every page. Begins again with smaller pages if the gateway times out on large
 * ones, and asks for small ones for a while if a page is too large to be read. Throws
 * UpstreamError, and AuditError if the reserve is reached or the pages do not end.
 */
export async function* auditPages(
  options: PageOptions,
  feed: PolledFeed,
  window: AuditWindow,
  caller: AuditCaller,
): AsyncGenerator<readonly unknown[]> {
  const { pageSizes } = findFeedType(feed)
  for (const size of pageSizes) {
    try {
      yield* restartOnRefusal(() =>
        scanPages(options, feed, beginAuditScan(feed, window, size), caller),
      )
      return
    } catch (error) {
      if (!isTooSlow(error) || size === pageSizes.at(-1) || caller.signal.aborted) throw error
    }
  }
}

/** Begins once more if a cursor is refused: an item that is shown twice counts once. */
async function* restartOnRefusal(
  scan: () => AsyncGenerator<readonly unknown[]>,
): AsyncGenerator<readonly unknown[]> {
  let pages = 0
  try {
    for await (const items of scan()) {
      pages += 1
      yield items
    }
  } catch (error) {
    const isRefused = error instanceof UpstreamError && error.reason === 'rejected' && pages > 0
    if (!isRefused) throw error
    yield* scan()
  }
}

function isTooSlow(error: unknown): boolean {
  return error instanceof UpstreamError && (error.status === 504 || error.reason === 'timeout')
}

async function* scanPages(
  { client, clock, isReserveReached }: PageOptions,
  feed: PolledFeed,
  start: Scan,
  { kind, signal }: AuditCaller,
): AsyncGenerator<readonly unknown[]> {
  let scan = start
  let emptyPages = 0
  const cursors = new Set<string>()
  for (;;) {
    const nowMs = clock.now()
    const slot: SlotRequest = { kind, name: feed.name, dueSinceMs: nowMs }
    const request = { client, scan, slot, signal, nowMs }
    const isTooCostly = (await isReserveReached()) && !(await findFeedType(feed).isFree?.(request))
    if (isTooCostly) throw reserveError(feed)
    const fetched = await fetchOrShrink(feed, request)
    if (!('page' in fetched)) {
      scan = fetched.small
      continue
    }
    const { page } = fetched
    yield page.items
    const advanced = advance(fetched.scan ?? scan, page)
    if (!advanced.hasMore) return
    scan = advanced.scan
    emptyPages = page.items.length === 0 ? emptyPages + 1 : 0
    const cursor = scan.cursor ?? ''
    if (cursors.has(cursor) || emptyPages > maxEmptyPages) throw endlessError(feed)
    cursors.add(cursor)
  }
}

/** Fetches a page, or returns the scan that asks for it in small pages. */
async function fetchOrShrink(
  feed: PolledFeed,
  request: FeedRequest,
): Promise<FeedPage | { small: Scan }> {
  try {
    return await findFeedType(feed).fetch(feed, request)
  } catch (error) {
    const isTooLarge = error instanceof UpstreamError && error.fault === 'too_large'
    const small = isTooLarge && shrinkPages(request.scan)
    if (!small) throw error
    return { small }
  }
}

function beginAuditScan(feed: PolledFeed, span: AuditWindow, size: number): Scan {
  const body = findFeedType(feed).body(feed, span, size)
  return { fingerprint: 'audit', body, cursor: null, reason: 'again', startedAtMs: 0, span }
}

function reserveError({ name }: PolledFeed): AuditError {
  const remedy = 'lower its quota_reserve, or audit it next month'
  return new AuditError('quota', `feed ${name}: its quota_reserve is reached; ${remedy}`)
}

function endlessError({ name }: PolledFeed): AuditError {
  const what = 'the pages of the service come round again or never end'
  return new AuditError(
    'endless',
    `feed ${name}: ${what}; try a shorter window, and tell the service`,
  )
}

/** Why there is nothing to compare. */
export type NoWindowReason =
  /** The feed was not read to its end: never, or not since it was changed or rewound. */
  | 'not_read'
  /** The feed was last read to its end before the window begins. */
  | 'behind'

/**
 * How long the ledger keeps what; `trimmedUntilMs`: records of older events may have been dropped.
 */
type RetainedLedger = Pick<AccountLedger, 'retention' | 'horizonMs'> & { trimmedUntilMs?: number }

/**
 * The window to audit: from `backMs` before now to when the feed was last read to its end. It never
 * begins before the start bound, before what the present request has read, or before what the
 * ledger still keeps.
 */
export function auditWindow(
  { retention, horizonMs, trimmedUntilMs = 0 }: RetainedLedger,
  feed: PolledFeed,
  state: FeedState | undefined,
  backMs: number,
): AuditWindow | NoWindowReason {
  const { scan, lastCaughtUpMs, startBoundMs, nowMs } = state ?? {}
  if (!state || !scan || startBoundMs === undefined || nowMs === undefined) return 'not_read'
  const isOld = scan.fingerprint !== scanFingerprint(feed, startBoundMs) || state.isRewound
  const isRead = lastCaughtUpMs !== undefined && lastCaughtUpMs >= firstStartMs(feed, state)
  if (isOld || !isRead || state.isBackfilling) return 'not_read'
  const fromMs = Math.max(
    startBoundMs,
    nowMs - Math.min(backMs, retention.history, horizonMs),
    trimmedUntilMs,
    coveredFromMs(feed, state),
  )
  return fromMs < lastCaughtUpMs ? { fromMs, toMs: lastCaughtUpMs } : 'behind'
}

/**
 * A feed that was read to its end at this time or later counts as read, ms. Where the API keeps no
 * order, scans begin again and again, and one completed scan suffices.
 */
function firstStartMs(feed: PolledFeed, { scan }: FeedState): number {
  if (!findFeedType(feed).unordered) return scan?.startedAtMs ?? 0
  return scan?.notes?.['hasCompleted'] === true ? 0 : Infinity
}

/** From when on the present request was read, by the tail's scans or by a rescan that ended; ms. */
function coveredFromMs(feed: PolledFeed, { scan, whole, startBoundMs }: FeedState): number {
  const { unordered } = findFeedType(feed)
  if (unordered && !unordered.byTime) return startBoundMs
  const tailMs = (scan && scannedFromMs(scan)) ?? startBoundMs
  const { fingerprint, fromMs = Infinity, toMs = 0 } = whole.lastEnded ?? {}
  const isJoined = fingerprint === scan?.fingerprint && toMs >= tailMs // no gap in between
  return isJoined ? Math.min(tailMs, fromMs) : tailMs
}

/**
 * `quota`: a search would use what `quota_reserve` keeps; `endless`: the API's pages do not end.
 */
export type AuditReason = 'quota' | 'endless'

/** An audit ended early although the API answered. */
export class AuditError extends TocsinError {
  override readonly name = 'AuditError'
  readonly code = 'TOCSIN_AUDIT'
  readonly reason: AuditReason

  constructor(reason: AuditReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** An event that the API shows and the ledger does not account for. */
export interface Finding {
  uid: string
  createdAtMs: number
  why:
    | 'never_taken_in'
    /** Its fingerprint is known, but its record is gone: nobody can tell what became of it. */
    | 'record_gone'
    /**
     * Not missing yet: since it may have become visible, neither tail nor rescan passed its
     * position.
     */
    | 'awaited'
  /** What a repair takes in; only with `keepsEvents`, and only for the first thousand. */
  routed?: RoutedEvent
}

/** An event of the window that the ledger has and the API no longer shows. */
export interface ExtraEvent {
  uid: string
  firstSeenMs: number
  /** What people did with the event upstream, as far as known. */
  closed: 'ignored' | 'remediated' | undefined
}

export interface AuditWindow {
  fromMs: number
  toMs: number
}

export interface AuditResult extends AuditWindow {
  feed: string
  /** Distinct events and malformed items that the API showed. */
  shown: number
  /** Of these: in the ledger as events. */
  accounted: number
  missing: Finding[]
  awaited: Finding[]
  extra: ExtraEvent[]
  /** Malformed items that are or were in the quarantine. */
  quarantined: number
  /** Malformed items that never were in the quarantine and that an earlier audit has seen. */
  malformed: MalformedItem[]
}
