/** What the operations of the service share: how one is asked for, and how its answer is read. */
import type { z } from 'zod'
import { findNearest } from '../../lib/errors.ts'
import type { Capabilities, OrganizationLookup } from '../capabilities.ts'
import type { Tier } from '../config.ts'
import { type ErrorDetail, UpstreamError } from '../error.ts'
import { type Answer, readSearchesRemaining } from '../failures.ts'
import type { TakeOptions, SlotRequest } from '../rate-limits.ts'
import { type Call, readAnswer, type Session } from '../session.ts'
import { wireSearchPage, type WireSearchPage } from './page.ts'

/** In whose name a request takes its turn, and how long it may wait for it. */
export interface CallOptions extends TakeOptions {
  slot: SlotRequest
  /** Of a write: its turn has come, and from now on it may arrive. What this throws stops it. */
  onSend?: () => void
}

/** As `Asked`, where an account may count the request against another limit. */
export interface TierCallOptions extends CallOptions {
  tier?: Tier
}

export interface OperationParts {
  session: Session
  lookup: OrganizationLookup
}

/** Of operations that not every server has. */
export interface OptionalOperationParts extends OperationParts {
  capabilities: Capabilities
}

/** One request whose tier is basic unless it says otherwise. */
export type Request = Omit<Call, 'tier' | 'slot' | keyof TakeOptions> & { tier?: Tier }

/** Any answer below 300, once the organization whose limit counts is known. */
export async function ask(
  { session, lookup }: OperationParts,
  request: Request,
  { onSend: _ofWrites, ...asked }: TierCallOptions,
): Promise<Answer> {
  await lookup.ensure(asked.signal)
  return session.call({ tier: 'basic', ...request, ...asked })
}

/** The answer to a request that changes nothing, in its shape. */
export async function read<T>(
  parts: OperationParts,
  shape: z.ZodType<T>,
  request: Request,
  asked: TierCallOptions,
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
  asked: TierCallOptions,
): Promise<Answer> {
  let isSent = false
  const onSend = (): void => {
    asked.onSend?.()
    isSent = true
  }
  try {
    return await ask(parts, { ...request, onSend }, asked)
  } catch (error) {
    const isOpen = isSent && error instanceof UpstreamError && mayHaveArrived(error)
    throw isOpen ? markMayBeDone(error) : error
  }
}

/** The answer to `write` in its shape; where it has another, the request was taken all the same. */
export function readWritten<T>(answer: Answer, shape: z.ZodType<T>): T {
  try {
    return readAnswer(answer, shape)
  } catch (error) {
    throw error instanceof UpstreamError ? markMayBeDone(error) : error
  }
}

/** A failure in front of the service has changed nothing; a gateway's own page says nothing of that. */
function mayHaveArrived({ reason, status, fault }: UpstreamError): boolean {
  if (reason === 'timeout') return status === undefined
  if (reason === 'contract') return fault === 'too_large'
  if (reason !== 'unavailable') return false
  return fault === undefined || fault === 'cut' || fault === 'html'
}

function markMayBeDone(error: UpstreamError): UpstreamError {
  const doubt = 'it may have been done all the same: look before you repeat it'
  const { status, serviceCode, fault, details } = error
  const options = { status, serviceCode, fault, details, mayBeDone: true }
  return new UpstreamError(error.reason, `${error.message}; ${doubt}`, options)
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
  const details = parsed.error.issues.flatMap((issue) => toErrorDetails(issue))
  const summary = details.map(({ loc, msg }) => (loc === '' ? msg : `${loc}: ${msg}`)).join('; ')
  throw new UpstreamError('invalid', `not sent, the service would refuse it: ${summary}`, {
    details,
  })
}

const wrongForm = 'not in a form that the service takes'

/** Never a value: it may be a secret. Of a closed list the word that was meant, and what there is. */
function toErrorDetails(
  issue: z.core.$ZodIssue,
  above: readonly PropertyKey[] = [],
): ErrorDetail[] {
  const path = [...above, ...issue.path]
  const meant = issue.code === 'invalid_union' ? issue.errors.find(takesInputType) : undefined
  if (meant) return meant.flatMap((inner) => toErrorDetails(inner, path))
  return [{ loc: path.map(String).join('.'), msg: describeIssue(issue) }]
}

/** Of the branches of a union the one that takes values of this kind at all. */
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

/** The two search types that a replaced asset may not have; whatever else has these words is wrong. */
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

export interface SearchPage {
  /** Items are unknown yet: each is parsed alone. */
  page: WireSearchPage
  /** This machine's wall clock, ms. */
  requestedAtMs: number
  /** How many global searches the month has left; undefined where the answer does not say. */
  searchesRemaining?: number | undefined
}

export function readSearchPage(answer: Answer): SearchPage {
  return {
    page: readAnswer(answer, wireSearchPage),
    requestedAtMs: answer.sentAtMs,
    searchesRemaining: readSearchesRemaining(answer),
  }
}
