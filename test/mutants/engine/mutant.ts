/** A mutant is one small change to one file: the text between two offsets becomes another. */
export interface Mutant {
  /** Path from the root of the project, with forward slashes. */
  file: string
  operator: string
  /** Offsets in the file's text, in UTF-16 units. */
  start: number
  end: number
  /** What stands there instead of `before`. */
  before: string
  after: string
  /** From 1. */
  line: number
  /** The lines it touches, as they are and as they become: its lasting name, whatever moves around them. */
  was: string
  is: string
}

/** A change that a rule proposes: the text between the offsets becomes `after`. */
export interface Change {
  operator: string
  start: number
  end: number
  after: string
}

/**
 * Small numbers count and index something: one more, one less. Larger ones are limits, of which one more or less is
 * nobody's promise: ten times as much, or a tenth. The largest are times and sizes in bytes, and stay.
 */
export function otherNumbers(value: number): number[] {
  if (value > 1000) return []
  if (value < 1) return [value + 1]
  return value <= 10 ? [value + 1, value - 1] : [value * 10, Math.floor(value / 10)]
}

/** Two rules that propose the same text make one mutant; a change that changes nothing makes none. */
export function toMutants(file: string, text: string, changes: readonly Change[]): Mutant[] {
  const seen = new Set<string>()
  return changes
    .toSorted((one, other) => one.start - other.start || one.end - other.end)
    .filter(({ start, end, after }) => {
      const name = `${start} ${end} ${after}`
      if (seen.has(name) || text.slice(start, end) === after) return false
      seen.add(name)
      return true
    })
    .map((change) => {
      const { start, end, after } = change
      return {
        file,
        ...change,
        before: text.slice(start, end),
        ...linesOf(text, start, end, after),
      }
    })
}

export function applyMutant(text: string, { start, end, after }: Mutant): string {
  return text.slice(0, start) + after + text.slice(end)
}

/** One line for people: place, operator, before → after. */
export function describeMutant({ file, line, operator, before, after }: Mutant): string {
  return `${file}:${line}  ${operator}  ${oneLine(before)} → ${oneLine(after) || '(removed)'}`
}

/** White space runs become one blank; long texts keep their ends. */
function oneLine(text: string): string {
  const line = unspaced(text)
  return line.length <= 100 ? line : `${line.slice(0, 60)} … ${line.slice(-35)}`
}

function linesOf(
  text: string,
  start: number,
  end: number,
  after: string,
): Pick<Mutant, 'line' | 'was' | 'is'> {
  const first = text.lastIndexOf('\n', start - 1) + 1
  const lineEnd = text.indexOf('\n', end)
  const last = lineEnd === -1 ? text.length : lineEnd
  return {
    line: text.slice(0, start).split('\n').length,
    was: unspaced(text.slice(first, last)),
    is: unspaced(text.slice(first, start) + after + text.slice(end, last)),
  }
}

function unspaced(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
