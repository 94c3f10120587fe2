/**
 * Reads the fields of one API item, each with fallbacks: only the uid is required. A value of an
 * unexpected form is used as far as possible, and noted where it cannot be. Nothing here throws.
 */
import { severities } from '../event.ts'
import type { unreadableFields } from '../lib/metric-table.ts'
import { parseTimestamp } from '../upstream/timestamps.ts'

/** A field of an item by the service's name for it; label of a metric, so the list is closed. */
export type UnreadField = (typeof unreadableFields)[number]

export type JsonObject = Readonly<Record<string, unknown>>

/** The severity that a value states: a word, none, or something that cannot be read as one. */
type StatedSeverity = { word: string | null; isReadable: boolean }

export interface FieldReader {
  /** Text; a number as its digits, an object by its name. null where there is none, or nothing readable. */
  text(field: UnreadField, value: unknown): string | null
  /** The texts of a list, at most `max`; a single value is a list of one. */
  texts(field: UnreadField, value: unknown, max: number): string[]
  /** Milliseconds since 1970: of a time with or without zone, of seconds or of milliseconds. */
  time(field: UnreadField, value: unknown): number | null
  /** The members of an object; none where there is no object. A list of one object is that object. */
  object(field: UnreadField, value: unknown): JsonObject
  /** A severity's word in lower case; 1 to 5 mean info to critical. */
  severity(value: unknown): StatedSeverity
  /** Notes a field that could not be read. */
  note(field: UnreadField): void
  /** What could not be read, as an event carries it. */
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
      const [only, ...others] = Array.isArray(value) ? (value as unknown[]) : [value]
      return noteUnread(field, isJsonObject(only) && others.length === 0 ? only : undefined) ?? {}
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

/** The members of an object, or none: for looking further inside. */
export function toJsonObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

/** An id that can stand in a uid: a whole number below 2^53, the digits of any number, or a UUID. */
export function readId(value: unknown): string | null {
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) && value >= 0 ? String(value) : null
  }
  if (typeof value !== 'string') return null
  // other words may be what slipped from another field, a leaked secret among them
  const id = value.trim().toLowerCase()
  return /^(?:0|[1-9]\d{0,39}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/u.test(id) ? id : null
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** An empty list stands for an empty object where a server knows only lists. */
function isEmpty(value: unknown): boolean {
  if (typeof value === 'string') return value.trim() === ''
  return isAbsent(value) || (Array.isArray(value) && value.length === 0)
}

const namingKeys = ['name', 'label', 'value', 'text', 'title'] as const

/** Returns undefined for a value without text. */
function readText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined
  if (Array.isArray(value)) return value.length === 1 ? plainText(value[0]) : undefined
  if (!isJsonObject(value)) return undefined
  return namingKeys.map((key) => plainText(value[key])).find((text) => text !== undefined)
}

function plainText(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}

function readSeverity(value: unknown): string | undefined {
  const word = readText(value)?.trim().toLowerCase()
  if (word === undefined || word === '') return undefined
  if (!/^[-+]?[\d.]+(?:e[-+]?\d+)?$/u.test(word)) return word
  return /^[1-5](?:\.0+)?$/u.test(word) ? severities[Number(word) - 1] : undefined
}

/** Earlier times count as none: servers write year 1 or 1970 for an unknown time. */
const earliestMs = Date.UTC(1990, 0, 1)
/** Numbers from here on are milliseconds: as seconds they would be the year 5138. */
const minMilliseconds = 1e11
const latestMs = Date.UTC(2200, 0, 1)

/**
 * A time that is wrong would hide an event, because what is older than the start of its feed is not sent:
 * so numbers count only where they are a likely time.
 */
function readTime(value: unknown): number | undefined {
  if (typeof value === 'string' && !/^\d+(?:\.\d+)?$/u.test(value.trim())) {
    const atMs = parseTimestamp(value)
    return atMs === null || atMs < earliestMs ? undefined : atMs
  }
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const number = Number(value)
  const atMs = Math.floor(number < minMilliseconds ? number * 1000 : number)
  return atMs >= earliestMs && atMs <= latestMs ? atMs : undefined
}

/** Deeper values are written as "…": what differs only there is taken for the same. */
const maxDepth = 64

/**
 * JSON with sorted keys and no space: equal values give equal text, whatever the order of their keys.
 * For hashing what the service sent. Never throws: what JSON cannot hold is written as null.
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
