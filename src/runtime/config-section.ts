/**
 * Sections of the configuration file: strict objects that report all of their mistakes at once.
 * A section's rules look at the whole of it, also where single fields are wrong already.
 */
import { z } from 'zod'
import {
  isName,
  messageFor,
  nameRemedy,
  refusal,
  unknownWord,
  wrongKind,
  type Refusal,
} from './config-fields.ts'
import { suggestion } from './nearest.ts'

/** A mistake at a place inside a section. */
export interface Finding extends Refusal {
  path: (string | number)[]
}

/** Values may be wrong or missing still: a rule checks what it reads. */
export type Rule = (section: Readonly<Record<string, unknown>>) => Finding[]

export interface SectionOptions {
  describe: string
  rules?: Rule[]
  /** Its name in the JSON Schema, for a section that holds itself. */
  id?: string
}

/** A strict object. An unknown key is a mistake that names the nearest known one. */
export function section<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  { describe, rules = [], id }: SectionOptions,
): z.ZodObject<Shape, z.core.$loose> {
  const known = Object.keys(shape).filter((key) => !isRefusedKey(shape[key]))
  const allRules = [unknownKeys(shape, known), ...rules]
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

function unknownKeys(shape: object, known: string[]): Rule {
  return (value) =>
    Object.keys(value)
      .filter((key) => !Object.hasOwn(shape, key))
      .map((key) => ({
        path: [key],
        problem: 'unknown key',
        remedy: suggestion(key, known, 'known keys here'),
      }))
}

/** Marks a schema as one of a key that a later version brings; the JSON Schema leaves it out. */
export const laterMark = { later: true } as const
/** Likewise, of a key that another type of the same section has. */
const foreignMark = { foreign: true } as const

/** Whether what is known of a schema says that its key is refused wherever it stands. */
export function isMarkedRefused(meta: Readonly<Record<string, unknown>>): boolean {
  return meta['later'] === true || meta['foreign'] === true
}

function isRefusedKey(schema: unknown): boolean {
  return schema instanceof z.ZodType && isMarkedRefused(schema.meta() ?? {})
}

type RefusedKeys<Key extends string> = Record<Key, z.ZodOptional<z.ZodUnknown>>

/** Keys of a later version, refused by name; `instead` says what this version does. */
export function laterKeys<const Key extends string>(
  instead: Record<Key, string>,
): RefusedKeys<Key> {
  return refusedKeys(instead, (meanwhile) => ({
    message: messageFor(refusal('not in this version', `remove the line: ${meanwhile}`)),
    mark: laterMark,
  }))
}

/** Keys of other types of the same section, refused with what to write instead. */
export function foreignKeys<const Key extends string>(
  remedies: Record<Key, string>,
): RefusedKeys<Key> {
  return refusedKeys(remedies, (remedy) => ({
    message: messageFor(refusal('not a key of this type', remedy)),
    mark: foreignMark,
  }))
}

function refusedKeys<const Key extends string>(
  said: Record<Key, string>,
  refuse: (text: string) => { message: string; mark: Record<string, boolean> },
): RefusedKeys<Key> {
  const shape = Object.entries<string>(said).map(([key, text]) => {
    const { message, mark } = refuse(text)
    return [key, refusedKey(message).meta(mark)]
  })
  return Object.fromEntries(shape) as RefusedKeys<Key>
}

function refusedKey(message: string): z.ZodOptional<z.ZodUnknown> {
  return z
    .unknown()
    .optional()
    .superRefine((value, context) => {
      if (value !== undefined) context.addIssue({ code: 'custom', message })
    })
}

/** A section whose `type` says which of several it is; the types of later versions go by name. */
export function byType<
  Options extends readonly [z.core.$ZodTypeDiscriminable, ...z.core.$ZodTypeDiscriminable[]],
>(
  options: Options,
  { known, later = {} }: { known: string[]; later?: Record<string, string> },
): z.ZodDiscriminatedUnion<Options, 'type'> {
  return z.discriminatedUnion('type', options, {
    error: ({ input }) => messageFor(typeRefusal(input, known, later)),
  })
}

function typeRefusal(input: unknown, known: string[], later: Record<string, string>): Refusal {
  if (!isSection(input)) {
    const problem = input === undefined ? 'missing' : 'not a section'
    return refusal(problem, 'write its keys, first of all type')
  }
  const type = input['type']
  const meanwhile = typeof type === 'string' && Object.hasOwn(later, type) ? later[type] : undefined
  if (meanwhile === undefined) return unknownWord(type, known)
  return refusal('not in this version', `write ${known.join(' or ')}: ${meanwhile}`)
}

/** Things of one kind by name, at least one. */
export function named<Value extends z.ZodType>(
  value: Value,
  { describe, thing }: { describe: string; thing: string },
): z.ZodRecord<z.ZodString, Value> {
  const remedy = `write at least one ${thing}, as a name and its keys`
  return z
    .record(z.string(), value, wrongKind(`a section of ${thing}s by name`, remedy))
    .superRefine((entries, context) => applyRules([namesOf(remedy)], entries, context), {
      when: () => true,
    })
    .meta({
      description: describe,
      minProperties: 1,
      propertyNames: { pattern: '^[a-z][a-z0-9_-]{0,39}$' },
    })
}

function namesOf(remedy: string): Rule {
  return (entries) => {
    const names = Object.keys(entries)
    if (names.length === 0) return [{ path: [], problem: 'empty', remedy }]
    return names
      .filter((entry) => !isName(entry))
      .map((entry) => ({ path: [entry], problem: 'not a usable name', remedy: nameRemedy }))
  }
}
