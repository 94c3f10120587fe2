/**
 * The part of Lucene's query syntax that the sandbox knows: words, quoted phrases, `field:value`,
 * AND, OR, NOT and parentheses. A star ends a word. Words side by side are joined by OR.
 */
import { type SearchDocument, wordFinder } from './document.ts'

type Test = (document: SearchDocument) => boolean

/** The query is invalid. */
export class LuceneError extends Error {
  override name = 'LuceneError'
}

const tokenPattern = /[()]|[-+!](?=\S)|(?:[\w.]+:)?"[^"]*"|[^\s()"]+|"/g
const maxDepth = 100

/** Throws nothing but LuceneError. */
export function parseLucene(query: string): Test {
  const tokens = query.match(tokenPattern) ?? []
  const test = readAny(tokens, 0)
  if (tokens.length > 0) throw new LuceneError(`an unexpected ${tokens[0]}`)
  return test
}

function readAny(tokens: string[], depth: number): Test {
  if (depth > maxDepth) throw new LuceneError(`more than ${maxDepth} parentheses within each other`)
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
  if (token === undefined) throw new LuceneError('a term is missing at the end')
  if (token === '+') return readOne(tokens, depth)
  if (token === 'NOT' || token === '-' || token === '!') {
    const excluded = readOne(tokens, depth)
    return (document) => !excluded(document)
  }
  if (token === '(') {
    const group = readAny(tokens, depth + 1)
    if (tokens.shift() !== ')') throw new LuceneError('a parenthesis without its end')
    return group
  }
  if (/^(AND|OR|&&|\|\||\)|.*")$/.test(token) && !/".*"$/.test(token)) {
    throw new LuceneError(`an unexpected ${token}`)
  }
  return termTest(token)
}

function termTest(token: string): Test {
  const [, field, given = ''] = /^(?:([\w.]+):)?(.+)$/s.exec(token) ?? []
  const matches = wordFinder(given.replaceAll('"', ''))
  if (field === undefined) return ({ text }) => matches(text)
  return ({ fields }) =>
    fields.some(([path, value]) => isField(path, field) && matches(String(value)))
}

function isField(path: string, field: string): boolean {
  return path === field || path.endsWith(`.${field}`)
}
