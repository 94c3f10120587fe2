/**
 * Several events as numbers: what a message about them says of all together. Built up event by event,
 * because a message may stand for a hundred thousand of which few are in memory.
 */
import { isKnownSeverity, severityRank, type Severity } from '../events/severity.ts'
import type { Counted, DigestFacts, Summary, SummaryKind } from './summary.ts'

/** What counts of one event. */
export interface SummaryPart {
  severity: Severity
  type: string
  feed: string
  /** Names of what was matched; each counts once an event. */
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

export interface Tally {
  add(part: SummaryPart): Tally
  /** Without any event both times are 0. */
  finish(about: SummaryAbout): Summary
}

/** Names in a count; what is less frequent is `other`. */
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
      count(bySeverity, severity)
      count(byType, type)
      count(byFeed, feed)
      for (const name of new Set(identifiers)) count(byIdentifier, name)
      return tally
    },
    finish: ({ kind, labels, route, digest, undelivered }) => ({
      kind,
      total,
      bySeverity: severitiesOf(bySeverity),
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

export interface Window {
  fromMs: number
  toMs: number
}

/** Days of a window that are counted; of a longer one the last (summary.ts). */
const maxDays = 31
/** No local day is shorter, so no day is stepped over. */
const halfDayMs = 12 * 3_600_000

/**
 * One entry for each local day of the window, oldest first, days without an event too. An event counts
 * on the day on which it was fetched; what lies outside the window (it was held) on the nearest day.
 * `localDay` gives the day at a place, `2026-11-20`.
 */
export function perDay(
  parts: Iterable<Pick<SummaryPart, 'severity' | 'fetchedAtMs'>>,
  localDay: (atMs: number) => string,
  window: Window,
): DigestFacts['perDay'] {
  const days = daysOf(window, localDay)
  const counts = new Map(days.map((day) => [day, new Map<string, number>()]))
  const [first = '', last = first] = [days[0], days.at(-1)]
  for (const { severity, fetchedAtMs } of parts) {
    const day = localDay(Math.min(Math.max(fetchedAtMs, window.fromMs), window.toMs))
    count(counts.get(day) ?? counts.get(day < first ? first : last) ?? new Map(), severity)
  }
  return days.map((day) => ({ day, bySeverity: severitiesOf(counts.get(day) ?? new Map()) }))
}

function daysOf({ fromMs, toMs }: Window, localDay: (atMs: number) => string): string[] {
  const startMs = Math.max(fromMs, toMs - (maxDays + 1) * 2 * halfDayMs)
  const days = new Set<string>()
  for (let atMs = startMs; atMs < toMs; atMs += halfDayMs) days.add(localDay(atMs))
  days.add(localDay(toMs))
  return [...days].slice(-maxDays)
}

/**
 * The order of a digest: most severe first, then by the first name of what was matched (what matched
 * nothing last), then oldest first (what has no time last).
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
function compareSeverities(a: Severity, b: Severity): number {
  return order(b) - order(a) || compareLastNull(a, b)
}

function order(severity: Severity): number {
  return severityRank(severity) + (isKnownSeverity(severity) ? 0 : 1)
}

function compareLastNull<T extends string | number>(a: T | null, b: T | null): number {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  return a < b ? -1 : 1
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function severitiesOf(counts: ReadonlyMap<string, number>): Summary['bySeverity'] {
  return [...counts]
    .toSorted(([a], [b]) => compareSeverities(a, b))
    .map(([severity, times]) => ({ severity, count: times }))
}

function mostFrequent(counts: ReadonlyMap<string, number>): Counted[] {
  const sorted = [...counts]
    .toSorted(([a, times], [b, others]) => others - times || compareLastNull(a, b))
    .map(([name, times]) => ({ name, count: times }))
  const rest = sorted.slice(maxNames).reduce((sum, { count: times }) => sum + times, 0)
  return [...sorted.slice(0, maxNames), ...(rest > 0 ? [{ name: 'other', count: rest }] : [])]
}
