/** What the operations of the service share: how one is asked for, and how its answer is read. */
import type { z } from 'zod'
import { nearest } from '../../lib/errors.ts'
import type { Capabilities, OrganizationLookup } from '../capabilities.ts'
import type { Tier } from '../config.ts'
import { type ErrorDetail, ServiceError } from '../error.ts'
import { type Answer, searchesRemainingIn } from '../failures.ts'
import type { TakeOptions, Turn } from '../rate-limits.ts'
import { type Call, readAnswer, type Session } from '../session.ts'
import { wireSearchPage, type WireSearchPage } from './page.ts'

/** In whose name a request takes its turn, and how long it may wait for it. */
export interface Asked extends TakeOptions {
  turn: Turn
  /** Of a write: its turn has come, and from now on it may arrive. What this throws stops it. */
  onSend?: () => void
}

/** As `Asked`, where an account may count the request against another limit. */
export interface AskedOfTier extends Asked {
  tier?: Tier
}

export interface OperationParts {
  session: Session
  lookup: OrganizationLookup
}

/** Of operations that not every server has. */
export interface UncertainParts extends OperationParts {
  capabilities: Capabilities
}

/** One request whose tier is basic unless it says otherwise. */
export type Request = Omit<Call, 'tier' | 'turn' | keyof TakeOptions> & { tier?: Tier }

/** Any answer below 300, once the organization whose limit counts is known. */
export async function ask(
  { session, lookup }: OperationParts,
  request: Request,
  { onSend: _ofWrites, ...asked }: AskedOfTier,
): Promise<Answer> {
  await lookup.ensure(asked.signal)
  return session.call({ tier: 'basic', ...request, ...asked })
}

/** The answer to a request that changes nothing, in its shape. */
export async function read<T>(
  parts: OperationParts,
  shape: z.ZodType<T>,
  request: Request,
  asked: AskedOfTier,
): Promise<T> {
  return readAnswer(await ask(parts, request, asked), shape)
}

/**
 * The answer to a request that changes something. Where no answer came although the request may have
 * arrived, the error says so: it must not be repeated blindly.
 */
export async function write(
  parts: OperationParts,
  request: Request,
  asked: AskedOfTier,
): Promise<Answer> {
  let isSent = false
  const onSend = (): void => {
    asked.onSend?.()
    isSent = true
  }
  try {
    return await ask(parts, { ...request, onSend }, asked)
  } catch (error) {
    const isOpen = isSent && error instanceof ServiceError && mayHaveArrived(error)
    throw isOpen ? withDoubt(error) : error
  }
}

/** The answer to `write` in its shape; where it has another, the request was taken all the same. */
export function readWritten<T>(answer: Answer, shape: z.ZodType<T>): T {
  try {
    return readAnswer(answer, shape)
  } catch (error) {
    throw error instanceof ServiceError ? withDoubt(error) : error
  }
}

/** A failure in front of the service has changed nothing; a gateway's own page says nothing of that. */
function mayHaveArrived({ reason, status, fault }: ServiceError): boolean {
  if (reason === 'timeout') return status === undefined
  if (reason === 'contract') return fault === 'too_large'
  if (reason !== 'unavailable') return false
  return fault === undefined || fault === 'cut' || fault === 'html'
}

function withDoubt(error: ServiceError): ServiceError {
  const doubt = 'it may have been done all the same: look before you repeat it'
  const { status, serviceCode, fault, details } = error
  const options = { status, serviceCode, fault, details, mayBeDone: true }
  return new ServiceError(error.reason, `${error.message}; ${doubt}`, options)
}

/** A number or word as one part of a path. */
export function pathPart(value: string | number): string {
  return encodeURIComponent(String(value))
}

/**
 * Holds what is about to be sent against the limits that the API states, so that a mistake is told at
 * once, field by field, in the shape in which the service itself would tell it.
 */

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

export interface SearchPage {
  /** Items are unknown yet: each is parsed alone. */
  page: WireSearchPage
  /** This machine's wall clock, ms. */
  requestedAtMs: number
  /** How many global searches the month has left; undefined where the answer does not say. */
  searchesRemaining?: number | undefined
}

export function searchPageOf(answer: Answer): SearchPage {
  return {
    page: readAnswer(answer, wireSearchPage),
    requestedAtMs: answer.sentAtMs,
    searchesRemaining: searchesRemainingIn(answer),
  }
}
