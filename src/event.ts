/** What a feed yields, as understood: the service's shapes are gone, secrets are already masked. */
export interface ThreatEvent {
  uid: string
  kind: 'event' | 'credential' | 'report'
  /** The item's type as the service names it, e.g. `stealer_log`; open. */
  type: string
  /** The uid's second segment; of a credential the id of its source, empty where it has none. */
  source: string
  /** The severity that counts: the tenant's override when there is one. */
  severity: Severity
  /** The service's own severity when an override hides it; null otherwise. */
  originalSeverity: Severity | null
  /** Milliseconds since 1970; null where the service gives none or nothing readable. */
  createdAtMs: number | null
  matchedAtMs: number | null
  ignoredAtMs: number | null
  remediatedAtMs: number | null
  /** Link to the event in the service's web application; null where the service gives none. */
  url: string | null
  tags: string[]
  notes: string | null
  /** The id is 0 where it could not be read. */
  identifiers: { id: number; name: string }[]
  /** Field name to matched extracts, mark tags removed, secrets masked. Hostile text. */
  highlights: Record<string, string[]>
  /** Fields, by the service's names, that came in a form that could not be read, or only in part. */
  unread?: string[]
}

/** The full event, fetched where a feed asks for it: the `data` object per type, masked. Hostile text. */
export type EventDetail = Record<string, unknown>

/** The service's severities, least first (docs/api-notes.md, Severities). An unknown word is kept as it is. */
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

/** The feed under which events of Tocsin's own stand; no configured feed can have this name. */
export const ownFeed = '_tocsin'

/** How the uids of its own events begin; the service's may not, or they would take their place. */
export const ownUidPrefixes = { notice: 'notice/tocsin/', canary: 'canary/tocsin/' } as const
