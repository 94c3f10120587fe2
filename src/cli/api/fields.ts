/** The fields of an operation's request as options: parameters of path and query, and plain fields of the body. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import {
  type Fields,
  type Operation,
  parameterNames,
  parameterShape,
  secretTexts,
} from '../../upstream/resources/operation.ts'
import { parseList, parseWord } from '../options.ts'
import { refuseEmpty } from '../terminal.ts'

/** What a JSON Schema says of a field, as far as it is read here. */
interface Schema {
  type?: string | readonly string[]
  enum?: readonly unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  anyOf?: readonly Schema[]
  oneOf?: readonly Schema[]
}

type Kind = 'text' | 'number' | 'flag' | 'texts' | 'numbers'

interface Field {
  name: string
  /** undefined: it has no option and can only stand in the body. */
  kind: Kind | undefined
  words: readonly string[]
  isRequired: boolean
  maximum: number | undefined
}

interface OptionField extends Field {
  kind: Kind
}

const knownFields = new WeakMap<Operation, Field[]>()

/** Every field of a request but its cursor. An operation is asked several times for what takes milliseconds. */
function fieldsOf(row: Operation): Field[] {
  const fields = knownFields.get(row) ?? readFields(row)
  knownFields.set(row, fields)
  return fields
}

function readFields(row: Operation): Field[] {
  const path = Object.fromEntries(parameterNames(row).map((name) => [name, parameterShape(name)]))
  const shapes = [z.object(path), row.query, row.body].filter((shape) => shape !== undefined)
  return shapes
    .flatMap((shape) => toFields(schemaOf(shape)))
    .filter(({ name }) => name !== 'from' && name !== row.paging)
}

/** The dotted paths of the texts, numbers and flags in items of a shape, of objects one level deep. */
export function columnsOf(shape: z.ZodType): string[] {
  return mergedProperties(schemaOf(shape)).flatMap(([name, inner]) => {
    const members = mergedProperties(plainSchema(inner))
    const paths: [string, Schema][] = members.map(([member, one]) => [`${name}.${member}`, one])
    return (paths.length > 0 ? paths : [[name, inner] as const])
      .filter(([, one]) => !['array', 'object'].includes(typeOf(plainSchema(one)) ?? ''))
      .map(([path]) => path)
  })
}

function schemaOf(shape: z.ZodType): Schema {
  return z.toJSONSchema(shape, { io: 'input', unrepresentable: 'any' }) as Schema
}

function toFields(schema: Schema): Field[] {
  return mergedProperties(schema).map(([name, inner]) => {
    const plain = plainSchema(inner)
    const words =
      plain.enum ?? plain.items?.enum ?? (plain.const === undefined ? [] : [plain.const])
    return {
      name,
      kind: kindOf(inner),
      words: words.map(String),
      isRequired: (schema.required ?? schema.oneOf?.[0]?.required ?? []).includes(name),
      maximum: plain.maximum,
    }
  })
}

/** The properties of an object, or of all branches of a union, words of a name taken together. */
function mergedProperties(schema: Schema): [string, Schema][] {
  const merged = new Map<string, Schema>()
  for (const { properties = {} } of [schema, ...(schema.anyOf ?? schema.oneOf ?? [])]) {
    for (const [name, inner] of Object.entries(properties)) {
      const before = merged.get(name)
      const words = [before, inner].flatMap((one) => one?.enum ?? one?.const ?? [])
      const isWord = inner.const !== undefined || inner.enum !== undefined
      merged.set(name, isWord ? { type: 'string', enum: words } : (before ?? inner))
    }
  }
  return [...merged]
}

/** Of what may also be null, what it is else. */
function plainSchema(schema: Schema): Schema {
  const others = (schema.anyOf ?? []).filter(({ type }) => type !== 'null')
  return others.length === 1 && others[0] ? plainSchema(others[0]) : schema
}

function typeOf({ type }: Schema): string | undefined {
  return [type].flat().find((one) => one !== 'null')
}

function kindOf(schema: Schema): Kind | undefined {
  const { items, enum: words, ...plain } = plainSchema(schema)
  const type = typeOf(plain)
  if (type === 'array') {
    if (items?.type === 'string') return 'texts'
    return items?.type === 'integer' ? 'numbers' : undefined
  }
  if (type === 'string' || words !== undefined) return 'text'
  if (type === 'integer' || type === 'number') return 'number'
  return type === 'boolean' ? 'flag' : undefined
}

/**
 * Whether fields may not stand on a command line, which every user of the machine can read. A
 * credential_hash identifies a pair of login and secret, and reveals neither.
 */
export function holdsSecret({ secretFields }: Operation, fields: Fields): boolean {
  const others = JSON.stringify(fields).replaceAll('"credential_hash":', '"id":')
  return secretTexts(JSON.parse(others), secretFields).length > 0
}

function isSecretField(row: Operation, { name }: Field): boolean {
  return holdsSecret(row, { [name]: name })
}

/** Adds an option for each field that has one. */
export function addFieldOptions(command: Command, row: Operation): Command {
  for (const field of optionFields(row)) command.addOption(toOption(field))
  return command
}

function optionFields(row: Operation): OptionField[] {
  return fieldsOf(row).filter(
    (field): field is OptionField =>
      field.kind !== undefined && field.name !== 'size' && !isSecretField(row, field),
  )
}

const values = { text: 'text', number: 'number', flag: 'bool', texts: 'a,b', numbers: '1,2' }

function toOption(field: OptionField): Option {
  const { name, kind, words, isRequired } = field
  const flag = `--${name.replaceAll('_', '-')} <${values[kind]}>`
  const option = new Option(flag, isRequired ? 'required' : '')
  if (words.length > 0 && words.length <= 12) option.choices(words)
  return option.argParser((text: string) => parseValue(field, text))
}

function parseValue({ kind, words }: OptionField, text: string): unknown {
  refuseEmpty(text)
  const toWord = (word: string): string => (words.length > 0 ? parseWord(words, word) : word)
  switch (kind) {
    case 'number':
      return parseNumber(text)
    case 'flag':
      return parseWord(['true', 'false'], text) === 'true'
    case 'numbers':
      return parseList(text).map(parseNumber)
    case 'texts':
      return parseList(text).map(toWord)
    case 'text':
      return toWord(text)
  }
}

function parseNumber(text: string): number {
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text)
  throw new InvalidArgumentError('Write a whole number.')
}

/** The fields that options give. */
export function readOptions(row: Operation, options: Fields): Fields {
  const given = optionFields(row).flatMap(({ name }) => {
    const key = name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
    return options[key] === undefined ? [] : [[name, options[key]] as const]
  })
  return Object.fromEntries(given)
}

/** Names the fields that only the body can hold. */
export function describeBody(row: Operation): string {
  const inBody = fieldsOf(row).filter(
    (field) => field.kind === undefined || isSecretField(row, field),
  )
  if (inBody.length === 0) return ''
  const names = inBody.map(({ name, isRequired }) => (isRequired ? `${name} (required)` : name))
  return `only in --body: ${names.join(', ')}`
}

/** Whether a request names events or credentials, so that `items show` finds what was done to them. */
export function namesTargets(row: Operation): boolean {
  return fieldsOf(row).some(({ name }) => name === 'targets' || name === 'uid')
}

/** Items of a page: as many as the API states to give at most, up to 100, or its usual 20. */
export function pageSizeOf(row: Operation): number {
  const { maximum = Infinity } = fieldsOf(row).find(({ name }) => name === 'size') ?? {}
  return maximum > 10_000 ? 20 : Math.min(maximum, 100)
}
