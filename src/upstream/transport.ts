/**
 * JSON and files over HTTP from one account's API, with a limit on every wait and every size. It
 * follows no redirect, retries nothing, and throws only UpstreamErrors, which name no key and no
 * token.
 */
import { Agent, buildConnector, type Dispatcher, request } from 'undici'
import { type Clock, systemClock, withTimeout } from '../lib/clock.ts'
import { createOutboundConnector } from '../lib/outbound.ts'
import type { Outbound } from '../lib/outbound-config.ts'
import { type AnswerLimits, BoundedText, daemonLimits } from './bounded-text.ts'
import type { AccountConfig } from './config.ts'
import { abandonedError, UpstreamError, notBegun } from './error.ts'
import { type Answer, errorFromFailure, looksLikeHtml } from './failures.ts'

export interface TransportRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the base URL, with its query. */
  path: string
  /** Value of the Authorization header; absent where nobody has to say who asks. */
  authorization?: string
  body?: unknown
  signal?: AbortSignal | undefined
  /**
   * Asked on a live connection, right before the request is written. Where it says no, nothing is
   * written, the connection stays, and the request throws `notBegun`.
   */
  mayBegin?: (() => boolean) | undefined
  /** Limits for the body of an answer below 300; default `daemonLimits`. */
  limits?: AnswerLimits | undefined
  /** The body of an answer below 300 is a file of at most so many bytes, not JSON. */
  maxFileBytes?: number | undefined
}

export interface Transport {
  /** Returns any answer. Throws UpstreamError if there is none, or if it exceeds its limits. */
  request(request: TransportRequest): Promise<Answer>
  close(): Promise<void>
}

export interface TransportLimits {
  connectMs: number
  /** From sending the request to receiving the answer's headers. */
  headersMs: number
  /** Between two chunks of the answer's body. */
  bodyMs: number
  /** The whole request. */
  totalMs: number
  /** Bytes received, whether kept or not. */
  maxBodyBytes: number
}

/** Gateways in front of the API cut requests off at about 30 s. */
const defaultLimits: TransportLimits = {
  connectMs: 10_000,
  headersMs: 30_000,
  bodyMs: 10_000,
  totalMs: 30_000,
  maxBodyBytes: 64 * 1024 * 1024,
}

export interface TransportOptions {
  account: Pick<AccountConfig, 'baseUrl'> & Outbound
  clock?: Clock
  limits?: Partial<TransportLimits>
}

export function createTransport(options: TransportOptions): Transport {
  const { account, clock = systemClock } = options
  const limits = { ...defaultLimits, ...options.limits }
  let dispatcher: Dispatcher | undefined

  async function send(asked: TransportRequest, signal: AbortSignal): Promise<Answer> {
    dispatcher ??= createDispatcher(account, limits)
    let sentAtMs = clock.now()
    const begin = (): void => {
      if (asked.mayBegin?.() === false) throw notBegun
      sentAtMs = clock.now()
    }
    const response = await request(`${account.baseUrl}${asked.path}`, {
      dispatcher: dispatcher.compose(askBefore(begin)),
      method: asked.method,
      headers: buildHeaders(asked),
      body: asked.body === undefined ? null : JSON.stringify(asked.body),
      signal,
    })
    const { statusCode: status, headers } = response
    if (asked.maxFileBytes !== undefined && status < 300) {
      const file = await readFile(response.body, asked.maxFileBytes)
      return { status, headers, body: '', file, sentAtMs }
    }
    const body = await readBody(response, asked.limits ?? daemonLimits)
    return { status, headers, body, sentAtMs }
  }

  return {
    async request(asked) {
      try {
        return await withTimeout(limits.totalMs, [asked.signal], (signal) => send(asked, signal))
      } catch (error) {
        if (asked.signal?.aborted) throw abandonedError()
        throw error instanceof UpstreamError ? error : errorFromFailure(error)
      }
    },
    close: async () => dispatcher?.destroy(),
  }
}

/**
 * Calls `begin` where undici has a connection for a request. What it throws stops the request
 * without harm to the connection, while an abort would close it.
 */
function askBefore(begin: () => void): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const start = handler.onRequestStart?.bind(handler)
    handler.onRequestStart = (controller, context) => {
      start?.(controller, context)
      if (!controller.aborted) begin()
    }
    return dispatch(options, handler)
  }
}

/** Bytes read of an error's body: its message quotes a few hundred characters at most. */
const errorBytes = 64 * 1024

async function readBody(
  { statusCode, body }: Dispatcher.ResponseData,
  limits: AnswerLimits,
): Promise<string> {
  if (statusCode >= 300) return readBeginning(body, errorBytes)
  const text = new BoundedText(limits)
  let isFirst = true
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    const beginning = isFirst ? new TextDecoder().decode(piece.subarray(0, 500)) : ''
    // The login page of a proxy must not be reported as an oversized answer.
    if (looksLikeHtml(beginning)) return beginning
    isFirst = false
    text.add(piece)
  }
  return text.end()
}

/** Throws UpstreamError `contract` with fault `too_large` once there is more than `maxBytes`. */
async function readFile(body: AsyncIterable<unknown>, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body) {
    pieces.push(piece as Uint8Array)
    length += (piece as Uint8Array).length
    if (length <= maxBytes) continue
    const message = `the file is larger than ${maxBytes / 1024 / 1024} MiB`
    throw new UpstreamError('contract', message, { fault: 'too_large' })
  }
  return Buffer.concat(pieces)
}

async function readBeginning(body: AsyncIterable<unknown>, bytes: number): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body) {
    pieces.push(piece as Uint8Array)
    length += (piece as Uint8Array).length
    if (length >= bytes) break
  }
  return new TextDecoder().decode(Buffer.concat(pieces).subarray(0, bytes))
}

function buildHeaders({
  authorization,
  body,
  maxFileBytes,
}: TransportRequest): Record<string, string> {
  const accept = maxFileBytes === undefined ? 'application/json' : '*/*'
  const named = authorization === undefined ? {} : { authorization }
  const headers = { accept, 'user-agent': 'tocsin', ...named }
  return body === undefined ? headers : { ...headers, 'content-type': 'application/json' }
}

function createDispatcher(
  account: TransportOptions['account'],
  limits: TransportLimits,
): Dispatcher {
  // No bound on connections: the limits of API slots bound the requests that are out, and one that
  // hangs must keep no other waiting.
  const timeoutMs = limits.connectMs
  const settings = { allowH2: false, timeout: timeoutMs }
  return new Agent({
    connect: createOutboundConnector<buildConnector.Options>(
      account,
      (tls) => buildConnector({ ...settings, ...tls }),
      timeoutMs,
    ),
    headersTimeout: limits.headersMs,
    bodyTimeout: limits.bodyMs,
    maxResponseSize: limits.maxBodyBytes,
  })
}
