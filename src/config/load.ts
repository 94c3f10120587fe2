/**
 * Loads file, environment and secret files into one frozen Config, or reports every mistake with
 * what to write instead. Nothing is accepted and ignored.
 */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { type Finding, isSection } from '../lib/config/config-fields.ts'
import { isSecret } from '../lib/config/secret.ts'
import { ledgerConfig } from '../store/account-ledger.ts'
import type { Config, Environment, Mistake } from './config.ts'
import type { FileContents } from './file-contents.ts'
import { parseFile, readFileText } from './parse-file.ts'
import { referenceMistakes } from './references.ts'
import { configFile } from './schema.ts'
import { secretWarnings } from './secret-warnings.ts'
import { findWarnings } from './warnings.ts'
import type { Source } from './yaml-source.ts'

export interface LoadedConfig {
  config: Config
  warnings: Mistake[]
  /** See `configHash`. */
  hash: string
  /** Of those files that it names for reading: secrets, certificates. */
  files: FileContents
  /** Adds file, line and column to findings that are made later. */
  place(findings: Finding[]): Mistake[]
}

interface ConfigPlace {
  path: string
  env: Environment
}

/** Throws ConfigError, also if the file cannot be read. */
export function loadConfig({ path, env }: ConfigPlace): LoadedConfig {
  const text = readFileText(path, 'name the configuration with --config')
  return parseConfig(text, { file: path, env })
}

/**
 * `source.file` names the text in messages; secret files are relative to it. Throws ConfigError.
 */
export function parseConfig(text: string, source: Source): LoadedConfig {
  const shape = { schema: configFile, references: referenceMistakes }
  const { content, tree, files, place } = parseFile(text, source, shape)
  const config = deepFreeze(toConfig(content))
  const hash = configHash(config)
  const warnings = place([...findWarnings(config), ...secretWarnings(tree, source)])
  return { config, warnings, hash, files, place }
}

function toConfig(file: z.output<typeof configFile>): Config {
  const [onlyAccount = ''] = Object.keys(file.accounts)
  const accounts = Object.entries(file.accounts).map(([name, account]) => ({ name, ...account }))
  const feeds = Object.entries(file.feeds).map(([name, feed]) => ({
    name,
    ...feed,
    account: feed.account ?? onlyAccount,
  }))
  return {
    redis: file.redis,
    http: file.http,
    accounts,
    feeds,
    sinks: Object.entries(file.sinks).map(([name, sink]) => ({ name, ...sink })),
    route: file.route,
    timeIntervals: file.time_intervals ?? {},
    inhibitRules: file.inhibit_rules,
    silences: file.silences,
    ledger: ledgerConfig(file),
    selfAlerts: file.self_alerts,
    canary: file.canary,
    messages: file.messages,
  }
}

/** Freezes plain objects and lists; the inside of a secret or a matcher stays as it is. */
function deepFreeze<Value>(value: Value): Value {
  const isPlain = Array.isArray(value) || isPlainObject(value)
  if (!isPlain) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}

function isPlainObject(value: unknown): value is object {
  return (
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  )
}

/**
 * Names what the configuration does with events: sha256 (hex) over feeds, sinks, routes, time
 * intervals, inhibition, silences and where the accounts read. It leaves out secrets, the order of
 * feeds and sinks, ports and limits of accounts, `messages`, self-alerts and the canary. Replicas
 * that differ in those compete for no cursor, and a self-alert is sent once whichever replica is
 * first.
 */
function configHash(config: Config): string {
  const { accounts, feeds, sinks, route, timeIntervals, inhibitRules, silences } = config
  const named = {
    // A change here begins another scan, so two such configurations must be two generations.
    accounts: sortByName(accounts).map(({ name, baseUrl, tenantId }) => ({
      name,
      baseUrl,
      tenantId,
    })),
    feeds: sortByName(feeds),
    sinks: sortByName(sinks).map(withoutSecrets),
    route,
    timeIntervals,
    inhibitRules,
    silences,
  }
  const text = JSON.stringify(named, (_key, value: unknown) => sortKeys(value))
  return createHash('sha256').update(text).digest('hex')
}

function sortByName<Entry extends { name: string }>(entries: readonly Entry[]): Entry[] {
  return entries.toSorted((left, right) => (left.name < right.name ? -1 : 1))
}

function withoutSecrets(sink: Config['sinks'][number]): object {
  return Object.fromEntries(Object.entries(sink).filter(([, value]) => !isSecret(value)))
}

function sortKeys(value: unknown): unknown {
  if (!isSection(value)) return value
  return Object.fromEntries(
    Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)),
  )
}
