/** Holds requests against the facts of the public documents, and makes up answers. */
import { operations, type Operation, type Shape } from '../fixtures/published-api.ts'

/**
 * `required`: no other fields; `null`: all, and null wherever it is allowed; `odd`: all, and words and
 * fields that nobody knows, times without a zone, and an empty page in the middle.
 */
export const manners = ['required', 'null', 'odd'] as const
export type Manner = (typeof manners)[number]

interface Field {
  name: string
  isRequired: boolean
  isNullable: boolean
  shape: Shape
}

function fieldsOf(of: { readonly [name: string]: Shape }): Field[] {
  return Object.entries(of).map(([key, shape]) => ({
    name: key.replaceAll(/[*?]/g, ''),
    isRequired: key.includes('*'),
    isNullable: key.includes('?'),
    shape,
  }))
}

/** What of a value is not as its shape has it, each with its place. */
function problemsOf(shape: Shape, value: unknown, at: string): string[] {
  if (typeof shape === 'string') return isOf(shape, value) ? [] : [`${at}: not ${shape}`]
  if ('list' in shape) {
    if (!Array.isArray(value)) return [`${at}: not a list`]
    return value.flatMap((one, index) => problemsOf(shape.list, one, `${at}.${index}`))
  }
  if ('words' in shape) {
    if (typeof value !== 'string') return [`${at}: not a word`]
    return shape.words.includes(value) ? [] : [`${at}: no such word: ${value}`]
  }
  if ('is' in shape) return value === shape.is ? [] : [`${at}: not ${shape.is}`]
  if ('between' in shape) {
    const [least, most] = shape.between
    const fits = Number.isInteger(value) && Number(value) >= least && Number(value) <= most
    return fits ? [] : [`${at}: not between ${least} and ${most}`]
  }
  if ('oneOf' in shape) {
    const each = shape.oneOf.map((one) => problemsOf(one, value, at))
    return each.toSorted((left, right) => left.length - right.length)[0] ?? []
  }
  if (!isObject(value)) return [`${at}: not an object`]
  const known = fieldsOf(shape.fields)
  const unknown = Object.keys(value).filter((key) => !known.some(({ name }) => name === key))
  return [
    ...unknown.map((key) => `${at}.${key}: unknown`),
    ...known.flatMap(({ name, isRequired, isNullable, shape: inner }) => {
      const one = value[name]
      if (one === undefined) return isRequired ? [`${at}.${name}: missing`] : []
      if (one === null && isNullable) return []
      return problemsOf(inner, one, `${at}.${name}`)
    }),
  ]
}

function isOf(shape: Extract<Shape, string>, value: unknown): boolean {
  switch (shape) {
    case 'text':
      return typeof value === 'string'
    case 'name':
      return typeof value === 'string' && value !== ''
    case 'time':
      return typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value)
    case 'integer':
      return Number.isSafeInteger(value)
    case 'flag':
      return typeof value === 'boolean'
    case 'object':
      return isObject(value)
    case 'any':
      return true
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The operation that a request is for, under either spelling of the policies' path. */
export function operationFor(method: string, path: string): Operation | undefined {
  const plain = path.split('?')[0] ?? ''
  const fits = (name: string): boolean => {
    const [verb, template = ''] = name.split(' ')
    return (
      verb === method && new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(plain)
    )
  }
  const found = operations.filter(({ name }) => fits(name))
  return found.find(({ name }) => name === `${method} ${plain}`) ?? found[0]
}

/** What of a request is not as the documents have it. */
export function requestProblems(request: { method: string; path: string; body: string }): string[] {
  const operation = operationFor(request.method, request.path)
  if (!operation) return [`${request.method} ${request.path}: no such operation`]
  const query = new URLSearchParams(request.path.split('?')[1] ?? '')
  const known = fieldsOf(operation.query ?? {})
  const named = [...new Set(query.keys())]
  const parameters = known.flatMap(({ name, isRequired, shape }) => {
    const values = query.getAll(name)
    if (values.length === 0) return isRequired ? [`?${name}: missing`] : []
    const value =
      typeof shape === 'object' && 'list' in shape ? values.map(wordIn) : wordIn(values[0])
    return problemsOf(textShape(shape), value, `?${name}`)
  })
  const body = request.body === '' ? undefined : (JSON.parse(request.body) as unknown)
  return [
    ...named
      .filter((name) => !known.some((one) => one.name === name))
      .map((name) => `?${name}: unknown`),
    ...parameters,
    ...bodyProblems(operation, body),
  ].map((problem) => `${operation.name}: ${problem}`)
}

function bodyProblems({ body: shape }: Operation, body: unknown): string[] {
  if (shape) return problemsOf(shape, body ?? {}, 'body')
  return body === undefined ? [] : ['body: there is none']
}

/** In an address everything is text: what looks like a number or a flag is taken for one. */
function wordIn(text = ''): unknown {
  if (/^\d+$/.test(text)) return Number(text)
  return text === 'true' || text === 'false' ? text === 'true' : text
}

/** A text may look like a number there. */
function textShape(shape: Shape): Shape {
  return shape === 'text' || shape === 'name' ? 'any' : shape
}

const known: Record<string, unknown> = {
  fqdn: 'example.com',
  email: 'ann@example.com',
  ip: '192.0.2.1',
  bin: '424242',
  query_string: 'acme AND leak',
  time: '2026-01-01T00:00:00Z@2026-02-01T00:00:00Z',
  time_zone: 'Europe/Berlin',
  tags_query_operator: 'AND',
  domain: 'example.com',
}

let made = 0

/** A value of that shape, in that manner; `fixed` by the names of fields. */
function valueOf(
  shape: Shape,
  manner: Manner,
  fixed: Readonly<Record<string, unknown>> = {},
  name = '',
): unknown {
  if (typeof shape === 'string') return plainOf(shape, manner, name)
  if ('list' in shape) return [valueOf(shape.list, manner, fixed, name)]
  if ('words' in shape) return manner === 'odd' ? 'word_of_tomorrow' : shape.words[0]
  if ('is' in shape) return shape.is
  if ('between' in shape) return shape.between[0]
  if ('oneOf' in shape) return valueOf(shape.oneOf[0] as Shape, manner, fixed, name)
  const shown = fieldsOf(shape.fields).filter(
    (field) => field.isRequired || manner !== 'required' || field.name in fixed,
  )
  const entries = shown.map((field) => {
    if (field.name in fixed) return [field.name, fixed[field.name]]
    if (manner === 'null' && field.isNullable) return [field.name, null]
    return [field.name, valueOf(field.shape, manner, fixed, field.name)]
  })
  const more = manner === 'odd' ? [['added_later', { of: ['tomorrow', 1, null] }]] : []
  return Object.fromEntries([...entries, ...more]) as unknown
}

function plainOf(shape: Extract<Shape, string>, manner: Manner, name: string): unknown {
  made += 1
  switch (shape) {
    case 'text':
      return known[name] ?? `${name} ${made}`
    case 'name':
      return name === 'uid' ? `paste/site/${made}` : `${name}-${made}`
    case 'time':
      return manner === 'odd' ? '2026-07-01T10:00:00' : '2026-07-01T10:00:00.123456+00:00'
    case 'integer':
      return made
    case 'flag':
      return true
    case 'object':
      return name === 'data' ? { fqdn: 'example.com' } : { keywords: ['acme'] }
    case 'any':
      return null
  }
}

/** The answers to one operation, page after page: two items, where the manner is odd none, one. */
export function answersOf(
  operation: Operation,
  manner: Manner,
  fixed: Readonly<Record<string, unknown>> = {},
): unknown[] {
  const one = (shape: Shape): Record<string, unknown> =>
    valueOf(shape, manner, fixed) as Record<string, unknown>
  const { answer, pagedBy } = operation
  if (pagedBy === undefined) return [one(answer)]
  const [first, more, last] = [one(answer), one(answer), one(answer)]
  const cursor = (page: Record<string, unknown>, next: string | null): unknown => ({
    ...page,
    ...(pagedBy === 'search_after' && { links: null }),
    [pagedBy]: next,
  })
  const { items = [] } = more as { items?: unknown[] }
  const both = { ...first, items: [...((first['items'] as unknown[]) ?? []), ...items] }
  const middle = manner === 'odd' ? [cursor({ ...more, items: [] }, 'cursor-2')] : []
  return [cursor(both, 'cursor-1'), ...middle, cursor(last, null)]
}
