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
import { refuseEmpty } from '../usage.ts'

/** What a JSON Schema says of a field, as far as it is read here. */
interface Schema {
  type?: string
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

export interface Field {
  name: string
  /** `json` has no option: it can only stand in the body. */
  kind: 'text' | 'number' | 'flag' | 'texts' | 'numbers' | 'json'
  words: readonly string[]
  isRequired: boolean
  maximum: number | undefined
}

/** Every field of a request but its cursor. */
function fieldsOf(row: Operation): Field[] {
  const path = Object.fromEntries(parameterNames(row).map((name) => [name, parameterShape(name)]))
  const shapes = [z.object(path), row.query, row.body].filter((shape) => shape !== undefined)
  return shapes.flatMap((shape) => toFields(schemaOf(shape))).filter(({ name }) => name !== 'from')
}

/**
 * The dotted paths of what items of a shape hold, members of objects one level deep; plain are texts,
 * numbers and flags.
 */
export function columnsOf(shape: z.ZodType): { name: string; isPlain: boolean }[] {
  return mergedProperties(schemaOf(shape)).flatMap(([name, inner]) => {
    const members = mergedProperties(plainSchema(inner))
    const paths: [string, Schema][] = members.map(([member, one]) => [`${name}.${member}`, one])
    return (paths.length > 0 ? paths : [[name, inner] as const]).map(([path, one]) => ({
      name: path,
      isPlain: !['array', 'object'].includes(plainSchema(one).type ?? ''),
    }))
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

function kindOf(schema: Schema): Field['kind'] {
  const { type, items, enum: words } = plainSchema(schema)
  if (type === 'array') {
    if (items?.type === 'string') return 'texts'
    return items?.type === 'integer' ? 'numbers' : 'json'
  }
  if (type === 'string' || words !== undefined) return 'text'
  if (type === 'integer' || type === 'number') return 'number'
  return type === 'boolean' ? 'flag' : 'json'
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

function optionFields(row: Operation): Field[] {
  return fieldsOf(row).filter(
    (field) => field.kind !== 'json' && field.name !== 'size' && !isSecretField(row, field),
  )
}

function toOption(field: Field): Option {
  const { name, kind, words, isRequired } = field
  const value = { text: 'text', number: 'number', flag: 'bool', texts: 'a,b', numbers: '1,2' }
  const flag = `--${name.replaceAll('_', '-')} <${kind === 'json' ? 'json' : value[kind]}>`
  const option = new Option(flag, isRequired ? 'required' : '')
  if (words.length > 0 && words.length <= 12) option.choices(words)
  return option.argParser((text: string) => parseValue(field, text))
}

function parseValue({ kind, words }: Field, text: string): unknown {
  refuseEmpty(text)
  switch (kind) {
    case 'number':
      return parseNumber(text)
    case 'flag':
      return parseWord(['true', 'false'], text) === 'true'
    case 'numbers':
      return parseList(text).map(parseNumber)
    case 'texts':
      return parseList(text).map((word) => (words.length > 0 ? parseWord(words, word) : word))
    case 'text':
    case 'json':
      return words.length > 0 ? parseWord(words, text) : text
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

/** Lists the fields for `--help`: with those that only the body can hold. */
export function describeBody(row: Operation): string {
  const inBody = fieldsOf(row).filter((field) => field.kind === 'json' || isSecretField(row, field))
  if (inBody.length === 0) return ''
  const names = inBody.map(({ name, isRequired }) => (isRequired ? `${name} (required)` : name))
  return `only in --body: ${names.join(', ')}`
}

/** The largest page, and how many items are usual. */
export function pageSizeOf(row: Operation): { usual: number; most: number } {
  const size = fieldsOf(row).find(({ name }) => name === 'size')
  const most = Math.min(size?.maximum ?? 10_000, 10_000)
  return { usual: Math.min(most, 20), most }
}
