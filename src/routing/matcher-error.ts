import { TocsinError } from '../runtime/errors.ts'

/** A matcher that cannot be understood: the operator's mistake. */
export class MatcherError extends TocsinError {
  override readonly name = 'MatcherError'
  readonly code = 'TOCSIN_MATCHER'
  /** What is wrong, without the matcher's text. */
  readonly problem: string
  /** What to write instead. */
  readonly remedy: string

  constructor(text: string, problem: string, remedy: string) {
    super(`${shortened(text.trim())}: ${problem}; ${remedy}`)
    this.problem = problem
    this.remedy = remedy
  }
}

function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}
