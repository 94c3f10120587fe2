/**
 * What every sink that speaks HTTP shares: reading its address, one request on a guarded
 * connection, and the reason of every failure. Guarded is: no redirect, no private address unless
 * allowed, a proxy only if named. Also the ping of an address.
 */
import { lookup } from 'node:dns'
import type { LookupFunction, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import { withTimeout } from '../lib/clock.ts'
import { errorCode } from '../lib/errors.ts'
import { createOutboundConnector, findProxy, OutboundError } from '../lib/outbound.ts'
import type { Outbound } from '../lib/config/outbound-config.ts'
import type { Secret } from '../lib/config/secret.ts'
import { explainTlsFailure, parseRetryAfter } from '../lib/config/web-address.ts'
import { guardConnector, publicLookup } from './address-guard.ts'
import { knownAddressProblem } from './known-addresses.ts'
import {
  type Receipt,
  revealSecret,
  type SendOptions,
  SinkError,
  type SinkReason,
  tooLate,
} from './sink.ts'

/**
 * Where a request goes; checked again at each use, because a file may hold another address by now.
 */
export interface Target {
  url: Secret
  allowPrivate: boolean
}

/**
 * Reads the current URL. Errors neither name it nor have as cause the parser's error, which quotes
 * it.
 */
export function readTarget({ url, allowPrivate }: Target): URL {
  const target = parseUrl(url)
  if (target.username !== '' || target.password !== '') {
    throw misconfiguredError('url carries a user or password; use secret to prove who sends')
  }
  if (target.protocol === 'https:') return target
  if (target.protocol === 'http:' && allowPrivate) return target
  throw misconfiguredError('url is not https; plain http needs allow_private: true')
}

function parseUrl(url: Secret): URL {
  const target = URL.parse(revealSecret(url, 'url'))
  if (target === null) throw misconfiguredError('url is not a URL; write https://host/path')
  return target
}

function misconfiguredError(what: string): SinkError {
  return new SinkError('misconfigured', what)
}

/** A file may hold another address than the one that was checked when the configuration loaded. */
export function readChatUrl(type: 'slack' | 'teams', target: Target): URL {
  const url = readTarget(target)
  const known = knownAddressProblem(type, url.href)
  if (known === undefined) return url
  throw misconfiguredError(`url is ${known.problem}; ${known.remedy}`)
}

const pingTimeoutMs = 10_000

export interface PingOptions {
  /** Finds the addresses of a host. Default: the system's resolver. */
  resolve?: LookupFunction
  timeoutMs?: number
}

export async function sendPing(
  target: Target & Outbound,
  { resolve, timeoutMs = pingTimeoutMs }: PingOptions = {},
): Promise<void> {
  const { allowPrivate } = target
  const url = readTarget(target)
  const transport = createHttpTransport({
    allowPrivate,
    outbound: target,
    resolve,
    maxConnections: 1,
  })
  try {
    const { status } = await withTimeout(timeoutMs, [], (signal) => transport.get(url, signal))
    if (isSuccess(status)) return
    throw new SinkError('rejected', `the address answered ${status}`, { status })
  } finally {
    await transport.close()
  }
}

const connectTimeoutMs = 5000
const headersTimeoutMs = 10_000
const bodyTimeoutMs = 5000
const maxAnswerBytes = 64 * 1024
const defaultReceiver = 'the receiver'

export interface HttpTransport {
  /** Resolves with any status; throws SinkError if no status came. */
  post(url: URL, message: HttpMessage, options: SendOptions): Promise<HttpAnswer>
  /** As `post`. */
  get(url: URL, signal: AbortSignal): Promise<HttpAnswer>
  /** Connects, TLS included, and writes nothing. Resolves with what it connected by. */
  reach(url: URL, signal: AbortSignal): Promise<Receipt>
  close(): Promise<void>
}

export interface HttpMessage {
  headers: Record<string, string>
  body: string
}

interface TransportOptions {
  allowPrivate: boolean
  /** Default: no proxy, the system's authorities. */
  outbound?: Outbound | undefined
  /** Finds the addresses of a host. Default: the system's resolver. */
  resolve?: LookupFunction | undefined
  maxConnections: number
  /** What errors call the other side. Default: `the receiver`. */
  receiver?: string | undefined
  /**
   * Whether a 2xx counts only once its body is read. Each request has a connection of its own then:
   * the reset of a stale one would look like a lost answer. Default: the status is the answer, and
   * the body what came of it.
   */
  readsAnswer?: boolean
}

export function createHttpTransport(options: TransportOptions): HttpTransport {
  const { receiver, readsAnswer = false } = options
  const connect = createConnector(options)
  // A plain Agent ignores proxy variables: what goes by a proxy is the sink's `proxy` to say.
  const agent = new Agent({
    connect,
    allowH2: false, // else all would wait for the first connection to say which protocol it speaks
    connections: options.maxConnections,
    ...(readsAnswer && { pipelining: 0 }), // 0: no connection is kept
    headersTimeout: headersTimeoutMs,
    bodyTimeout: bodyTimeoutMs,
  })

  function ask(url: URL, asked: HttpRequest, wait: AnswerWait): Promise<HttpAnswer> {
    const { origin, pathname, search } = url
    return new Promise((resolve, reject) => {
      wait.signal.throwIfAborted()
      const handler = createAnswerHandler({ ...wait, readsAnswer }, { resolve, reject })
      agent.dispatch({ origin, path: `${pathname}${search}`, ...asked }, handler)
    })
  }

  async function send(url: URL, asked: HttpRequest, options: SendOptions): Promise<HttpAnswer> {
    const { signal, mayBegin = () => true } = options
    let wasWritten = false
    const mayWrite = (): boolean => (wasWritten = mayBegin())
    try {
      return await ask(url, asked, { signal, mayWrite })
    } catch (error) {
      throw errorFromFailure({ error, wasWritten, wasAborted: signal.aborted }, receiver)
    }
  }

  async function reach(url: URL, signal: AbortSignal): Promise<Receipt> {
    try {
      const socket = await connectOnce(connect, url, signal)
      const by = socket instanceof TLSSocket ? (socket.getProtocol() ?? 'TLS') : 'TCP'
      socket.destroy()
      return { answer: `${by} to ${url.host}` }
    } catch (error) {
      const wasAborted = signal.aborted
      throw errorFromFailure({ error, wasWritten: false, wasAborted }, receiver)
    }
  }

  const ping = { method: 'GET', headers: { 'user-agent': 'tocsin' } } as const
  return {
    post: (url, message, options) => send(url, { method: 'POST', ...message }, options),
    get: (url, signal) => send(url, ping, { signal }),
    reach,
    close: () => agent.destroy(),
  }
}

/** A connection that is there only after the signal aborted is closed. The signal is that of one try. */
function connectOnce(
  connect: buildConnector.connector,
  { protocol, hostname, host, port }: URL,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason as Error)
    if (signal.aborted) return giveUp()
    signal.addEventListener('abort', giveUp)
    const bare = hostname.replace(/^\[(.*)\]$/, '$1') // a socket takes an IPv6 address without
    connect({ protocol, hostname: bare, host, port }, (...[error, socket]) => {
      if (signal.aborted) return void socket?.destroy()
      if (error) reject(error)
      else resolve(socket)
    })
  })
}

interface HttpRequest {
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: string
}

interface AnswerWait {
  signal: AbortSignal
  /** Asked on a live connection, right before undici writes the request; false: nothing is written. */
  mayWrite: () => boolean
}

/**
 * Reads one answer, at most `maxAnswerBytes` of it. Without `readsAnswer`, or if the status already
 * says no, an endless, cut or slow body does not change the outcome. undici's own `request` makes
 * streams of both bodies, which cost a third of a small request.
 */
function createAnswerHandler(
  { signal, mayWrite, readsAnswer }: AnswerWait & { readsAnswer: boolean },
  { resolve, reject }: Pick<PromiseWithResolvers<HttpAnswer>, 'resolve' | 'reject'>,
): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = []
  let bytes = 0
  let head: Omit<HttpAnswer, 'body'> | undefined
  let request: Dispatcher.DispatchController | undefined
  signal.addEventListener('abort', abort, { once: true })

  /** Also ends the wait for a connection, of which undici knows no signal. */
  function abort(): void {
    request?.abort(signal.reason as Error)
    end(signal.reason)
  }
  function end(error?: unknown): void {
    signal.removeEventListener('abort', abort)
    const isCut = error !== undefined && readsAnswer && head && isSuccess(head.status)
    if (!head || isCut) return reject(error)
    resolve({ ...head, body: Buffer.concat(chunks).toString('utf8', 0, maxAnswerBytes) })
  }
  return {
    onRequestStart(controller) {
      request = controller
      if (signal.aborted) controller.abort(signal.reason as Error)
      else if (!mayWrite()) controller.abort(new SinkError('unavailable', tooLate))
    },
    onResponseStart(_controller, status, headers) {
      if (status >= 200)
        head = { status, retryAfter: headers['retry-after'], date: headers['date'] }
    },
    onResponseData(controller, chunk) {
      bytes += chunk.length
      chunks.push(chunk)
      if (bytes <= maxAnswerBytes) return
      end()
      controller.abort(new Error('the rest of the answer is not read'))
    },
    onResponseEnd: () => end(),
    onResponseError: (_controller, error) => end(error),
  }
}

function createConnector(options: TransportOptions): buildConnector.connector {
  const { allowPrivate, outbound = {}, resolve = lookup } = options
  // HTTP/1.1 only: a request has a connection to itself there, which makes `wasWritten` exact.
  const settings = {
    timeout: connectTimeoutMs,
    allowH2: false,
    lookup: allowPrivate ? resolve : publicLookup(resolve),
  }
  const connect = createOutboundConnector<buildConnector.Options>(
    outbound,
    (tls) => buildConnector({ ...settings, ...tls }),
    connectTimeoutMs,
  )
  const isTunneled = (hostname: string): boolean => findProxy(outbound, hostname) !== undefined
  return allowPrivate ? connect : guardConnector(connect, isTunneled)
}

export interface HttpAnswer {
  status: number
  retryAfter?: string | string[] | undefined
  /** The answer's own `Date`. */
  date?: string | string[] | undefined
  /** At most 64 KiB; without `readsAnswer` it may be cut. */
  body: string
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

/** Why an answer is no acceptance. */
export interface Denial {
  /** undefined: by the status. */
  reason?: SinkReason | undefined
  /** The receiver's own, or what it is in words: bounded, and without a secret. */
  word?: string
  /** What counts where the answer has no `Retry-After`. */
  retryAfter?: string
}

/**
 * What an answer of 2xx says all the same: that it took nothing. undefined: it names no error, so
 * that it is acceptance, whatever its words.
 */
export function findDenial(body: string): Denial | undefined {
  if (body === '') return undefined
  // a page to sign in, of a proxy or of the application beside the webhook; other XML is an answer
  if (/^\s*</.test(body) && /<(?:!doctype\s+html|html|head|body)\b/i.test(body))
    return { reason: 'misconfigured', word: 'by a web page' }
  let answer: unknown
  try {
    answer = JSON.parse(body.trim()) // with a byte order mark it is no JSON
  } catch {
    return undefined
  }
  if (typeof answer !== 'object' || answer === null) return undefined
  const { ok, success, status, error, errors } = answer as Record<string, unknown>
  const isNamed = [error, errors].some((named) => named !== undefined && !isNothing(named))
  const isRefused = [ok, success].some((flag) => /^false$/i.test(String(flag)))
  const isFailure = typeof status === 'string' && /^(?:error|fail(?:ed|ure)?)$/i.test(status)
  if (!isRefused && !isFailure && !isNamed) return undefined
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : error
  const isWord = typeof code === 'string' && /^[A-Za-z_]{2,60}$/.test(code)
  return { reason: 'rejected', word: isWord ? code : 'with an error' }
}

function isNothing(value: unknown): boolean {
  if (typeof value === 'string') return /^(?:|0|false|none|null)$/i.test(value)
  if (typeof value !== 'object') return value === 0 || value === false
  return value === null || Object.keys(value).length === 0
}

interface Refusal extends Denial {
  nowMs: number
  receiver?: string | undefined
  /** What the operator can do, by reason; follows the status in the message. */
  advice?: Partial<Record<SinkReason, string>>
}

/** What nginx and Go say of the connection by a 400: each begins the body, which no echo of an event does. */
const connectionFault =
  /^<html>\s*<head><title>400 (?:No required SSL certificate was sent|The SSL certificate error|The plain HTTP request was sent to HTTPS port)<|^Client sent an HTTP request to an HTTPS server/

const connectionRemedy =
  'the fault is in TLS: write https:// in url, and have the server ask for no client certificate'

/**
 * Builds the error of an answer that is not acceptance. The body is not repeated: it may echo what
 * it was sent.
 */
export function errorFromAnswer(
  { status, retryAfter, date, body }: HttpAnswer,
  { nowMs, reason = classifyStatus(status), word = '', ...said }: Refusal,
): SinkError {
  const { receiver = defaultReceiver, advice = {} } = said
  if ([495, 496, 497].includes(status) || (status === 400 && connectionFault.test(body))) {
    const problem = `${receiver} answered ${status}: ${connectionRemedy}`
    return new SinkError('misconfigured', problem, { status })
  }
  const mayWait = reason === 'rate_limited' || reason === 'unavailable'
  const retryAfterMs = mayWait
    ? parseRetryAfter(retryAfter ?? said.retryAfter, nowMs, date)
    : undefined
  const answer = word === '' ? String(status) : `${status} ${word}`
  return new SinkError(reason, `${receiver} answered ${answer}${advice[reason] ?? ''}`, {
    status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

const reasonsByStatus: Record<number, SinkReason> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'unauthorized',
  408: 'unavailable',
  410: 'gone',
  413: 'invalid',
  422: 'invalid',
  425: 'unavailable',
  429: 'rate_limited',
}

export function classifyStatus(status: number): SinkReason {
  if (status >= 300 && status < 400) return 'redirected'
  if (status >= 500 && status < 600) return 'unavailable'
  return reasonsByStatus[status] ?? 'rejected'
}

/** How far a request had come when it failed. */
export interface Failure {
  error: unknown
  /**
   * Whether undici had begun to write the request: from then on the receiver may have accepted it.
   */
  wasWritten: boolean
  wasAborted: boolean
}

export function errorFromFailure(
  { error, wasWritten, wasAborted }: Failure,
  receiver: string = defaultReceiver,
): SinkError {
  const code = errorCode(error, '')
  const cause = error
  if (error instanceof SinkError) return error
  if (error instanceof OutboundError) {
    return new SinkError(error.reason, error.message)
  }
  // Under TLS 1.3 a server refuses the client's certificate after the request was written, but none
  // reads a request whose handshake it refused.
  const tls = explainTlsFailure(error, 'https')
  if (tls !== undefined) return new SinkError('misconfigured', tls, { cause })
  if (!wasWritten) {
    const why = wasAborted ? 'the time was up' : code || 'no connection'
    return new SinkError('unavailable', `${receiver} was not reached (${why})`, { cause })
  }
  if (wasAborted || isTimeout(code)) {
    return new SinkError('timeout', 'the request was sent and no answer came in time', { cause })
  }
  const why = code || 'closed'
  return new SinkError('connection_lost', `cut before the answer was read (${why})`, { cause })
}

function isTimeout(code: string): boolean {
  return code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT'
}
