import { many, one, type LuceneQuery, type Pattern } from './lucene-query.ts'
import { fitsPattern, isInRange, isWithin, nearFinder } from './lucene-terms.ts'
import type { SearchDocument } from './search-document.ts'
import { phraseFinder, wordTextOf, type WordText } from './words.ts'

type Test = (document: SearchDocument) => boolean

/** Judges documents; letters' case never matters. */
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
      const [text, { edits }] = [query.text.toLowerCase(), query]
      return anyText(query.field, ({ words }) => words.some((word) => isWithin(word, text, edits)))
    }
    case 'range': {
      const { field, from, to } = query
      return (document) => valuesOf(document, field).some((value) => isInRange(value, from, to))
    }
  }
}

function groupMatcher(clauses: Extract<LuceneQuery, { kind: 'group' }>['clauses']): Test {
  const testsOf = (occur: string): Test[] =>
    clauses.filter((clause) => clause.occur === occur).map(({ query }) => luceneMatcher(query))
  const [must, not, should] = [testsOf('must'), testsOf('not'), testsOf('should')]
  const isOneNeeded = must.length === 0 && should.length > 0
  return (document) =>
    must.every((holds) => holds(document)) &&
    !not.some((holds) => holds(document)) &&
    (!isOneNeeded || should.some((holds) => holds(document)))
}

function wordMatcher(field: string | null, pattern: Pattern): Test {
  const isAll = pattern.every((part) => part === many)
  if (isAll) return field === null ? () => true : (document) => valuesOf(document, field).length > 0
  const asked = pattern.map((part) => (typeof part === 'string' ? part.toLowerCase() : part))
  if (!asked.includes(many) && !asked.includes(one)) {
    const phrase = asked.join('')
    if (field === '_exists_') return (document) => valuesOf(document, phrase).length > 0
    return anyText(field, phraseFinder(phrase))
  }
  return anyText(
    field,
    ({ words, chunks, lower }) =>
      (field !== null && fitsPattern(asked, lower)) ||
      [...words, ...chunks].some((word) => fitsPattern(asked, word)),
  )
}

/** The whole document's text, or each value of one field. */
function anyText(field: string | null, holds: (text: WordText) => boolean): Test {
  if (field === null) return (document) => holds(textOf(document))
  return (document) => valuesOf(document, field).some((value) => holds(wordTextOf(value)))
}

function valuesOf(document: SearchDocument, field: string | null): readonly string[] {
  if (field === null) return textOf(document).words
  return Object.hasOwn(document.fields, field) ? (document.fields[field] ?? []) : []
}

const texts = new WeakMap<SearchDocument, WordText>()

function textOf(document: SearchDocument): WordText {
  const known = texts.get(document) ?? wordTextOf(document.text)
  texts.set(document, known)
  return known
}
