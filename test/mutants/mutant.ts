/** A mutant is one small change to one file: the text between two offsets becomes another. */
export interface Mutant extends Change {
  /** Path from the root of the project, with forward slashes. */
  file: string
  before: string
  /** From 1. */
  line: number
  /** The lines it touches, as they are and as they become: its lasting name, whatever moves around them. */
  was: string
  is: string
}

/** A change that a rule proposes: the text between the offsets, in UTF-16 units, becomes `after`. */
export interface Change {
  operator: string
  start: number
  end: number
  after: string
}

/** Operators of both languages that have a counterpart. */
export const counterparts: Record<string, [kind: string, operator: string]> = {
  '<': ['comparison', '<='],
  '<=': ['comparison', '<'],
  '>': ['comparison', '>='],
  '>=': ['comparison', '>'],
  '===': ['comparison', '!=='],
  '!==': ['comparison', '==='],
  '==': ['comparison', '~='],
  '~=': ['comparison', '=='],
  '+': ['arithmetic', '-'],
  '-': ['arithmetic', '+'],
  '*': ['arithmetic', '/'],
  '/': ['arithmetic', '*'],
  '+=': ['arithmetic', '-='],
  '-=': ['arithmetic', '+='],
  '&&': ['logic', '||'],
  '||': ['logic', '&&'],
  and: ['logic', 'or'],
  or: ['logic', 'and'],
}

/** Two rules that propose the same text make one mutant; a change that changes nothing makes none. */
export function toMutants(file: string, text: string, changes: readonly Change[]): Mutant[] {
  const byName = new Map(
    changes
      .filter(({ start, end, after }) => text.slice(start, end) !== after)
      .map((change) => [`${change.start} ${change.end} ${change.after}`, change]),
  )
  return [...byName.values()]
    .toSorted((one, other) => one.start - other.start || one.end - other.end)
    .map((change) => {
      const { start, end, after } = change
      const first = text.lastIndexOf('\n', start - 1) + 1
      const lineEnd = text.indexOf('\n', end)
      const last = lineEnd === -1 ? text.length : lineEnd
      return {
        ...change,
        file,
        before: text.slice(start, end),
        line: text.slice(0, start).split('\n').length,
        was: unspaced(text.slice(first, last)),
        is: unspaced(text.slice(first, start) + after + text.slice(end, last)),
      }
    })
}

export function applyMutant(text: string, { start, end, after }: Change): string {
  return text.slice(0, start) + after + text.slice(end)
}

export function describeMutant({ file, line, operator, was, is }: Mutant): string {
  return `${file}:${line}  ${operator}\n  was: ${was}\n  is:  ${is}`
}

function unspaced(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
