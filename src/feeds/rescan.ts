/**
 * Rescans, pure: what reads again what the tail has passed, for what arrives late, and how soon.
 *
 * Three scans a feed, each with a fence and a cursor of its own, so that a long one never holds up a
 * short one, nor short ones without end a long one:
 *
 * - `recent`: the near past, every few minutes. Where the service filters by match time, closed windows by
 *   when events were matched; elsewhere the short rungs of a ladder of windows that double, each read
 *   again once a quarter of its own length has passed.
 * - `long`: the long rungs of that ladder.
 * - `sweep`: the whole of `sweep.back`, and, first of all, what a tail with a new request left behind it.
 *
 * A scan of a long window counts for all shorter ones. Where the budget of the tier does not carry the
 * ladder of all feeds, some windows are left out and the others come more seldom (rescan-plan.ts).
 */
import type { FeedState, ScanState, Walk } from '../store/feed-state.ts'
import { typeOf } from '../feed-types/feed-types.ts'
import type { PolledFeed } from '../feed-types/feed-type.ts'
import {
  isFrequent,
  leastPlan,
  matchLagMs,
  rungIntervals,
  rungWindows,
  wholeEveryMs,
  type RescanPlan,
  type RescanWorld,
} from './rescan-plan.ts'
import {
  beginRescan,
  fingerprintOf,
  isReadBehind,
  pendingSnapshot,
  reachOf,
  readsAll,
} from './scan.ts'

export type RescanPlace = 'recent' | 'long' | 'sweep'

export interface Rescan {
  place: RescanPlace
  walk: Walk
}

/** What a rescan keeps in its walk besides the cursor. */
export interface RescanNotes {
  kind: 'matched' | 'rung' | 'snapshot' | 'whole'
  /** New events created before it are late; null: nothing was taken in before, or lateness means nothing. */
  lateBeforeMs: number | null
  /** Which window of the ladder. */
  rung?: number
  /** Which `behind` of the tail it reads: its finds come as a summary, and below the start bound as baseline. */
  snapshotOf?: string
  /** What it finds reaches people as a summary. */
  isBacklog?: boolean
  /** Up to when the feed was read by match time when a whole scan began, ms of the service's clock. */
  matchedToMs?: number
  /** Items shown so far. */
  fetched?: number
}

/** Rungs up to here are scanned beside the longer ones. */
const longestRecentMs = 6 * 3_600_000
/** How far a window by match time reaches back behind the end of the one before. */
const matchOverlapMs = 600_000
const weekMs = 7 * 86_400_000
/** What a window of this length and more shows is what the feed shows in a week, in proportion. */
const countedMs = 86_400_000

/** Which scan a turn's pages go to first, one after the other: none is starved by those that never end. */
const precedence: readonly (readonly RescanPlace[])[] = [
  ['recent', 'long', 'sweep'],
  ['sweep', 'recent', 'long'],
  ['recent', 'long', 'sweep'],
  ['long', 'recent', 'sweep'],
]

/**
 * The rescan that goes on, or the one that is due; otherwise when the next one is due: undefined before
 * the feed was read to its end, and for feeds that nothing reads again. `page`: of the turn, from 0.
 */
export function nextRescan(
  feed: PolledFeed,
  state: FeedState,
  world: RescanWorld,
  page = 0,
): { rescan: Rescan } | { dueMs: number | undefined } {
  if (!isReadable(feed, state)) return { dueMs: undefined }
  const dues: number[] = []
  for (const place of precedence[page % precedence.length] ?? []) {
    const running = runningWalk(feed, state, place, world)
    if (running) return { rescan: { place, walk: running } }
    const next = isFrequent(feed) || place === 'sweep' ? due(place, feed, state, world) : undefined
    if (next && next.atMs <= state.nowMs) return { rescan: { place, walk: next.begin() } }
    if (next) dues.push(next.atMs)
  }
  return { dueMs: Math.min(...dues) }
}

/** Whether the tail has read the feed to its end with the present request. */
function isReadable(feed: PolledFeed, state: FeedState): state is ReadState {
  return isRead(feed, state) && state.walk.fingerprint === fingerprintOf(feed, state.floorMs)
}

/** Whether the tail has read the feed to its end, be it with an older request. */
function isRead(feed: PolledFeed, state: FeedState): state is ReadState {
  if (!feed.sweep || !state.walk || state.isBackfilling || state.isRewound) return false
  return state.lastCaughtUpMs !== undefined && !readsAll(feed, state)
}

function runningWalk(
  feed: PolledFeed,
  state: FeedState,
  place: RescanPlace,
  { matchedNowMs }: RescanWorld,
): Walk | undefined {
  const { walk, isDone }: ScanState = state[place]
  if (!walk || isDone || walk.fingerprint !== fingerprintOf(feed, state.floorMs)) return undefined
  if (readNotes(walk).kind === 'matched' && matchedNowMs === undefined) return undefined
  const pending = place === 'sweep' ? pendingSnapshot(state) : undefined
  return pending && readNotes(walk).snapshotOf !== pending.id ? undefined : walk
}

interface Due {
  atMs: number
  begin: () => Walk
}

type ReadState = FeedState & { walk: Walk }

function due(
  place: RescanPlace,
  feed: PolledFeed,
  state: ReadState,
  world: RescanWorld,
): Due | undefined {
  if (place === 'sweep') return dueSnapshot(feed, state, world) ?? dueWhole(feed, state, world)
  if (world.matchedNowMs === undefined) return dueRung(place, feed, state, world.plan)
  return place === 'recent' ? dueMatched(feed, state, world.matchedNowMs, world) : undefined
}

function dueSnapshot(feed: PolledFeed, state: ReadState, world: RescanWorld): Due | undefined {
  const behind = pendingSnapshot(state)
  if (!behind) return undefined
  const notes: RescanNotes = {
    ...wholeNotes(state, world),
    kind: 'snapshot',
    lateBeforeMs: null,
    snapshotOf: behind.id,
    isBacklog: true,
  }
  const span = { fromMs: behind.fromMs, toMs: behind.toMs }
  return { atMs: state.nowMs, begin: () => beginRescan(feed, state, { span, notes: { ...notes } }) }
}

function dueWhole(feed: PolledFeed, state: ReadState, world: RescanWorld): Due {
  const { nowMs } = state
  const fromMs = Math.max(lowestMs(feed, state), nowMs - (feed.sweep?.backMs ?? 0))
  const notes = wholeNotes(state, world)
  return {
    atMs: lastWholeMs(feed, state) + wholeEveryMs(feed, world),
    begin: () => beginRescan(feed, state, { span: { fromMs, toMs: nowMs }, notes: { ...notes } }),
  }
}

function wholeNotes(state: ReadState, { matchedNowMs }: RescanWorld): RescanNotes {
  const { newestMs, rescans, walk } = state
  const isMatched = matchedNowMs !== undefined && rescans.matched?.fingerprint === walk.fingerprint
  const matchedToMs = isMatched ? rescans.matched?.toMs : undefined
  return {
    kind: 'whole',
    lateBeforeMs: newestMs ?? null,
    ...(matchedToMs !== undefined && { matchedToMs }),
  }
}

/** When the last whole rescan began; before the first one, when the feed was first polled. */
function lastWholeMs({ startMs }: PolledFeed, state: FeedState): number {
  const { sweep, floorMs, rescans, nowMs } = state
  const firstPollMs = rescans.firstPollMs ?? floorMs + startMs
  return past(sweep.walk?.startedAtMs, nowMs) ?? past(firstPollMs, nowMs) ?? 0
}

/** A time that is yet to come was written while the clock was ahead, and says nothing. */
function past(ms: number | undefined, nowMs: number): number | undefined {
  return ms !== undefined && ms <= nowMs ? ms : undefined
}

/**
 * Below the start bound nothing is read before it is known what stood there (the baseline). Until the
 * snapshot is read, its finds are left to it, for they come as a summary.
 */
function lowestMs(feed: PolledFeed, state: ReadState): number {
  if (pendingSnapshot(state)) return state.walk.span?.fromMs ?? state.floorMs
  return isReadBehind(feed) ? reachOf(state.walk, state.floorMs) : state.floorMs
}

function dueRung(
  place: 'recent' | 'long',
  feed: PolledFeed,
  state: ReadState,
  { ladder }: RescanPlan,
): Due | undefined {
  const windows = rungWindows(feed.sweep?.backMs ?? 0)
  const times = rungIntervals(windows, ladder)
  let best: { rung: number; windowMs: number; atMs: number } | undefined
  for (const [rung, windowMs] of windows.entries()) {
    const everyMs = times[rung]
    const isOfPlace = windowMs <= longestRecentMs === (place === 'recent')
    if (everyMs === undefined || !isOfPlace) continue
    // a tail that begins anew puts no window off
    const readMs = past(state.rescans.rungMs[rung], state.nowMs)
    const atMs = (readMs ?? past(state.walk.startedAtMs, state.nowMs) ?? 0) + everyMs
    // of those that are due the longest, which counts for the others; else the one that is due first
    const isBetter = atMs <= state.nowMs || atMs < (best?.atMs ?? Infinity)
    if (isBetter) best = { rung, windowMs, atMs }
  }
  if (!best) return undefined
  const { rung, windowMs, atMs } = best
  const { nowMs, newestMs } = state
  const fromMs = Math.max(lowestMs(feed, state), nowMs - windowMs)
  const notes: RescanNotes = { kind: 'rung', rung, lateBeforeMs: newestMs ?? null }
  const span = { fromMs, toMs: nowMs }
  return { atMs, begin: () => beginRescan(feed, state, { span, notes: { ...notes } }) }
}

function dueMatched(
  feed: PolledFeed,
  state: ReadState,
  matchedNowMs: number,
  { plan, rememberedMs = Infinity }: RescanWorld,
): Due {
  const { matched } = state.rescans
  const { fingerprint, behind } = state.walk
  const isFirst = matched?.fingerprint !== fingerprint
  const toMs = matchedNowMs - matchLagMs
  const sinceMs = isFirst ? (behind?.fromMs ?? 0) : matched.toMs - matchOverlapMs
  // what is older may have been told, and is no longer known
  const fromMs = Math.max(state.floorMs, sinceMs, state.nowMs - rememberedMs)
  const waitsMs = isFirst ? fromMs - toMs : matched.toMs + plan.matchedEveryMs - toMs
  const notes: RescanNotes = {
    kind: 'matched',
    lateBeforeMs: state.newestMs ?? null,
    ...(isFirst && { isBacklog: true }),
  }
  const span = { fromMs, toMs }
  const body = typeOf(feed).matchBody?.(feed, span) ?? {}
  return {
    atMs: state.nowMs + waitsMs,
    begin: () => beginRescan(feed, state, { span, body, notes: { ...notes } }),
  }
}

export function readNotes({ notes }: { notes?: Walk['notes'] | undefined }): RescanNotes {
  return { kind: 'whole', lateBeforeMs: null, ...(notes as Partial<RescanNotes> | undefined) }
}

/** Fields of the feed's state that a rescan sets when it was read to its end. */
export function fieldsAtEnd({ fingerprint, startedAtMs, span, notes }: Walk): [string, string][] {
  const { kind, rung = 0, snapshotOf, fetched = 0 } = readNotes({ notes })
  const { fromMs = 0, toMs = 0 } = span ?? {}
  const perWeek = String(Math.round((fetched * weekMs) / (toMs - fromMs)))
  const counted: [string, string][] = toMs - fromMs < countedMs ? [] : [['per_week', perWeek]]
  if (kind === 'snapshot') return [['snapshot_of', snapshotOf ?? ''], ...counted]
  if (kind === 'matched') return [['matched', JSON.stringify({ fingerprint, toMs })]]
  const rungs = kind === 'rung' ? rung + 1 : rungWindows(toMs - fromMs + 1).length
  const fields = Array.from({ length: rungs }, (_none, at): [string, string] => [
    `rung:${at}`,
    String(startedAtMs),
  ])
  return [...fields, ...counted]
}

/**
 * When the whole window is read again, or what a tail left behind it, ms; undefined: not before the feed was
 * read to its end.
 */
export function sweepDueMs(
  feed: PolledFeed,
  state: FeedState,
  world: RescanWorld = { plan: leastPlan },
): number | undefined {
  if (!isRead(feed, state)) return undefined
  return due('sweep', feed, state, world)?.atMs
}
