/**
 * Compares two configurations by name: what a reload tells the operator, whether there is anything
 * to do, and which keys may not change while a process runs. Secrets are compared but never shown.
 */
import { isDeepStrictEqual } from 'node:util'
import type { RouteConfig } from '../routing/config.ts'
import { isSection, type Finding } from '../lib/config-fields.ts'
import { isSecret } from '../lib/secret.ts'
import type { Config } from './config.ts'

export interface NameDiff {
  added: string[]
  removed: string[]
  changed: string[]
}

export interface ConfigDiff {
  accounts: NameDiff
  feeds: NameDiff
  sinks: NameDiff
  /** A route whose branches changed or are in another order counts as changed too. */
  routes: NameDiff
  /** Other sections that differ. */
  sections: string[]
}

/** The order of routes counts, that of accounts, feeds and sinks does not. */
export function diffConfigs(before: Config, after: Config): ConfigDiff {
  return {
    accounts: diffNamed(before.accounts, after.accounts),
    feeds: diffNamed(before.feeds, after.feeds),
    sinks: diffNamed(before.sinks, after.sinks),
    routes: diffNamed(listRoutes(before.route), listRoutes(after.route)),
    sections: allKeys(before, after)
      .filter(
        (key) =>
          !namedSections.has(key) && !isSame(readProperty(before, key), readProperty(after, key)),
      )
      .map((key) => sectionNames[key] ?? toSnakeCase(key)),
  }
}

/** Returns the non-empty parts of a difference, for one line of a log; undefined: no difference. */
export function listChanges(
  diff: ConfigDiff & { files?: NameDiff },
): Record<string, unknown> | undefined {
  const { sections, ...lists } = diff
  const changes = Object.entries(lists).flatMap(([part, names]) => {
    const some = Object.entries(names).filter(([, list]) => list.length > 0)
    return some.length === 0 ? [] : [[part, Object.fromEntries(some)] as const]
  })
  if (changes.length === 0 && sections.length === 0) return undefined
  return { ...Object.fromEntries(changes), ...(sections.length === 0 ? {} : { sections }) }
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

/**
 * Finds files of the connection to Redis among those whose contents changed: they are read only when
 * a process starts. Nothing is refused for them, since the connection that there is goes on.
 */
export function fixedFileFindings(section: object, files: readonly string[]): Finding[] {
  return Object.entries(section).flatMap(([key, value]) => {
    if (isSection(value) && !isSecret(value))
      return fixedFileFindings(value, files).map(({ path, ...rest }) => ({
        ...rest,
        path: [toSnakeCase(key), ...path],
      }))
    const file: unknown = isSecret(value) ? value.file : value
    if (typeof file !== 'string' || !files.includes(file)) return []
    const problem = 'what its file holds has changed, and is read only when the process starts'
    return [{ path: [toFileKey(key, value)], problem, remedy: 'restart to use it' }]
  })
}

const namedSections = new Set(['accounts', 'feeds', 'sinks', 'route'])

/** Sections whose names in the file differ from the configuration's. */
const sectionNames: Readonly<Record<string, string>> = { ledger: 'dedupe or retention' }

function diffNamed(before: readonly { name: string }[], after: typeof before): NameDiff {
  const old = new Map(before.map((entry) => [entry.name, entry]))
  const names = new Set(after.map(({ name }) => name))
  return {
    added: [...names].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !names.has(name)),
    changed: after
      .filter((entry) => old.has(entry.name) && !isSame(old.get(entry.name), entry))
      .map(({ name }) => name),
  }
}

/** The tree as a list, parents first; each route keeps only the names of its branches. */
function listRoutes(route: RouteConfig): { name: string }[] {
  const { routes, ...own } = route
  return [{ ...own, branches: routes.map(({ name }) => name) }, ...routes.flatMap(listRoutes)].map(
    (entry) => entry as { name: string },
  )
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
