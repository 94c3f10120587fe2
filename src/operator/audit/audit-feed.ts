/**
 * The audit of a feed: compares what the API shows of a window with the ledger. Every event shown
 * must be in the ledger. It changes nothing.
 */
import type { PolledFeed } from '../../feeds/types/polled-feed.ts'
import { findFeedType } from '../../feeds/types/feed-types.ts'
import { canonicalJson } from '../../feeds/types/field-reader.ts'
import { scanFingerprint, scannedFromMs } from '../../feeds/scan.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { type FeedState, peekFeed } from '../../store/feed-state.ts'
import { type LedgerStatus, lookUpInLedger } from '../../store/intake.ts'
import { readTrimmedUntilMs } from '../../store/records.ts'
import { type AuditWindow, type PageOptions, auditPages } from './audit-pages.ts'

export interface AuditOptions extends PageOptions {
  ledger: AccountLedger
}

/** An event that the API shows and the ledger does not account for. */
export interface Finding {
  uid: string
  createdAtMs: number
  why:
    | 'never_taken_in'
    /** Its fingerprint is known, but its record is gone: nobody can tell what became of it. */
    | 'record_gone'
    /** It became visible after the tail or the rescan passed its position: not missing yet. */
    | 'awaited'
}

export interface AuditResult extends AuditWindow {
  feed: string
  /** Distinct events that the API showed. */
  shown: number
  /** Of these: in the ledger. */
  accounted: number
  missing: Finding[]
  /** Became visible after the feed had passed their places: not missing yet. */
  awaited: number
  /** Items that the API showed and that do not read as an event. */
  malformed: number
}

/**
 * Audits page by page; yields how many events were shown so far, so that the caller can pause in
 * between. Throws UpstreamError and AuditError.
 */
export async function* auditFeed(
  options: AuditOptions,
  feed: PolledFeed,
  window: AuditWindow,
): AsyncGenerator<number, AuditResult> {
  const { ledger, clock } = options
  const state = await peekFeed(ledger, feed.name, clock.now())
  if (!state) throw new Error(`feed ${feed.name} has never polled`)
  const audit: Audit = { ledger, feed, state, window, ...noSeenItems() }
  for await (const items of auditPages(options, feed, state, window)) {
    await compareWithLedger(audit, items)
    yield audit.uids.size
  }
  const found = await withoutTrimmed(ledger, await filterUnknown(audit))
  return {
    feed: feed.name,
    ...window,
    shown: audit.uids.size,
    accounted: audit.uids.size - found.length,
    missing: found.filter(({ why }) => why !== 'awaited'),
    awaited: found.filter(({ why }) => why === 'awaited').length,
    malformed: audit.malformed.size,
  }
}

interface Audit extends SeenItems {
  ledger: AccountLedger
  feed: PolledFeed
  state: FeedState
  window: AuditWindow
}

interface SeenItems {
  uids: Set<string>
  found: Map<string, Finding>
  /** As they were shown: an item that is shown twice counts once. */
  malformed: Set<string>
}

function noSeenItems(): SeenItems {
  return { uids: new Set(), found: new Map(), malformed: new Set() }
}

/**
 * Compares one page. Servers that ignore times, and feeds without any, show more than the window.
 * An event without a creation time is skipped: its record may have expired, and nobody can tell.
 */
async function compareWithLedger(audit: Audit, items: readonly unknown[]): Promise<void> {
  const { ledger, feed, window, uids, found, malformed } = audit
  const events: ShownEvent[] = []
  for (const raw of items) {
    const parsed = findFeedType(feed).parse(raw, feed)
    if (!parsed.ok) malformed.add(canonicalJson(raw))
    else if (isWithin(parsed.event, window)) events.push(parsed.event)
  }
  const shown = events.map(({ uid }) => uid)
  const statuses = await lookUpInLedger(ledger, feed.name, shown)
  for (const [at, event] of events.entries()) {
    uids.add(event.uid)
    const why = toVerdict(audit, event, statuses[at])
    if (why) found.set(event.uid, { uid: event.uid, createdAtMs: event.createdAtMs, why })
  }
}

interface ShownEvent {
  uid: string
  createdAtMs: number
  matchedAtMs: number | null
}

function isWithin(
  event: { createdAtMs: number | null },
  { fromMs, toMs }: AuditWindow,
): event is { createdAtMs: number } {
  const { createdAtMs } = event
  return createdAtMs !== null && createdAtMs >= fromMs && createdAtMs <= toMs
}

function toVerdict(
  audit: Audit,
  event: ShownEvent,
  status: LedgerStatus | undefined,
): Finding['why'] | undefined {
  if (status === 'unrecorded') return 'record_gone'
  if (status !== 'unknown') return undefined
  return isAwaited(audit, event) ? 'awaited' : 'never_taken_in'
}

/**
 * Whether the event may have become visible after the feed last passed its position: the tail, or,
 * for events that arrive late, the rescan. Without a match time the time of creation counts.
 */
function isAwaited({ feed, state }: Audit, event: ShownEvent): boolean {
  const { createdAtMs, matchedAtMs } = event
  const { scan, whole, lastCaughtUpMs, rescans } = state
  const isRead = rescans.matched?.fingerprint === scan?.fingerprint
  const matchedToMs = isRead ? (rescans.matched?.toMs ?? 0) : 0
  if (matchedAtMs !== null && matchedAtMs < matchedToMs) return false
  const { begunMs, isSnapshot = false } = whole.lastEnded ?? {}
  const rescannedMs = isSnapshot ? undefined : begunMs
  const passedMs = feed.rescan ? rescannedMs : lastCaughtUpMs
  return (matchedAtMs ?? createdAtMs) > (passedMs ?? 0)
}

/** Leaves out what the daemon took in meanwhile. */
async function filterUnknown({ ledger, feed, found }: Audit): Promise<Finding[]> {
  const findings = [...found.values()]
  const unknown: Finding[] = []
  for (let at = 0; at < findings.length; at += 100) {
    const part = findings.slice(at, at + 100)
    const uids = part.map(({ uid }) => uid)
    const statuses = await lookUpInLedger(ledger, feed.name, uids)
    unknown.push(...part.filter((_one, place) => statuses[place] !== 'taken'))
  }
  return unknown
}

/** Leaves out records that retention dropped while the audit ran. */
async function withoutTrimmed(ledger: AccountLedger, findings: Finding[]): Promise<Finding[]> {
  const trimmedMs = await readTrimmedUntilMs(ledger)
  return findings.filter(
    ({ why, createdAtMs }) => why !== 'record_gone' || createdAtMs >= trimmedMs,
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
