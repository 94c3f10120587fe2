/** UpstreamError, which every failed request to the API throws, and why the request failed. */
import { ReasonedError } from '../lib/errors.ts'

/** Why a request to the API failed. Labels `feed_polls_failed_total`. */
export type UpstreamReason =
  | 'auth' // 401 with a fresh token, or 403: the key or its tenant is refused
  | 'rate_limited' // 429
  | 'rejected' // any other 4xx: the request itself is refused
  | 'invalid' // not sent: it exceeds a limit of the API
  | 'unavailable' // 5xx, connection refused or cut, DNS
  | 'timeout'
  | 'contract' // the answer does not match the API description

/** The exact fault, where the reason alone does not tell an operator what to do. */
export type UpstreamFault =
  | 'dns' // the host name does not exist
  | 'refused' // nothing listens there, or there is no route
  | 'cut' // the connection broke before the answer was complete
  | 'unsent' // no header can hold the token or key, so nothing left
  | 'tls' // the certificate or the handshake failed
  | 'scheme' // one side speaks TLS, the other does not
  | 'proxy' // the proxy failed, not the API
  | 'redirect' // 3xx: base_url should be another address
  | 'html' // a web page instead of the API
  | 'not_http' // what listens there does not speak HTTP
  | 'too_large' // the answer exceeds its limits

/** One invalid field, as in the API's 422. `loc` is a dotted path, '' for the request itself. */
export interface ErrorDetail {
  loc: string
  msg: string
}

export interface UpstreamErrorOptions {
  status?: number | undefined
  serviceCode?: string | undefined
  retryAfterMs?: number | undefined
  fault?: UpstreamFault | undefined
  details?: readonly ErrorDetail[] | undefined
  mayBeDone?: boolean | undefined
  cause?: unknown
}

export class UpstreamError extends ReasonedError<UpstreamReason> {
  override readonly name = 'UpstreamError'
  readonly code = 'TOCSIN_SERVICE'
  readonly status: number | undefined
  /** The API's own stable error code, e.g. `RATELIMIT_REACHED`. */
  readonly serviceCode: string | undefined
  readonly retryAfterMs: number | undefined
  readonly fault: UpstreamFault | undefined
  /** The invalid fields, as reported by the API or by the check before sending; else empty. */
  readonly details: readonly ErrorDetail[]
  /** Whether a write may have been carried out despite the error. */
  readonly mayBeDone: boolean

  constructor(reason: UpstreamReason, message: string, options: UpstreamErrorOptions = {}) {
    super(reason, message, options)
    this.status = options.status
    this.serviceCode = options.serviceCode
    this.retryAfterMs = options.retryAfterMs
    this.fault = options.fault
    this.details = options.details ?? []
    this.mayBeDone = options.mayBeDone ?? false
  }
}

export function abandonedError(): UpstreamError {
  return new UpstreamError('timeout', 'the request was given up before the service answered')
}

/**
 * Waits for `pending`, but throws UpstreamError `timeout` once `signal` aborts. The shared work
 * continues for its other callers.
 */
export async function waitOrAbort<T>(
  pending: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (!signal) return pending
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = (): void => reject(abandonedError())
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  try {
    return await Promise.race([pending, promise])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** The request found no turn in time on its connection, and nothing was written. */
export const notBegun = new UpstreamError('timeout', 'the request did not begin in time')
