/**
 * Compares two configurations by name. Says what a reload tells the operator, whether there is
 * anything to do, and which keys may not change while a process runs. Secrets are compared but
 * never shown.
 */
import { isDeepStrictEqual } from 'node:util'
import { isSection, type Finding } from '../lib/config/config-fields.ts'
import { isSecret } from '../lib/config/secret.ts'
import type { Config } from './config.ts'

/** Each difference in words, such as `feeds.staff added`; the order of routes counts. */
export function listChanges(before: Config, after: Config): string[] {
  return allKeys(before, after).flatMap((key) => {
    const [old, wanted] = [readProperty(before, key), readProperty(after, key)]
    if (isSame(old, wanted)) return []
    if (!isNamed(old) || !isNamed(wanted)) return [`${toSnakeCase(key)} changed`]
    return compareByName(old, wanted).map((change) => `${key}.${change}`)
  })
}

function isNamed(value: unknown): value is { name: string }[] {
  return Array.isArray(value) && value.every((one) => isSection(one) && 'name' in one)
}

function compareByName(before: readonly { name: string }[], after: typeof before): string[] {
  const byName = (list: typeof before) => new Map(list.map((one) => [one.name, one]))
  const [olds, wants] = [byName(before), byName(after)]
  return [...new Set([...olds.keys(), ...wants.keys()])].flatMap((name) => {
    const [old, wanted] = [olds.get(name), wants.get(name)]
    if (old === undefined) return [`${name} added`]
    if (wanted === undefined) return [`${name} removed`]
    return isSame(old, wanted) ? [] : [`${name} changed`]
  })
}

/** Keys of the HTTP server that it reads at each request. */
const followedKeys: ReadonlySet<string> = new Set(['users', 'proxy', 'publicUrl'])

/** Finds changed keys that a running process cannot take over: its connection and port stay. */
export function fixedKeyFindings(before: Config, after: Config): Finding[] {
  return (['redis', 'http'] as const).flatMap((section) => {
    const [old, wanted] = [before[section], after[section]]
    return allKeys(old, wanted)
      .filter((key) => section === 'redis' || !followedKeys.has(key))
      .filter((key) => !isSame(readProperty(old, key), readProperty(wanted, key)))
      .map((key) => ({
        path: [section, toFileKey(key, readProperty(wanted, key))],
        problem: 'cannot change while the process runs',
        remedy: 'restart to change it, or write what was there before',
      }))
  })
}

function allKeys(before: object, after: object): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
}

function readProperty(holder: object, key: string): unknown {
  return (holder as Readonly<Record<string, unknown>>)[key]
}

function isSame(left: unknown, right: unknown): boolean {
  return isDeepStrictEqual(comparable(left), comparable(right))
}

/** What of a value is compared: secrets by text or file, no functions or undefined members. */
function comparable(value: unknown): unknown {
  if (isSecret(value)) {
    return value.file === undefined ? { text: value.reveal() } : { file: value.file }
  }
  if (Array.isArray(value)) return value.map(comparable)
  if (!isSection(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  const members = Object.entries(value).filter(
    ([, member]) => member !== undefined && typeof member !== 'function',
  )
  return Object.fromEntries(members.map(([key, member]) => [key, comparable(member)]))
}

function toFileKey(key: string, value: unknown): string {
  const isFile = isSecret(value) && value.file !== undefined
  return `${toSnakeCase(key)}${isFile ? '_file' : ''}`
}

function toSnakeCase(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
