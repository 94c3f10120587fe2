/**
 * Reads the fields of one API item: only the uid is required. A value of another form than the
 * documented one is noted as unread. Nothing here throws.
 */
import type { unreadableFields } from '../../lib/metrics/unreadable-fields.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'

/** A field of an item by its name in the API. It is a metric label, so the list is closed. */
export type UnreadField = (typeof unreadableFields)[number]

export type JsonObject = Readonly<Record<string, unknown>>

/** The severity that a value states: a word, none (null), or none because it cannot be read. */
type StatedSeverity = { word: string | null; isReadable: boolean }

export interface FieldReader {
  /** Text, or a number as digits. null if absent or unreadable. */
  text(field: UnreadField, value: unknown): string | null
  /** The texts of a list, at most `max`; a single value is a list of one. */
  texts(field: UnreadField, value: unknown, max: number): string[]
  /** Milliseconds since 1970, from a time with or without zone. */
  time(field: UnreadField, value: unknown): number | null
  /** The members of an object; {} if there is none. */
  object(field: UnreadField, value: unknown): JsonObject
  /** A severity's word in lower case. */
  severity(value: unknown): StatedSeverity
  /** Notes a field that could not be read. */
  note(field: UnreadField): void
  /** The fields that could not be read, as an event carries them. */
  unread(): { unread?: UnreadField[] }
}

export function createFieldReader(): FieldReader {
  const unread = new Set<UnreadField>()

  function noteUnread<T>(field: UnreadField, read: T | undefined): T | null {
    if (read !== undefined) return read
    unread.add(field)
    return null
  }

  return {
    text: (field, value) => (isAbsent(value) ? null : noteUnread(field, readText(value))),
    texts(field, value, max) {
      const values = Array.isArray(value) ? value.slice(0, max) : [value]
      return values.flatMap((one) => {
        const text = isAbsent(one) ? null : noteUnread(field, readText(one))
        return text === null ? [] : [text]
      })
    },
    time: (field, value) => (isEmpty(value) ? null : noteUnread(field, readTime(value))),
    object(field, value) {
      if (isEmpty(value)) return {}
      return noteUnread(field, isJsonObject(value) ? value : undefined) ?? {}
    },
    severity(value) {
      if (isEmpty(value)) return { word: null, isReadable: true }
      const word = noteUnread('severity', readSeverity(value))
      return { word, isReadable: word !== null }
    },
    note: (field) => void unread.add(field),
    unread: () => (unread.size === 0 ? {} : { unread: [...unread].toSorted() }),
  }
}

/** The first value that is not empty. */
export function firstPresent(...values: unknown[]): unknown {
  return values.find((value) => !isEmpty(value))
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the value if it is an object, else {}; notes nothing. */
export function toJsonObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

/**
 * An id that may be part of a uid: a whole number below 2^53, up to 40 digits as text, or a UUID;
 * else null.
 */
export function readId(value: unknown): string | null {
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) && value >= 0 ? String(value) : null
  }
  if (typeof value !== 'string') return null
  // other text may have come from another field, perhaps a leaked secret
  const id = value.trim().toLowerCase()
  return /^(?:0|[1-9]\d{0,39}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/u.test(id) ? id : null
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** Some servers write an empty object as an empty list. */
function isEmpty(value: unknown): boolean {
  if (typeof value === 'string') return value.trim() === ''
  return isAbsent(value) || (Array.isArray(value) && value.length === 0)
}

/** Returns undefined for a value that is no text. */
function readText(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined
  return typeof value === 'string' ? value : undefined
}

function readSeverity(value: unknown): string | undefined {
  const word = typeof value === 'string' ? value.trim().toLowerCase() : ''
  return /\p{L}/u.test(word) ? word : undefined
}

/** Earlier times count as none: servers write year 1 or 1970 for an unknown time. */
const earliestMs = Date.UTC(1990, 0, 1)

/**
 * A wrong time would hide an event, because events older than the start bound of their feed are not
 * sent.
 */
function readTime(value: unknown): number | undefined {
  const atMs = typeof value === 'string' ? parseTimestamp(value) : null
  return atMs === null || atMs < earliestMs ? undefined : atMs
}

/** Deeper values are written as "…", so values that differ only there count as equal. */
const maxDepth = 64

/**
 * JSON with sorted keys and without spaces, for hashing: equal values give equal text, whatever the
 * order of their keys. Never throws: what JSON cannot express is written as null.
 */
export function canonicalJson(value: unknown, depth = 0): string {
  if (typeof value !== 'object' || value === null) return scalarJson(value)
  if (depth >= maxDepth) return '"…"'
  if (Array.isArray(value)) {
    return `[${value.map((element) => canonicalJson(element, depth + 1)).join(',')}]`
  }
  const members: Record<string, unknown> = { ...value }
  const texts = Object.keys(members)
    .toSorted() // by code unit, the same on every machine
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(members[key], depth + 1)}`)
  return `{${texts.join(',')}}`
}

function scalarJson(value: unknown): string {
  return typeof value === 'bigint' ? 'null' : (JSON.stringify(value) ?? 'null')
}
