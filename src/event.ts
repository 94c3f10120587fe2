/** An event of any feed: upstream formats are normalized, secrets masked, texts that may hold one withheld. */
export interface ThreatEvent {
  uid: string
  kind: 'event' | 'credential'
  /** The item's type by its upstream name, e.g. `stealer_log`; an open set. */
  type: string
  /** The uid's second segment; for a credential the id of its source, empty if it has none. */
  source: string
  /** The severity that counts: the tenant's override if there is one. */
  severity: Severity
  /** The upstream severity if an override hides it; null otherwise. */
  originalSeverity: Severity | null
  /** Milliseconds since 1970; null if upstream gives none or nothing readable. */
  createdAtMs: number | null
  matchedAtMs: number | null
  ignoredAtMs: number | null
  remediatedAtMs: number | null
  /** Link to the event in the upstream web application; null if upstream gives none. */
  url: string | null
  tags: string[]
  notes: string | null
  /** The id is 0 if it could not be read. */
  identifiers: { id: number; name: string }[]
  /** Field name to matched extracts, mark tags removed, secrets masked or withheld. Untrusted text. */
  highlights: Record<string, string[]>
  /** Upstream names of fields that could not be read, or only in part. */
  unread?: string[]
}

/** An event that says nothing yet: of what is left out there is none. */
export function blankEvent(type: string): ThreatEvent {
  return {
    uid: '',
    kind: 'event',
    type,
    source: '',
    severity: '',
    originalSeverity: null,
    createdAtMs: null,
    matchedAtMs: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
    url: null,
    tags: [],
    notes: null,
    identifiers: [],
    highlights: {},
  }
}

/** Whose login leaked, and which machine was infected: by these later events recognise it. */
export interface Victims {
  logins: string[]
  /** Names of machines. */
  hosts: string[]
}

/** The full event, if a feed asks for it: `data` by type, masked or withheld. Untrusted text. */
export type EventDetail = Record<string, unknown>

/** Upstream severities, lowest first (docs/api-notes.md, Severities); unknown words are kept. */
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

/** The feed of Tocsin's own events; no configured feed can have this name. */
export const ownFeed = '_tocsin'

/** Whether it is Tocsin's own test event; an upstream event of the same type is an ordinary one. */
export function isCanary({ feed, event }: { feed: string; event: { type: string } }): boolean {
  return feed === ownFeed && event.type === 'canary'
}

/**
 * Prefixes of the uids of Tocsin's own events. Feeds refuse upstream uids with these prefixes,
 * which would take the place of own events.
 */
export const ownUidPrefixes = { notice: 'notice/tocsin/', canary: 'canary/tocsin/' } as const
