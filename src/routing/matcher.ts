/**
 * One `name op value` of a route: Alertmanager's four operators for every name, and comparisons for
 * severity. Patterns match whole values, in time linear in the value's length whatever the pattern.
 */
import { createRequire } from 'node:module'
import type * as Patterns from 're2js'
import { z } from 'zod'
import { isKnownSeverity, severities, severityRank } from '../event.ts'
import { messageFor, refusal, wrongKind } from '../lib/config/config-fields.ts'
import { findNearest, TocsinError } from '../lib/errors.ts'

/** Only `severity` takes the last four. */
const matcherOperators = ['=', '!=', '=~', '!~', '>=', '>', '<=', '<'] as const

type MatcherOperator = (typeof matcherOperators)[number]

/** The names that every event has; labels of feeds must not use them. */
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

export interface Matcher {
  /** As written, for `items show`. */
  text: string
  name: string
  operator: MatcherOperator
  value: string
  /**
   * `values` are those that the event has under `name` (several for identifier and tag); an empty
   * list counts as the empty text. `=` and `=~` hold if any value fits, `!=` and `!~` if none does.
   */
  matches(values: readonly string[]): boolean
}

/** Longer than any pattern a person writes; bounds the automaton that is built from it. */
const maxPatternLength = 1000

/** Throws MatcherError, which says what is wrong and what to write instead. */
export function parseMatcher(text: string): Matcher {
  const { name, operator: written, value } = readMatcherText(text)
  const operator = matcherOperators.find((known) => known === written)
  if (!operator) {
    const remedy = `one of ${matcherOperators.join(' ')}; a value that begins so goes in double quotes`
    throw new MatcherError(text, `"${written}" is not an operator`, remedy)
  }
  const holds = buildTest({ text, name, operator, value })
  return {
    text: text.trim(),
    name,
    operator,
    value,
    matches: (values) => holds(values.length === 0 ? [''] : values),
  }
}

type WrittenMatcher = Pick<Matcher, 'text' | 'name' | 'operator' | 'value'>

function buildTest(written: WrittenMatcher): (values: readonly string[]) => boolean {
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
      const bound = parseRank(written)
      // an event has exactly one severity
      return ([severity = '']) => compare(severityRank(severity), operator, bound)
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

function parseRank({ text, name, operator, value }: WrittenMatcher): number {
  if (name !== 'severity') {
    const problem = `"${operator}" compares severities only`
    const meant = findNearest(name, ['severity'])
    const remedy = `for "${name}" use = != =~ or !~`
    throw new MatcherError(text, problem, meant ? `did you mean "${meant}"?` : remedy)
  }
  if (!isKnownSeverity(value)) {
    const problem = `"${value}" is not a severity`
    throw new MatcherError(text, problem, `one of ${severities.join(', ')}`)
  }
  return severityRank(value)
}

/** Takes 10 ms, which a configuration without patterns need not wait for. */
function loadPatterns(): typeof Patterns {
  return createRequire(import.meta.url)('re2js') as typeof Patterns
}

/** The dot matches line breaks too, so that no feed text slips past `.*`. */
function compile({ text, value }: WrittenMatcher): Patterns.RE2JS {
  if (value.length > maxPatternLength) {
    const problem = `the pattern has ${value.length} characters`
    throw new MatcherError(
      text,
      problem,
      `at most ${maxPatternLength}; split it over several routes`,
    )
  }
  const { RE2JS, RE2JSException } = loadPatterns()
  try {
    return RE2JS.compile(value, RE2JS.DOTALL)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const word = error.message.replace('error parsing regexp: ', '').replace('`(?s)', '`')
    const remedy = 'write RE2 syntax, which has no look-around, no back-references, no a++'
    throw new MatcherError(text, `not a valid pattern: ${word}`, remedy)
  }
}

const matcherRemedy = `write a name, an operator and a value, such as 'severity>=high'`

/** One matcher of the configuration file, parsed. */
const matcher = z
  .string(wrongKind('a text', matcherRemedy))
  .meta({ examples: ['severity>=high', 'type="paste"'] })
  .transform((input, context): Matcher => {
    try {
      return parseMatcher(input)
    } catch (error) {
      if (!(error instanceof MatcherError)) throw error
      context.addIssue({ code: 'custom', message: messageFor(error) })
      return z.NEVER
    }
  })
  .meta({ description: 'name op value' })

/** A list of matchers that may be empty: of a route, where none means every event. */
export function matchersField(describe: string): z.ZodType<Matcher[]> {
  return z
    .array(matcher, wrongKind('a list', "write a list, such as ['severity>=high']"))
    .meta({ description: describe })
}

/** At least one matcher: where an empty list would mean every event and hide too much. */
export function requiredMatchers(describe: string): z.ZodType<Matcher[]> {
  const remedy = `write matchers, such as ['type="paste"']`
  return z
    .array(matcher, wrongKind('a list', remedy))
    .refine(
      (matchers) => matchers.length > 0,
      messageFor(refusal('an empty list, which would mean every event', remedy)),
    )
    .meta({ description: describe, minItems: 1 })
}

/** A matcher split by grammar alone: `name op value`, the value bare or in double quotes. */
interface MatcherText {
  name: string
  /** Any run of operator characters. */
  operator: string
  value: string
}

/** Throws MatcherError. */
function readMatcherText(text: string): MatcherText {
  const parts = /^([A-Za-z_][\w-]*)\s*([=!<>~]+)\s*(.*)/su.exec(text.trim())
  if (!parts) {
    const remedy = 'write a name, an operator and a value, e.g. severity>=high or type="paste"'
    throw new MatcherError(text, 'not a matcher', remedy)
  }
  const [, name = '', operator = '', written = ''] = parts
  const value = written.startsWith('"') ? quotedValue(text, written) : written
  if (!written.startsWith('"')) checkBare(text, { name, operator, value })
  return { name, operator, value }
}

function checkBare(text: string, { name, operator, value }: MatcherText): void {
  if (value === '') {
    throw new MatcherError(text, 'the value is missing', `write ${name}${operator}"" for none`)
  }
  if (/^['`]/.test(value)) {
    throw new MatcherError(text, 'wrong quotes', 'use double quotes around the value')
  }
  if (/[\s"]/.test(value)) {
    const remedy = 'put the value in double quotes, and each matcher in an item of its own'
    throw new MatcherError(text, 'a bare value has no spaces and no quotes', remedy)
  }
  if (value.includes(',') && !operator.includes('~')) {
    const remedy = `write ${name}=~"${value.replaceAll(',', '|')}" for any of several, or quote the value`
    throw new MatcherError(text, 'a bare value has no comma', remedy)
  }
}

/** `\"`, `\\` and `\n` are escapes; any other backslash is literal, which suits patterns. */
function quotedValue(text: string, written: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"/su.exec(written)
  if (!quoted) {
    throw new MatcherError(text, 'the quote is not closed', 'end the value with a double quote')
  }
  if (quoted[0].length < written.length) {
    const rest = written.slice(quoted[0].length).trim()
    const remedy = 'write one matcher per item, and \\" for a quote within the value'
    throw new MatcherError(
      text,
      `nothing may follow the closing quote, found ${rest.slice(0, 20)}`,
      remedy,
    )
  }
  return (quoted[1] ?? '').replaceAll(/\\(["\\n])/g, (_escape, character: string) =>
    character === 'n' ? '\n' : character,
  )
}

/** A matcher that cannot be parsed: the operator's mistake. */
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
