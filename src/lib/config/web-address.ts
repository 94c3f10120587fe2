import { isIP } from 'node:net'
import type { z } from 'zod'
import { refusal, type Refusal, textField } from './config-fields.ts'

/**
 * Returns what is wrong with an address for requests; undefined: nothing. Clear-text http passes
 * only if `allowHttp` accepts the host. The address may hold a token and is never quoted.
 */
export function webAddressProblem(
  input: string,
  allowHttp: (hostname: string) => boolean,
): Refusal | undefined {
  const url = URL.parse(input)
  if (url === null) return refusal('not a URL', 'write it whole, such as https://host.example/path')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return refusal('not an http address', 'write a URL that begins with https://')
  }
  if (url.username !== '' || url.password !== '') {
    return refusal('holds a user name or a password', 'write the URL without the part before "@"')
  }
  if (url.protocol === 'http:' && !allowHttp(url.hostname)) {
    // Loopback is refused only for sinks, which have a key to allow it.
    const orElse = isLoopback(url.hostname) ? ', or set allow_private: true' : ''
    return refusal('not encrypted', `write https:// instead of http://${orElse}`)
  }
  return undefined
}

/** The same of a section whose `allow_private` lets the address be private, over http too. */
export function sectionAddressProblem(
  input: string,
  section: Readonly<Record<string, unknown>>,
): Refusal | undefined {
  return webAddressProblem(input, () => section['allow_private'] === true)
}

const maxPageAddress = 1000

/** A page that people open from a message, on a host of the operator's choice; '' is none. */
export function pageAddress(describe: string): z.ZodType<string> {
  return textField({
    describe,
    remedy: 'write a URL, such as https://wiki.example.com/runbook',
    expected: 'a URL',
    examples: ['https://wiki.example.com/runbook'],
    mayBeEmpty: true,
    parse: (input) => {
      if (input.trim() === '') return ''
      if (input.length > maxPageAddress) {
        return refusal('too long', `write a URL of at most ${maxPageAddress} characters`)
      }
      return webAddressProblem(input.trim(), () => true) ?? new URL(input.trim()).href
    },
  })
}

/** Returns what is wrong with the percent-encoded user or password of an address. */
export function loginProblem({ username, password }: URL): Refusal | undefined {
  const login = `${username}:${password}`
  if (/%(?![0-9a-f]{2})/i.test(login)) {
    return refusal('its user or password has a stray %', 'write it as %25')
  }
  try {
    decodeURIComponent(login)
    return undefined
  } catch {
    const problem = 'its user or password is percent-encoded, and not as UTF-8'
    return refusal(problem, 'write é as %C3%A9')
  }
}

/** Names and addresses that never leave the machine. */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|::1|\[::1\]|127(?:\.\d{1,3}){3})$/.test(hostname)
}

/**
 * Returns a check of a request's `Host`, without port, against the names of this server. A web page
 * that resolves its own name to this machine (DNS rebinding) sends that name, which is public and
 * so has a dot. Addresses and names without a dot, such as a container's, are therefore safe;
 * `given`: further names.
 */
export function createOwnHostCheck(given: readonly string[]): (host: string) => boolean {
  const names = new Set(given.map((name) => name.toLowerCase()))
  return (host) => {
    const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
    return isIP(name) !== 0 || !name.includes('.') || names.has(name)
  }
}

/**
 * Says of a failed connection that one side speaks TLS and the other does not, and what to do;
 * undefined: the failure does not tell. OpenSSL reads an answer without TLS as one of a wrong version;
 * some servers answer clear text by an alert of TLS. `scheme`: the one that stands for TLS.
 */
export function explainTlsMismatch(error: unknown, scheme: string): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (/SSL routines:.*wrong version number/.test(error.message)) {
    return `what answers there speaks no TLS: ${scheme}:// needs a port that does`
  }
  const answer = error.name === 'HTTPParserError' && 'data' in error ? String(error.data) : ''
  return answer.startsWith(tlsAlert)
    ? `what answers there speaks TLS: the address begins with ${scheme}://`
    : undefined
}

/** The beginning of an alert record: its type, and the major version of the protocol (RFC 8446, 5.1). */
const tlsAlert = '\u0015\u0003'

/** What Node, OpenSSL and libraries above them call a failure of certificates, and what it means. */
const certificateFailures: readonly (readonly [RegExp, string])[] = [
  [
    /SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)|CERT_UNTRUSTED|self[- ]signed|unable to (?:verify|get)/i,
    'its certificate is of an authority that is not trusted here; name its PEM file in ca_file',
  ],
  [
    /ALTNAME|does not match certificate/i,
    'its certificate is for another host; write the host that the certificate names',
  ],
  [
    /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|certificate (?:has expired|is not yet valid)/i,
    'its certificate is not valid at this time; have it renewed, or mend the clock here',
  ],
  [
    /ALERT.(?:BAD.CERTIFICATE|CERTIFICATE|HANDSHAKE.FAILURE)/i,
    'it refuses the TLS handshake; if it asks for a client certificate, have it ask for none: Tocsin sends none',
  ],
  [/\bCERT_|UNABLE_TO_|ERR_TLS_CERT/, 'the TLS certificates do not fit; check ca_file'],
]

/** Likewise of all failures of TLS; what to do about certificates follows a semicolon. */
export function explainTlsFailure(error: unknown, scheme: string): string | undefined {
  const { code, originalCode, message } = error as Record<string, unknown>
  const said = [code, originalCode, message].join(' ')
  const [, meaning] = certificateFailures.find(([pattern]) => pattern.test(said)) ?? []
  const [word] = /[A-Z]+(?:_[A-Z0-9/]+)+/.exec(said) ?? []
  return (
    explainTlsMismatch(error, scheme) ??
    meaning?.replace(';', word === undefined ? ';' : ` (${word});`)
  )
}

/** No answer makes Tocsin wait less than a second or more than a quarter of an hour. */
const minWaitMs = 1000
const maxWaitMs = 15 * 60_000

type Header = string | string[] | undefined

/**
 * Reads a `Retry-After` header as milliseconds to wait: seconds, or an HTTP date. That is compared
 * with the answer's own `Date`, because our clock may be off, and else with `nowMs`. Returns
 * undefined if there is none or it is not readable.
 */
export function parseRetryAfter(header: Header, nowMs: number, date?: Header): number | undefined {
  const text = [header].flat()[0]?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(text)) return clamp(Number(text) * 1000)
  const atMs = parseHttpDate(text)
  return atMs === undefined ? undefined : clamp(atMs - (parseHttpDate([date].flat()[0]) ?? nowMs))
}

/** An HTTP date (always GMT; RFC 9110, 5.6.7) as milliseconds since 1970. */
export function parseHttpDate(text: string | undefined): number | undefined {
  if (text === undefined || !/^[A-Z][a-z]{2,8},? .* GMT$/.test(text)) return undefined
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? undefined : atMs
}

function clamp(ms: number): number {
  return Math.min(maxWaitMs, Math.max(minWaitMs, Math.ceil(ms)))
}
