import { isKnownSeverity, noSeverity, type Severity } from '../events/severity.ts'
import { inertLine } from './inert-line.ts'

export interface SeverityCount {
  severity: Severity
  count: number
}

/** Unknown words that are said each; more of them are said as one. */
const maxUnknown = 3

/** Code points of an unknown word in a message. */
const longestWord = 20

/** `CRITICAL`; for a word that is none of the service's five `UNKNOWN ("none")`, for none at all `UNKNOWN`. */
export function severityLabel(severity: Severity): string {
  return isKnownSeverity(severity) ? severity.toUpperCase() : unknownLabel(severity)
}

/** As `severityLabel`, within a sentence: `critical`. */
export function severityInWords(severity: Severity): string {
  return isKnownSeverity(severity) ? severity : unknownLabel(severity)
}

function unknownLabel(severity: Severity): string {
  const word = inertLine(severity, longestWord).replaceAll('"', "'")
  return word === '' || word === noSeverity ? 'UNKNOWN' : `UNKNOWN ("${word}")`
}

/** As a message may show them: the feed's own words made harmless, and not more than a few of them. */
export function cleanSeverities(counts: readonly SeverityCount[]): SeverityCount[] {
  const unknown = counts.filter(({ severity }) => !isKnownSeverity(severity))
  const rest = unknown.slice(maxUnknown).reduce((sum, { count }) => sum + count, 0)
  return [
    ...unknown.slice(0, maxUnknown).map(({ severity, count }) => ({
      severity: inertLine(severity, longestWord) || noSeverity,
      count,
    })),
    ...(rest > 0 ? [{ severity: 'other words', count: rest }] : []),
    ...counts.filter(({ severity }) => isKnownSeverity(severity)),
  ]
}

/** "2 critical, 10 high"; the first `max` of them. */
export function severitiesInWords(counts: readonly SeverityCount[], max = Infinity): string {
  return listed(counts.slice(0, max), severityInWords)
}

/** "2 CRITICAL, 10 HIGH"; the first `max` of them. */
export function severityLabels(counts: readonly SeverityCount[], max = Infinity): string {
  return listed(counts.slice(0, max), severityLabel)
}

function listed(counts: readonly SeverityCount[], say: (severity: Severity) => string): string {
  return counts.map(({ severity, count }) => `${count} ${say(severity)}`).join(', ')
}
