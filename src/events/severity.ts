/** The service's severities, least first (facts.md 1, row 5). An unknown word is kept as it is. */
export const severities = ['info', 'low', 'medium', 'high', 'critical'] as const

/** Stands for the severity of an event that came without a readable one. */
export const noSeverity = 'unknown'

export type KnownSeverity = (typeof severities)[number]

/** One of the five, or a word that this version does not know. */
export type Severity = string

export function isKnownSeverity(severity: Severity): severity is KnownSeverity {
  return (severities as readonly string[]).includes(severity)
}

/** 1 (info) to 5 (critical). An unknown word ranks as critical, so that it never hides an event. */
export function severityRank(severity: Severity): number {
  const index = (severities as readonly string[]).indexOf(severity)
  return index === -1 ? severities.length : index + 1
}
