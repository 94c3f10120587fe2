/** The tables of the configuration's keys, from its JSON Schema. */
import { configSchema } from '../../src/config/schema.ts'
import { code, codes, table } from './markdown.ts'

interface Field {
  type?: string
  $ref?: string
  pattern?: string
  description?: string
  default?: unknown
  const?: string | boolean
  enum?: string[]
  examples?: string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  required?: string[]
  properties?: Record<string, Field>
  additionalProperties?: Field | boolean
  items?: Field
  anyOf?: Field[]
  allOf?: Field[]
  oneOf?: Field[]
  definitions?: Record<string, Field>
}

interface Row {
  key: string
  type: string
  fallback: string
  meaning: string
  /** Of a section that is another one in each type, such as a query. */
  isOfType?: true
}

const head = ['Key', 'Type', 'Default', 'Meaning']

/** One part for each section of the file; one for each type of feed and sink, and one of what types share. */
export function configurationBlocks(): [string, string][] {
  const schema = configSchema() as Field
  const { feeds, sinks, route, ...sections } = schema.properties ?? {}
  if (!feeds || !sinks || !route) throw new Error('the schema lacks feeds, sinks or route')
  const branch = schema.definitions?.['route']
  return [
    ...Object.entries(sections).map(([name, field]): [string, string] => [
      name,
      tableOf(isFlag(field) ? rowsOf({ properties: { [name]: field } }) : rowsOf(innerOf(field))),
    ]),
    ['route', tableOf(rowsOf(route))],
    ['route.routes[]', tableOf(rowsOf(branch ?? {}))],
    ...typedBlocks('feeds', innerOf(feeds)),
    ...typedBlocks('sinks', innerOf(sinks)),
  ].map(([name = '', text = '']) => [`configuration ${name}`, text])
}

/** A key of the file that stands for itself. */
function isFlag({ default: fallback }: Field): boolean {
  return typeof fallback === 'boolean'
}

function tableOf(rows: readonly Row[]): string {
  return table(head, rows.map(cellsOf))
}

function cellsOf({ key, type, fallback, meaning }: Row): string[] {
  return [code(key), type, fallback, meaning]
}

/** The section below the names, or the entries of the list, that a field holds. */
function innerOf(field: Field): Field {
  const { additionalProperties: named, items } = field
  if (typeof named === 'object') return innerOf(named)
  return items ? innerOf(items) : field
}

/** Keys that several types share stand in one table, the others in one for their type. */
function typedBlocks(section: string, field: Field): [string, string][] {
  const types = (field.oneOf ?? []).map((option) => ({
    type: String(option.properties?.['type']?.const),
    rows: rowsOf(option).filter(({ key }) => key !== 'type'),
  }))
  const all = types.flatMap(({ rows }) => rows)
  const distinct = all.filter((row, at) => all.findIndex((other) => isSame(other, row)) === at)
  const keys = distinct.map(({ key }) => key)
  const common = distinct
    .filter((row) => isShared(row, all))
    .toSorted((a, b) => keys.indexOf(a.key) - keys.indexOf(b.key))
    .map((row) => {
      const [having, lacking] = ['has', 'lacks'].map((word) =>
        types
          .filter(({ rows }) => rows.some((own) => isSame(own, row)) === (word === 'has'))
          .map(({ type }) => type),
      ) as [string[], string[]]
      return [...cellsOf(row), typesIn(having, lacking)]
    })
  return [
    [`${section}, keys of several types`, table([...head, 'Types'], common)],
    ...types.flatMap(({ type, rows }): [string, string][] => {
      const own = rows.filter((row) => !isShared(row, all))
      return own.length === 0 ? [] : [[`${section} of type ${type}`, tableOf(own)]]
    }),
  ]
}

function typesIn(having: readonly string[], lacking: readonly string[]): string {
  if (lacking.length === 0) return 'all'
  return lacking.length < having.length ? `all but ${codes(lacking)}` : codes(having)
}

function isSame(a: Row, b: Row): boolean {
  return cellsOf(a).every((cell, at) => cellsOf(b)[at] === cell)
}

/** Whether two types have a row alike for the key, and for the key that leads to it; a query is its type's own. */
function isShared(row: Row, all: readonly Row[]): boolean {
  const [top = ''] = row.key.split('.')
  if (all.some(({ key, isOfType }) => isOfType && key === `${top}.type`)) return false
  const keys = [row.key, top.replace(/_file$/, '')]
  return keys
    .filter((key) => all.some((one) => one.key === key))
    .every((key) =>
      all.some(
        (one, at) => one.key === key && all.slice(at + 1).some((other) => isSame(one, other)),
      ),
    )
}

/** The keys of a section with all below them; a list's section and named sections included. */
function rowsOf(section: Field, path = ''): Row[] {
  const { properties = {}, required = [] } = section
  return Object.entries(properties).flatMap(([name, field]) => {
    const key = path === '' ? name : `${path}.${name}`
    const own: Row = {
      key,
      type: typeOf(field, name, properties),
      fallback: required.includes(name) ? 'required' : fallbackOf(field),
      meaning: meaningOf(field),
    }
    return [own, ...belowOf(field, key)]
  })
}

function belowOf(field: Field, key: string): Row[] {
  if (field.items) return belowOf(field.items, `${key}[]`)
  const kinds = kindsOf(field)
  if (kinds.length > 0) return kindRows(kinds, key)
  return [field, ...(field.anyOf ?? [])].flatMap((part) => rowsOf(part, key))
}

/** What a section may be whose own `type` says which. */
function kindsOf(field: Field): Field[] {
  return (field.oneOf ?? []).filter(({ properties }) => properties?.['type'])
}

/** Keys of a section that has several types, such as a query: each key says of which it is. */
function kindRows(kinds: readonly Field[], key: string): Row[] {
  const types = kinds.map(({ properties }) => String(properties?.['type']?.const))
  const rows = kinds.flatMap((kind, at) =>
    rowsOf(kind, key)
      .filter((row) => row.key !== `${key}.type`)
      .map((row) => ({ ...row, meaning: `With ${code(types[at] ?? '')}: ${row.meaning}` })),
  )
  const type = { type: codes(types), fallback: 'required', meaning: 'What is searched for.' }
  return [{ key: `${key}.type`, ...type, isOfType: true }, ...rows]
}

function typeOf(field: Field, name: string, beside: Record<string, Field>): string {
  if (field.const !== undefined) return code(String(field.const))
  if (Object.hasOwn(beside, `${name}_file`)) return 'secret'
  if (name.endsWith('_file') || name === 'embedded') return 'path'
  if (field.items) return `list of ${pluralOf(typeOf(field.items, '', {}))}`
  if (kindsOf(field).length > 0) return 'section'
  const parts = (field.anyOf ?? []).filter(({ pattern }) => pattern !== String.raw`\$\{`)
  if (parts.length > 0) return parts.map((part) => typeOf(part, '', {})).join(' or ')
  return isLong(field) ? 'word' : simpleType(field)
}

function pluralOf(type: string): string {
  return /^(text|section|number|word)\b/.test(type) ? type.replace(/^\w+/, '$&s') : type
}

/** A list of words that would not fit into a column. */
function isLong({ enum: words = [] }: Field): boolean {
  return words.length > 12
}

function simpleType(field: Field): string {
  const { type, enum: words, examples = [] } = field
  if (words) return codes(words)
  if (examples.includes('30s')) return 'duration'
  if (examples.includes('30/m')) return 'rate'
  if (examples.includes('1GiB')) return 'size'
  if (type === 'boolean') return '`true`, `false`'
  if (field.$ref !== undefined || field.allOf) return 'section'
  if (type === 'object') return field.properties ? 'section' : 'names and texts'
  return type === 'string' ? 'text' : `number${rangeOf(field)}`
}

function rangeOf({ minimum, maximum = Infinity, exclusiveMinimum }: Field): string {
  const isBounded = maximum < Number.MAX_SAFE_INTEGER
  if (exclusiveMinimum !== undefined) {
    return ` above ${exclusiveMinimum}${isBounded ? `, at most ${maximum}` : ''}`
  }
  if (minimum === undefined) return ''
  return isBounded ? `, ${minimum} to ${maximum}` : `, from ${minimum}`
}

/** A default that is no value of the file stands at the end of the description. */
const saidDefault = / ?Default: (.+?)\.?$/

function fallbackOf(field: Field): string {
  const { default: fallback } = field
  const said = saidDefault.exec(descriptionOf(field))?.[1]
  if (fallback === undefined) return said ?? ''
  if (typeof fallback === 'string') return code(fallback)
  const isPlainSection = field.properties && Object.keys(fallback as object).length === 0
  return isPlainSection ? '' : code(JSON.stringify(fallback))
}

function meaningOf(field: Field): string {
  const meaning = descriptionOf(field).replace(saidDefault, '')
  const long = field.items && isLong(field.items) ? field.items.enum : undefined
  return long ? `${meaning} Words: ${codes(long)}.` : meaning
}

function descriptionOf(field: Field): string {
  if (field.description !== undefined) return field.description
  if (kindsOf(field).length > 0) return 'What is searched for; `type` says by what.'
  return (field.anyOf ?? []).find(({ description }) => description)?.description ?? ''
}
