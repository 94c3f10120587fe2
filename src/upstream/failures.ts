/** Turns undici's exceptions and the API's errors into UpstreamErrors without cause or secret. */
import { OutboundError } from '../lib/outbound.ts'
import {
  explainTlsFailure,
  explainTlsMismatch,
  parseRetryAfter,
} from '../lib/config/web-address.ts'
import {
  type ErrorDetail,
  UpstreamError,
  type UpstreamErrorOptions,
  type UpstreamFault,
} from './error.ts'

/** An HTTP answer of any status, with its body. */
export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** Empty where there is a `file`. */
  body: string
  /** The body below 300 of a request with `maxFileBytes`. */
  file?: Uint8Array
  /** Wall clock ms when the request was sent. */
  sentAtMs: number
}

/** The pause after a 429 without `Retry-After`: 10 seconds (docs/api-notes.md, Rate limits). */
const defaultPauseMs = 10_000

/** Returns the error for an answer of 300 or above. */
export function errorFromAnswer(answer: Answer, secrets: readonly string[]): UpstreamError {
  const { status } = answer
  const { code, message, details } = parseErrorBody(answer.body, secrets)
  const suffix = message === '' ? '' : `: ${message}`
  const options: UpstreamErrorOptions = { status, serviceCode: code, details }
  if (looksLikeHtml(answer.body)) options.fault = 'html'
  if (status === 429 || status === 503) options.retryAfterMs = readRetryAfter(answer)
  if (status === 429) {
    options.retryAfterMs ??= defaultPauseMs
    return new UpstreamError('rate_limited', `the service asks to wait (429)${suffix}`, options)
  }
  if (status < 400) {
    const hint = 'set base_url to the address that it leads to'
    options.fault = 'redirect'
    return new UpstreamError(
      'contract',
      `the service answers by a redirect (${status}); ${hint}`,
      options,
    )
  }
  return refusalError(status, suffix, options)
}

function refusalError(
  status: number,
  suffix: string,
  options: UpstreamErrorOptions,
): UpstreamError {
  if (status === 401) {
    return new UpstreamError('auth', `the key or its token is refused (401)${suffix}`, options)
  }
  if (status === 403) {
    const why = "the key's user lacks the permission, or has no access to this tenant"
    return new UpstreamError('auth', `access is forbidden (403), ${why}${suffix}`, options)
  }
  if (status === 408) {
    return new UpstreamError('timeout', `the service gave up waiting (408)${suffix}`, options)
  }
  if (status >= 500) {
    return new UpstreamError('unavailable', `the service failed (${status})${suffix}`, options)
  }
  return new UpstreamError(
    'rejected',
    `the service refuses the request (${status})${suffix}`,
    options,
  )
}

function readRetryAfter(answer: Answer): number | undefined {
  const { 'retry-after': retryAfter, date } = answer.headers
  return parseRetryAfter(retryAfter, answer.sentAtMs, date)
}

export function readHeader(answer: Answer, name: string): string | undefined {
  const value = answer.headers[name]
  return Array.isArray(value) ? value[0] : value
}

const timeoutCodes = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

const faultMessages: Record<UpstreamFault, string> = {
  dns: 'the host of base_url is not found',
  refused: 'nobody answers at the host and port of base_url',
  cut: 'the connection broke before the answer was whole',
  unsent: 'the request cannot be sent',
  tls: 'no trusted TLS connection to the service',
  scheme: 'the address does not fit its port',
  proxy: 'the proxy does not let the request through',
  redirect: 'the service answers by a redirect',
  html: 'a web page answers instead of the API',
  not_http: 'what answers at base_url does not speak HTTP',
  too_large: 'the answer is larger than any that the API gives',
}

/** Returns the error for a request that got no usable answer. */
export function errorFromFailure(error: unknown): UpstreamError {
  if (error instanceof OutboundError) return outboundError(error)
  const { code, name } = readCodeAndName(error)
  if (timeoutCodes.has(code) || name === 'TimeoutError') {
    return new UpstreamError('timeout', 'the service did not answer in time')
  }
  const mismatch = explainTlsMismatch(error, 'https')
  const fault = mismatch === undefined ? classifyFault(code, error) : 'scheme'
  const detail = mismatch ?? explainTlsFailure(error, 'https') ?? code
  const suffix = detail === '' ? '' : ` (${detail})`
  const reason = fault === 'too_large' || fault === 'not_http' ? 'contract' : 'unavailable'
  return new UpstreamError(reason, `${faultMessages[fault]}${suffix}`, { fault })
}

function outboundError({ message }: OutboundError): UpstreamError {
  const fault = message.includes('proxy') ? 'proxy' : 'tls'
  return new UpstreamError('unavailable', message, { fault })
}

function readCodeAndName(error: unknown): { code: string; name: string } {
  if (!(error instanceof Error)) return { code: '', name: '' }
  const code: unknown = 'code' in error ? error.code : undefined
  return { code: typeof code === 'string' && /^\w+$/.test(code) ? code : '', name: error.name }
}

function classifyFault(code: string, error: unknown): UpstreamFault {
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return 'too_large'
  const isParserError = error instanceof Error && error.name === 'HTTPParserError'
  if (isParserError || code === 'UND_ERR_HEADERS_OVERFLOW') return 'not_http'
  if (/^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_|ERR_SSL_|EPROTO)/.test(code))
    return 'tls'
  if (code === 'UND_ERR_INVALID_ARG') return 'unsent'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns'
  return /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/.test(code) ? 'refused' : 'cut'
}

interface ErrorBody {
  /** The API's own stable error code, e.g. `RATELIMIT_REACHED`. */
  code?: string
  /** One line of at most 300 characters; empty if the body holds no message. */
  message: string
  details?: ErrorDetail[]
}

const maxMessageLength = 300
const maxTextLength = 20_000
const maxDetails = 5

export function parseErrorBody(body: string, secrets: readonly string[] = []): ErrorBody {
  const line = (value: unknown): string => oneLine(value, secrets)
  const parsed = parseJson(body)
  if (parsed === undefined) return { message: looksLikeHtml(body) ? 'an HTML page' : line(body) }
  if (!isRecord(parsed)) return { message: line(parsed) }
  if (Array.isArray(parsed['detail'])) return parseDetails(parsed['detail'], line)
  const inner = isRecord(parsed['error']) ? parsed['error'] : parsed
  const said = inner['message'] ?? parsed['detail'] ?? parsed['error']
  const code = parseCode(inner['code'], line)
  return code === undefined ? { message: line(said) } : { code, message: line(said) }
}

export function looksLikeHtml(body: string): boolean {
  return /^\s*<(!doctype|html|head|body|\?xml)/i.test(body.slice(0, 500))
}

function parseDetails(entries: unknown[], line: (value: unknown) => string): ErrorBody {
  const details = entries
    .filter(isRecord)
    .slice(0, maxDetails)
    .map(({ loc, msg }) => ({
      loc: line(Array.isArray(loc) ? loc.map(String).join('.') : loc),
      msg: line(msg),
    }))
  const message = line(details.map(({ loc, msg }) => `${loc}: ${msg}`).join('; '))
  return { message, details }
}

function parseCode(code: unknown, line: (value: unknown) => string): string | undefined {
  if (typeof code !== 'string' && typeof code !== 'number') return undefined
  const text = line(code)
  return /^[\w.-]{1,64}$/.test(text) ? text : undefined
}

function oneLine(value: unknown, secrets: readonly string[]): string {
  if (typeof value !== 'string' && typeof value !== 'number') return ''
  const clean = scrub(String(value).slice(0, maxTextLength), secrets)
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
  const characters = Array.from(clean)
  if (characters.length <= maxMessageLength) return clean
  return `${characters.slice(0, maxMessageLength - 1).join('')}…`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Patterns of secrets, removed from outside text before it enters a message. */
const secretShapes: [RegExp, string][] = [
  [/\b(Bearer|Basic)\s+[^\s"',<>]+/gi, '$1 <secret>'],
  [/\bfw_[\w.-]+/g, '<secret>'], // API keys
  [/\beyJ[\w-]{8,}(\.[\w-]+)*/g, '<secret>'], // JSON web tokens
  [/\/\/[^\s/@]+@/g, '//<secret>@'], // user and password in a URL
]

/** Returns `text` without any of `secrets`, and without anything shaped like a key or token. */
export function scrub(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) {
    if (secret === '') continue
    clean = clean.replaceAll(secret, '<secret>').replaceAll(encodeURIComponent(secret), '<secret>')
  }
  for (const [shape, replacement] of secretShapes) clean = clean.replaceAll(shape, replacement)
  return clean
}

/**
 * End of the quota header's name. Its beginning is the vendor's name, which differs between
 * deployments (docs/api-notes.md, Search quota).
 */
const quotaHeaderEnd = 'global-searches-remaining'

/**
 * Returns how many global searches the organization has left this month, by the answer's headers;
 * undefined if they hold no whole number for it.
 */
export function readSearchesRemaining({ headers }: Answer): number | undefined {
  const counts = Object.entries(headers)
    .filter(([name]) => name.toLowerCase().endsWith(quotaHeaderEnd))
    .flatMap(([, value]) => value ?? [])
    .map((value) => value.trim())
    .filter((value) => /^\d{1,15}$/.test(value))
  return counts.length === 0 ? undefined : Math.min(...counts.map(Number))
}
