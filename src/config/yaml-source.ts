/**
 * Reads a YAML file into a tree of plain values, with variables replaced and the position of every
 * value known. Never quotes the source: a line of it may hold a secret.
 */
import { dirname, resolve } from 'node:path'
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLMap,
} from 'yaml'
import { refusal, type Refusal } from '../lib/config/config-fields.ts'

export type Path = readonly (string | number)[]

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

export interface Source {
  file: string
  env: Environment
  /** The top-level sections, e.g. `accounts, feeds`; default: those of the configuration. */
  sections?: string
}

/** A mistake at a place of the tree; `offset` if it is in a key, or the place has no path. */
export interface TreeMistake extends Refusal {
  path: Path
  offset?: number
}

export interface Tree {
  value: unknown
  mistakes: TreeMistake[]
  /** False: the content is not to be checked any further. */
  isReadable: boolean
  /** Names of the variables in a value; empty for a literal one. */
  variablesAt(path: Path): readonly string[]
  /** Names of all variables in the file. */
  variables: ReadonlySet<string>
  /** Files that the configuration names for reading. */
  files: readonly string[]
  positionOf(mistake: { path: Path; offset?: number }): { line: number; column: number }
}

/** Enough for some thousand organizations; more is a mistaken file. */
const maxCharacters = 4 * 1024 * 1024
export const tooLong = refusal('longer than 4 MiB', 'is this the right file?')
const maxDepth = 64

interface Reading {
  document: Document.Parsed
  source: Source
  mistakes: TreeMistake[]
  offsets: Map<string, number>
  variables: Map<string, string[]>
  files: Set<string>
}

/** A value that was empty after replacing variables: treated as if the key were missing. */
const absent = Symbol('absent')

export function readTree(text: string, source: Source): Tree {
  const lines = new LineCounter()
  const isTooLong = text.length > maxCharacters
  const document = parseDocument(isTooLong ? '' : text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    uniqueKeys: false,
    merge: false,
    schema: 'core',
    resolveKnownTags: false,
    logLevel: 'error',
  })
  const reading = createReading(document, source)
  const isReadable = !isTooLong && collectSyntaxMistakes(reading, text, lines)
  if (isTooLong) addMistake(reading, [], tooLong)
  const value = isReadable ? readNode(reading, document.contents, []) : undefined
  const { mistakes, offsets, variables } = reading
  return {
    value: value === absent ? undefined : value,
    mistakes,
    isReadable,
    variablesAt: (path) => variables.get(pathKey(path)) ?? [],
    variables: new Set([...variables.values()].flat()),
    files: [...reading.files],
    positionOf: ({ path, offset }) => {
      const { line, col } = lines.linePos(offset ?? findOffset(offsets, path))
      return { line: Math.max(1, line), column: Math.max(1, col) }
    },
  }
}

function createReading(document: Document.Parsed, source: Source): Reading {
  return {
    document,
    source,
    mistakes: [],
    offsets: new Map(),
    variables: new Map(),
    files: new Set(),
  }
}

/**
 * Reports only the first syntax error, because later ones are mostly its consequences. Returns
 * whether the tree can be read.
 */
function collectSyntaxMistakes(reading: Reading, text: string, lines: LineCounter): boolean {
  const { errors, warnings, contents } = reading.document
  const [broken] = [...errors, ...warnings]
  if (broken !== undefined) {
    const offset = broken.pos[0]
    const lineStart = lines.lineStarts[lines.linePos(offset).line - 1] ?? 0
    const before = text.slice(lineStart, offset)
    reading.mistakes.push({ path: [], offset, ...syntaxRefusal(broken.code, before) })
    return false
  }
  if (isMap(contents)) return true
  const isEmpty = contents === null || (isScalar(contents) && contents.value === null)
  const problem = isEmpty ? 'the file is empty' : 'not a configuration'
  const { sections = 'accounts, feeds, sinks, route' } = reading.source
  addMistake(reading, [], refusal(problem, `write its sections: ${sections}`))
  return false
}

function addMistake(reading: Reading, path: Path, mistake: Refusal): void {
  reading.mistakes.push({ path, ...mistake })
}

function readNode(reading: Reading, node: unknown, path: Path): unknown {
  if (path.length > maxDepth) {
    addMistake(reading, path, refusal('nested too deeply', 'write it flatter'))
    return undefined
  }
  if (isAlias(node) || (node as Partial<Node> | null)?.anchor !== undefined) {
    addMistake(reading, path, namedValue)
    return undefined
  }
  if (isMap(node)) return readMap(reading, node, path)
  if (isSeq(node)) return readList(reading, node.items, path)
  if (!isScalar(node)) return null
  return typeof node.value === 'string' ? readText(reading, node.value, path) : node.value
}

const namedValue = refusal(
  'anchors and aliases of YAML are not supported',
  'write the values out; put text that begins with "&" or "*" in quotes',
)

function readMap(reading: Reading, map: YAMLMap, path: Path): unknown {
  const entries: [string, unknown][] = []
  const seen = new Set<string>()
  for (const { key, value } of map.items) {
    const name = isScalar(key) ? String(key.value) : ''
    const place = [...path, name]
    const offset = isScalar(key) ? (key.range?.[0] ?? 0) : 0
    const problem = seen.has(name) ? repeatedKey : keyProblem(name)
    if (problem !== undefined) reading.mistakes.push({ path: place, offset, ...problem })
    if (seen.has(name)) continue
    seen.add(name)
    reading.offsets.set(pathKey(place), offset)
    const content = problem === undefined ? readNode(reading, value, place) : absent
    if (content !== absent) entries.push([name, content])
  }
  return Object.fromEntries(entries)
}

const repeatedKey = refusal('the key is written twice', 'keep one of the two')

function keyProblem(name: string): Refusal | undefined {
  if (name === '<<') return refusal('merge keys are not supported', 'write the keys out')
  return name === '__proto__' ? refusal('not a usable key', 'choose another') : undefined
}

function readList(reading: Reading, items: unknown[], path: Path): unknown {
  return items.map((item, index) => {
    const place = [...path, index]
    const offset = (item as Partial<Node> | null)?.range?.[0]
    if (offset !== undefined) reading.offsets.set(pathKey(place), offset)
    const content = readNode(reading, item, place)
    return content === absent ? '' : content
  })
}

/** Without this key a feed reads more than its owner wrote down. */
function isNarrowing([section, , key]: Path): boolean {
  return section === 'feeds' && (key === 'identifier_group' || key === 'identifier')
}

function readText(reading: Reading, written: string, path: Path): unknown {
  const { text, variables, problems } = substitute(written, reading.source.env)
  for (const problem of problems) addMistake(reading, path, problem)
  if (variables.length > 0) reading.variables.set(pathKey(path), variables)
  if (problems.length > 0) return written
  if (text === '' && variables.length > 0) return isNarrowing(path) ? '' : absent
  if (!isFilePath(path) || text.trim() === '') return text
  const file = resolve(dirname(reading.source.file), text)
  if (!isWrittenFolder(path)) reading.files.add(file)
  return file
}

function isWrittenFolder(path: Path): boolean {
  return path.join('.') === 'redis.embedded'
}

/** File paths are relative to the file. Labels are free words and no paths. */
function isFilePath(path: Path): boolean {
  if (isWrittenFolder(path)) return true
  return String(path.at(-1)).endsWith('_file') && path.at(-2) !== 'labels'
}

function pathKey(path: Path): string {
  return JSON.stringify(path)
}

/** The offset of the value, or of the nearest enclosing value that has one. */
function findOffset(offsets: Map<string, number>, path: Path): number {
  for (let length = path.length; length > 0; length -= 1) {
    const offset = offsets.get(pathKey(path.slice(0, length)))
    if (offset !== undefined) return offset
  }
  return 0
}

/** Replace the parser's own messages, which quote the source and so may show a secret. */
const refusalsByCode: Partial<Record<ErrorCode, Refusal>> = {
  TAB_AS_INDENT: refusal('a tab where spaces belong', 'indent with spaces'),
  MULTIPLE_DOCS: refusal('a second document', 'end the file before "---"'),
  NON_STRING_KEY: refusal('a key that is no text', 'write a name before ":"'),
  TAG_RESOLVE_FAILED: refusal('a YAML tag', 'remove the "!…"'),
  BAD_SCALAR_START: refusal('a value that begins with a special character', 'put it in quotes'),
  BAD_ALIAS: refusal('not a usable alias', 'put the value in quotes if it begins with "*"'),
  BAD_DQ_ESCAPE: refusal('an unknown escape in double quotes', 'write it in single quotes'),
  BAD_INDENT: refusal('wrongly indented, or a bracket is not closed', 'align it with its siblings'),
  BLOCK_AS_IMPLICIT_KEY: refusal('a second ":" on one line', 'put the value in quotes'),
  MISSING_CHAR: refusal('a quote, bracket, ":" or "," is missing', 'close what was opened'),
  RESOURCE_EXHAUSTION: refusal('nested too deeply', 'write it flatter'),
}

/** `before` is the line up to the error. */
function syntaxRefusal(code: ErrorCode, before: string): Refusal {
  if (/[{[,].*\$$/.test(before)) {
    return refusal('a placeholder without quotes inside { } or [ ]', 'write it as "${NAME}"')
  }
  return (
    refusalsByCode[code] ??
    refusal('not readable as YAML', 'correct the line or put values in quotes')
  )
}

interface Substitution {
  text: string
  /** Names of the variables that the text refers to. */
  variables: string[]
  problems: Refusal[]
}

/**
 * Replaces `${NAME}` and `${NAME:-default}`; `$$` is a literal `$`, any other `$` stays. Runs once,
 * on parsed values: the result is text and never YAML or another placeholder.
 */
export function substitute(input: string, env: Environment): Substitution {
  const result: Substitution = { text: '', variables: [], problems: [] }
  result.text = input.replaceAll(/\$\$|\$\{([^}]*)(\}?)/g, (found, inner?: string, end?: string) =>
    found === '$$'
      ? '$'
      : replacePlaceholder({ inner: inner ?? '', isClosed: end === '}' }, env, result),
  )
  return result
}

interface Placeholder {
  inner: string
  isClosed: boolean
}

function replacePlaceholder(
  { inner, isClosed }: Placeholder,
  env: Environment,
  { variables, problems }: Substitution,
): string {
  const [, name, fallback] = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inner) ?? []
  if (!isClosed || name === undefined || fallback?.includes('${')) {
    const remedy = 'write ${NAME} or ${NAME:-default}, or $$ for a literal $'
    problems.push({ problem: 'not a placeholder for a variable', remedy })
    return ''
  }
  variables.push(name)
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (fallback !== undefined) return value === undefined || value === '' ? fallback : value
  if (value === undefined) problems.push(missingVariable(name))
  return value ?? ''
}

function missingVariable(name: string): Refusal {
  const remedy = `set it, or give a default: \${${name}:-…}`
  return { problem: `the variable ${name} is not set`, remedy }
}
