/**
 * Counts over several events: the numbers and names that a message says about all of them together.
 */
import { isKnownSeverity, noSeverity, type Severity, severityRank } from '../event.ts'
import { sanitizeLine } from './sanitize.ts'

/**
 * `group`: similar events of a short window; `digest`: what a schedule collected; `backlog`: what a
 * feed's first poll or a rescan found; `held`: events held during a mute that is over; `storm`:
 * more than the sink's readers could take singly.
 */
export type SummaryKind = 'group' | 'digest' | 'backlog' | 'held' | 'storm'

export interface NameCount {
  name: string
  count: number
}

export interface Summary {
  kind: SummaryKind
  /** Events that the message covers, shown or not. */
  total: number
  /** Most severe first, unknown severities before `critical`; only those that occur. */
  bySeverity: { severity: Severity; count: number }[]
  /**
   * Most frequent first, at most ten, then the rest as `{name: 'other'}`. The next two likewise.
   */
  byType: NameCount[]
  byFeed: NameCount[]
  byIdentifier: NameCount[]
  /** What a group has in common: `group_by` names with their values. */
  labels: Record<string, string>
  /** The route that decided the grouping; null for digests. */
  route: string | null
  /** When the first and the last of the events were fetched, ms. */
  firstAtMs: number
  lastAtMs: number
  digest?: DigestFacts
  /** The events could not be delivered to this sink since then, ms, and go to its fallback. */
  undelivered?: { sink: string; sinceMs: number }
}

export interface AlreadySent {
  severity: Severity
  type: string
  uid: string
  /** If there are several. */
  account?: string
  sentAtMs: number
  /** Of its message; undefined if the event is no longer stored. */
  title?: string
  /** The message's `link`. */
  serviceLink?: string | null
}

/** What a digest says besides its events, so that an empty one never reads as "all quiet". */
export interface DigestFacts {
  /** The window: what was collected after `fromMs` and up to `toMs`. */
  fromMs: number
  toMs: number
  /** When it was due, ms; `isLate`: it was sent noticeably later. */
  dueAtMs: number
  isLate: boolean
  /** IANA name; the days and hours of the digest are in this zone. */
  timeZone: string
  /** One entry per local day of the window, oldest first, `2026-11-20`; at most 31. */
  perDay: { day: string; bySeverity: { severity: Severity; count: number }[] }[]
  /** Every feed; `isBehind`: it was not read to its end within its objective. */
  feeds: {
    feed: string
    lastCaughtUpMs: number | null
    isBehind: boolean
    /** Quarantined items: those of the window, and all that are still there. */
    quarantined?: { fresh: number; open: number }
    /** At least half of what the feed shows cannot be read. */
    isUnreadable?: boolean
    /** Its account is not configured any more: the feed is no longer read. */
    hasLeft?: boolean
  }[]
  /** Items of this destination that the window's messages do not list, by reason. */
  held: number
  suppressed: number
  dead: number
  /** Went to another sink: to a fallback, or moved by hand. */
  diverted?: number
  /** Events sent at once (`immediate`), not counted above: at most 50, and how many in all. */
  alreadySent: AlreadySent[]
  alreadySentTotal: number
  /** All of them, most severe first. */
  alreadySentBySeverity: { severity: Severity; count: number }[]
}

/** What is counted of one event. */
export interface SummaryPart {
  severity: Severity
  type: string
  feed: string
  /** Names of what was matched; each counts once per event. */
  identifiers: readonly string[]
  fetchedAtMs: number
  createdAtMs: number | null
}

/** What is known of the message besides its events. */
export interface SummaryAbout {
  kind: SummaryKind
  labels: Record<string, string>
  route: string | null
  digest?: DigestFacts
  undelivered?: Summary['undelivered']
}

interface Tally {
  add(part: SummaryPart): Tally
  /** Without any event both times are 0. */
  finish(about: SummaryAbout): Summary
}

/** Names in a count; less frequent ones are counted as `other`. */
const maxNames = 10

export function summarise(parts: Iterable<SummaryPart>, about: SummaryAbout): Summary {
  const tally = createTally()
  for (const part of parts) tally.add(part)
  return tally.finish(about)
}

export function createTally(): Tally {
  const bySeverity = new Map<string, number>()
  const byType = new Map<string, number>()
  const byFeed = new Map<string, number>()
  const byIdentifier = new Map<string, number>()
  let total = 0
  let firstAtMs = Infinity
  let lastAtMs = -Infinity
  const tally: Tally = {
    add({ severity, type, feed, identifiers, fetchedAtMs }) {
      total += 1
      firstAtMs = Math.min(firstAtMs, fetchedAtMs)
      lastAtMs = Math.max(lastAtMs, fetchedAtMs)
      increment(bySeverity, severity)
      increment(byType, type)
      increment(byFeed, feed)
      for (const name of new Set(identifiers)) increment(byIdentifier, name)
      return tally
    },
    finish: ({ kind, labels, route, digest, undelivered }) => ({
      kind,
      total,
      bySeverity: toSeverityCounts(bySeverity),
      byType: mostFrequent(byType),
      byFeed: mostFrequent(byFeed),
      byIdentifier: mostFrequent(byIdentifier),
      labels,
      route,
      firstAtMs: total === 0 ? 0 : firstAtMs,
      lastAtMs: total === 0 ? 0 : lastAtMs,
      ...(digest && { digest }),
      ...(undelivered && { undelivered }),
    }),
  }
  return tally
}

interface Window {
  fromMs: number
  toMs: number
}

/** Days of a window that are counted; of a longer window, the last ones. */
const maxDays = 31
/** No local day is shorter, so no day is skipped. */
const halfDayMs = 12 * 3_600_000

/**
 * One entry per local day of the window, oldest first, days without an event included. An event
 * counts on the day on which it was fetched; one from outside the window (it was held) on the
 * nearest day. `localDay` returns the local day, `2026-11-20`.
 */
export function perDay(
  parts: Iterable<Pick<SummaryPart, 'severity' | 'fetchedAtMs'>>,
  localDay: (atMs: number) => string,
  window: Window,
): DigestFacts['perDay'] {
  const days = listDays(window, localDay)
  const counts = new Map(days.map((day) => [day, new Map<string, number>()]))
  const [first = '', last = first] = [days[0], days.at(-1)]
  for (const { severity, fetchedAtMs } of parts) {
    const day = localDay(Math.min(Math.max(fetchedAtMs, window.fromMs), window.toMs))
    increment(counts.get(day) ?? counts.get(day < first ? first : last) ?? new Map(), severity)
  }
  return days.map((day) => ({ day, bySeverity: toSeverityCounts(counts.get(day) ?? new Map()) }))
}

function listDays({ fromMs, toMs }: Window, localDay: (atMs: number) => string): string[] {
  const startMs = Math.max(fromMs, toMs - (maxDays + 1) * 2 * halfDayMs)
  const days = new Set<string>()
  for (let atMs = startMs; atMs < toMs; atMs += halfDayMs) days.add(localDay(atMs))
  days.add(localDay(toMs))
  return [...days].slice(-maxDays)
}

/**
 * The order of a digest: most severe first, then by the first matched name (events without one
 * last), then oldest first (events without a time last).
 */
export function compareForDigest(
  a: Pick<SummaryPart, 'severity' | 'identifiers' | 'createdAtMs'>,
  b: Pick<SummaryPart, 'severity' | 'identifiers' | 'createdAtMs'>,
): number {
  return (
    compareSeverities(a.severity, b.severity) ||
    compareLastNull(a.identifiers[0] ?? null, b.identifiers[0] ?? null) ||
    compareLastNull(a.createdAtMs, b.createdAtMs)
  )
}

/** Most severe first; an unknown word before `critical`, so that it is seen. */
export function compareSeverities(a: Severity, b: Severity): number {
  return severityOrder(b) - severityOrder(a) || compareLastNull(a, b)
}

function severityOrder(severity: Severity): number {
  return severityRank(severity) + (isKnownSeverity(severity) ? 0 : 1)
}

function compareLastNull<T extends string | number>(a: T | null, b: T | null): number {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  return a < b ? -1 : 1
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function toSeverityCounts(counts: ReadonlyMap<string, number>): Summary['bySeverity'] {
  return [...counts]
    .toSorted(([a], [b]) => compareSeverities(a, b))
    .map(([severity, times]) => ({ severity, count: times }))
}

function mostFrequent(counts: ReadonlyMap<string, number>): NameCount[] {
  const sorted = [...counts]
    .toSorted(([a, times], [b, others]) => others - times || compareLastNull(a, b))
    .map(([name, times]) => ({ name, count: times }))
  const rest = sorted.slice(maxNames).reduce((sum, { count: times }) => sum + times, 0)
  return [...sorted.slice(0, maxNames), ...(rest > 0 ? [{ name: 'other', count: rest }] : [])]
}

export interface SeverityCount {
  severity: Severity
  count: number
}

/** Unknown severities that are shown each; further ones share an entry. */
const maxUnknown = 3

/** Code points of an unknown severity in a message. */
const maxWordLength = 20

/**
 * `CRITICAL`; for a word that is not one of the five `UNKNOWN ("none")`, for no severity `UNKNOWN`.
 */
export function severityLabel(severity: Severity): string {
  return isKnownSeverity(severity) ? severity.toUpperCase() : unknownLabel(severity)
}

/** As `severityLabel`, within a sentence: `critical`. */
export function formatSeverity(severity: Severity): string {
  return isKnownSeverity(severity) ? severity : unknownLabel(severity)
}

function unknownLabel(severity: Severity): string {
  const word = sanitizeLine(severity, maxWordLength).replaceAll('"', "'")
  return word === '' || word === noSeverity ? 'UNKNOWN' : `UNKNOWN ("${word}")`
}

/** Prepares counts for a message: unknown words sanitized, and only a few of them. */
export function cleanSeverities(counts: readonly SeverityCount[]): SeverityCount[] {
  const unknown = counts.filter(({ severity }) => !isKnownSeverity(severity))
  const rest = unknown.slice(maxUnknown).reduce((sum, { count }) => sum + count, 0)
  return [
    ...unknown.slice(0, maxUnknown).map(({ severity, count }) => ({
      severity: sanitizeLine(severity, maxWordLength) || noSeverity,
      count,
    })),
    ...(rest > 0 ? [{ severity: 'other words', count: rest }] : []),
    ...counts.filter(({ severity }) => isKnownSeverity(severity)),
  ]
}

/** "2 critical, 10 high"; the first `max` of them. */
export function formatSeverities(counts: readonly SeverityCount[], max = Infinity): string {
  return formatCounts(counts.slice(0, max), formatSeverity)
}

/** "2 CRITICAL, 10 HIGH". */
export function severityLabels(counts: readonly SeverityCount[]): string {
  return formatCounts(counts, severityLabel)
}

function formatCounts(
  counts: readonly SeverityCount[],
  say: (severity: Severity) => string,
): string {
  return counts.map(({ severity, count }) => `${count} ${say(severity)}`).join(', ')
}
