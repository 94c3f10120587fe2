/** A query in Lucene's syntax, as understood. */
export type LuceneQuery =
  | { kind: 'group'; clauses: readonly LuceneClause[] }
  | { kind: 'word'; field: string | null; pattern: Pattern }
  | { kind: 'phrase'; field: string | null; text: string; slop: number }
  | { kind: 'fuzzy'; field: string | null; text: string; edits: number }
  | { kind: 'range'; field: string | null; from: Bound | null; to: Bound | null }

/** `must` and `not` bind all others; where nothing must be, one of the rest has to. */
export interface LuceneClause {
  occur: 'should' | 'must' | 'not'
  query: LuceneQuery
}

export interface Bound {
  text: string
  isIncluded: boolean
}

/** Characters, where `one` stands for any of them and `many` for any number of any. */
export type Pattern = readonly (string | typeof one | typeof many)[]
export const one = Symbol('?')
export const many = Symbol('*')

/** The query is none; the message says where, and what would be one. */
export class LuceneError extends Error {
  override name = 'LuceneError'
}
