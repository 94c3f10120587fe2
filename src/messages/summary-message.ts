/**
 * What is said about several events in one message for people, before any sink's dialect. Promised of
 * every string: what message.ts promises of a Message. A sink shows as many of the lines as fit and
 * says with `moreOf` how many events it did not show. The name of the attached file is ours and stays as it is.
 */
import type { Severity } from '../events/severity.ts'
import { cleanLine } from './clean-text.ts'
import { coverageOf, type Coverage } from './coverage.ts'
import { formatTime } from './description.ts'
import { inertLine } from './inert-line.ts'
import { messageLimits, renderMessage } from './message.ts'
import { sendingNotes } from './message-notes.ts'
import type { MessageSubject, RenderOptions } from './message-subject.ts'
import { cleanSeverities, severityInWords, type SeverityCount } from './severity-counts.ts'
import type { Counted, Summary } from './summary.ts'
import { kindNote, subjectOf, titleOf } from './summary-words.ts'
import { typeLabel } from './type-label.ts'
import { dayInWords, zonedTime } from './zoned-time.ts'

export interface SummaryMessage {
  /** The most severe of all; null where there is no event. */
  severity: Severity | null
  /** "37 new events: 2 critical, 10 high — stealer logs of feed brand". */
  title: string
  /** For notifications and subjects: "[2 CRITICAL, 10 HIGH] 37 new events — stealer logs of feed brand". */
  subject: string
  total: number
  bySeverity: SeverityCount[]
  /** What must be seen before anything else: feeds that are behind, events that are lost to the reader. */
  alarms: string[]
  /** What the reader must know about this message itself. */
  notes: string[]
  lines: SummaryLine[]
  /** By type, feed and identifier; only those that tell events apart. */
  counts: { label: string; entries: Counted[] }[]
  /** Of a digest: one entry a day, oldest first. */
  days: { label: string; total: number; bySeverity: SeverityCount[] }[]
  coverage: Coverage | null
  /** In which the times are: `UTC`, or the digest's. */
  timeZone: string
  /** The file that holds all events; null: there is none. */
  attachment: string | null
  route: string | null
}

/** One event in one line and its margin. */
export interface SummaryLine {
  severity: Severity
  /** The headline, the type in front: "Stealer log: LummaC2 on DESKTOP-7 (CH)". */
  title: string
  /** The first of what it matched, unless the title says it. */
  identifier: string | null
  feed: string
  /** When it was matched, or else created, or else fetched. */
  time: string
  /** "raised from medium", "ignored"; null: nothing. */
  remark: string | null
  link: string | null
  uid: string
}

/** In code points; `lines`, `entries` and `notes` in number. */
export const summaryLimits = {
  title: 250,
  subject: 180,
  lines: 200,
  name: 60,
  entries: 11,
  note: messageLimits.note,
  alarms: 10,
} as const

/** What is rendered: a `Delivery` with a summary fits. */
export interface SummarySubject extends RenderOptions {
  members: readonly MessageSubject[]
  summary: Summary
  attachment?: { fileName: string } | undefined
}

export function renderSummary(subject: SummarySubject): SummaryMessage {
  const { summary, members } = subject
  const { digest } = summary
  const timeIn = timesOf(summary)
  const bySeverity = cleanSeverities(summary.bySeverity)
  const coverage = digest === undefined ? null : coverageOf(summary, digest, timeIn)
  const notes = [...sendingNotes(subject), ...kindNote(summary, timeIn)]
  return {
    severity: bySeverity[0]?.severity ?? null,
    title: inertLine(titleOf(subject, timeIn), summaryLimits.title),
    subject: inertLine(subjectOf(subject, timeIn), summaryLimits.subject),
    total: summary.total,
    bySeverity,
    alarms: coverage?.alarms ?? [],
    notes: notes.map((note) => inertLine(note, summaryLimits.note)),
    lines: members.slice(0, summaryLimits.lines).map((member) => lineOf(member, timeIn)),
    counts: countsOf(summary),
    days: (digest?.perDay ?? []).map((day) => ({
      label: inertLine(dayInWords(day.day), summaryLimits.name),
      total: day.bySeverity.reduce((sum, { count }) => sum + count, 0),
      bySeverity: cleanSeverities(day.bySeverity),
    })),
    coverage,
    timeZone: inertLine(digest?.timeZone ?? 'UTC', summaryLimits.name),
    attachment: nameOf(subject.attachment),
    route: summary.route === null ? null : inertLine(summary.route, summaryLimits.name),
  }
}

/** "and 12 more: see the attached events.csv", or the command that lists all; null where all are shown. */
export function moreOf(
  { total, attachment }: Pick<SummaryMessage, 'total' | 'attachment'>,
  shown: number,
  deliveryId: string,
): string | null {
  const left = total - shown
  if (left <= 0) return null
  const where =
    attachment === null
      ? `"tocsin explain ${deliveryId}" lists all`
      : `see the attached ${attachment}`
  return shown === 0 ? `${left} not listed here: ${where}` : `and ${left} more: ${where}`
}

/** Times of a digest are its reader's, others carry their zone. */
function timesOf({ digest }: Summary): (atMs: number) => string {
  if (digest === undefined) return (atMs) => formatTime(atMs) ?? 'undated'
  return zonedTime(digest.timeZone).minute
}

function nameOf(attachment: SummarySubject['attachment']): string | null {
  return attachment === undefined ? null : cleanLine(attachment.fileName, messageLimits.name)
}

function lineOf(member: MessageSubject, timeIn: (atMs: number) => string): SummaryLine {
  const message = renderMessage(member, { attempt: 1, mayBeRepeat: false })
  const [identifier = null] = message.identifiers
  const isSaid = identifier !== null && message.title.includes(identifier)
  return {
    severity: message.severity,
    title: message.title,
    identifier: isSaid ? null : identifier,
    feed: message.feed,
    time: timeIn(message.matchedAtMs ?? message.createdAtMs ?? message.fetchedAtMs),
    remark: remarkOf(member),
    link: message.link,
    uid: message.uid,
  }
}

function remarkOf({ event, raisedFrom }: MessageSubject): string | null {
  const remarks = [
    raisedFrom === undefined ? null : `raised from ${severityInWords(raisedFrom)}`,
    event.ignoredAtMs === null ? null : 'ignored',
    event.remediatedAtMs === null ? null : 'remediated',
  ].filter((remark) => remark !== null)
  return remarks.length === 0 ? null : inertLine(remarks.join(', '), messageLimits.name)
}

function countsOf({ byType, byFeed, byIdentifier }: Summary): SummaryMessage['counts'] {
  const named = (entries: readonly Counted[], say = (name: string): string => name): Counted[] =>
    entries
      .slice(0, summaryLimits.entries)
      .map(({ name, count }) => ({ name: inertLine(say(name), summaryLimits.name), count }))
  return [
    {
      label: 'By type',
      entries: named(byType, (type) => (type === 'other' ? type : typeLabel(type))),
    },
    { label: 'By feed', entries: named(byFeed) },
    { label: 'By what matched', entries: named(byIdentifier) },
  ].filter(({ entries }) => entries.length > 1)
}
