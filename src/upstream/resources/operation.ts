/** What all operations share: checking a request, sending it, and reading its answer. */
import type { z } from 'zod'
import { findNearest } from '../../lib/errors.ts'
import type { Capabilities, OrganizationLookup } from '../capabilities.ts'
import type { Tier } from '../config.ts'
import { type ErrorDetail, UpstreamError } from '../error.ts'
import { type Answer, readSearchesRemaining } from '../failures.ts'
import type { TakeOptions, SlotRequest } from '../rate-limits.ts'
import { type Call, readAnswer, type Session } from '../session.ts'
import { wireSearchPage, type WireSearchPage } from './page.ts'

/** Who a request's slot is for, and how long it may wait for the slot. */
export interface CallOptions extends TakeOptions {
  slot: SlotRequest
  /**
   * Called right before a write is written: from now on it may reach the API. If this throws, the
   * write is not sent.
   */
  onSend?: () => void
}

/** `CallOptions` for operations whose tier the caller may choose. */
export interface TierCallOptions extends CallOptions {
  tier?: Tier
}

export interface OperationParts {
  session: Session
  lookup: OrganizationLookup
}

/** For operations that not every server has. */
export interface OptionalOperationParts extends OperationParts {
  capabilities: Capabilities
}

/** One request; its tier defaults to basic. */
export type Request = Omit<Call, 'tier' | 'slot' | keyof TakeOptions> & { tier?: Tier }

/**
 * Sends a request once the organization whose limit it counts under is known. Returns an answer
 * below 300; throws UpstreamError otherwise.
 */
export async function ask(
  { session, lookup }: OperationParts,
  request: Request,
  { onSend: _ofWrites, ...asked }: TierCallOptions,
): Promise<Answer> {
  await lookup.ensure(asked.signal)
  return session.call({ tier: 'basic', ...request, ...asked })
}

/** Sends a request that changes nothing; returns its answer by `shape`. Throws UpstreamError. */
export async function read<T>(
  parts: OperationParts,
  shape: z.ZodType<T>,
  request: Request,
  asked: TierCallOptions,
): Promise<T> {
  return readAnswer(await ask(parts, request, asked), shape)
}

/**
 * Sends a request that changes something. Throws UpstreamError, with `mayBeDone` set if the request
 * may have arrived although its answer did not: it must not be repeated blindly.
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
  const onRefused = (): void => void (isSent = false)
  try {
    return await ask(parts, { ...request, onSend, onRefused }, asked)
  } catch (error) {
    const isOpen = isSent && error instanceof UpstreamError && mayHaveArrived(error)
    throw isOpen ? markMayBeDone(error) : error
  }
}

/**
 * Parses an answer to `write`. An answer of another shape throws UpstreamError with `mayBeDone`,
 * since the API accepted the request.
 */
export function readWritten<T>(answer: Answer, shape: z.ZodType<T>): T {
  try {
    return readAnswer(answer, shape)
  } catch (error) {
    throw error instanceof UpstreamError ? markMayBeDone(error) : error
  }
}

/**
 * Whether a failed write may have been carried out. A failure before the API rules that out; a
 * gateway's own error page does not.
 */
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

/** Encodes a number or word as one segment of a path. */
export function pathPart(value: string | number): string {
  return encodeURIComponent(String(value))
}

/**
 * Checks a request against the limits of the API before it is sent; returns it parsed. Throws
 * UpstreamError `invalid` with every mistake, field by field, in the shape of the API's own 422.
 */
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

export interface SearchPage {
  /** Its items are not parsed yet; each is parsed alone. */
  page: WireSearchPage
  /** Wall clock ms of this machine when the request was sent. */
  requestedAtMs: number
  /** Global searches left this month; undefined if the answer does not state it. */
  searchesRemaining?: number | undefined
}

export function readSearchPage(answer: Answer): SearchPage {
  return {
    page: readAnswer(answer, wireSearchPage),
    requestedAtMs: answer.sentAtMs,
    searchesRemaining: readSearchesRemaining(answer),
  }
}
