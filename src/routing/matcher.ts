/**
 * One `name op value` of a route: Alertmanager's four operators for every name, and an order for
 * severity. Patterns match whole values in time linear to their length, whatever they look like.
 */
import { RE2JS, RE2JSException } from 're2js'
import { isKnownSeverity, noSeverity, severities, severityRank } from '../events/severity.ts'
import { nearest, suggestion } from '../runtime/nearest.ts'
import { MatcherError } from './matcher-error.ts'
import { readMatcherText } from './matcher-text.ts'

/** Alone `severity` takes the last four. */
export const matcherOperators = ['=', '!=', '=~', '!~', '>=', '>', '<=', '<'] as const

export type MatcherOperator = (typeof matcherOperators)[number]

/** The names that every event has; labels of feeds must not take them. */
export const eventNames = [
  'account',
  'feed',
  'kind',
  'type',
  'severity',
  'source',
  'identifier',
  'tag',
] as const

/** One parsed `name op value`. */
export interface Matcher {
  /** As written, for `explain`. */
  text: string
  name: string
  operator: MatcherOperator
  value: string
  /**
   * Against the values that the event has under `name` (several for identifier and tag). None at
   * all counts as the empty text. `=` and `=~` hold if any value fits, `!=` and `!~` if none does.
   */
  matches(values: readonly string[]): boolean
}

/** Longer patterns than a person writes; bounds the automaton that is built from them. */
const maxPatternLength = 1000

/** Throws MatcherError, which says what is wrong and what to write instead. */
export function parseMatcher(text: string): Matcher {
  const { name, operator: written, value } = readMatcherText(text)
  const operator = matcherOperators.find((known) => known === written)
  if (!operator) {
    const remedy = `one of ${matcherOperators.join(' ')}; a value that begins so goes in double quotes`
    throw new MatcherError(text, `"${written}" is not an operator`, remedy)
  }
  const holds = testFor({ text, name, operator, value })
  return {
    text: text.trim(),
    name,
    operator,
    value,
    matches: (values) => holds(values.length === 0 ? [''] : values),
  }
}

type Written = Pick<Matcher, 'text' | 'name' | 'operator' | 'value'>

function testFor(written: Written): (values: readonly string[]) => boolean {
  const { operator, value } = written
  switch (operator) {
    case '=':
      return (values) => values.includes(value)
    case '!=':
      return (values) => !values.includes(value)
    case '=~': {
      const pattern = compile(written)
      return (values) => values.some((candidate) => pattern.testExact(candidate))
    }
    case '!~': {
      const pattern = compile(written)
      return (values) => !values.some((candidate) => pattern.testExact(candidate))
    }
    case '>=':
    case '>':
    case '<=':
    case '<': {
      const bound = rankOf(written)
      return ([severity = '']) => compare(severityRank(severity), operator, bound) // it has one
    }
  }
}

function compare(rank: number, operator: '>=' | '>' | '<=' | '<', bound: number): boolean {
  switch (operator) {
    case '>=':
      return rank >= bound
    case '>':
      return rank > bound
    case '<=':
      return rank <= bound
    case '<':
      return rank < bound
  }
}

function rankOf({ text, name, operator, value }: Written): number {
  if (name !== 'severity') {
    const problem = `"${operator}" compares severities only`
    const meant = nearest(name, ['severity'])
    const remedy = `for "${name}" use = != =~ or !~`
    throw new MatcherError(text, problem, meant ? `did you mean "${meant}"?` : remedy)
  }
  if (!isKnownSeverity(value)) {
    const problem = `"${value}" is not a severity`
    throw new MatcherError(text, problem, `one of ${severities.join(', ')}`)
  }
  return severityRank(value)
}

/** Allowed, because the service may have words of its own; yet a slip of the pen never matches. */
export function unusualSeverity({
  name,
  operator,
  value,
}: Matcher): { problem: string; remedy: string } | undefined {
  const isWord = name === 'severity' && (operator === '=' || operator === '!=')
  if (!isWord || isKnownSeverity(value) || value === noSeverity) return undefined
  const remedy = suggestion(value, severities, 'the usual ones are')
  return { problem: `"${value}" is no usual severity`, remedy }
}

/** The dot takes line breaks too, so that no text of a feed slips past `.*`. */
function compile({ text, value }: Written): RE2JS {
  if (value.length > maxPatternLength) {
    const problem = `the pattern has ${value.length} characters`
    throw new MatcherError(
      text,
      problem,
      `at most ${maxPatternLength}; split it over several routes`,
    )
  }
  try {
    return RE2JS.compile(value, RE2JS.DOTALL)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const word = error.message.replace('error parsing regexp: ', '').replace('`(?s)', '`')
    const remedy = 'write RE2 syntax, which has no look-around, no back-references, no a++'
    throw new MatcherError(text, `not a valid pattern: ${word}`, remedy)
  }
}
