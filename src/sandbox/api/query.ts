/**
 * Queries over events: the kinds of event queries, and the part of Lucene's syntax that the sandbox
 * knows: words, quoted phrases, `field:value`, AND, OR, NOT and parentheses. A star ends a word. Words
 * side by side are joined by OR.
 */
import type { EventQuery } from '../../upstream/resources/events.ts'
import type { SandboxEvent } from '../history/history.ts'
import { readStolen } from '../history/texts.ts'
import { invalid, Refusal } from './routes.ts'

/** An event as searches see it, without what a tenant adds. */
interface SearchDocument {
  /** All texts, one per line. */
  text: string
  /** Values by dotted path. */
  fields: readonly (readonly [path: string, value: unknown])[]
}

type Test = (document: SearchDocument) => boolean

export function toDocument(event: SandboxEvent): SearchDocument {
  const { uid, type, severity } = event
  const content = { metadata: { uid, type, severity }, ...event.data, ...readStolen(event) }
  const fields = 'raw' in event ? leavesOf('', event.raw) : leavesOf('', content)
  const shown = 'raw' in event ? [] : leavesOf('', event.highlights)
  const texts = [...shown, ...fields].map(([, value]) => String(value))
  return { fields, text: texts.join('\n').replaceAll(/<\/?mark>/g, '') }
}

function leavesOf(path: string, value: unknown): [string, unknown][] {
  if (value === null) return []
  if (Array.isArray(value)) return value.flatMap((inner) => leavesOf(path, inner))
  if (typeof value !== 'object') return [[path, value]]
  return Object.entries(value).flatMap(([key, inner]) =>
    leavesOf(path === '' ? key : `${path}.${key}`, inner),
  )
}

/** Throws a Refusal for a `query_string` that is invalid. */
export function queryTest(query: EventQuery): Test {
  switch (query.type) {
    case 'query_string':
      return parseLucene(query.query_string)
    case 'bin':
      return allWords([`${query.bin}*`])
    case 'github_repository':
      return allWords([`${query.repo_owner}/${query.repo_name}`])
    case 'name':
      return allWords([query.first_name, query.last_name])
    case 'credentials':
      return allWords([query.username, query.password])
    case 'brand':
    case 'domain':
    case 'email':
    case 'keyword':
    case 'username':
    case 'ip':
    case 'secret':
    case 'azure_tenant': {
      const { type: _type, ...words } = query
      return allWords(Object.values(words))
    }
  }
}

function allWords(words: readonly string[]): Test {
  const finders = words.map(wordFinder)
  return ({ text }) => finders.every((finds) => finds(text))
}

/** Finds a whole word or phrase, ignoring case; a star stands for the rest of a word. */
function wordFinder(phrase: string): (text: string) => boolean {
  const escaped = phrase.trim().replaceAll(/[\\^$.+?()[\]{}|/]/g, String.raw`\$&`)
  const pattern = escaped
    .replaceAll('*', String.raw`[\p{L}\p{N}]*`)
    .replaceAll(/\s+/g, String.raw`\s+`)
  const whole = String.raw`(?<![\p{L}\p{N}])${pattern}(?![\p{L}\p{N}])`
  const expression = new RegExp(whole, 'iu')
  return (text) => expression.test(text)
}

const tokenPattern = /[()]|[-+!](?=\S)|(?:[\w.]+:)?"[^"]*"|[^\s()"]+|"/g
const maxDepth = 100

/** `place`: where the query stands in its request. Throws a Refusal. */
export function parseLucene(query: string, place?: readonly string[]): Test {
  const tokens = query.match(tokenPattern) ?? []
  try {
    const test = readAny(tokens, 0)
    if (tokens.length > 0) throw new Refusal(400, `an unexpected ${tokens[0]}`)
    return test
  } catch (error) {
    throw place && error instanceof Refusal ? invalid(place, error.message) : error
  }
}

function readAny(tokens: string[], depth: number): Test {
  if (depth > maxDepth) {
    throw new Refusal(400, `more than ${maxDepth} parentheses within each other`)
  }
  const tests = [readAll(tokens, depth)]
  while (tokens.length > 0 && tokens[0] !== ')') {
    if (tokens[0] === 'OR') tokens.shift()
    tests.push(readAll(tokens, depth))
  }
  return (document) => tests.some((matches) => matches(document))
}

function readAll(tokens: string[], depth: number): Test {
  const tests = [readOne(tokens, depth)]
  while (tokens[0] === 'AND' || tokens[0] === '&&') {
    tokens.shift()
    tests.push(readOne(tokens, depth))
  }
  return (document) => tests.every((matches) => matches(document))
}

function readOne(tokens: string[], depth: number): Test {
  const token = tokens.shift()
  if (token === undefined) throw new Refusal(400, 'a term is missing at the end')
  if (token === '+') return readOne(tokens, depth)
  if (token === 'NOT' || token === '-' || token === '!') {
    const excluded = readOne(tokens, depth)
    return (document) => !excluded(document)
  }
  if (token === '(') {
    const group = readAny(tokens, depth + 1)
    if (tokens.shift() !== ')') throw new Refusal(400, 'a parenthesis without its end')
    return group
  }
  if (/^(AND|OR|&&|\|\||\)|.*")$/.test(token) && !/".*"$/.test(token)) {
    throw new Refusal(400, `an unexpected ${token}`)
  }
  return termTest(token)
}

function termTest(token: string): Test {
  const [, field, given = ''] = /^(?:([\w.]+):)?(.+)$/s.exec(token) ?? []
  const matches = wordFinder(given.replaceAll('"', ''))
  if (field === undefined) return ({ text }) => matches(text)
  return ({ fields }) =>
    fields.some(
      ([path, value]) => (path === field || path.endsWith(`.${field}`)) && matches(String(value)),
    )
}
