/**
 * The fields of the configuration file, as zod schemas that the parts' slices share. Numbers and
 * flags are taken as text too, because a replaced `${NAME}` is text. Every message has two lines:
 * what is wrong, and what to write instead; none of them quotes a value.
 */
import { z } from 'zod'
import { suggestion } from './nearest.ts'

/** What is wrong with a value and what to write instead. */
export interface Refusal {
  problem: string
  remedy: string
}

export function refusal(problem: string, remedy: string): Refusal {
  return { problem, remedy }
}

/** The form in which a refusal travels as a zod message. */
export function messageFor({ problem, remedy }: Refusal): string {
  return `${problem}\n${remedy}`
}

const namePattern = /^[a-z][a-z0-9_-]{0,39}$/

/** A zod `error` option: the value is missing, empty, or of another kind than `expected`. */
export function wrongKind(
  expected: string,
  remedy: string,
): { error: (issue: { input?: unknown }) => string } {
  return { error: ({ input }) => messageFor(refusal(kindProblem(input, expected), remedy)) }
}

function kindProblem(input: unknown, expected: string): string {
  if (input === undefined) return 'missing'
  if (input === null || input === '') return 'has no value'
  return `not ${expected}`
}

type Parse<Input, Output> = (input: Input) => Output | Refusal

/** Runs `parse` on what `schema` lets through; its refusal becomes the mistake. */
function parsed<Input, Output>(
  schema: z.ZodType<Input>,
  parse: Parse<Input, Output>,
): z.ZodType<Output> {
  return schema.transform((input, context) => {
    const result = parse(input)
    if (!isRefusal(result)) return result
    context.addIssue({ code: 'custom', message: messageFor(result) })
    return z.NEVER
  })
}

function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'problem' in value && 'remedy' in value
}

interface TextOptions<Output> {
  describe: string
  /** What to write, e.g. `write a duration such as 30s`. */
  remedy: string
  parse: Parse<string, Output>
  /** For a value that is no text, e.g. `a duration`. */
  expected?: string
  examples?: string[]
}

/** A field written as text that means something else. */
export function textField<Output>(options: TextOptions<Output>): z.ZodType<Output> {
  const { describe, remedy, parse, expected = 'a text', examples } = options
  // Examples stand on what is read: of a schema that transforms, the JSON Schema drops them.
  const schema = z.string(wrongKind(expected, remedy)).meta(examples ? { examples } : {})
  return parsed(schema, (text) =>
    text.trim() === '' ? refusal('has no value', remedy) : parse(text),
  ).meta({ description: describe })
}

export function text(describe: string): z.ZodType<string> {
  return textField({ describe, remedy: 'write a text, in quotes', parse: (input) => input })
}

export function name(describe: string): z.ZodType<string> {
  return textField({
    describe,
    remedy: nameRemedy,
    parse: (input) => (isName(input) ? input : refusal('not a usable name', nameRemedy)),
  })
}

export const nameRemedy =
  'write up to 40 lower-case letters, digits, "_" and "-", beginning with a letter'

export function isName(input: string): boolean {
  return namePattern.test(input)
}

/** One of a closed list of words. */
export function word<const Words extends readonly [string, ...string[]]>(
  words: Words,
  describe: string,
): z.ZodType<Words[number]> {
  return z.enum(words, { error: ({ input }) => messageFor(unknownWord(input, words)) }).meta({
    description: describe,
  })
}

export function unknownWord(input: unknown, words: readonly string[]): Refusal {
  const choice = `write ${words.join(' or ')}`
  if (typeof input !== 'string' || input === '') {
    return refusal(kindProblem(input, 'one of the known words'), choice)
  }
  return refusal('not one of the known words', suggestion(input, words, 'write one of'))
}

/** In an editor, a placeholder passes where a number or a flag is asked for. */
const placeholder = z
  .string()
  .meta({ pattern: '\\$\\{', description: '${NAME} or ${NAME:-default}' })

export function flag(describe: string): z.ZodType<boolean> {
  const remedy = 'write true or false'
  const either = z.union([z.boolean(), placeholder], wrongKind('true or false', remedy))
  return parsed(either, (input) => {
    if (typeof input === 'boolean') return input
    if (input === 'true' || input === 'false') return input === 'true'
    return refusal('not true or false', remedy)
  }).meta({ description: describe })
}

export interface NumberRange {
  describe: string
  min: number
  max?: number
}

export function wholeNumber({ describe, min, max }: NumberRange): z.ZodType<number> {
  const upTo = max ?? Number.MAX_SAFE_INTEGER
  const range = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`
  const remedy = `write a whole number ${range}`
  const number = z.number().meta({ type: 'integer', minimum: min, maximum: upTo })
  const either = z.union([number, placeholder], wrongKind('a number', remedy))
  return parsed(either, (input) => {
    const value = numberIn(input)
    if (value === undefined) return refusal('not a number', remedy)
    if (!Number.isSafeInteger(value)) return refusal('not a whole number', remedy)
    if (value < min) return refusal('too small', remedy)
    return value <= upTo ? value : refusal('too large', remedy)
  }).meta({ description: describe })
}

export function positiveNumber(describe: string): z.ZodType<number> {
  const remedy = 'write a number above 0'
  const number = z.number().meta({ exclusiveMinimum: 0 })
  const either = z.union([number, placeholder], wrongKind('a number', remedy))
  return parsed(either, (input) => {
    const value = numberIn(input)
    if (value === undefined) return refusal('not a number', remedy)
    return value > 0 ? value : refusal('not above 0', remedy)
  }).meta({ description: describe })
}

/** A part of something: above 0, and 1 at most. */
export function share(describe: string): z.ZodType<number> {
  const remedy = 'write a number above 0 and up to 1, such as 0.7'
  const number = z.number().meta({ exclusiveMinimum: 0, maximum: 1 })
  const either = z.union([number, placeholder], wrongKind('a number', remedy))
  return parsed(either, (input) => {
    const value = numberIn(input)
    if (value === undefined) return refusal('not a number', remedy)
    return value > 0 && value <= 1 ? value : refusal('not a share', remedy)
  }).meta({ description: describe })
}

function numberIn(input: number | string): number | undefined {
  if (typeof input === 'number') return input
  return /^-?\d+(\.\d+)?$/.test(input.trim()) ? Number(input) : undefined
}

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** About a hundred years: beyond it, times no longer fit into a date. */
const longestMs = 36_500 * 86_400_000

/** A duration as text; milliseconds. `least` is one too, e.g. `5s`. */
export function duration(describe: string, least = '1ms'): z.ZodType<number> {
  const remedy = 'write a number and its unit, such as 30s, 5m, 12h or 7d'
  return textField({
    describe,
    remedy,
    expected: 'a duration',
    examples: ['30s', '5m', '12h', '7d'],
    parse: (input) => {
      const value = durationMs(input)
      if (value === undefined) return refusal('not a duration', remedy)
      if (value < (durationMs(least) ?? 0)) {
        return refusal('too short', `write ${least} or more`)
      }
      return value <= longestMs ? value : refusal('too long', 'write 36500d or less')
    },
  })
}

function durationMs(input: string): number | undefined {
  const [, amount, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(input) ?? []
  return unit === undefined ? undefined : Number(amount) * (unitMs[unit] ?? 1)
}

/** `N/s` or `N/m`; per second. */
export function rate(describe: string): z.ZodType<number> {
  const remedy = 'write a number above 0 per second or per minute, such as 1/s or 30/m'
  return textField({
    describe,
    remedy,
    expected: 'a rate',
    examples: ['1/s', '30/m'],
    parse: (input) => {
      const [, amount, unit] = /^(\d{1,6}(?:\.\d{1,6})?)\/([sm])$/.exec(input) ?? []
      if (unit === undefined || Number(amount) === 0) return refusal('not a rate', remedy)
      return unit === 's' ? Number(amount) : Number(amount) / 60
    },
  })
}

export function list<Output>(
  item: z.ZodType<Output>,
  describe: string,
  remedy: string,
): z.ZodType<Output[]> {
  const empty = messageFor(refusal('an empty list', `${remedy}, or remove the line`))
  return z.array(item, wrongKind('a list', remedy)).min(1, empty).meta({ description: describe })
}
