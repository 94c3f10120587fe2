/**
 * Lucene query syntax, as Lucene's classic parser reads it. Terms are joined by OR unless stated
 * otherwise. An AND makes the terms on both its sides required, whatever ORs follow, so parentheses
 * are advisable. A query that only excludes finds everything else. Boosts have no effect, since
 * nothing is ranked.
 */
import { readStolen, formatZonelessTime } from '../history/draft.ts'
import type { SandboxEvent } from '../history/history.ts'
import { parseInstant } from './filters.ts'

interface ParseState {
  tokens: readonly LuceneToken[]
  place: number
  depth: number
}

/** Parentheses nested deeper are refused. */
const maxDepth = 100
const maxEdits = 2

/** Throws nothing but LuceneError. */
export function parseLucene(query: string): LuceneQuery {
  const state: ParseState = { tokens: tokenize(query), place: 0, depth: 0 }
  const found = readGroup(state, null)
  if (peek(state).kind !== 'end') throw unexpected(state)
  return found
}

function readGroup(state: ParseState, field: string | null): LuceneQuery {
  const clauses: LuceneClause[] = []
  for (let isFirst = true; isFirst || !isGroupEnd(state); isFirst = false) {
    const conjunction = isFirst ? null : takeOneOf(state, ['AND', 'OR'])
    const sign = takeOneOf(state, ['+', 'NOT'])
    const last = clauses.at(-1)
    if (conjunction === 'AND' && last?.occur === 'should') last.occur = 'must'
    const query = readClause(state, field)
    clauses.push({ occur: toOccur(sign, conjunction), query })
  }
  return { kind: 'group', clauses }
}

function toOccur(
  sign: '+' | 'NOT' | null,
  conjunction: 'AND' | 'OR' | null,
): LuceneClause['occur'] {
  if (sign === 'NOT') return 'not'
  return sign === '+' || conjunction === 'AND' ? 'must' : 'should'
}

function isGroupEnd(state: ParseState): boolean {
  return ['end', ')'].includes(peek(state).kind)
}

/** Reads a term or a group, with or without `field:` before it. */
function readClause(state: ParseState, outer: string | null): LuceneQuery {
  const first = peek(state)
  const isField = state.tokens[state.place + 1]?.kind === ':'
  if (first.kind !== 'word' || !isField) return readTerm(state, outer)
  state.place += 2
  return readTerm(state, toField(first.pattern))
}

/** Returns null for `*`, which means any field. */
function toField(pattern: Pattern): string | null {
  const isAny = pattern.length === 1 && pattern[0] === anyCharacters
  return isAny ? null : foldCase(patternText(pattern))
}

function readTerm(state: ParseState, field: string | null): LuceneQuery {
  const token = peek(state)
  const { kind } = token
  if (kind !== '(' && kind !== 'word' && kind !== 'quoted' && kind !== 'range') {
    throw unexpected(state)
  }
  state.place++
  switch (kind) {
    case '(':
      return readParentheses(state, field)
    case 'word':
      return readWord(state, field, token.pattern)
    case 'quoted': {
      const slop = takeSuffix(state, '~') ?? 0
      takeSuffix(state, '^')
      return { kind: 'phrase', field, text: token.text, slop }
    }
    case 'range':
      takeSuffix(state, '^')
      return { kind: 'range', field, from: token.from, to: token.to }
  }
}

function readParentheses(state: ParseState, field: string | null): LuceneQuery {
  const at = state.tokens[state.place - 1]?.at
  if (++state.depth > maxDepth) {
    throw new LuceneError(`more than ${maxDepth} parentheses within each other at character ${at}`)
  }
  const group = readGroup(state, field)
  if (!takeOneOf(state, [')'])) {
    throw new LuceneError(`a parenthesis at character ${at} without its end`)
  }
  state.depth--
  takeSuffix(state, '^')
  return group
}

function readWord(state: ParseState, field: string | null, pattern: Pattern): LuceneQuery {
  const text = patternText(pattern)
  const isFuzzy = peek(state).kind === '~'
  const given = takeSuffix(state, '~')
  takeSuffix(state, '^')
  if (isFuzzy) return { kind: 'fuzzy', field, text, edits: toEdits(given, text) }
  const compared = field === null ? null : /^([<>])(=?)(.+)$/s.exec(text)
  if (!compared) return { kind: 'word', field, pattern }
  const bound = { text: compared[3] ?? '', isIncluded: compared[2] === '=' }
  const isFrom = compared[1] === '>'
  return { kind: 'range', field, from: isFrom ? bound : null, to: isFrom ? null : bound }
}

/** From 1 on a number of edits; below 1 the similarity of older versions. */
function toEdits(given: number | null, text: string): number {
  if (given === null) return maxEdits
  return Math.min(maxEdits, given < 1 ? Math.floor((1 - given) * text.length) : Math.trunc(given))
}

function takeSuffix(state: ParseState, sign: '~' | '^'): number | null {
  const token = peek(state)
  if (token.kind !== sign) return null
  state.place++
  if (sign === '^' && token.value === null) {
    throw new LuceneError(`a boost without its number at character ${token.at}`)
  }
  return token.value
}

function patternText(pattern: Pattern): string {
  const signs = pattern.map((part) => {
    if (part === anyCharacters) return '*'
    return part === anyCharacter ? '?' : part
  })
  return signs.join('')
}

function peek(state: ParseState): LuceneToken {
  return state.tokens[Math.min(state.place, state.tokens.length - 1)] as LuceneToken
}

function takeOneOf<Kind extends LuceneToken['kind']>(
  state: ParseState,
  kinds: readonly Kind[],
): Kind | null {
  const kind = kinds.find((wanted) => wanted === peek(state).kind)
  if (kind) state.place++
  return kind ?? null
}

function unexpected(state: ParseState): LuceneError {
  const { kind, at } = peek(state)
  if (kind === 'end') return new LuceneError('the query ends where a term should follow')
  const sign = kind === 'NOT' ? 'NOT, - or !' : kind
  return new LuceneError(`a term should stand before ${sign} at character ${at}`)
}

/** `at`: position in the query, counted from 1. */
type LuceneToken = { at: number } & (
  | { kind: '(' | ')' | ':' | '+' | 'NOT' | 'AND' | 'OR' | 'end' }
  | { kind: 'word'; pattern: Pattern }
  | { kind: 'quoted'; text: string }
  | { kind: 'range'; from: Bound | null; to: Bound | null }
  | { kind: '~' | '^'; value: number | null }
)

type TokenContent = LuceneToken extends infer Token
  ? Token extends { at: number }
    ? Omit<Token, 'at'>
    : never
  : never

const boundSource = String.raw`"(?:\\[\s\S]|[^"\\])*"|(?:\\[\s\S]|[^\s\\\]}])+`
/** Tried in this order. A word may contain signs, but not begin with one. */
const tokenShapes: readonly [RegExp, (match: RegExpExecArray) => TokenContent | null][] = [
  [/\s+/y, () => null],
  [/[():+]/y, ([sign]) => ({ kind: sign as '(' | ')' | ':' | '+' })],
  [/[-!]/y, () => ({ kind: 'NOT' })],
  [/"((?:\\[\s\S]|[^"\\])*)"/y, ([, text]) => ({ kind: 'quoted', text: unescapeText(text ?? '') })],
  [
    new RegExp(String.raw`([[{])\s*(${boundSource})\s+TO\s+(${boundSource})\s*([\]}])`, 'y'),
    toRangeToken,
  ],
  [/([~^])(\d+(?:\.\d+)?)?/y, toSuffixToken],
  [
    /(?:\\[\s\S]|[^\s()[\]{}:"~^\\/])(?:\\[\s\S]|[^\s()[\]{}:"~^\\])*/y,
    ([word]) => toWordToken(word),
  ],
]
/** After a colon a sign belongs to the word, so that `price:-5` is a number. */
const signedWord = /[-+](?:\\[\s\S]|[^\s()[\]{}:"~^\\])+/y

const operators: Record<string, 'AND' | 'OR' | 'NOT'> = {
  AND: 'AND',
  '&&': 'AND',
  OR: 'OR',
  '||': 'OR',
  NOT: 'NOT',
}

/** Takes time proportional to the query's length. Throws LuceneError. */
function tokenize(query: string): LuceneToken[] {
  const tokens: LuceneToken[] = []
  let place = 0
  while (place < query.length) {
    const isBehindColon = tokens.at(-1)?.kind === ':'
    const { said: content, length } = readToken(query, place, isBehindColon)
    if (content) tokens.push({ ...content, at: place + 1 } as LuceneToken)
    place += length
  }
  return [...tokens, { kind: 'end', at: query.length + 1 }]
}

function readToken(
  query: string,
  place: number,
  isBehindColon: boolean,
): { said: TokenContent | null; length: number } {
  signedWord.lastIndex = place
  const number = isBehindColon ? signedWord.exec(query) : null
  if (number) return { said: toWordToken(number[0]), length: number[0].length }
  for (const [shape, read] of tokenShapes) {
    shape.lastIndex = place
    const match = shape.exec(query)
    if (match) return { said: read(match), length: match[0].length }
  }
  throw new LuceneError(`${describeFault(query[place] ?? '')} at character ${place + 1}`)
}

function describeFault(sign: string): string {
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

function toWordToken(word: string): TokenContent {
  const operator = Object.hasOwn(operators, word) ? operators[word] : undefined
  return operator ? { kind: operator } : { kind: 'word', pattern: toPattern(word) }
}

function toPattern(word: string): Pattern {
  return [...word.matchAll(/\\([\s\S])|([\s\S])/gu)].map(([, escaped, plain]) => {
    if (plain === '*') return anyCharacters
    return plain === '?' ? anyCharacter : (escaped ?? plain ?? '')
  })
}

function toRangeToken([, open, from = '', to = '', close]: RegExpExecArray): TokenContent {
  return {
    kind: 'range',
    from: toBound(from, open === '['),
    to: toBound(to, close === ']'),
  }
}

/** Returns null if the range is open on that side. */
function toBound(edgeText: string, isIncluded: boolean): Bound | null {
  if (edgeText === '*') return null
  const isQuoted = edgeText.startsWith('"') && edgeText.endsWith('"') && edgeText.length > 1
  return { text: unescapeText(isQuoted ? edgeText.slice(1, -1) : edgeText), isIncluded }
}

function toSuffixToken([, sign, value]: RegExpExecArray): TokenContent {
  return { kind: sign as '~' | '^', value: value === undefined ? null : Number(value) }
}

function unescapeText(text: string): string {
  return text.replaceAll(/\\([\s\S])/g, '$1')
}

/** Takes at most time proportional to the product of both lengths. */
function matchesPattern(pattern: Pattern, text: string): boolean {
  const signs = Array.from(text)
  let [place, at] = [0, 0]
  let retry: { place: number; at: number } | null = null
  while (at < signs.length) {
    const part = pattern[place]
    if (part === anyCharacters) {
      retry = { place: ++place, at }
    } else if (part === anyCharacter || part === signs[at]) {
      place++
      at++
    } else if (retry) {
      retry = { place: retry.place, at: retry.at + 1 }
      place = retry.place
      at = retry.at
    } else return false
  }
  return pattern.slice(place).every((part) => part === anyCharacters)
}

/** Whether `phrase` occurs with at most `slop` other words between its words. */
function nearFinder(phrase: string, slop: number): (text: WordText) => boolean {
  const [first, ...rest] = splitWords(phrase)
  return ({ words }) =>
    words.some((word, start) => {
      if (word !== first) return false
      let last = start
      for (const phraseWord of rest) {
        last = words.indexOf(phraseWord, last + 1)
        if (last === -1) return false
      }
      return last - start - rest.length <= slop
    })
}

/** Whether the words are at most `edits` edits apart. */
function isWithinEdits(left: string, right: string, edits: number): boolean {
  if (Math.abs(left.length - right.length) > edits) return false
  let row = Array.from({ length: right.length + 1 }, (_unused, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const below = [i]
    for (let j = 1; j <= right.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)
      below.push(Math.min(replaced, (row[j] ?? 0) + 1, (below[j - 1] ?? 0) + 1))
    }
    if (Math.min(...below) > edits) return false
    row = below
  }
  return (row[right.length] ?? Infinity) <= edits
}

/** Compares numbers by size, dates by time (a day as a whole), others by letters. */
function isInRange(value: string, from: Bound | null, to: Bound | null): boolean {
  const above = from === null ? 1 : compareToBound(value, from.text, !from.isIncluded)
  const below = to === null ? -1 : compareToBound(value, to.text, to.isIncluded)
  return (from?.isIncluded ? above >= 0 : above > 0) && (to?.isIncluded ? below <= 0 : below < 0)
}

const numberPattern = /^[-+]?\d+(?:\.\d+)?$/
const datePattern = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[-+]\d\d:?\d\d)?)?$/
const dayMs = 86_400_000

/** Returns a number below, at or above 0. `atEnd`: a bound that is a day means its end. */
function compareToBound(value: string, bound: string, atEnd: boolean): number {
  if (numberPattern.test(value) && numberPattern.test(bound)) return Number(value) - Number(bound)
  if (datePattern.test(value) && datePattern.test(bound)) {
    return (
      parseInstant(value) - parseInstant(bound) - (atEnd && !bound.includes('T') ? dayMs - 1 : 0)
    )
  }
  const [left, right] = [foldCase(value), foldCase(bound)]
  if (left === right) return 0
  return left < right ? -1 : 1
}

type Test = (document: SearchDocument) => boolean

/** Returns a test for documents, which ignores case. */
export function luceneMatcher(query: LuceneQuery): Test {
  switch (query.kind) {
    case 'group':
      return groupMatcher(query.clauses)
    case 'word':
      return wordMatcher(query.field, query.pattern)
    case 'phrase': {
      const { field, text, slop } = query
      return anyText(field, slop === 0 ? phraseFinder(text) : nearFinder(text, slop))
    }
    case 'fuzzy': {
      const [text, { edits }] = [foldCase(query.text), query]
      return anyText(query.field, ({ words }) =>
        words.some((word) => isWithinEdits(word, text, edits)),
      )
    }
    case 'range': {
      const { field, from, to } = query
      return (document) => fieldValues(document, field).some((value) => isInRange(value, from, to))
    }
  }
}

function groupMatcher(clauses: Extract<LuceneQuery, { kind: 'group' }>['clauses']): Test {
  const clauseTests = (occur: string): Test[] =>
    clauses.filter((clause) => clause.occur === occur).map(({ query }) => luceneMatcher(query))
  const [must, not, should] = [clauseTests('must'), clauseTests('not'), clauseTests('should')]
  const isOneNeeded = must.length === 0 && should.length > 0
  return (document) =>
    must.every((holds) => holds(document)) &&
    !not.some((holds) => holds(document)) &&
    (!isOneNeeded || should.some((holds) => holds(document)))
}

function wordMatcher(field: string | null, pattern: Pattern): Test {
  const isAll = pattern.every((part) => part === anyCharacters)
  if (isAll)
    return field === null ? () => true : (document) => fieldValues(document, field).length > 0
  const lowerPattern = pattern.map((part) => (typeof part === 'string' ? foldCase(part) : part))
  if (!lowerPattern.includes(anyCharacters) && !lowerPattern.includes(anyCharacter)) {
    const phrase = lowerPattern.join('')
    if (field === '_exists_') return (document) => fieldValues(document, phrase).length > 0
    return anyText(field, phraseFinder(phrase))
  }
  return anyText(
    field,
    ({ words, chunks, lower }) =>
      (field !== null && matchesPattern(lowerPattern, lower)) ||
      [...words, ...chunks].some((word) => matchesPattern(lowerPattern, word)),
  )
}

/** Tests the whole document's text, or each value of one field. */
function anyText(field: string | null, holds: (text: WordText) => boolean): Test {
  if (field === null) return (document) => holds(wordsOfDocument(document))
  return (document) => fieldValues(document, field).some((value) => holds(toWordText(value)))
}

function fieldValues(document: SearchDocument, field: string | null): readonly string[] {
  if (field === null) return wordsOfDocument(document).words
  return Object.hasOwn(document.fields, field) ? (document.fields[field] ?? []) : []
}

const documentTexts = new WeakMap<SearchDocument, WordText>()

function wordsOfDocument(document: SearchDocument): WordText {
  const known = documentTexts.get(document) ?? toWordText(document.text)
  documentTexts.set(document, known)
  return known
}

/** A parsed query. */
type LuceneQuery =
  | { kind: 'group'; clauses: readonly LuceneClause[] }
  | { kind: 'word'; field: string | null; pattern: Pattern }
  | { kind: 'phrase'; field: string | null; text: string; slop: number }
  | { kind: 'fuzzy'; field: string | null; text: string; edits: number }
  | { kind: 'range'; field: string | null; from: Bound | null; to: Bound | null }

/** Matches need every `must`, no `not`, and, without a `must`, one `should` if there are any. */
interface LuceneClause {
  occur: 'should' | 'must' | 'not'
  query: LuceneQuery
}

interface Bound {
  text: string
  isIncluded: boolean
}

/**
 * Characters, where `anyCharacter` stands for any one and `anyCharacters` for any number of any.
 */
type Pattern = readonly (string | typeof anyCharacter | typeof anyCharacters)[]
const anyCharacter = Symbol('?')
const anyCharacters = Symbol('*')

/** The query is invalid; the message says where and why. */
export class LuceneError extends Error {
  override name = 'LuceneError'
}

/** An event as searches see it: with stolen contents, without what a tenant adds. */
export interface SearchDocument {
  /** All texts, one per line. */
  text: string
  /** By dotted path: full (`data.actor.name`), without `data` or `metadata`, and by last name. */
  fields: Readonly<Record<string, readonly string[]>>
}

type Leaf = readonly [path: string, value: string | number | boolean]

export function toSearchDocument(event: SandboxEvent): SearchDocument {
  const leaves = 'raw' in event ? collectLeaves('', event.raw) : eventLeaves(event)
  let fields: SearchDocument['fields'] | undefined
  return {
    text: listTexts(event, leaves).join('\n'),
    get fields() {
      return (fields ??= indexFields(leaves))
    },
  }
}

function eventLeaves(event: SandboxEvent): Leaf[] {
  const metadata = {
    uid: event.uid,
    type: event.type,
    severity: event.severity,
    estimated_created_at: `${formatZonelessTime(event.createdAtMs)}Z`,
  }
  return collectLeaves('', { metadata, data: { ...event.data, ...readStolen(event) } })
}

function listTexts(event: SandboxEvent, leaves: readonly Leaf[]): string[] {
  const leafTexts = leaves.flatMap(([path, value]) =>
    typeof value === 'string' && !path.startsWith('metadata.') ? [value] : [],
  )
  if ('raw' in event) return leafTexts
  const shown = Object.values(event.highlights)
    .flat()
    .filter((text) => typeof text === 'string') // a test may put anything there
    .map((text) => text.replaceAll(/<\/?mark>/g, ''))
  return [
    ...new Set([...shown, ...leafTexts, event.uid, ...event.identifiers.map(({ name }) => name)]),
  ]
}

function collectLeaves(path: string, value: unknown, leaves: Leaf[] = []): Leaf[] {
  if (Array.isArray(value)) {
    for (const entry of value) collectLeaves(path, entry, leaves)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      collectLeaves(path === '' ? foldCase(key) : `${path}.${foldCase(key)}`, inner, leaves)
    }
  } else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    leaves.push([path, value])
  }
  return leaves
}

function indexFields(leaves: readonly Leaf[]): Record<string, string[]> {
  const fields = new Map<string, string[]>()
  for (const [path, value] of leaves) {
    for (const name of fieldNames(path)) {
      const values = fields.get(name) ?? []
      fields.set(name, values)
      values.push(String(value))
    }
  }
  return Object.fromEntries(fields)
}

function fieldNames(path: string): Set<string> {
  return new Set([path, path.replace(/^(?:data|metadata)\./, ''), path.split('.').at(-1) ?? path])
}

/** A text as searches see it: words in lower case, whatever separates them. */
export interface WordText {
  words: readonly string[]
  /** All words, each with a space before and after it. */
  joined: string
  /** Pieces between white space, in lower case, with and without punctuation around them. */
  chunks: readonly string[]
  lower: string
}

/** In scripts without spaces each character is a word, as in Lucene. */
const wordPattern =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[[\p{L}\p{N}\p{M}_]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]]+/gv
const edgePunctuation = /^[\p{P}\p{S}]+|[\p{P}\p{S}]+$/gu

/** Small letters; a sigma at the end of a word is the same letter as one within. */
function foldCase(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ')
}

function splitWords(text: string): string[] {
  return foldCase(text).match(wordPattern) ?? []
}

/** Computes each form on first use. */
export function toWordText(text: string): WordText {
  const lower = foldCase(text)
  let found: string[] | undefined
  let joined: string | undefined
  let chunks: string[] | undefined
  return {
    lower,
    get words() {
      return (found ??= splitWords(lower))
    },
    get joined() {
      return (joined ??= ` ${this.words.join(' ')} `)
    },
    get chunks() {
      return (chunks ??= splitChunks(lower))
    },
  }
}

function splitChunks(lower: string): string[] {
  return lower.split(/\s+/).flatMap((chunk) => [chunk, chunk.replaceAll(edgePunctuation, '')])
}

/** Whether a text contains the words of `phrase` in a row; without words, its signs. */
export function phraseFinder(phrase: string): (text: WordText) => boolean {
  const phraseWords = splitWords(phrase)
  const joined = ` ${phraseWords.join(' ')} `
  const signs = foldCase(phrase).trim()
  return (text) =>
    phraseWords.length === 0 ? text.lower.includes(signs) : text.joined.includes(joined)
}
