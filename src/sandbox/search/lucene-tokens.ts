import { LuceneError, many, one, type Bound, type Pattern } from './lucene-query.ts'

/** `at`: where it stands in the query, counted from one. */
export type LuceneToken = { at: number } & (
  | { kind: '(' | ')' | ':' | '+' | 'NOT' | 'AND' | 'OR' | 'end' }
  | { kind: 'word'; pattern: Pattern }
  | { kind: 'quoted'; text: string }
  | { kind: 'range'; from: Bound | null; to: Bound | null }
  | { kind: '~' | '^'; value: number | null }
)

type Said = LuceneToken extends infer Token
  ? Token extends { at: number }
    ? Omit<Token, 'at'>
    : never
  : never

const edge = String.raw`"(?:\\[\s\S]|[^"\\])*"|(?:\\[\s\S]|[^\s\\\]}])+`
/** By what a token begins with, in this order; a word may hold signs, but not begin with one. */
const shapes: readonly [RegExp, (match: RegExpExecArray) => Said | null][] = [
  [/\s+/y, () => null],
  [/[():+]/y, ([sign]) => ({ kind: sign as '(' | ')' | ':' | '+' })],
  [/[-!]/y, () => ({ kind: 'NOT' })],
  [/"((?:\\[\s\S]|[^"\\])*)"/y, ([, text]) => ({ kind: 'quoted', text: unescaped(text ?? '') })],
  [new RegExp(String.raw`([[{])\s*(${edge})\s+TO\s+(${edge})\s*([\]}])`, 'y'), rangeOf],
  [/([~^])(\d+(?:\.\d+)?)?/y, suffixOf],
  [/(?:\\[\s\S]|[^\s()[\]{}:"~^\\/])(?:\\[\s\S]|[^\s()[\]{}:"~^\\])*/y, ([word]) => wordOf(word)],
]
/** Behind a colon a sign belongs to the word, so that `price:-5` is a number. */
const signed = /[-+](?:\\[\s\S]|[^\s()[\]{}:"~^\\])+/y

const operators: Record<string, 'AND' | 'OR' | 'NOT'> = {
  AND: 'AND',
  '&&': 'AND',
  OR: 'OR',
  '||': 'OR',
  NOT: 'NOT',
}

/** Takes time in proportion to the query's length. Throws LuceneError. */
export function tokensOf(query: string): LuceneToken[] {
  const tokens: LuceneToken[] = []
  let place = 0
  while (place < query.length) {
    const isBehindColon = tokens.at(-1)?.kind === ':'
    const { said, length } = readToken(query, place, isBehindColon)
    if (said) tokens.push({ ...said, at: place + 1 } as LuceneToken)
    place += length
  }
  return [...tokens, { kind: 'end', at: query.length + 1 }]
}

function readToken(
  query: string,
  place: number,
  isBehindColon: boolean,
): { said: Said | null; length: number } {
  signed.lastIndex = place
  const number = isBehindColon ? signed.exec(query) : null
  if (number) return { said: wordOf(number[0]), length: number[0].length }
  for (const [shape, read] of shapes) {
    shape.lastIndex = place
    const match = shape.exec(query)
    if (match) return { said: read(match), length: match[0].length }
  }
  throw new LuceneError(`${faultOf(query[place] ?? '')} at character ${place + 1}`)
}

function faultOf(sign: string): string {
  switch (sign) {
    case '"':
      return 'a quotation mark without its end'
    case '[':
    case '{':
      return 'a range that is not of the form [from TO to]'
    case '/':
      return 'a regular expression, which is not supported (in a term, write \\/)'
    case '\\':
      return 'a backslash with nothing to escape'
    default:
      return `an unexpected ${sign} (to mean the sign itself, write \\${sign})`
  }
}

function wordOf(word: string): Said {
  const operator = Object.hasOwn(operators, word) ? operators[word] : undefined
  return operator ? { kind: operator } : { kind: 'word', pattern: patternOf(word) }
}

function patternOf(word: string): Pattern {
  return [...word.matchAll(/\\([\s\S])|([\s\S])/gu)].map(([, escaped, plain]) => {
    if (plain === '*') return many
    return plain === '?' ? one : (escaped ?? plain ?? '')
  })
}

function rangeOf([, open, from = '', to = '', close]: RegExpExecArray): Said {
  return {
    kind: 'range',
    from: boundOf(from, open === '['),
    to: boundOf(to, close === ']'),
  }
}

/** null: open on that side. */
function boundOf(edgeText: string, isIncluded: boolean): Bound | null {
  if (edgeText === '*') return null
  const isQuoted = edgeText.startsWith('"') && edgeText.endsWith('"') && edgeText.length > 1
  return { text: unescaped(isQuoted ? edgeText.slice(1, -1) : edgeText), isIncluded }
}

function suffixOf([, sign, value]: RegExpExecArray): Said {
  return { kind: sign as '~' | '^', value: value === undefined ? null : Number(value) }
}

function unescaped(text: string): string {
  return text.replaceAll(/\\([\s\S])/g, '$1')
}
