/**
 * File, environment and secret files → one frozen Config, or every mistake with what to write
 * instead. Nothing is accepted and ignored.
 */
import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import { ledgerConfig } from '../ledger/config.ts'
import type { Finding } from '../runtime/config-section.ts'
import { ConfigError, type Mistake } from './config-error.ts'
import { configHash } from './config-hash.ts'
import type { Config } from './config.ts'
import type { Environment } from './environment.ts'
import { referenceMistakes } from './references.ts'
import { sayableKey } from './sayable-key.ts'
import { configFile } from './schema.ts'
import { findWarnings } from './warnings.ts'
import { readTree, type Path, type Source, type Tree, type TreeMistake } from './yaml-source.ts'

export interface LoadedConfig {
  config: Config
  warnings: Mistake[]
  /** See `configHash`. */
  hash: string
  /** Says of what is found later where in the file it stands. */
  place(findings: Finding[]): Mistake[]
}

/** Throws ConfigError, also where the file cannot be read. */
export function loadConfig({ path, env }: { path: string; env: Environment }): LoadedConfig {
  return parseConfig(readText(path), { file: path, env })
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    const problem = code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`
    const remedy = 'name the configuration with --config'
    throw new ConfigError([{ file: path, line: 0, column: 0, path: '', problem, remedy }], {
      cause,
    })
  }
}

/** `source.file` names the text in messages, and secret files are relative to it. */
export function parseConfig(text: string, source: Source): LoadedConfig {
  const tree = readTree(text, source)
  const mistakes = [...tree.mistakes]
  const parsed = tree.isReadable ? configFile.safeParse(tree.value) : undefined
  if (parsed !== undefined) {
    addUnlessBlamed(mistakes, (parsed.error?.issues ?? []).map(mistakeOf))
    addUnlessBlamed(mistakes, referenceMistakes(tree.value))
  }
  if (mistakes.length > 0 || parsed?.data === undefined) {
    throw new ConfigError(placed(mistakes, tree, source))
  }
  const config = deepFreeze(configOf(parsed.data))
  const warnings = placed(findWarnings(config), tree, source)
  const place = (findings: Finding[]): Mistake[] => placed(findings, tree, source)
  return { config, warnings, hash: configHash(config), place }
}

/** One mistake a place: what an earlier step said there holds. */
function addUnlessBlamed(mistakes: TreeMistake[], more: TreeMistake[]): void {
  const blamed = new Set(mistakes.map(({ path }) => JSON.stringify(path)))
  mistakes.push(...more.filter(({ path }) => !blamed.has(JSON.stringify(path))))
}

function mistakeOf({ path, message }: z.core.$ZodIssue): TreeMistake {
  const [problem = '', remedy = ''] = message.split('\n')
  return { path: path.map((key) => (typeof key === 'number' ? key : String(key))), problem, remedy }
}

function placed(mistakes: TreeMistake[], tree: Tree, { file }: Source): Mistake[] {
  return mistakes
    .map((mistake) => ({
      file,
      ...tree.positionOf(mistake),
      path: pathText(mistake.path),
      problem: withVariables(mistake.problem, tree.variablesAt(mistake.path)),
      remedy: mistake.remedy,
    }))
    .toSorted((left, right) => left.line - right.line || left.column - right.column)
}

/** Says that a value comes from the environment: it is not what the line shows. */
function withVariables(problem: string, variables: readonly string[]): string {
  if (variables.length === 0 || problem.startsWith('the variable ')) return problem
  const said = problem === 'missing' ? 'empty' : problem
  return `${said} (after replacing ${variables.map((name) => `\${${name}}`).join(', ')})`
}

function pathText(path: Path): string {
  return path
    .map((key, index) =>
      typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${sayableKey(key)}`,
    )
    .join('')
}

function configOf(file: z.output<typeof configFile>): Config {
  const [onlyAccount = ''] = Object.keys(file.accounts)
  return {
    redis: file.redis,
    http: file.http,
    accounts: Object.entries(file.accounts).map(([name, account]) => ({ name, ...account })),
    feeds: Object.entries(file.feeds).map(([name, feed]) => ({
      name,
      ...feed,
      account: feed.account ?? onlyAccount,
    })),
    sinks: Object.entries(file.sinks).map(([name, sink]) => ({ name, ...sink })),
    route: file.route,
    timeIntervals: file.time_intervals ?? {},
    inhibitRules: file.inhibit_rules,
    silences: file.silences,
    ledger: ledgerConfig(file),
    notices: file.notices,
    canary: file.canary,
  }
}

/** Plain objects and lists; what a secret or a matcher keeps inside is its own. */
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
