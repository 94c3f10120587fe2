/**
 * The building blocks of the configuration file: sections and fields. Sections are strict objects
 * that report all of their mistakes at once; fields are zod schemas that all sections share. A
 * section's rules check the whole section even if single fields are wrong. Numbers and flags are
 * accepted as text too, because a replaced `${NAME}` is text. Every message has two lines: what is
 * wrong, and what to write instead; none quotes a value.
 */
import { z } from 'zod'
import { suggestion } from '../errors.ts'
import { isTimeZone } from '../time-zone.ts'

/** A mistake at a place inside a section. */
export interface Finding extends Refusal {
  path: (string | number)[]
}

/** Checks a section whose values may still be wrong or missing. */
export type Rule = (section: Readonly<Record<string, unknown>>) => Finding[]

interface SectionOptions {
  describe: string
  rules?: Rule[]
  /** Its name in the JSON Schema, for a recursive section. */
  id?: string
}

/** A strict object. An unknown key is a mistake that names the nearest known one. */
export function section<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  { describe, rules = [], id }: SectionOptions,
): z.ZodObject<Shape, z.core.$loose> {
  const known = Object.keys(shape)
  const allRules = [unknownKeys(known), ...rules]
  const meta = { description: describe, additionalProperties: false, ...(id ? { id } : {}) }
  return z
    .looseObject(shape, wrongKind('a section', `write its keys: ${known.join(', ')}`))
    .superRefine((value, context) => applyRules(allRules, value, context), { when: () => true })
    .meta(meta)
}

function applyRules(rules: Rule[], value: unknown, context: z.core.$RefinementCtx): void {
  if (!isSection(value)) return
  for (const finding of rules.flatMap((rule) => rule(value))) {
    context.addIssue({ code: 'custom', path: finding.path, message: messageFor(finding) })
  }
}

export function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function unknownKeys(knownKeys: string[]): Rule {
  return (value) =>
    Object.keys(value)
      .filter((key) => !knownKeys.includes(key))
      .map((key) => ({
        path: [key],
        problem: 'unknown key',
        remedy: suggestion(key, knownKeys, 'known keys here'),
      }))
}

/**
 * A section whose `type` selects one of several schemas; `unsupported` types are refused by
 * name, each with its reason.
 */
export function byType<
  Options extends readonly [z.core.$ZodTypeDiscriminable, ...z.core.$ZodTypeDiscriminable[]],
>(
  options: Options,
  unsupported: Record<string, string> = {},
): z.ZodDiscriminatedUnion<Options, 'type'> {
  const types = options.flatMap(({ _zod }) => [...(_zod.propValues['type'] ?? [])].map(String))
  return z.discriminatedUnion('type', options, {
    error: ({ input }) => messageFor(typeRefusal(input, types, unsupported)),
  })
}

function typeRefusal(
  input: unknown,
  knownTypes: string[],
  unsupported: Record<string, string>,
): Refusal {
  if (!isSection(input)) {
    const problem = input === undefined ? 'missing' : 'not a section'
    return refusal(problem, 'write its keys, first of all type')
  }
  const type = input['type']
  const reason =
    typeof type === 'string' && Object.hasOwn(unsupported, type) ? unsupported[type] : undefined
  if (reason === undefined) return unknownWord(type, knownTypes)
  return refusal('not supported', `write ${knownTypes.join(' or ')}: ${reason}`)
}

/** Named entries of one kind, at least one. */
export function namedEntries<Value extends z.ZodType>(
  value: Value,
  { describe, thing }: { describe: string; thing: string },
): z.ZodRecord<z.ZodString, Value> {
  const remedy = `write at least one ${thing}, as a name and its keys`
  return z
    .record(z.string(), value, wrongKind(`a section of ${thing}s by name`, remedy))
    .superRefine((entries, context) => applyRules([namesRule(remedy)], entries, context), {
      when: () => true,
    })
    .meta({
      description: describe,
      minProperties: 1,
      propertyNames: { pattern: '^[a-z][a-z0-9_-]{0,39}$' },
    })
}

function namesRule(remedy: string): Rule {
  return (entries) => {
    const names = Object.keys(entries)
    if (names.length === 0) return [{ path: [], problem: 'empty', remedy }]
    return names
      .filter((entry) => !isName(entry))
      .map((entry) => ({ path: [entry], problem: 'not a usable name', remedy: nameRemedy }))
  }
}

/** What is wrong with a value, and what to write instead. */
export interface Refusal {
  problem: string
  remedy: string
}

export function refusal(problem: string, remedy: string): Refusal {
  return { problem, remedy }
}

/** Formats a refusal as a zod message. */
export function messageFor({ problem, remedy }: Refusal): string {
  return `${problem}\n${remedy}`
}

const namePattern = /^[a-z][a-z0-9_-]{0,39}$/

/** A zod `error` option: the value is missing, empty, or not of the `expected` kind. */
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

/** Runs `parse` on what `schema` accepts; a refusal becomes the mistake. */
function parseWith<Input, Output>(
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
  /** For a value that is not text, e.g. `a duration`. */
  expected?: string
  examples?: string[]
  /** The empty text means something too. */
  mayBeEmpty?: boolean
}

/** A field written as text and parsed to something else. */
export function textField<Output>(options: TextOptions<Output>): z.ZodType<Output> {
  const { describe, remedy, parse, expected = 'a text', examples, mayBeEmpty = false } = options
  // The examples belong to the input schema: the JSON Schema drops those of a schema that
  // transforms.
  const schema = z.string(wrongKind(expected, remedy)).meta(examples ? { examples } : {})
  return parseWith(schema, (text) =>
    text.trim() === '' && !mayBeEmpty ? refusal('has no value', remedy) : parse(text),
  ).meta({ description: describe })
}

export function text(describe: string): z.ZodType<string> {
  return textField({ describe, remedy: 'write a text, in quotes', parse: (input) => input })
}

const maxGuidanceLength = 400

/** A text of one's own for messages; the empty one removes what would be said else. */
export function guidanceText(describe: string): z.ZodType<string> {
  const remedy = `write a text of at most ${maxGuidanceLength} characters`
  return textField({
    describe,
    remedy,
    mayBeEmpty: true,
    parse: (input) =>
      Array.from(input.trim()).length <= maxGuidanceLength
        ? input.trim()
        : refusal('too long', `${remedy}, and the rest on a page that runbook_url names`),
  })
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

/** Lets an editor accept a placeholder where a number or a flag is expected. */
const placeholder = z
  .string()
  .meta({ pattern: '\\$\\{', description: '${NAME} or ${NAME:-default}' })

export function flag(describe: string): z.ZodType<boolean> {
  const remedy = 'write true or false'
  const either = z.union([z.boolean(), placeholder], wrongKind('true or false', remedy))
  return parseWith(either, (input) => {
    if (typeof input === 'boolean') return input
    if (input === 'true' || input === 'false') return input === 'true'
    return refusal('not true or false', remedy)
  }).meta({ description: describe })
}

interface NumberRange {
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
  return parseWith(either, (input) => {
    const value = parseNumber(input)
    if (value === undefined) return refusal('not a number', remedy)
    if (!Number.isSafeInteger(value)) return refusal('not a whole number', remedy)
    if (value < min) return refusal('too small', remedy)
    return value <= upTo ? value : refusal('too large', remedy)
  }).meta({ description: describe })
}

/** A number above 0 and up to `max`. */
export function positiveNumber(describe: string, max = Infinity): z.ZodType<number> {
  const remedy = `write a number above 0${max === Infinity ? '' : ` and up to ${max}`}`
  const number = z.number().meta({ exclusiveMinimum: 0, ...(max !== Infinity && { maximum: max }) })
  const either = z.union([number, placeholder], wrongKind('a number', remedy))
  return parseWith(either, (input) => {
    const value = parseNumber(input)
    if (value === undefined) return refusal('not a number', remedy)
    if (value <= 0) return refusal('not above 0', remedy)
    return value <= max ? value : refusal('too large', remedy)
  }).meta({ description: describe })
}

function parseNumber(input: number | string): number | undefined {
  if (typeof input === 'number') return input
  return /^-?\d+(\.\d+)?$/.test(input.trim()) ? Number(input) : undefined
}

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** About a hundred years: beyond it, times no longer fit into a date. */
const maxDurationMs = 36_500 * 86_400_000

/** A duration as text, parsed to milliseconds. `least` is a duration too, e.g. `5s`. */
export function duration(describe: string, least = '1ms'): z.ZodType<number> {
  const remedy = 'write a number and its unit, such as 30s, 5m, 12h or 7d'
  return textField({
    describe,
    remedy,
    expected: 'a duration',
    examples: ['30s', '5m', '12h', '7d'],
    parse: (input) => {
      const value = parseDuration(input)
      if (value === undefined) return refusal('not a duration', remedy)
      if (value < (parseDuration(least) ?? 0)) {
        return refusal('too short', `write ${least} or more`)
      }
      return value <= maxDurationMs ? value : refusal('too long', 'write 36500d or less')
    },
  })
}

function parseDuration(input: string): number | undefined {
  const [, amount, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(input) ?? []
  return unit === undefined ? undefined : Number(amount) * (unitMs[unit] ?? 1)
}

/** `N/s` or `N/m`, parsed to a rate per second. */
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
  // not min(1): that also measures an empty text, which is a mistake of its own
  return z
    .array(item, wrongKind('a list', remedy))
    .refine((items) => items.length > 0, empty)
    .meta({ description: describe, minItems: 1 })
}

const unitBytes: Record<string, number> = {
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

/** A size as text, parsed to bytes. `least` is a size too, e.g. `1MiB`. */
export function size(describe: string, least: string): z.ZodType<number> {
  const remedy = 'write a number and its unit, such as 500MB or 1GiB'
  return textField({
    describe,
    remedy,
    expected: 'a size',
    examples: ['500MB', '1GiB'],
    parse: (input) => {
      const value = parseBytes(input)
      if (value === undefined) return refusal('not a size', remedy)
      return value < (parseBytes(least) ?? 0)
        ? refusal('too small', `write ${least} or more`)
        : value
    },
  })
}

function parseBytes(input: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,6}(?:\.\d{1,3})?) ?([kKMGT]?i?B)$/.exec(input) ?? []
  const factor = Object.hasOwn(unitBytes, unit) ? unitBytes[unit] : undefined
  return factor === undefined ? undefined : Math.floor(Number(amount) * factor)
}

const remedy = 'write a name of the zone database, such as Europe/Zurich or UTC'

/** A field that names an IANA time zone; default UTC. */
export function timeZone(describe: string): z.ZodType<string> {
  return textField({
    describe,
    remedy,
    expected: 'a time zone',
    examples: ['Europe/Zurich', 'UTC'],
    parse: (input) => (isTimeZone(input) ? input : refusal('not a time zone', remedy)),
  })
}
