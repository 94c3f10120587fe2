/**
 * Signed webhooks for machines (Standard Webhooks 1.0.0), and the ping of an address. A send is one
 * POST with one id; only 2xx is success. Never follows a redirect, never reaches a private address
 * unless allowed.
 */
import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import { Agent, buildConnector, request } from 'undici'
import { type Clock, timeoutSignal } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Secret } from '../../lib/secret.ts'
import { parseRetryAfter } from '../../lib/web-address.ts'
import { guardConnector, publicLookup } from '../address-guard.ts'
import { listDestinations } from '../destinations.ts'
import {
  type Delivery,
  type Receipt,
  type SendOptions,
  type Sink,
  SinkError,
  type SinkReason,
} from '../sink.ts'
import { measureMember, renderBody } from './body.ts'
import type { WebhookConfig } from './config.ts'
import { sign } from './signature.ts'

const sendTimeoutMs = 15_000
const concurrency = 8

export interface WebhookSinkOptions {
  logger: Logger
  clock: Clock
  /** Finds the addresses of a host. Default: the system's resolver. */
  resolve?: LookupFunction
}

/** Reads the URL and the signing secrets at each send, so that they rotate without a restart. */
export function createWebhookSink(
  config: WebhookConfig,
  { logger, clock, resolve = lookup }: WebhookSinkOptions,
): Sink {
  const transport = createTransport({
    allowPrivate: config.allowPrivate,
    resolve,
    maxConnections: concurrency,
  })

  async function send(delivery: Delivery, options: SendOptions): Promise<Receipt> {
    if (delivery.summary) {
      throw new SinkError('invalid', 'a summary is for people; a webhook takes events one by one')
    }
    const signal = timeoutSignal(sendTimeoutMs, options.signal)
    const body = renderBody(delivery)
    const headers = buildHeaders(delivery, signatureHeaders(delivery, body))
    const answer = await transport.post(readTarget(config), { headers, body }, signal)
    const { status } = answer
    logger.debug({ sink: config.name, delivery: delivery.id, status }, 'webhook answered')
    if (status < 200 || status >= 300) throw errorFromAnswer(answer, clock.now())
    return { answer: `HTTP ${status}` }
  }

  function signatureHeaders({ id }: Delivery, body: string): Record<string, string> {
    const timestamp = Math.floor(clock.now() / 1000)
    const stamp = { 'webhook-timestamp': String(timestamp) }
    if (config.secrets.length === 0) return stamp
    try {
      const secrets = config.secrets.map((secret) => secret.reveal())
      return { ...stamp, 'webhook-signature': sign({ id, timestamp, body }, secrets) }
    } catch (error) {
      throw new SinkError('misconfigured', `cannot sign: ${errorMessage(error)}`)
    }
  }

  return {
    name: config.name,
    type: 'webhook',
    destinations: listDestinations(config),
    batch: config.batch,
    limitPerSecond: config.limitPerSecond,
    reveals: config.reveal,
    concurrency,
    sendTimeoutMs,
    send,
    measure: measureMember,
    close: () => transport.close(),
  }
}

function buildHeaders(
  delivery: Delivery,
  signature: Record<string, string>,
): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': 'tocsin',
    'webhook-id': delivery.id,
    'idempotency-key': delivery.id,
    'tocsin-attempt': String(delivery.attempt),
    ...(delivery.mayBeRepeat && { 'tocsin-possible-repeat': 'true' }),
    ...(delivery.isTest && { 'tocsin-test': 'true' }),
    ...signature,
  }
}

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
function readTarget({ url, allowPrivate }: Target): URL {
  const target = parseUrl(url)
  if (target.username !== '' || target.password !== '') {
    throw misconfiguredError('url carries a user or password; use secret to prove who sends')
  }
  if (target.protocol === 'https:') return target
  if (target.protocol === 'http:' && allowPrivate) return target
  throw misconfiguredError('url is not https; plain http needs allow_private: true')
}

function parseUrl(url: Secret): URL {
  let text: string
  try {
    text = url.reveal()
  } catch (error) {
    throw misconfiguredError(`url cannot be read: ${errorMessage(error)}`)
  }
  const target = URL.parse(text)
  if (target === null) throw misconfiguredError('url is not a URL; write https://host/path')
  return target
}

function misconfiguredError(what: string): SinkError {
  return new SinkError('misconfigured', what)
}

const pingTimeoutMs = 10_000

export interface PingOptions {
  /** Finds the addresses of a host. Default: the system's resolver. */
  resolve?: LookupFunction
  timeoutMs?: number
}

export async function sendPing(
  target: Target,
  { resolve = lookup, timeoutMs = pingTimeoutMs }: PingOptions = {},
): Promise<void> {
  const { allowPrivate } = target
  const url = readTarget(target)
  const transport = createTransport({ allowPrivate, resolve, maxConnections: 1 })
  try {
    const { status } = await transport.get(url, timeoutSignal(timeoutMs))
    if (status >= 200 && status < 300) return
    throw new SinkError('rejected', `the address answered ${status}`, { status })
  } finally {
    await transport.close()
  }
}

const connectTimeoutMs = 5000
const headersTimeoutMs = 10_000
const bodyTimeoutMs = 5000
const maxAnswerBytes = 64 * 1024

export interface Transport {
  /** Resolves with any status; throws SinkError if no status came. */
  post(url: URL, message: HttpMessage, signal: AbortSignal): Promise<Answer>
  /**
   * As `post`. Whether a GET was written is not known, so one that fails once connected counts as
   * written.
   */
  get(url: URL, signal: AbortSignal): Promise<Answer>
  close(): Promise<void>
}

export interface HttpMessage {
  headers: Record<string, string>
  body: string
}

export interface TransportOptions {
  allowPrivate: boolean
  resolve: LookupFunction
  maxConnections: number
}

function createTransport(options: TransportOptions): Transport {
  // A plain Agent ignores proxy variables: behind a proxy the address checks would see only the
  // proxy.
  const agent = new Agent({
    connect: createConnector(options),
    connections: options.maxConnections,
    headersTimeout: headersTimeoutMs,
    bodyTimeout: bodyTimeoutMs,
  })

  async function ask(url: URL, asked: HttpRequest, signal: AbortSignal): Promise<Answer> {
    const pendingResponse = request(url, { dispatcher: agent, ...asked, signal })
    const response = await Promise.race([pendingResponse, rejectOnAbort(signal)])
    // The status is the answer. The rest is read only so that the connection can be reused; an
    // endless, cut or slow body does not change the outcome.
    await response.body.dump({ limit: maxAnswerBytes, signal }).catch(() => undefined)
    return { status: response.statusCode, retryAfter: response.headers['retry-after'] }
  }

  async function post(
    url: URL,
    { headers, body }: HttpMessage,
    signal: AbortSignal,
  ): Promise<Answer> {
    let wasWritten = false
    const stream = readOnce(body, () => (wasWritten = true))
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    try {
      const message = { method: 'POST', headers: { ...headers, ...length }, body: stream } as const
      return await ask(url, message, signal)
    } catch (error) {
      throw errorFromFailure({ error, wasWritten, wasAborted: signal.aborted })
    }
  }

  async function get(url: URL, signal: AbortSignal): Promise<Answer> {
    try {
      return await ask(url, { method: 'GET', headers: { 'user-agent': 'tocsin' } }, signal)
    } catch (error) {
      throw errorFromFailure({ error, wasWritten: true, wasAborted: signal.aborted })
    }
  }

  return { post, get, close: () => agent.destroy() }
}

interface HttpRequest {
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: Readable
}

/**
 * A body that reports when undici reads it, which happens on a live connection, right before
 * writing.
 */
function readOnce(body: string, onRead: () => void): Readable {
  return new Readable({
    read() {
      onRead()
      this.push(body)
      this.push(null)
    },
  })
}

/** undici checks the signal only once it is connected; this ends the wait for a connection too. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

function createConnector({ allowPrivate, resolve }: TransportOptions): buildConnector.connector {
  // HTTP/1.1 only: a request has a connection to itself there, which makes `wasWritten` exact.
  const settings = { timeout: connectTimeoutMs, allowH2: false }
  if (allowPrivate) return buildConnector({ ...settings, lookup: resolve })
  return guardConnector(buildConnector({ ...settings, lookup: publicLookup(resolve) }))
}

export interface Answer {
  status: number
  retryAfter?: string | string[] | undefined
}

/**
 * Builds the error of an answer outside 2xx. The receiver's body is not repeated: it may echo what
 * it was sent.
 */
function errorFromAnswer({ status, retryAfter }: Answer, nowMs: number): SinkError {
  const reason = classifyStatus(status)
  const mayWait = reason === 'rate_limited' || reason === 'unavailable'
  const retryAfterMs = mayWait ? parseRetryAfter(retryAfter, nowMs) : undefined
  return new SinkError(reason, `the receiver answered ${status}${advice[reason] ?? ''}`, {
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

function classifyStatus(status: number): SinkReason {
  if (status >= 300 && status < 400) return 'redirected'
  if (status >= 500 && status < 600) return 'unavailable'
  return reasonsByStatus[status] ?? 'rejected'
}

const advice: Partial<Record<SinkReason, string>> = {
  redirected: ', a redirect, and webhooks follow none: set url to the address it leads to',
  unauthorized: ': check the signing secret and any token in url',
  gone: ': the endpoint is no more; set a new url or remove the sink',
  rejected: ': check that url names the endpoint',
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

export function errorFromFailure({ error, wasWritten, wasAborted }: Failure): SinkError {
  const code = errorCode(error)
  const cause = error
  if (error instanceof SinkError) return error
  if (isCertificateError(code)) {
    return new SinkError('misconfigured', `the TLS certificates do not fit (${code})`, { cause })
  }
  if (!wasWritten || isUnreached(code)) {
    const why = wasAborted ? 'the time was up' : (code ?? 'no connection')
    return new SinkError('unavailable', `the receiver was not reached (${why})`, { cause })
  }
  if (wasAborted || isTimeout(code)) {
    return new SinkError('timeout', 'the request was sent and no answer came in time', { cause })
  }
  const why = code ?? 'closed'
  return new SinkError('connection_lost', `cut before the answer was read (${why})`, { cause })
}

function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/**
 * Node's and OpenSSL's codes for a certificate that is not trusted or not for this host. The last
 * one is the server asking for a client certificate: under TLS 1.3 it arrives after the request was
 * written, but no server reads a request whose handshake it refused.
 */
function isCertificateError(code: string | undefined): boolean {
  return (
    code !== undefined &&
    /^CERT_|SELF_SIGNED_CERT|^UNABLE_TO_(GET|VERIFY|DECRYPT)|^ERR_TLS_CERT|_CERTIFICATE_REQUIRED$/.test(
      code,
    )
  )
}

/** Codes that only a failed connection has; for a request without a body nothing else can tell. */
function isUnreached(code: string | undefined): boolean {
  return (
    code !== undefined &&
    /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|E(HOST|NET)UNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code)
  )
}

function isTimeout(code: string | undefined): boolean {
  return code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT'
}
