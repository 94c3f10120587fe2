/** Checks an operator's YAML file against its schema: its content, or every mistake at once. */
import { errorCode } from '../lib/errors.ts'
import type { z } from 'zod'
import { type Finding, isSection } from '../lib/config/config-fields.ts'
import { readFileWithin } from '../lib/config/private-files.ts'
import { ConfigError, type Environment, type Mistake } from './config.ts'
import { type FileContents, maxFileBytes, readContents } from './file-contents.ts'
import {
  type Path,
  readTree,
  type Source,
  tooLong,
  type Tree,
  type TreeMistake,
} from './yaml-source.ts'

interface FileShape<Content> {
  schema: z.ZodType<Content>
  /** Checks between parts of the file; gets the file as written, whatever is wrong with it. */
  references: (file: unknown) => Finding[]
}

export interface ParsedFile<Content> {
  content: Content
  /** The file as written, variables replaced. */
  tree: Tree
  /** Of those files that it names for reading. */
  files: FileContents
  /** Adds file, line and column to findings that are made later. */
  place: (findings: TreeMistake[]) => Mistake[]
}

const fileProblems: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  TOO_LONG: tooLong.problem,
}

/** Throws ConfigError. */
export function readFileText(path: string, remedy: string): string {
  try {
    return readFileWithin(path, { maxBytes: maxFileBytes, mayWait: true })
  } catch (cause) {
    const code = errorCode(cause)
    const problem = fileProblems[code] ?? `cannot be read (${code})`
    throw new ConfigError([{ file: path, line: 0, column: 0, path: '', problem, remedy }], {
      cause,
    })
  }
}

/** Throws ConfigError. */
export function parseFile<Content>(
  text: string,
  source: Source,
  { schema, references }: FileShape<Content>,
): ParsedFile<Content> {
  const tree = readTree(text, source)
  // Before the files are checked: what changes in between counts as changed.
  const files = readContents(tree.files)
  const mistakes = [...tree.mistakes]
  const parsed = tree.isReadable ? schema.safeParse(tree.value) : undefined
  if (parsed !== undefined) {
    addNewMistakes(mistakes, (parsed.error?.issues ?? []).map(toMistake))
    addNewMistakes(mistakes, references(tree.value))
  }
  if (mistakes.length > 0 || parsed?.data === undefined) {
    throw new ConfigError(placeMistakes(mistakes, tree, source))
  }
  const place = (findings: TreeMistake[]): Mistake[] => placeMistakes(findings, tree, source)
  return { content: parsed.data, tree, files, place }
}

/** Keeps one mistake per place: that of the earlier step. */
function addNewMistakes(mistakes: TreeMistake[], more: TreeMistake[]): void {
  const knownPaths = new Set(mistakes.map(({ path }) => JSON.stringify(path)))
  mistakes.push(...more.filter(({ path }) => !knownPaths.has(JSON.stringify(path))))
}

function toMistake({ path, message }: z.core.$ZodIssue): TreeMistake {
  const [problem = '', remedy = ''] = message.split('\n')
  return { path: path.map((key) => (typeof key === 'number' ? key : String(key))), problem, remedy }
}

function placeMistakes(mistakes: TreeMistake[], tree: Tree, { file, env }: Source): Mistake[] {
  const hide = valueHider(tree, env)
  return mistakes
    .map((mistake) => {
      const { problem, remedy } = hide(mistake)
      const isOfKey = mistake.offset !== undefined
      return {
        file,
        ...tree.positionOf(mistake),
        path: pathText(mistake.path),
        problem: nameVariables(problem, isOfKey ? [] : tree.variablesAt(mistake.path)),
        remedy,
      }
    })
    .toSorted((left, right) => left.line - right.line || left.column - right.column)
}

/** Characters of a variable's value that no message shows. */
const fewestHidden = 6

/**
 * Returns a function that leaves the values of variables out of a mistake, because they may be
 * secrets: the whole value stands as `${NAME}`. Of a value at the mistake's own place, no part is
 * quoted either.
 */
function valueHider(
  tree: Tree,
  env: Environment,
): (mistake: TreeMistake) => Pick<TreeMistake, 'problem' | 'remedy'> {
  const long = [...tree.variables].filter((name) => (env[name] ?? '').length >= fewestHidden)
  const hide = (text: string): string =>
    long.reduce((rest, name) => rest.replaceAll(env[name] ?? '', () => `\${${name}}`), text)
  return ({ problem, remedy, path }) => {
    const values = tree.variablesAt(path).map((name) => env[name] ?? '')
    if (values.length === 0) return { problem: hide(problem), remedy: hide(remedy) }
    return {
      problem: hide(problem).replace(/(["`'])(?!\$\{\w+\}\1).*\1/su, '"…"'),
      remedy: values.some((value) => sharesPart(hide(remedy), value))
        ? 'correct what the variable holds'
        : hide(remedy),
    }
  }
}

function sharesPart(text: string, value: string): boolean {
  const [within, of] = [text.toLowerCase(), value.toLowerCase()]
  for (let at = 0; at + fewestHidden <= of.length; at += 1) {
    if (within.includes(of.slice(at, at + fewestHidden))) return true
  }
  return false
}

/** Says that a value comes from the environment, because the line does not show it. */
function nameVariables(problem: string, variables: readonly string[]): string {
  if (variables.length === 0 || problem.startsWith('the variable ')) return problem
  const statement = problem === 'missing' ? 'empty' : problem
  return `${statement} (after replacing ${variables.map((name) => `\${${name}}`).join(', ')})`
}

function pathText(path: Path): string {
  return path
    .map((key, index) =>
      typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${printableKey(key)}`,
    )
    .join('')
}

/** A place in the file as written; to the lenient readers below a wrong shape is empty. */
export type Place = (string | number)[]

export function toSection(value: unknown): Readonly<Record<string, unknown>> {
  return isSection(value) ? value : {}
}

export function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export interface PlacedRoute {
  path: Place
  route: Readonly<Record<string, unknown>>
}

/** The tree as a list, parents first. */
export function listRoutes(route: unknown, path: Place): PlacedRoute[] {
  if (!isSection(route)) return []
  const children = toList(route['routes']).flatMap((child, index) =>
    listRoutes(child, [...path, 'routes', index]),
  )
  return [{ path, route }, ...children]
}

/** The labels that any of the feeds has. */
export function listLabels(feeds: Readonly<Record<string, unknown>>): string[] {
  return Object.values(feeds).flatMap((feed) => Object.keys(toSection(toSection(feed)['labels'])))
}

/**
 * Makes a key of the file safe for a message. If a space after ":" is missing, or an address stands
 * where a name belongs, the "key" holds a secret: only its first word is shown.
 */
export function printableKey(key: string): string {
  if (/^(?:<<|\$\{\w{1,40}\}|[\w-]{0,64})$/.test(key)) return key
  const [word = ''] = /^[\w-]{1,20}(?=[:= ])/.exec(key) ?? []
  return `${word}…`
}
