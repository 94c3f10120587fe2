/**
 * Holds what is about to be sent against the limits that the API states, so that a mistake is told at
 * once, field by field, in the shape in which the service itself would tell it.
 */
import type { z } from 'zod'
import { nearest } from '../../runtime/nearest.ts'
import { ServiceError, type ErrorDetail } from '../service-error.ts'

/** The request as it may be sent; ServiceError `invalid` with every mistake otherwise. */
export function checkRequest<T>(shape: z.ZodType<T>, request: unknown): T {
  const parsed = shape.safeParse(request, { reportInput: true })
  if (parsed.success) return parsed.data
  const details = parsed.error.issues.flatMap((issue) => detailsOf(issue))
  const said = details.map(({ loc, msg }) => (loc === '' ? msg : `${loc}: ${msg}`)).join('; ')
  throw new ServiceError('invalid', `not sent, the service would refuse it: ${said}`, { details })
}

const odd = 'not in a form that the service takes'

/** Never a value: it may be a secret. Of a closed list the word that was meant, and what there is. */
function detailsOf(issue: z.core.$ZodIssue, above: readonly PropertyKey[] = []): ErrorDetail[] {
  const path = [...above, ...issue.path]
  const meant = issue.code === 'invalid_union' ? issue.errors.find(isOfItsKind) : undefined
  if (meant) return meant.flatMap((inner) => detailsOf(inner, path))
  return [{ loc: path.map(String).join('.'), msg: wordsOf(issue) }]
}

/** Of the branches of a union the one that takes values of this kind at all. */
function isOfItsKind([first]: readonly z.core.$ZodIssue[]): boolean {
  if (first === undefined || first.path.length > 0) return first !== undefined
  return first.code === 'invalid_value'
    ? typeof first.input === 'string'
    : first.code !== 'invalid_type'
}

function wordsOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'too_small':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `too small; write ${issue.minimum} or more`
        : `empty; write at least ${issue.minimum} ${unitOf(issue.origin, issue.minimum)}`
    case 'too_big':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `too large; write ${issue.maximum} or less`
        : `too long; at most ${issue.maximum} ${unitOf(issue.origin, issue.maximum)}`
    case 'invalid_value':
      return isForCreationAlone(issue)
        ? `"${String(issue.input)}" may be given when an asset is created, not when it is replaced`
        : wordsOfChoice(issue.input, issue.values.map(String))
    case 'invalid_type':
      return issue.input === undefined ? 'missing' : `not ${withArticle(issue.expected)}`
    case 'unrecognized_keys':
      return `unknown: ${issue.keys.map((key) => key.slice(0, 60)).join(', ')}`
    case 'custom':
      return issue.message
    case 'invalid_union':
      return 'options' in issue
        ? wordsOfChoice(typeIn(issue.input), issue.options.map(String))
        : odd
    case 'invalid_format':
    case 'invalid_element':
    case 'invalid_key':
    case 'not_multiple_of':
      return odd
  }
}

/** The two search types that a replaced asset may not have; whatever else has these words is wrong. */
function isForCreationAlone({ input, path }: z.core.$ZodIssue): boolean {
  return path[0] === 'search_types' && (input === 'ad' || input === 'ads')
}

function wordsOfChoice(input: unknown, known: readonly string[]): string {
  if (input === undefined) return `missing; write one of ${known.join(', ')}`
  const meant = typeof input === 'string' ? nearest(input, known) : undefined
  if (meant !== undefined) return `not known to the service; did you mean "${meant}"?`
  return `not known to the service; write one of ${known.join(', ')}`
}

function typeIn(input: unknown): unknown {
  return typeof input === 'object' && input !== null && 'type' in input ? input.type : undefined
}

function unitOf(origin: string, count: number | bigint): string {
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
