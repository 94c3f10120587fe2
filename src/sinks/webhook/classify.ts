/** From what happened on the wire to the word that decides what is done about it. */
import { parseRetryAfter } from '../../runtime/retry-after.ts'
import { SinkError, type SinkReason } from '../sink.ts'

export interface Answer {
  status: number
  retryAfter?: string | string[] | undefined
}

/** What an answer outside 2xx means. The receiver's body is not repeated: it may echo what it was sent. */
export function errorOfAnswer({ status, retryAfter }: Answer, nowMs: number): SinkError {
  const reason = reasonOfStatus(status)
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

function reasonOfStatus(status: number): SinkReason {
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
  /** Whether undici had begun to write the request: from there on the receiver may have accepted it. */
  wasWritten: boolean
  wasAborted: boolean
}

export function errorOfFailure({ error, wasWritten, wasAborted }: Failure): SinkError {
  const code = codeOf(error)
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

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/**
 * Node's and OpenSSL's words for a certificate that is not trusted or not for this host. The last is
 * the server asking for one of ours: under TLS 1.3 it arrives after the request was written, but no
 * server reads a request whose handshake it refused.
 */
function isCertificateError(code: string | undefined): boolean {
  return (
    code !== undefined &&
    /^CERT_|SELF_SIGNED_CERT|^UNABLE_TO_(GET|VERIFY|DECRYPT)|^ERR_TLS_CERT|_CERTIFICATE_REQUIRED$/.test(
      code,
    )
  )
}

/** Words that only a failed connection has; a request without a body cannot tell otherwise. */
function isUnreached(code: string | undefined): boolean {
  return (
    code !== undefined &&
    /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|E(HOST|NET)UNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code)
  )
}

function isTimeout(code: string | undefined): boolean {
  return code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT'
}
