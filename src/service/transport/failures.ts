/** Turns what undici throws and what the service refuses with into a ServiceError; no cause, no secret. */
import { looksLikeHtml, parseErrorBody } from './error-body.ts'
import { parseHttpDate, parseRetryAfter } from '../../runtime/retry-after.ts'
import { ServiceError, type ServiceErrorOptions, type ServiceFault } from '../service-error.ts'

/** An answer with its body, whatever its status. */
export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: string
  /** Wall clock ms when the request was sent. */
  sentAtMs: number
}

/** The documented advice for a 429 without `Retry-After`: wait 10 seconds. */
const defaultPauseMs = 10_000

/** The error that an answer of 300 or more stands for. */
export function failureOfAnswer(answer: Answer, secrets: readonly string[]): ServiceError {
  const { status } = answer
  const { code, message, details } = parseErrorBody(answer.body, secrets)
  const said = message === '' ? '' : `: ${message}`
  const options: ServiceErrorOptions = { status, serviceCode: code, details }
  if (looksLikeHtml(answer.body)) options.fault = 'html'
  if (status === 429 || status === 503) options.retryAfterMs = waitAsked(answer)
  if (status === 429) {
    options.retryAfterMs ??= defaultPauseMs
    return new ServiceError('rate_limited', `the service asks to wait (429)${said}`, options)
  }
  if (status < 400) {
    const hint = 'set base_url to the address that it leads to'
    options.fault = 'redirect'
    return new ServiceError(
      'contract',
      `the service answers by a redirect (${status}); ${hint}`,
      options,
    )
  }
  return refusal(status, said, options)
}

function refusal(status: number, said: string, options: ServiceErrorOptions): ServiceError {
  if (status === 401) {
    return new ServiceError('auth', `the key or its token is refused (401)${said}`, options)
  }
  if (status === 403) {
    const why = "the key's user lacks the permission, or has no access to this tenant"
    return new ServiceError('auth', `access is forbidden (403), ${why}${said}`, options)
  }
  if (status === 407) {
    options.fault = 'proxy'
    return new ServiceError('unavailable', 'the proxy wants other credentials (407)', options)
  }
  if (status === 408) {
    return new ServiceError('timeout', `the service gave up waiting (408)${said}`, options)
  }
  if (status >= 500) {
    return new ServiceError('unavailable', `the service failed (${status})${said}`, options)
  }
  return new ServiceError('rejected', `the service refuses the request (${status})${said}`, options)
}

function waitAsked(answer: Answer): number | undefined {
  const serverNowMs = parseHttpDate(headerOf(answer, 'date')) ?? answer.sentAtMs
  return parseRetryAfter(headerOf(answer, 'retry-after'), serverNowMs)
}

export function headerOf(answer: Answer, name: string): string | undefined {
  const value = answer.headers[name]
  return Array.isArray(value) ? value[0] : value
}

const timeouts = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

const words: Record<ServiceFault, string> = {
  dns: 'the host of base_url is not found',
  refused: 'nobody answers at the host and port of base_url',
  cut: 'the connection broke before the answer was whole',
  tls: 'no trusted TLS connection to the service',
  proxy: 'the proxy does not let the request through',
  redirect: 'the service answers by a redirect',
  html: 'a web page answers instead of the API',
  not_http: 'what answers at base_url does not speak HTTP',
  too_large: 'the answer is larger than any that the API gives',
}

/** The error that a request without a usable answer stands for. */
export function failureOfError(error: unknown, throughProxy: boolean): ServiceError {
  const { code, name } = marksOf(error)
  if (timeouts.has(code) || name === 'TimeoutError') {
    return new ServiceError('timeout', 'the service did not answer in time')
  }
  const fault = faultOf(code, error, throughProxy)
  const suffix = code === '' ? '' : ` (${code})`
  const reason = fault === 'too_large' || fault === 'not_http' ? 'contract' : 'unavailable'
  return new ServiceError(reason, `${words[fault]}${suffix}`, { fault })
}

function marksOf(error: unknown): { code: string; name: string } {
  if (!(error instanceof Error)) return { code: '', name: '' }
  const code: unknown = 'code' in error ? error.code : undefined
  return { code: typeof code === 'string' && /^\w+$/.test(code) ? code : '', name: error.name }
}

function faultOf(code: string, error: unknown, throughProxy: boolean): ServiceFault {
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return 'too_large'
  const isParserError = error instanceof Error && error.name === 'HTTPParserError'
  if (isParserError || code === 'UND_ERR_HEADERS_OVERFLOW') return 'not_http'
  if (/^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_|ERR_SSL_|EPROTO)/.test(code))
    return 'tls'
  if (error instanceof Error && /proxy/i.test(error.message)) return 'proxy'
  const atFirstHop = faultOfFirstHop(code)
  return atFirstHop && throughProxy ? 'proxy' : (atFirstHop ?? 'cut')
}

function faultOfFirstHop(code: string): 'dns' | 'refused' | undefined {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns'
  return /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/.test(code)
    ? 'refused'
    : undefined
}
