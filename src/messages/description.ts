import type { ThreatEvent } from '../events/threat-event.ts'
import type { Fields } from './read-fields.ts'

/** One named value. `time` is UTC text; `code` is what an analyst copies: names, addresses, hosts. */
export interface Fact {
  label: string
  value: string
  kind: 'text' | 'time' | 'code'
}

/** What a describer is given: the event, and its named values from the detail or the highlights. */
export interface Subject {
  /** Of Tocsin's own events `ownFeed`, and of no other. */
  feed: string
  event: ThreatEvent
  fields: Fields
  /** The uid after index and source, or null. */
  id: string | null
  /** The leaked secret in clear where the sink may show it; for a fact alone, never for a headline. */
  secret: string | null
}

/** What one family of events has to say, still raw: `renderMessage` cleans, defangs and cuts it. */
export interface Description {
  typeLabel: string
  /** What is special about this event, without the type; null: nothing known. */
  headline: string | null
  /** Most telling first; null where the value is not known. */
  facts: (Fact | null)[]
  /** Text worth quoting where no highlight is. */
  content?: string | null
  /** Over that text; default "Beginning of the text". */
  contentLabel?: string
  /** Its highlights are fields that the facts say, and no quotation of what was found; `content` may be one. */
  isOwnWords?: boolean
}

export type Describe = (subject: Subject) => Description

export function textFact(label: string, value: string | null): Fact | null {
  return value === null ? null : { label, value, kind: 'text' }
}

export function codeFact(label: string, value: string | null): Fact | null {
  return value === null ? null : { label, value, kind: 'code' }
}

export function timeFact(label: string, atMs: number | null): Fact | null {
  const value = atMs === null ? null : formatTime(atMs)
  return value === null ? null : { label, value, kind: 'time' }
}

/** "A, B and 3 more": at most five of a list; null for an empty one. */
export function listFact(label: string, values: readonly string[]): Fact | null {
  if (values.length === 0) return null
  const more = values.length > 5 ? ` and ${values.length - 5} more` : ''
  return { label, value: values.slice(0, 5).join(', ') + more, kind: 'text' }
}

/** `2026-11-01 12:00 UTC`; null for what no calendar holds. */
export function formatTime(atMs: number): string | null {
  const date = new Date(atMs)
  if (Number.isNaN(date.getTime())) return null
  return `${date
    .toISOString()
    .replace('T', ' ')
    .replace(/:\d\d\.\d+Z$/u, '')} UTC`
}

/** The parts that are known, joined; null where none is. */
export function joined(parts: readonly (string | null)[], separator: string): string | null {
  const known = parts.filter((part) => part !== null && part !== '')
  return known.length === 0 ? null : known.join(separator)
}

/** "Example Bank mentioned", for what has no title of its own; null where nothing matched. */
export function mention({ event }: Subject): string | null {
  return around('', event.identifiers[0]?.name ?? null, ' mentioned')
}

/** `prefix` before and `suffix` after a known value; null for an unknown or empty one. */
export function around(prefix: string, value: string | null, suffix = ''): string | null {
  return value === null || value === '' ? null : `${prefix}${value}${suffix}`
}
