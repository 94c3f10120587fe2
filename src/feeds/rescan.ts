/**
 * Rescans, pure: what is read again behind the tail to find late events, and when.
 *
 * Each feed has three scans with a fence and a cursor of their own, so that a long one never delays
 * a short one, nor endless short ones a long one:
 *
 * - `recent`: the recent past, every few minutes. Where the API filters by match time, it reads
 *   closed windows of match time; elsewhere, the short rungs of a ladder of doubling windows, each
 *   read again once a quarter of its own length has passed.
 * - `long`: the long rungs of that ladder.
 * - `whole`: the whole of `rescan.back`, preceded by what a tail with a new request left behind it.
 *
 * A scan of a long window counts for all shorter ones. Where the tier's budget does not cover all
 * ladders, some windows are left out and the others are read less often (rescan-plan.ts).
 */
import type { FeedState, RescanState, Scan, ScanSpan } from '../store/feed-state.ts'
import { findFeedType } from './types/feed-types.ts'
import type { PolledFeed } from './types/polled-feed.ts'
import {
  isFrequent,
  itemsPerPage,
  unconstrainedPlan,
  matchLagMs,
  rungIntervals,
  rungWindows,
  wholeEveryMs,
  type RescanContext,
} from './rescan-plan.ts'
import {
  beginRescan,
  clockToleranceMs,
  scanFingerprint,
  isBehindRescanned,
  pendingSnapshot,
  rescanFromMs,
} from './scan.ts'

export type RescanPlace = 'recent' | 'long' | 'whole'

export interface Rescan {
  place: RescanPlace
  scan: Scan
}

/** What a rescan keeps in its scan besides the cursor. */
export interface RescanNotes {
  kind: 'matched' | 'rung' | 'snapshot' | 'whole'
  /**
   * New events created before it are late; null: nothing was taken in before, or lateness means
   * nothing.
   */
  lateBeforeMs: number | null
  /** The index of its window in the ladder. */
  rung?: number
  /**
   * The id of the tail's `behind` that it reads: its finds go into a summary, and those below the
   * start bound are baseline.
   */
  snapshotOf?: string
  /** Whether its finds go into a summary. */
  isBacklog?: boolean
  /**
   * Up to when the feed had been read by match time when this whole scan began, ms of the API's
   * clock.
   */
  matchedToMs?: number
  /** Items fetched so far, and with how many pages. */
  fetched?: number
  pages?: number
}

/** Rungs up to this length belong to `recent`, longer ones to `long`. */
const maxRecentMs = 6 * 3_600_000
/** How far a window by match time overlaps the one before. */
const matchOverlapMs = 600_000
const weekMs = 7 * 86_400_000
/** A window of at least this length is enough to estimate the events per week. */
const minWeekSampleMs = 86_400_000

/**
 * The order in which each page of a run tries the places: none is starved by scans that never end.
 */
const precedence: readonly (readonly RescanPlace[])[] = [
  ['recent', 'long', 'whole'],
  ['whole', 'recent', 'long'],
  ['recent', 'long', 'whole'],
  ['long', 'recent', 'whole'],
]

/**
 * The rescan that continues or is due; otherwise when the next one is due, ms. undefined until the
 * feed was read to its end, and for feeds without rescans. `page` counts pages from 0.
 */
export function nextRescan(
  feed: PolledFeed,
  state: FeedState,
  context: RescanContext,
  page = 0,
): { rescan: Rescan } | { dueMs: number | undefined } {
  if (!isReadToEnd(feed, state)) return { dueMs: undefined }
  const dueTimesMs: number[] = []
  for (const place of precedence[page % precedence.length] ?? []) {
    const running = runningScan(feed, state, place, context)
    if (running) return { rescan: { place, scan: running } }
    const next =
      isFrequent(feed) || place === 'whole' ? nextDue(place, feed, state, context) : undefined
    if (next && next.atMs <= state.nowMs) return { rescan: { place, scan: next.begin() } }
    if (next) dueTimesMs.push(next.atMs)
  }
  return { dueMs: Math.min(...dueTimesMs) }
}

/** Whether the tail has read the feed to its end with the present request. */
function isReadToEnd(feed: PolledFeed, state: FeedState): state is ReadState {
  return (
    wasReadToEnd(feed, state) &&
    state.scan.fingerprint === scanFingerprint(feed, state.startBoundMs)
  )
}

/** Whether the tail has read the feed to its end, even with an older request. */
function wasReadToEnd(feed: PolledFeed, state: FeedState): state is ReadState {
  if (!feed.rescan || !state.scan || state.isBackfilling || state.isRewound) return false
  return state.lastCaughtUpMs !== undefined
}

function runningScan(
  feed: PolledFeed,
  state: FeedState,
  place: RescanPlace,
  { matchClockMs }: RescanContext,
): Scan | undefined {
  const { scan, isDone }: RescanState = state[place]
  if (!scan || isDone || scan.fingerprint !== scanFingerprint(feed, state.startBoundMs))
    return undefined
  if (readNotes(scan).kind === 'matched' && matchClockMs === undefined) return undefined
  const pending = place === 'whole' ? pendingSnapshot(state) : undefined
  return pending && readNotes(scan).snapshotOf !== pending.id ? undefined : scan
}

interface Due {
  atMs: number
  begin: () => Scan
}

type ReadState = FeedState & { scan: Scan }

function nextDue(
  place: RescanPlace,
  feed: PolledFeed,
  state: ReadState,
  context: RescanContext,
): Due | undefined {
  if (place === 'whole') return dueSnapshot(feed, state) ?? dueWhole(feed, state, context)
  if (context.matchClockMs === undefined) return dueRung(place, feed, state, context)
  return place === 'recent' ? dueMatched(feed, state, context.matchClockMs, context) : undefined
}

function dueSnapshot(feed: PolledFeed, state: ReadState): Due | undefined {
  const behind = pendingSnapshot(state)
  if (!behind) return undefined
  const notes: RescanNotes = {
    kind: 'snapshot',
    lateBeforeMs: null,
    snapshotOf: behind.id,
    isBacklog: true,
  }
  const span = { fromMs: behind.fromMs, toMs: behind.toMs }
  return { atMs: state.nowMs, begin: () => beginRescan(feed, state, { span, notes: { ...notes } }) }
}

function dueWhole(feed: PolledFeed, state: ReadState, context: RescanContext): Due {
  const span = spanBack(feed, state, feed.rescan?.backMs ?? 0, context)
  const notes = wholeNotes(state, context)
  return {
    atMs: lastWholeMs(feed, state) + wholeEveryMs(feed, context),
    begin: () => beginRescan(feed, state, { span, notes: { ...notes } }),
  }
}

function wholeNotes(state: ReadState, { matchClockMs }: RescanContext): RescanNotes {
  const { newestMs, rescans, scan } = state
  const isMatched = matchClockMs !== undefined && rescans.matched?.fingerprint === scan.fingerprint
  const matchedToMs = isMatched ? rescans.matched?.toMs : undefined
  return {
    kind: 'whole',
    lateBeforeMs: newestMs ?? null,
    ...(matchedToMs !== undefined && { matchedToMs }),
  }
}

/** When the last whole rescan began; before the first one, when the feed was first polled. */
function lastWholeMs({ startMs }: PolledFeed, state: FeedState): number {
  const { whole, startBoundMs, rescans, nowMs } = state
  const firstPollMs = rescans.firstPollMs ?? startBoundMs + startMs
  return ignoreFuture(whole.scan?.startedAtMs, nowMs) ?? ignoreFuture(firstPollMs, nowMs) ?? 0
}

/** Drops a time in the future: it was written while a clock was ahead. */
function ignoreFuture(ms: number | undefined, nowMs: number): number | undefined {
  return ms !== undefined && ms <= nowMs ? ms : undefined
}

/**
 * Nothing below the start bound is rescanned before the baseline is known. Until the snapshot is
 * read, its range is left to it, because its finds go into a summary.
 */
function earliestRescanMs(feed: PolledFeed, state: ReadState): number {
  if (pendingSnapshot(state)) return state.scan.span?.fromMs ?? state.startBoundMs
  return isBehindRescanned(feed) ? rescanFromMs(state.scan, state.startBoundMs) : state.startBoundMs
}

function dueRung(
  place: 'recent' | 'long',
  feed: PolledFeed,
  state: ReadState,
  context: RescanContext,
): Due | undefined {
  const windows = rungWindows(feed.rescan?.backMs ?? 0)
  const times = rungIntervals(windows, context.plan.ladder)
  let best: { rung: number; windowMs: number; atMs: number } | undefined
  for (const [rung, windowMs] of windows.entries()) {
    const everyMs = times[rung]
    const isOfPlace = windowMs <= maxRecentMs === (place === 'recent')
    if (everyMs === undefined || !isOfPlace) continue
    // a tail that restarts postpones no window
    const readMs = ignoreFuture(state.rescans.rungMs[rung], state.nowMs)
    const atMs = (readMs ?? ignoreFuture(state.scan.startedAtMs, state.nowMs) ?? 0) + everyMs
    // the longest window that is due, which counts for the others; else the one that is due first
    const isBetter = atMs <= state.nowMs || atMs < (best?.atMs ?? Infinity)
    if (isBetter) best = { rung, windowMs, atMs }
  }
  if (!best) return undefined
  const { rung, windowMs, atMs } = best
  const span = spanBack(feed, state, windowMs, context)
  const notes: RescanNotes = { kind: 'rung', rung, lateBeforeMs: state.newestMs ?? null }
  return { atMs, begin: () => beginRescan(feed, state, { span, notes: { ...notes } }) }
}

/** The last `backMs` by creation, by the service's clock where that of Redis is off. */
function spanBack(
  feed: PolledFeed,
  state: ReadState,
  backMs: number,
  { clockMs = state.nowMs }: RescanContext,
): Required<ScanSpan> {
  const isOff = Math.abs(clockMs - state.nowMs) > clockToleranceMs
  const toMs = isOff ? clockMs : state.nowMs
  return { fromMs: Math.max(earliestRescanMs(feed, state), toMs - backMs), toMs }
}

function dueMatched(
  feed: PolledFeed,
  state: ReadState,
  matchedNowMs: number,
  { plan, rememberedMs = Infinity }: RescanContext,
): Due {
  const { matched } = state.rescans
  const { fingerprint, behind } = state.scan
  const isFirst = matched?.fingerprint !== fingerprint
  const toMs = matchedNowMs - matchLagMs
  const sinceMs = isFirst ? (behind?.fromMs ?? 0) : matched.toMs - matchOverlapMs
  // older events may have been sent already and are no longer recognised
  const fromMs = Math.max(state.startBoundMs, sinceMs, state.nowMs - rememberedMs)
  const waitsMs = isFirst ? fromMs - toMs : matched.toMs + plan.matchedEveryMs - toMs
  const notes: RescanNotes = {
    kind: 'matched',
    lateBeforeMs: state.newestMs ?? null,
    ...(isFirst && { isBacklog: true }),
  }
  const span = { fromMs, toMs }
  const body = findFeedType(feed).matchBody?.(feed, span) ?? {}
  return {
    atMs: state.nowMs + waitsMs,
    begin: () => beginRescan(feed, state, { span, body, notes: { ...notes } }),
  }
}

export function readNotes({ notes }: { notes?: Scan['notes'] | undefined }): RescanNotes {
  return { kind: 'whole', lateBeforeMs: null, ...(notes as Partial<RescanNotes> | undefined) }
}

/** The fields of the feed state that a rescan sets when it was read to its end. */
export function fieldsAtEnd({ fingerprint, startedAtMs, span, notes }: Scan): [string, string][] {
  const { kind, rung = 0, snapshotOf, fetched = 0, pages = 0 } = readNotes({ notes })
  const { fromMs = 0, toMs = 0 } = span ?? {}
  // short pages cost as much as full ones, and the last two may be a short and an empty one
  const items = Math.max(fetched, (pages - 2) * itemsPerPage)
  const perWeek = String(Math.round((items * weekMs) / (toMs - fromMs)))
  const weekFields: [string, string][] =
    toMs - fromMs < minWeekSampleMs ? [] : [['per_week', perWeek]]
  if (kind === 'snapshot') return [['snapshot_of', snapshotOf ?? ''], ...weekFields]
  if (kind === 'matched') return [['matched', JSON.stringify({ fingerprint, toMs })]]
  const rungs = kind === 'rung' ? rung + 1 : rungWindows(toMs - fromMs + 1).length
  const fields = Array.from({ length: rungs }, (_none, at): [string, string] => [
    `rung:${at}`,
    String(startedAtMs),
  ])
  return [...fields, ...weekFields]
}

/**
 * When the whole window, or what a tail left behind it, is read again, ms; undefined until the feed
 * was read to its end.
 */
export function rescanDueMs(
  feed: PolledFeed,
  state: FeedState,
  context: RescanContext = { plan: unconstrainedPlan },
): number | undefined {
  if (!wasReadToEnd(feed, state)) return undefined
  return nextDue('whole', feed, state, context)?.atMs
}
