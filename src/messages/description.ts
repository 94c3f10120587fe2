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
  /** Whose or which: the account, host or domain that it is about; null: what it matched stands for it. */
  headline: string | null
  /** The title under which it was found; it comes quoted. */
  quote?: string | null
  /** Where it was found, by whom, for how much: ends the headline. */
  tail?: string | null
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
export function listFact(
  label: string,
  values: readonly string[],
  kind: Fact['kind'] = 'text',
): Fact | null {
  if (values.length === 0) return null
  const more = values.length > 5 ? ` and ${values.length - 5} more` : ''
  return { label, value: values.slice(0, 5).join(', ') + more, kind }
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

/** "joe@acme.com and 3 more"; null for none. */
export function firstOf(values: readonly string[]): string | null {
  const [first] = values
  if (first === undefined) return null
  return values.length === 1 ? first : `${first} and ${values.length - 1} more`
}

/** The host of an address, and of a text without a scheme what stands before the first slash. */
export function hostIn(address: string): string {
  const parsed = URL.canParse(address) ? new URL(address).host : ''
  return parsed === '' ? (address.split('/')[0] ?? address) : parsed
}

/** `prefix` before and `suffix` after a known value; null for an unknown or empty one. */
export function around(prefix: string, value: string | null, suffix = ''): string | null {
  return value === null || value === '' ? null : `${prefix}${value}${suffix}`
}
