import { parseTimestamp } from '../service/timestamps.ts'
import { wireCredential, wireCredentialSource } from '../service/wire/credentials.ts'
import { isMembers } from './field-reader.ts'
import { secretsAt } from './parse-credential.ts'
import { cut, maskKnown, maskText } from './masking.ts'

const knownKeys = Object.keys(wireCredential.shape)
const knownSourceKeys = Object.keys(wireCredentialSource.shape)

const timeKeys = new Set(['imported_at', 'remediated_at', 'ignored_at', 'breached_at', 'leaked_at'])
const longestText = 200

/**
 * A record that is no credential, as it may be kept: a password may stand in any of its fields, so of
 * the keys that are known only the id as a number, times, and the source's id and name keep their
 * values; every other value is told by its type and length ("text of 17"), and unknown keys are only counted.
 */
export function credentialShape(raw: unknown): unknown {
  if (!isMembers(raw)) return kindOf(raw)
  const mask = maskKnown(secretsAt(raw['hash']))
  const source = raw['source']
  return {
    ...shapeOf(raw, knownKeys, (key, value) => {
      if (key === 'id') return numberOrKind(value)
      if (key === 'source_id') return nameOrKind(value, mask)
      return timeKeys.has(key) ? timeOrKind(value) : kindOf(value)
    }),
    ...(isMembers(source) && { source: sourceShape(source, mask) }),
  }
}

function sourceShape(
  source: Record<string, unknown>,
  mask: (text: string) => string,
): Record<string, unknown> {
  return shapeOf(source, knownSourceKeys, (key, value) => {
    if (key === 'id' || key === 'name') return nameOrKind(value, mask)
    return timeKeys.has(key) ? timeOrKind(value) : kindOf(value)
  })
}

function shapeOf(
  object: Record<string, unknown>,
  known: readonly string[],
  keep: (key: string, value: unknown) => unknown,
): Record<string, unknown> {
  const present = known.filter((key) => Object.hasOwn(object, key))
  const others = Object.keys(object).length - present.length
  return {
    ...Object.fromEntries(present.map((key) => [key, keep(key, object[key])])),
    ...(others > 0 && { 'other keys': others }),
  }
}

/** An id in words may be another field's value that slipped. */
function numberOrKind(value: unknown): unknown {
  return typeof value === 'number' ? value : kindOf(value)
}

function nameOrKind(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? cut(maskText(mask(value), true), longestText) : kindOf(value)
}

function timeOrKind(value: unknown): unknown {
  const isTime = typeof value === 'string' && parseTimestamp(value) !== null
  return isTime ? cut(value, longestText) : kindOf(value)
}

/** null tells nothing of a secret but that there is none. */
function kindOf(value: unknown): string | null {
  if (value === null) return null
  if (typeof value === 'string') return `text of ${value.length}`
  if (Array.isArray(value)) return `list of ${value.length}`
  return isMembers(value) ? `object of ${Object.keys(value).length}` : typeof value
}
