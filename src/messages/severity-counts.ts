import { isKnownSeverity, type Severity } from '../events/severity.ts'
import { inertLine } from './inert-line.ts'
import { messageLimits } from './message.ts'

export interface SeverityCount {
  severity: Severity
  count: number
}

/** Unknown words that are said each; more of them are said as one. */
const maxUnknown = 3

/** As a message may show them: the feed's own words made harmless, and not more than a few of them. */
export function cleanSeverities(counts: readonly SeverityCount[]): SeverityCount[] {
  const unknown = counts.filter(({ severity }) => !isKnownSeverity(severity))
  const rest = unknown.slice(maxUnknown).reduce((sum, { count }) => sum + count, 0)
  return [
    ...unknown.slice(0, maxUnknown).map(({ severity, count }) => ({
      severity: inertLine(severity, messageLimits.severity) || 'unnamed',
      count,
    })),
    ...(rest > 0 ? [{ severity: 'otherwise named', count: rest }] : []),
    ...counts.filter(({ severity }) => isKnownSeverity(severity)),
  ]
}

/** "2 critical, 10 high"; the first `max` of them. */
export function severitiesInWords(counts: readonly SeverityCount[], max = Infinity): string {
  return counts
    .slice(0, max)
    .map(({ severity, count }) => `${count} ${severity}`)
    .join(', ')
}
