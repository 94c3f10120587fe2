/** What is kept of an item that cannot be parsed: any value, and any unknown key, may hold a secret. */
import {
  wireCookie,
  wireCredential,
  wireCredentialSource,
} from '../upstream/resources/credentials.ts'
import { wireSearchItem } from '../upstream/resources/events.ts'
import { isJsonObject } from './types/field-reader.ts'

const knownKeys: ReadonlySet<string> = new Set([
  ...[wireSearchItem, wireSearchItem.shape.metadata, wireCredential, wireCredentialSource].flatMap(
    ({ shape }) => Object.keys(shape),
  ),
  ...Object.keys(wireCookie.shape),
])

const maxDepth = 2

/** The known keys, each with the kind of its value (`text of 17`); other keys are counted. */
export function describeShape(value: unknown, depth = 0): unknown {
  if (!isJsonObject(value) || depth === maxDepth) return describeKind(value)
  const keys = Object.keys(value)
  const known = keys.filter((key) => knownKeys.has(key))
  const others = keys.length - known.length
  return {
    ...Object.fromEntries(known.map((key) => [key, describeShape(value[key], depth + 1)])),
    ...(others > 0 && { 'other keys': others }),
  }
}

/** null reveals only that there is no value. */
function describeKind(value: unknown): string | null {
  if (value === null) return null
  if (typeof value === 'string') return `text of ${value.length}`
  if (Array.isArray(value)) return `list of ${value.length}`
  return isJsonObject(value) ? `object of ${Object.keys(value).length}` : typeof value
}
