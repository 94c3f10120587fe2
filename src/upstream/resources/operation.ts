/**
 * One row describes an operation of the API. From it the client sends it, `tocsin api` makes a
 * command, the sandbox checks it, and docs/api-notes.md lists it.
 */
import { z } from 'zod'
import { parseTimestamp } from '../timestamps.ts'
import { type ErrorDetail, UpstreamError } from '../error.ts'
import { wireSearchPage, type WireSearchPage } from './page.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

interface Row {
  /** `resource.verb`, as `tocsin api` takes it. */
  readonly name: string
  readonly summary: string
  readonly method: Method
  /** Its parameters stand in braces. */
  readonly path: string
  readonly query?: z.ZodObject | undefined
  readonly body?: z.ZodType | undefined
  /** Shape of the answer; `nothing` where its content has no meaning. */
  readonly answer: z.ZodType
  /** Shape of one item of the answer's list. Items stay unparsed, so that a bad one costs only itself. */
  readonly item?: z.ZodType
  /** How an answer names the next page; callers name it as `from`. */
  readonly paging?: 'next' | 'search_after'
  /** Default basic. Where none is published the caller may choose (docs/api-notes.md, Rate limits). */
  readonly tier?: 'search'
  /** Whether it searches everything, at the cost of the monthly quota. */
  readonly costsQuota?: true
  /** Whether it changes something: it is asked for, recorded, and not repeated. */
  readonly changes?: true
  /** Fields that hold secrets, besides those that `secretTexts` recognizes by name. */
  readonly secretFields?: readonly string[]
  /**
   * Only in the public documents, so that a server may be without; the permission that the key's
   * user needs.
   */
  readonly permission?: string
  /** The command that sends it, where `tocsin api` cannot. */
  readonly onlyBy?: string
}

/** `Request` and `Answer` are types alone: what a caller gives and gets. */
export interface Operation<Request = never, Answer = unknown> extends Row {
  readonly '~types'?: (request: Request) => Answer
}

/** A request: the parameters of path and query and the fields of the body, side by side. */
export type Fields = Readonly<Record<string, unknown>>

export type RequestOf<Of> = Of extends Operation<infer Request> ? Request : never

type ParameterNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterNames<Rest>
  : never

type Input<Shape> = [Shape] extends [never] ? unknown : z.input<Shape>

type Given<Request extends string, Query, Body> = Record<ParameterNames<Request>, string | number> &
  Input<Query> &
  Input<Body>

type Definition<Request, Query, Body> = Omit<Row, 'method' | 'path'> & {
  /** Method and path, whose parameters stand in braces. */
  request: Request
  query?: Query
  body?: Body
}

type MethodAndPath = `${Method} /${string}`

/** An operation whose answer is read as a whole. */
export function operation<
  const Request extends MethodAndPath,
  Answer extends z.ZodType,
  Query extends z.ZodObject = never,
  Body extends z.ZodType = never,
>(
  row: Definition<Request, Query, Body> & { answer: Answer },
): Operation<Given<Request, Query, Body>, z.output<Answer>> {
  return toRow(row)
}

function toRow({
  request,
  ...row
}: Omit<Row, 'method' | 'path'> & { request: MethodAndPath }): Row {
  const [method, path = ''] = request.split(' ')
  return { ...row, method: method as Method, path }
}

export interface SearchPage {
  /** Its items are not parsed yet; each is parsed alone. */
  page: WireSearchPage
  /** Wall clock ms of this machine when the request was sent. */
  requestedAtMs: number
  /** Global searches left this month; undefined if the answer does not state it. */
  searchesRemaining?: number | undefined
}

/** An operation that answers page by page. */
export function pagedOperation<
  const Request extends MethodAndPath,
  Query extends z.ZodObject = never,
  Body extends z.ZodType = never,
>(
  row: Omit<Definition<Request, Query, Body>, 'answer'> & { answer?: z.ZodType },
): Operation<Given<Request, Query, Body>, SearchPage> {
  return toRow({ answer: wireSearchPage, paging: 'next', ...row })
}

/** The cursor of a request as it was received; null for the first page. */
export const cursor = z.string().nullish()

/** A time of a request. */
export const moment = z
  .string()
  .refine((text) => parseTimestamp(text) !== null, 'no time; write one such as 2026-11-01T12:00Z')

/** An answer whose content has no meaning: null, nothing or any words. */
export const nothing = z.undefined()

/** Parameters of paths that are no numbers. */
const wordParameters: Readonly<Record<string, z.ZodType>> = {
  policy_uuid: z.uuid(),
  // no format is published; today's servers return UUIDs
  request_info_id: z.string().regex(/^[\w.-]{1,100}$/),
}
const idParameter = z.int().min(1)

export function parameterNames({ path }: Pick<Row, 'path'>): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
}

export function parameterShape(name: string): z.ZodType {
  return wordParameters[name] ?? idParameter
}

/** What is sent: a path with its query string, and perhaps a body. */
export interface BuiltRequest {
  method: Method
  tier: 'search' | 'basic'
  path: string
  body?: unknown
  /** Number of items asked for, if the answer is a page. */
  pageSize: number | undefined
  secrets: readonly string[]
}

/**
 * Checks a request against the limits of the API and puts each of its fields where it belongs.
 * Throws UpstreamError `invalid` with every mistake, field by field, in the shape of the API's 422.
 */
export function buildRequest(row: Operation, request: Fields): BuiltRequest {
  const { path, query, body } = checkFields(row, request)
  const checked: Fields = { ...query, ...(body as object | undefined) }
  const size = row.paging && checked['size']
  return {
    method: row.method,
    tier: row.tier ?? 'basic',
    path: fillPath(row.path, path) + toQueryString(query),
    ...(body !== undefined && { body }),
    pageSize: typeof size === 'number' ? size : undefined,
    secrets: secretTexts(checked, row.secretFields),
  }
}

const noQuery = z.object({})
const noBody = z.strictObject({})

/** By path: to make a shape costs more than all that it checks. */
const pathShapes = new Map<string, z.ZodObject>()

function pathShape(path: string): z.ZodObject {
  const known = pathShapes.get(path)
  if (known) return known
  const names = parameterNames({ path })
  const shape = z.object(Object.fromEntries(names.map((name) => [name, parameterShape(name)])))
  pathShapes.set(path, shape)
  return shape
}

/** A cursor that is null stands for the first page. */
const cursorNames = ['from', 'search_after']

function checkFields(
  row: Operation,
  request: Fields,
): { path: Fields; query: Fields; body: unknown } {
  const names = parameterNames(row)
  const { from, ...others } = request
  const whole = row.paging === 'search_after' ? { ...others, search_after: from } : request
  const given = Object.entries(whole).filter(
    ([name, value]) => value !== undefined && !(cursorNames.includes(name) && value === null),
  )
  const isQuery = (name: string): boolean => row.query?.shape[name] !== undefined
  const pick = (isMeant: (name: string) => boolean): Fields =>
    Object.fromEntries(given.filter(([name]) => isMeant(name)))
  const rest = pick((name) => !names.includes(name) && !isQuery(name))
  const parts = {
    path: checkPart<Fields>(
      pathShape(row.path),
      pick((name) => names.includes(name)),
    ),
    query: checkPart<Fields>(row.query ?? noQuery, pick(isQuery)),
    body: checkPart<unknown>(row.body ?? noBody, rest),
  }
  const details = Object.values(parts).flatMap((part) => ('details' in part ? part.details : []))
  if ('details' in parts.path || 'details' in parts.query || 'details' in parts.body) {
    throw requestError(details)
  }
  const { path, query, body } = parts
  return { path: path.data, query: query.data, body: row.body && body.data }
}

/** Checks one part of a request; returns it parsed, or its mistakes. */
export function checkPart<T>(
  shape: z.ZodType<T>,
  part: unknown,
): { data: T } | { details: ErrorDetail[] } {
  const parsed = shape.safeParse(part)
  if (parsed.success) return { data: parsed.data }
  // zod's words quote no value, which may be a secret
  const toDetail = ({ path, message }: z.core.$ZodIssue): ErrorDetail => ({
    loc: path.map(String).join('.'),
    msg: message.replace(
      /^Invalid input: expected (\w+), received undefined$/,
      'missing, expected $1',
    ),
  })
  return { details: parsed.error.issues.map(toDetail) }
}

function requestError(details: readonly ErrorDetail[]): UpstreamError {
  const summary = details.map(({ loc, msg }) => (loc === '' ? msg : `${loc}: ${msg}`)).join('; ')
  return new UpstreamError('invalid', `not sent, the service would refuse it: ${summary}`, {
    details,
  })
}

function fillPath(template: string, values: Fields): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(values[name])),
  )
}

/** Writes lists as repeated keys. */
function toQueryString(fields: Fields): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(fields)) {
    for (const one of [value].flat() as (string | number | boolean)[]) query.append(key, `${one}`)
  }
  // a plus sign is a space to some readers only
  return query.size === 0 ? '' : `?${query.toString().replaceAll('+', '%20')}`
}

/** Matches field names whose value is a secret. */
const secretNames =
  /passw(?:or)?d|passphrase|passcode|pwd|secret|token|apikey|accesskey|privatekey|cookie|hash/i

/** Returns the values of a request that no message may show: of marked fields, and by field names. */
export function secretTexts(
  value: unknown,
  marked: readonly string[] = [],
  isSecret = false,
): string[] {
  if (typeof value === 'string' || typeof value === 'number') return isSecret ? [String(value)] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const isNamed = marked.includes(name) || secretNames.test(name.replaceAll(/[^a-z]/gi, ''))
    return secretTexts(inner, marked, isSecret || isNamed)
  })
}
