import { TocsinError } from '../lib/errors.ts'

/** Why a request to the service failed; the word labels `feed_polls_failed_total`. */
export type UpstreamReason =
  | 'auth' // 401 after one renewal, 403: the key or its tenant is refused
  | 'rate_limited' // 429
  | 'rejected' // other 4xx: the request itself is refused
  | 'invalid' // never sent: it breaks a limit that the API states
  | 'unavailable' // 5xx, refused, DNS, cut
  | 'timeout'
  | 'contract' // an answer that breaks the API description

/** What exactly went wrong, where the reason alone would not tell an operator what to do. */
export type UpstreamFault =
  | 'dns' // the host name does not exist
  | 'refused' // nobody listens, or no way there
  | 'cut' // the connection broke before the answer was whole
  | 'tls' // the certificate or the handshake
  | 'proxy' // the proxy, not the service
  | 'redirect' // 3xx: another base URL is meant
  | 'html' // a web page instead of the API
  | 'not_http' // what listens there does not speak HTTP
  | 'too_large' // an answer beyond all measure

/** One field that is wrong, as the service's 422 names it: `loc` dotted, '' for the request itself. */
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

export class UpstreamError extends TocsinError {
  override readonly name = 'ServiceError'
  readonly code = 'TOCSIN_SERVICE'
  readonly reason: UpstreamReason
  readonly status: number | undefined
  /** The service's own stable code, e.g. `RATELIMIT_REACHED`. */
  readonly serviceCode: string | undefined
  readonly retryAfterMs: number | undefined
  readonly fault: UpstreamFault | undefined
  /** Field by field, where the service or a check before it says so; else empty. */
  readonly details: readonly ErrorDetail[]
  /** Of a request that changes something: whether it may have been done all the same. */
  readonly mayBeDone: boolean

  constructor(reason: UpstreamReason, message: string, options: UpstreamErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
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

/** The shared work goes on for the others when one caller gives up. */
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
