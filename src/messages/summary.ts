/**
 * Counts over several events: the numbers and names that a message says about all of them together.
 */
import { isKnownSeverity, noSeverity, type Severity, severityRank } from '../event.ts'
import { defang, sanitizeLine } from './sanitize.ts'

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
  bySeverity: SeverityCount[]
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
  /** The events could not be delivered to this sink, and go to its fallback. */
  divertedFrom?: string
}

/** An event that a digest names because it could not be delivered. */
export interface Undelivered {
  severity: Severity
  type: string
  uid: string
  /** If there are several. */
  account?: string
  /** Of its message; undefined if the event is no longer stored. */
  title?: string
  /** The event's page, where a page is known. */
  pageUrl?: string
}

/** What a digest says besides its events, so that an empty one never reads as "all quiet". */
export interface DigestFacts {
  /** Where several accounts are configured, and the digest is of one: that one. */
  account?: string
  /** The window: what was collected after `fromMs` and up to `toMs`. */
  fromMs: number
  toMs: number
  /** When it was due, ms; `isLate`: it was sent noticeably later. */
  dueAtMs: number
  isLate: boolean
  /** IANA name; the days and hours of the digest are in this zone. */
  timeZone: string
  /** One entry per local day of the window, oldest first, `2026-11-20`; at most 31. */
  perDay: { day: string; bySeverity: SeverityCount[] }[]
  /** Every feed; `isBehind`: it was not read to its end within its objective. */
  feeds: {
    feed: string
    lastCaughtUpMs: number | null
    isBehind: boolean
    /** Items in the quarantine: nobody was told of them. */
    quarantined?: number
    /** At least half of what the feed shows cannot be read. */
    isUnreadable?: boolean
  }[]
  /** Items of this destination that the window's messages do not list, by reason. */
  held: number
  suppressed: number
  dead: number
  /** The worst of those that could not be delivered. */
  undelivered?: Undelivered[]
  /** Went to another sink: to a fallback, or moved by hand. */
  diverted?: number
  /** Events sent at once (`immediate`), not counted above; most severe first. */
  alreadySent: SeverityCount[]
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
export type SummaryAbout = Pick<Summary, 'kind' | 'labels' | 'route' | 'digest' | 'divertedFrom'>

/** Names in a count; less frequent ones are counted as `other`. */
const maxNames = 10

/** Without any event both times are 0. */
export function summarise(parts: readonly SummaryPart[], about: SummaryAbout): Summary {
  const [first] = parts
  let [firstAtMs, lastAtMs] = [first?.fetchedAtMs ?? 0, first?.fetchedAtMs ?? 0]
  for (const { fetchedAtMs } of parts) {
    firstAtMs = Math.min(firstAtMs, fetchedAtMs)
    lastAtMs = Math.max(lastAtMs, fetchedAtMs)
  }
  return {
    ...about,
    total: parts.length,
    bySeverity: countSeverities(parts),
    byType: mostFrequent(parts.map(({ type }) => type)),
    byFeed: mostFrequent(parts.map(({ feed }) => feed)),
    byIdentifier: mostFrequent(parts.flatMap(({ identifiers }) => [...new Set(identifiers)])),
    firstAtMs,
    lastAtMs,
  }
}

/** Most severe first; only those that occur. */
export function countSeverities(parts: Iterable<Pick<SummaryPart, 'severity'>>): SeverityCount[] {
  return [...countNames(Array.from(parts, ({ severity }) => severity))]
    .toSorted(([a], [b]) => compareSeverities(a, b))
    .map(([severity, count]) => ({ severity, count }))
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
  const onDay = new Map(days.map((day): [string, { severity: Severity }[]] => [day, []]))
  const [first = '', last = first] = [days[0], days.at(-1)]
  for (const part of parts) {
    const day = localDay(Math.min(Math.max(part.fetchedAtMs, window.fromMs), window.toMs))
    ;(onDay.get(day) ?? onDay.get(day < first ? first : last))?.push(part)
  }
  return days.map((day) => ({ day, bySeverity: countSeverities(onDay.get(day) ?? []) }))
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

function countNames(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

function mostFrequent(names: readonly string[]): NameCount[] {
  const sorted = [...countNames(names)]
    .toSorted(([a, times], [b, others]) => others - times || compareLastNull(a, b))
    .map(([name, count]) => ({ name, count }))
  const rest = sumCounts(sorted.slice(maxNames))
  return [...sorted.slice(0, maxNames), ...(rest > 0 ? [{ name: 'other', count: rest }] : [])]
}

export interface SeverityCount {
  severity: Severity
  count: number
}

export function sumCounts(counts: readonly { count: number }[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0)
}

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
  return word === '' || word === noSeverity ? 'UNKNOWN' : defang(`UNKNOWN ("${word}")`)
}

/** Prepares counts for a message: all unknown words are one count, which comes first. */
export function cleanSeverities(counts: readonly SeverityCount[]): SeverityCount[] {
  const unknown = sumCounts(counts.filter(({ severity }) => !isKnownSeverity(severity)))
  return [
    ...(unknown > 0 ? [{ severity: noSeverity, count: unknown }] : []),
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
