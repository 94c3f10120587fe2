/** Sends operations of the API, reads their answers, and says what a failed write may have done. */
import { z } from 'zod'
import type { OrganizationLookup } from './access/organizations.ts'
import { UpstreamError } from './error.ts'
import { type Answer, looksLikeHtml, readSearchesRemaining } from './failures.ts'
import type { CallOperation, CallOptions } from './request.ts'
import {
  buildRequest,
  type BuiltRequest,
  type Fields,
  nothing,
  type Operation,
  type SearchPage,
} from './resources/operation.ts'
import type { WireSearchPage } from './resources/page.ts'
import { readAnswer, type Session } from './access/session.ts'
import { tooLargeError } from './transport.ts'

export type { CallOperation, CallOptions } from './request.ts'

export interface CallParts {
  session: Session
  lookup: OrganizationLookup
}

export function createCall(parts: CallParts): CallOperation {
  return async <Request, Result>(
    operation: Operation<Request, Result>,
    request: Request,
    asked: CallOptions,
  ): Promise<Result> => {
    const row = operation as Operation
    const built = buildRequest(row, request as Fields)
    const answer = await sendOne(parts, row, built, asked)
    return readResult(row, answer, built.pageSize) as Result
  }
}

interface SentRequest extends BuiltRequest {
  isFile?: boolean
  /** Called when the request was refused for its token, so that nothing was done. */
  onRefused?: () => void
  isWelcome?: (answer: Answer) => boolean
}

/** Sends the request of an operation and returns its answer below 300, or one that is welcome. */
export async function send(
  { session, lookup }: CallParts,
  { isWelcome, ...request }: SentRequest,
  { onSend, ...asked }: CallOptions,
): Promise<Answer> {
  await lookup.ensure(asked.signal)
  const told = onSend && { onSend }
  const tier = asked.tier ?? request.tier
  return session.call({ ...request, ...asked, tier, ...told }, isWelcome)
}

async function sendOne(
  parts: CallParts,
  row: Operation,
  built: BuiltRequest,
  { onSend, ...asked }: CallOptions,
): Promise<Answer> {
  if (!row.changes) return send(parts, built, asked)
  let isSent = false
  const noteSent = (): void => {
    onSend?.()
    isSent = true
  }
  const onRefused = (): void => void (isSent = false)
  try {
    return await send(parts, { ...built, onRefused }, { ...asked, onSend: noteSent })
  } catch (error) {
    const isOpen = isSent && error instanceof UpstreamError && mayHaveArrived(error)
    throw isOpen ? markMayBeDone(error) : error
  }
}

function readResult(row: Operation, answer: Answer, size: number | undefined): unknown {
  try {
    if (row.paging) return readSearchPage(row, answer, size)
    if (row.answer !== nothing) return readAnswer(answer, row.answer)
    // a web page is no answer of the API
    if (looksLikeHtml(answer.body)) readAnswer(answer, z.unknown())
    return undefined
  } catch (error) {
    throw row.changes && error instanceof UpstreamError ? markMayBeDone(error) : error
  }
}

/** Far more items than asked for would cost more than their bytes: each is parsed and kept alone. */
function readSearchPage(row: Operation, answer: Answer, size = Infinity): SearchPage {
  const page = readAnswer(answer, row.answer as z.ZodType<WireSearchPage>)
  const most = Math.max(100, 10 * size)
  if (page.items.length > most)
    throw tooLargeError(`over ${most} items where ${size} were asked for`)
  return {
    page,
    requestedAtMs: answer.sentAtMs,
    searchesRemaining: readSearchesRemaining(answer),
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
