/**
 * Lucene's query syntax, as its own (classic) parser reads it: OR unless said otherwise, and an AND
 * that makes what stands on both its sides required, whatever ORs stand beyond; so parentheses are
 * wise. What only excludes finds all the rest. A boost changes nothing, since nothing is ranked.
 */
import { LuceneError, many, one } from './lucene-query.ts'
import type { LuceneClause, LuceneQuery, Pattern } from './lucene-query.ts'
import { tokensOf, type LuceneToken } from './lucene-tokens.ts'

export { luceneMatcher } from './lucene-matcher.ts'
export { LuceneError, type LuceneQuery } from './lucene-query.ts'

interface Reading {
  tokens: readonly LuceneToken[]
  place: number
  depth: number
}

/** Deeper parentheses are refused. */
const deepest = 100
const mostEdits = 2

/** Throws LuceneError, and nothing else. */
export function parseLucene(query: string): LuceneQuery {
  const reading: Reading = { tokens: tokensOf(query), place: 0, depth: 0 }
  const found = readGroup(reading, null)
  if (next(reading).kind !== 'end') throw unexpected(reading)
  return found
}

function readGroup(reading: Reading, field: string | null): LuceneQuery {
  const clauses: LuceneClause[] = []
  for (let isFirst = true; isFirst || !isOver(reading); isFirst = false) {
    const conjunction = isFirst ? null : takeOneOf(reading, ['AND', 'OR'])
    const sign = takeOneOf(reading, ['+', 'NOT'])
    const last = clauses.at(-1)
    if (conjunction === 'AND' && last?.occur === 'should') last.occur = 'must'
    const query = readClause(reading, field)
    clauses.push({ occur: occurOf(sign, conjunction), query })
  }
  return { kind: 'group', clauses }
}

function occurOf(
  sign: '+' | 'NOT' | null,
  conjunction: 'AND' | 'OR' | null,
): LuceneClause['occur'] {
  if (sign === 'NOT') return 'not'
  return sign === '+' || conjunction === 'AND' ? 'must' : 'should'
}

function isOver(reading: Reading): boolean {
  return ['end', ')'].includes(next(reading).kind)
}

/** `field:` before a term or a group, or neither. */
function readClause(reading: Reading, outer: string | null): LuceneQuery {
  const first = next(reading)
  const isField = reading.tokens[reading.place + 1]?.kind === ':'
  if (first.kind !== 'word' || !isField) return readTerm(reading, outer)
  reading.place += 2
  return readTerm(reading, fieldOf(first.pattern))
}

/** null: `*`, any field. */
function fieldOf(pattern: Pattern): string | null {
  const isAny = pattern.length === 1 && pattern[0] === many
  return isAny ? null : textOf(pattern).toLowerCase()
}

function readTerm(reading: Reading, field: string | null): LuceneQuery {
  const token = next(reading)
  const { kind } = token
  if (kind !== '(' && kind !== 'word' && kind !== 'quoted' && kind !== 'range') {
    throw unexpected(reading)
  }
  reading.place++
  switch (kind) {
    case '(':
      return readParentheses(reading, field)
    case 'word':
      return readWord(reading, field, token.pattern)
    case 'quoted': {
      const slop = suffix(reading, '~') ?? 0
      suffix(reading, '^')
      return { kind: 'phrase', field, text: token.text, slop }
    }
    case 'range':
      suffix(reading, '^')
      return { kind: 'range', field, from: token.from, to: token.to }
  }
}

function readParentheses(reading: Reading, field: string | null): LuceneQuery {
  const at = reading.tokens[reading.place - 1]?.at
  if (++reading.depth > deepest) {
    throw new LuceneError(`more than ${deepest} parentheses within each other at character ${at}`)
  }
  const group = readGroup(reading, field)
  if (!takeOneOf(reading, [')'])) {
    throw new LuceneError(`a parenthesis at character ${at} without its end`)
  }
  reading.depth--
  suffix(reading, '^')
  return group
}

function readWord(reading: Reading, field: string | null, pattern: Pattern): LuceneQuery {
  const text = textOf(pattern)
  const isFuzzy = next(reading).kind === '~'
  const given = suffix(reading, '~')
  suffix(reading, '^')
  if (isFuzzy) return { kind: 'fuzzy', field, text, edits: editsOf(given, text) }
  const compared = field === null ? null : /^([<>])(=?)(.+)$/s.exec(text)
  if (!compared) return { kind: 'word', field, pattern }
  const bound = { text: compared[3] ?? '', isIncluded: compared[2] === '=' }
  const isFrom = compared[1] === '>'
  return { kind: 'range', field, from: isFrom ? bound : null, to: isFrom ? null : bound }
}

/** A whole number is one of edits; below 1 it is the likeness of older versions. */
function editsOf(given: number | null, text: string): number {
  if (given === null) return mostEdits
  return Math.min(mostEdits, given < 1 ? Math.floor((1 - given) * text.length) : Math.trunc(given))
}

function suffix(reading: Reading, sign: '~' | '^'): number | null {
  const token = next(reading)
  if (token.kind !== sign) return null
  reading.place++
  if (sign === '^' && token.value === null) {
    throw new LuceneError(`a boost without its number at character ${token.at}`)
  }
  return token.value
}

function textOf(pattern: Pattern): string {
  const signs = pattern.map((part) => {
    if (part === many) return '*'
    return part === one ? '?' : part
  })
  return signs.join('')
}

function next(reading: Reading): LuceneToken {
  return reading.tokens[Math.min(reading.place, reading.tokens.length - 1)] as LuceneToken
}

function takeOneOf<Kind extends LuceneToken['kind']>(
  reading: Reading,
  kinds: readonly Kind[],
): Kind | null {
  const kind = kinds.find((wanted) => wanted === next(reading).kind)
  if (kind) reading.place++
  return kind ?? null
}

function unexpected(reading: Reading): LuceneError {
  const { kind, at } = next(reading)
  if (kind === 'end') return new LuceneError('the query ends where a term should follow')
  const sign = kind === 'NOT' ? 'NOT, - or !' : kind
  return new LuceneError(`a term should stand before ${sign} at character ${at}`)
}
