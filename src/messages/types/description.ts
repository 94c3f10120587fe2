/** What describers get and return, with helpers for facts, headlines and lenient reading. */
import type { EventDetail, ThreatEvent } from '../../event.ts'
import { sanitizeLine } from '../sanitize.ts'
import { formatInZone, formatLocal, isShownTwice, localDay } from '../../lib/time-zone.ts'

/**
 * One named value. `code` is what an analyst copies: names, addresses, hosts; a `time` keeps its
 * instant, so that it can be read in another zone.
 */
export type Fact = TextFact | { label: string; value: string; kind: 'time'; atMs: number }

interface TextFact {
  label: string
  value: string
  /** `secret`: what was leaked, masked or in clear: nothing shows it but its own field. */
  kind: 'text' | 'code' | 'secret'
}

/** What a describer gets: the event, and its named values from the detail or the highlights. */
export interface Subject {
  /** `ownFeed` for Tocsin's own events, and for no others. */
  feed: string
  event: ThreatEvent
  fields: Fields
  /** The uid after index and source, or null. */
  id: string | null
  /** The leaked secret in clear if the sink may show it; only for a fact, never for a headline. */
  secret: string | null
}

/** What a family of events has to say, still raw: `renderMessage` sanitizes and cuts it. */
export interface Description {
  typeLabel: string
  /** The account, host or domain that the event is about; null: what it matched takes its place. */
  headline: string | null
  /** The title under which it was found, shown in quotes. */
  quote?: string | null
  /** Where it was found, by whom, for how much: ends the headline. */
  tail?: string | null
  /** Most telling first; null if a value is not known. */
  facts: (Fact | null)[]
  /** Text worth quoting if there is no highlight. */
  content?: string | null
  /** Label of that text; default "Beginning of the text". */
  contentLabel?: string
  /**
   * The highlights are fields that the facts show, not quotations of what was found; `content` may
   * be one.
   */
  isOwnWords?: boolean
}

export type Describe = (subject: Subject) => Description

export function textFact(label: string, value: string | null): Fact | null {
  return value === null ? null : { label, value, kind: 'text' }
}

export function codeFact(label: string, value: string | null): Fact | null {
  return value === null ? null : { label, value, kind: 'code' }
}

export function secretFact(label: string, value: string | null): Fact | null {
  return value === null ? null : { label, value, kind: 'secret' }
}

/**
 * The label says when a secret in clear is defanged, because it then differs from what was typed.
 */
export function revealedFact(
  label: string,
  secret: string | null,
  mask: string | null,
): Fact | null {
  if (secret === null) return secretFact(label, mask)
  return secretFact(
    sanitizeLine(secret, Infinity) === secret ? label : `${label} (defanged)`,
    secret,
  )
}

export function timeFact(label: string, atMs: number | null): Fact | null {
  const value = atMs === null ? null : formatTime(atMs)
  return value === null || atMs === null ? null : { label, value, kind: 'time', atMs }
}

/** "A, B and 3 more": at most five of a list; null for an empty one. */
export function listFact(
  label: string,
  values: readonly string[],
  kind: TextFact['kind'] = 'text',
): Fact | null {
  if (values.length === 0) return null
  const more = values.length > 5 ? ` and ${values.length - 5} more` : ''
  return { label, value: values.slice(0, 5).join(', ') + more, kind }
}

/**
 * `2026-11-01 12:00 UTC`, in another zone `2026-11-01 13:00 CET (12:00 UTC)`; null for a time
 * outside the calendar.
 */
export function formatTime(atMs: number, timeZone = 'UTC'): string | null {
  const date = new Date(atMs)
  if (Number.isNaN(date.getTime())) return null
  const utc = date
    .toISOString()
    .replace('T', ' ')
    .replace(/:\d\d\.\d+Z$/u, '')
  if (timeZone === 'UTC') return `${utc} UTC`
  const local = formatInZone(atMs, timeZone)
  const isSameDay = local.startsWith(utc.slice(0, -'12:00'.length))
  return `${local} (${isSameDay ? utc.slice(-'12:00'.length) : utc} UTC)`
}

/** Formats times as local wall clock readings of a zone. */
interface ZonedTime {
  timeZone: string
  /** `2026-11-21` */
  day: (atMs: number) => string
  /** `2026-11-21 08:00`; `2026-10-25 02:30 CEST` if the clock shows that twice. */
  minute: (atMs: number) => string
}

/** Throws RangeError for an unknown zone: configuration is checked long before. */
export function zonedTime(timeZone: string): ZonedTime {
  return {
    timeZone,
    day: (atMs) => (isDated(atMs) ? localDay(atMs, timeZone) : 'undated'),
    minute(atMs) {
      if (!isDated(atMs)) return 'undated'
      return isShownTwice(atMs, timeZone)
        ? formatInZone(atMs, timeZone)
        : formatLocal(atMs, timeZone).slice(0, 16)
    },
  }
}

/** Three days less than the maximum of a Date, so that no zone's clock near it exceeds it. */
const lastMs = 8.64e15 - 3 * 86_400_000

function isDated(atMs: number): boolean {
  return Math.abs(atMs) <= lastMs
}

/** Joins the parts that are known; null if there are none. */
export function joinPresent(parts: readonly (string | null)[], separator: string): string | null {
  const known = parts.filter((part) => part !== null && part !== '')
  return known.length === 0 ? null : known.join(separator)
}

/** "by joe in channel x on telegram": each known value behind its words; null if there are none. */
export function phrase(values: Readonly<Record<string, string | null>>): string | null {
  const parts = Object.entries(values).map(([words, value]) => wrapPresent(`${words} `, value))
  return joinPresent(parts, ' ')
}

/** "joe@acme.com and 3 more"; null for none. */
export function firstAndMore(values: readonly string[]): string | null {
  const [first] = values
  if (first === undefined) return null
  return values.length === 1 ? first : `${first} and ${values.length - 1} more`
}

/** The host of an address; of a text without a scheme, the part before the first slash. */
export function readHost(address: string): string {
  const parsed = URL.canParse(address) ? new URL(address).host : ''
  return parsed === '' ? (address.split('/')[0] ?? address) : parsed
}

/** `prefix` before and `suffix` after a known value; null for an unknown or empty one. */
export function wrapPresent(prefix: string, value: string | null, suffix = ''): string | null {
  return value === null || value === '' ? null : `${prefix}${value}${suffix}`
}

/**
 * Lenient readers over an event's detail: any key may be missing, null or of a wrong type. The
 * result is then null (or an empty list). Paths are dotted; the first that has a value counts. If
 * the detail has none, `text` and `time` look for a highlight of that name.
 */
export interface Fields {
  text(...paths: string[]): string | null
  number(...paths: string[]): number | null
  isTrue(path: string): boolean
  /** Milliseconds since 1970; a time without a zone is UTC, as upstream means it. */
  time(...paths: string[]): number | null
  /** The texts of a list, or of the highlights of that name. */
  list(...paths: string[]): string[]
  /** The objects of a list, at most 200. */
  items(path: string): Fields[]
  /**
   * Distinct matches in fields whose last segment is one of `names`, except those about the
   * machine, the malware or the author.
   */
  matched(...names: string[]): string[]
  /** The number of elements of a list; null if there is no list. */
  count(path: string): number | null
}

/** Of a list in a full event. */
const maxItems = 200

/** Segments of fields about the infected machine, the author or the malware. */
const othersFields = /(?:^|\.)(?:victim_information|user_information|malware_information|actor)\./u

export function readFields(
  detail: EventDetail | null,
  highlights: ThreatEvent['highlights'],
): Fields {
  const first = <T>(paths: string[], read: (path: string) => T | null): T | null => {
    for (const path of paths) {
      const value = read(path)
      if (value !== null) return value
    }
    return null
  }
  const textAt = (path: string): string | null => asText(valueAt(detail, path))
  const text = (...paths: string[]): string | null =>
    first(paths, textAt) ?? first(paths, (path) => highlightAt(highlights, path))
  return {
    text,
    number: (...paths) => first(paths, (path) => asNumber(valueAt(detail, path))),
    isTrue: (path) => valueAt(detail, path) === true,
    time(...paths) {
      const found = first(paths, textAt) ?? first(paths, (path) => highlightAt(highlights, path))
      return found === null ? null : asTime(found)
    },
    list: (...paths) =>
      first(paths, (path) => asList(valueAt(detail, path))) ??
      first(paths, (path) => asList(extractsAt(highlights, path))) ??
      [],
    items(path) {
      const value = valueAt(detail, path)
      return Array.isArray(value)
        ? value
            .filter(isObject)
            .slice(0, maxItems)
            .map((item) => readFields(item, {}))
        : []
    },
    matched: (...names) => findMatched(highlights, names),
    count(path) {
      const value = valueAt(detail, path)
      return Array.isArray(value) ? value.length : null
    },
  }
}

function valueAt(root: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, key) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, key)
          ? (value as Record<string, unknown>)[key]
          : undefined,
      root,
    )
}

function highlightAt(highlights: ThreatEvent['highlights'], path: string): string | null {
  return asText(extractsAt(highlights, path)[0])
}

function extractsAt(highlights: ThreatEvent['highlights'], path: string): readonly string[] {
  const field = [path, `data.${path}`].find((name) => Object.hasOwn(highlights, name))
  return field === undefined ? [] : (highlights[field] ?? [])
}

function findMatched(highlights: ThreatEvent['highlights'], names: readonly string[]): string[] {
  const found = names.flatMap((wanted) =>
    Object.entries(highlights)
      .filter(([field]) => field.split('.').at(-1) === wanted && !othersFields.test(field))
      .flatMap(([, extracts]) => extracts.map((extract) => asText(extract)))
      .filter((text) => text !== null),
  )
  return [...new Set(found)]
}

function isObject(value: unknown): value is EventDetail {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function asText(value: unknown): string | null {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null
}

function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

function asList(value: unknown): string[] | null {
  if (!Array.isArray(value)) return null
  const texts = value.map(asText).filter((text) => text !== null)
  return texts.length === 0 ? null : texts
}

/** Upstream writes times with and without a zone, and dates alone. */
function asTime(text: string): number | null {
  const match =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?)?$/iu.exec(text)
  if (match === null) return null
  const [, date = '', time = '00:00', zone = 'Z'] = match
  const atMs = Date.parse(`${date}T${time}${zone.replace(/^([+-]\d\d)(\d\d)$/u, '$1:$2')}`)
  return Number.isNaN(atMs) ? null : atMs
}
