import type { Severity } from './severity.ts'

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
