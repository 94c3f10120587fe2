/** Checks requests before they are sent, and names every mistake in them. */
import type { z } from 'zod'
import { findNearest } from '../../lib/errors.ts'
import { type ErrorDetail, UpstreamError } from '../error.ts'

/**
 * Checks a request against the limits of the API before it is sent; returns it parsed. Throws
 * UpstreamError `invalid` with every mistake, field by field, in the shape of the API's own 422.
 */
export function checkRequest<T>(shape: z.ZodType<T>, request: unknown): T {
  const checked = checkPart(shape, request)
  if ('data' in checked) return checked.data
  throw requestError(checked.details)
}

/** Checks one part of a request; returns it parsed, or its mistakes. */
export function checkPart<T>(
  shape: z.ZodType<T>,
  part: unknown,
): { data: T } | { details: ErrorDetail[] } {
  const parsed = shape.safeParse(part, { reportInput: true })
  if (parsed.success) return { data: parsed.data }
  return { details: parsed.error.issues.flatMap((issue) => toErrorDetails(issue)) }
}

export function requestError(details: readonly ErrorDetail[]): UpstreamError {
  const summary = details.map(({ loc, msg }) => (loc === '' ? msg : `${loc}: ${msg}`)).join('; ')
  return new UpstreamError('invalid', `not sent, the service would refuse it: ${summary}`, {
    details,
  })
}

const wrongForm = 'not in a form that the service takes'

/**
 * Details never quote a value, which may be a secret, except for closed lists: there they name the
 * nearest word, or the choices.
 */
function toErrorDetails(
  issue: z.core.$ZodIssue,
  above: readonly PropertyKey[] = [],
): ErrorDetail[] {
  const path = [...above, ...issue.path]
  const meant = issue.code === 'invalid_union' ? issue.errors.find(takesInputType) : undefined
  if (meant) return meant.flatMap((inner) => toErrorDetails(inner, path))
  return [{ loc: path.map(String).join('.'), msg: describeIssue(issue) }]
}

/** Whether this branch of a union accepts the type of the input. */
function takesInputType([first]: readonly z.core.$ZodIssue[]): boolean {
  if (first === undefined || first.path.length > 0) return first !== undefined
  return first.code === 'invalid_value'
    ? typeof first.input === 'string'
    : first.code !== 'invalid_type'
}

function describeIssue(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'too_small':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `too small; write ${issue.minimum} or more`
        : `empty; write at least ${issue.minimum} ${formatUnit(issue.origin, issue.minimum)}`
    case 'too_big':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `too large; write ${issue.maximum} or less`
        : `too long; at most ${issue.maximum} ${formatUnit(issue.origin, issue.maximum)}`
    case 'invalid_value':
      return isCreationOnly(issue)
        ? `"${String(issue.input)}" may be given when an asset is created, not when it is replaced`
        : describeChoice(issue.input, issue.values.map(String))
    case 'invalid_type':
      return issue.input === undefined ? 'missing' : `not ${withArticle(issue.expected)}`
    case 'unrecognized_keys':
      return `unknown: ${issue.keys.map((key) => key.slice(0, 60)).join(', ')}`
    case 'custom':
      return issue.message
    case 'invalid_union':
      return 'options' in issue
        ? describeChoice(readType(issue.input), issue.options.map(String))
        : wrongForm
    case 'invalid_format':
    case 'invalid_element':
    case 'invalid_key':
    case 'not_multiple_of':
      return wrongForm
  }
}

/** Whether the word is one of the two search types that only a new asset may have. */
function isCreationOnly({ input, path }: z.core.$ZodIssue): boolean {
  return path[0] === 'search_types' && (input === 'ad' || input === 'ads')
}

function describeChoice(input: unknown, known: readonly string[]): string {
  if (input === undefined) return `missing; write one of ${known.join(', ')}`
  const meant = typeof input === 'string' ? findNearest(input, known) : undefined
  if (meant !== undefined) return `not known to the service; did you mean "${meant}"?`
  return `not known to the service; write one of ${known.join(', ')}`
}

function readType(input: unknown): unknown {
  return typeof input === 'object' && input !== null && 'type' in input ? input.type : undefined
}

function formatUnit(origin: string, count: number | bigint): string {
  const unit = origin === 'string' ? 'character' : 'entry'
  if (Number(count) === 1) return unit
  return unit === 'entry' ? 'entries' : 'characters'
}

function withArticle(expected: string): string {
  const words: Record<string, string> = {
    string: 'a text',
    number: 'a number',
    int: 'a whole number',
    boolean: 'true or false',
    array: 'a list',
    object: 'an object',
    record: 'an object',
  }
  return words[expected] ?? `a ${expected}`
}
