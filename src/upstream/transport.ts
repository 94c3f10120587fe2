/**
 * JSON and files over HTTP from one account's API, with a limit on every wait and every size. It
 * follows no redirect, retries nothing, and throws only UpstreamErrors, which name no key and no
 * token.
 */
import { Agent, buildConnector, type Dispatcher, request } from 'undici'
import { type Clock, systemClock, withTimeout } from '../lib/clock.ts'
import { createOutboundConnector } from '../lib/outbound.ts'
import type { Outbound } from '../lib/config/outbound-config.ts'
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
  /** Most bytes of an answer below 300; default `answerBytes.page`. */
  maxBytes?: number | undefined
  /** The body of an answer below 300 is a file, not JSON. */
  isFile?: boolean | undefined
}

/**
 * Most bytes of an answer: parsing a page takes some 10 ms of the daemon's only thread. An item or
 * full event is larger than any known, and an operator waits for what a command reads.
 */
export const answerBytes = { page: 2 ** 20, item: 4 * 2 ** 20, command: 64 * 2 ** 20 } as const

export interface Transport {
  /** Returns any answer. Throws UpstreamError if there is none, or if it exceeds its limits. */
  request(request: TransportRequest): Promise<Answer>
}

export interface TransportLimits {
  connectMs: number
  /** From sending the request to receiving the answer's headers. */
  headersMs: number
  /** Between two chunks of the answer's body. */
  bodyMs: number
  /** The whole request. */
  totalMs: number
}

/** Gateways in front of the API cut requests off at about 30 s. */
const defaultLimits: TransportLimits = {
  connectMs: 10_000,
  headersMs: 30_000,
  bodyMs: 10_000,
  totalMs: 30_000,
}

export interface TransportOptions {
  account: Pick<AccountConfig, 'baseUrl'> & Outbound
  clock?: Clock
  connections: Connections
}

export function createTransport(options: TransportOptions): Transport {
  const { account, clock = systemClock, connections } = options
  const { totalMs } = connections.limits
  const dispatcher = connections.of(account)

  async function send(asked: TransportRequest, signal: AbortSignal): Promise<Answer> {
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
    if (status >= 300) {
      return { status, headers, body: await readBeginning(response.body, errorBytes), sentAtMs }
    }
    const bytes = await readWhole(response.body, asked.maxBytes ?? answerBytes.page)
    if (asked.isFile) return { status, headers, body: '', file: bytes, sentAtMs }
    return { status, headers, body: new TextDecoder().decode(bytes), sentAtMs }
  }

  return {
    async request(asked) {
      try {
        return await withTimeout(totalMs, [asked.signal], (signal) => send(asked, signal))
      } catch (error) {
        if (asked.signal?.aborted) throw abandonedError()
        throw error instanceof UpstreamError ? error : errorFromFailure(error)
      }
    },
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

/**
 * Throws UpstreamError `contract` with fault `too_large` once there are more than `maxBytes`, but
 * for a web page. The login page of a proxy must not be reported as an oversized answer.
 */
async function readWhole(body: AsyncIterable<unknown>, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    pieces.push(piece)
    length += piece.length
    if (length <= maxBytes) continue
    const beginning = new TextDecoder().decode(pieces[0]?.subarray(0, 500))
    if (looksLikeHtml(beginning)) return Buffer.from(beginning)
    throw tooLargeError(`over ${maxBytes / 2 ** 20} MiB`)
  }
  return Buffer.concat(pieces)
}

export function tooLargeError(what: string): UpstreamError {
  const message = `the answer is too large to be read: ${what}`
  return new UpstreamError('contract', message, { fault: 'too_large' })
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

function buildHeaders({ authorization, body, isFile }: TransportRequest): Record<string, string> {
  const accept = isFile ? '*/*' : 'application/json'
  const named = authorization === undefined ? {} : { authorization }
  const headers = { accept, 'user-agent': 'tocsin', ...named }
  return body === undefined ? headers : { ...headers, 'content-type': 'application/json' }
}

/** Connections to the service. One that is open serves whichever account asks next. */
export interface Connections {
  readonly limits: TransportLimits
  /** Those of all accounts with this way out of the network. */
  of(outbound: Outbound): Dispatcher
  close(): Promise<void>
}

export function createConnections(given: Partial<TransportLimits> = {}): Connections {
  const limits = { ...defaultLimits, ...given }
  const dispatchers = new Map<string, Dispatcher>()
  return {
    limits,
    of(outbound) {
      const way = wayOut(outbound)
      const dispatcher = dispatchers.get(way) ?? createDispatcher(outbound, limits)
      dispatchers.set(way, dispatcher)
      return dispatcher
    },
    async close() {
      await Promise.all([...dispatchers.values()].map((one) => one.destroy()))
    },
  }
}

/** Equal for accounts that reach a host in the same way: a proxy's file may change, its path says which. */
function wayOut({ proxy, noProxy, caFile }: Outbound): string {
  return JSON.stringify([proxy && (proxy.file ?? proxy.reveal()), noProxy, caFile])
}

function createDispatcher(outbound: Outbound, limits: TransportLimits): Dispatcher {
  // No bound on connections: the limits of API slots bound the requests that are out, and one that
  // hangs must keep no other waiting.
  const timeoutMs = limits.connectMs
  const settings = { allowH2: false, timeout: timeoutMs }
  return new Agent({
    allowH2: false, // else all would wait for the first connection to say which protocol it speaks
    connect: createOutboundConnector<buildConnector.Options>(
      outbound,
      (tls) => buildConnector({ ...settings, ...tls }),
      timeoutMs,
    ),
    headersTimeout: limits.headersMs,
    bodyTimeout: limits.bodyMs,
  })
}
