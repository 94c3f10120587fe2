import { isKnownSeverity, noSeverity } from '../events/severity.ts'
import { formatTime } from './description.ts'
import { severityInWords } from './severity-counts.ts'
import type { MessageSubject, RenderOptions } from './message-subject.ts'

/** What a reader must know about this sending, whatever it carries. */
export function sendingNotes({ isTest, mayBeRepeat, attempt }: RenderOptions): string[] {
  return [
    isTest === true ? 'TEST: this message was asked for, nothing happened.' : null,
    mayBeRepeat ? 'May be a repeat: the answer to an earlier attempt was lost.' : null,
    attempt > 1 ? `Attempt ${attempt}.` : null,
  ].filter((note) => note !== null)
}

/** What a reader must know about this one event, still raw. */
export function eventNotes({ event, detail, raisedFrom }: MessageSubject): string[] {
  const hidden = event.originalSeverity
  const ignored = event.ignoredAtMs === null ? null : formatTime(event.ignoredAtMs)
  const remediated = event.remediatedAtMs === null ? null : formatTime(event.remediatedAtMs)
  return [
    raisedFrom === undefined ? null : `Severity raised from ${severityInWords(raisedFrom)}.`,
    detail === 'unavailable'
      ? 'Full event was not available in time; this is the search result.'
      : null,
    hidden === null
      ? null
      : `Severity set by the tenant; the service says ${severityInWords(hidden)}.`,
    severityNote(event.severity),
    event.unread === undefined ? null : `Could not be read: ${event.unread.join(', ')}.`,
    ignored === null ? null : `Marked as ignored on ${ignored}.`,
    remediated === null ? null : `Marked as remediated on ${remediated}.`,
    event.notes === null ? null : `Notes: ${event.notes}`,
  ].filter((note) => note !== null)
}

function severityNote(severity: string): string | null {
  if (isKnownSeverity(severity)) return null
  return severity === noSeverity
    ? 'It came without a readable severity; treated as critical.'
    : 'Its severity is no word that this version knows; treated as critical.'
}
