/** An event as the sandbox holds it; what the wire shows of it is made at each reading. */
export interface SandboxEvent {
  uid: string
  /** The item's `metadata.type`, e.g. `lookalike`. */
  type: string
  severity: string
  /** The tenant's own severity; null: none. */
  override: string | null
  createdAtMs: number
  /** When it was matched into the feed and became visible: later than `createdAtMs` for a late arrival. */
  arrivedAtMs: number
  /** What its pages say of that; null: they do not. */
  matchedAtMs: number | null
  /** The identifier groups that show it. */
  groupIds: number[]
  identifiers: { id: number; name: string }[]
  tags: string[]
  notes: string | null
  /** An ignored event is hidden from pages that do not ask for ignored ones. */
  ignoredAtMs: number | null
  remediatedAtMs: number | null
  highlights: Record<string, string[]>
  /** The `data` of the full event; null: its type has no model. */
  data: Record<string, unknown> | null
  /** A stealer log's own, instead of what is made up for it. */
  stolen?: Partial<Stolen>
  /** Set: the page carries this instead of an item, whatever it is. */
  raw?: unknown
}

export interface StolenCredential {
  url: string
  username: string
  password: string
  application: string
}

export interface StolenCookie {
  host_key: string
  path: string
  /** Without a zone (facts.md 2.5). */
  expires_utc: string
  name: string
  value: string
}

export interface Stolen {
  credentials: StolenCredential[]
  cookies: StolenCookie[]
}

/** What may change after an event arrived: its place in the order may not. */
export type EventChange = Partial<Omit<SandboxEvent, 'uid' | 'createdAtMs' | 'groupIds'>>
