/**
 * Reads why the service refused. Four shapes are known: `{error: {code, message}}`,
 * `{detail: [{loc, msg}]}` of the v4 validation, `{message, code}` of v2 and v3, and plain text or
 * HTML of a gateway. Never throws; what the service says is hostile until cut and scrubbed.
 */
import type { ErrorDetail } from '../service-error.ts'
import { scrub } from './scrub.ts'

export interface ErrorBody {
  /** The service's own stable code, e.g. `RATELIMIT_REACHED`. */
  code?: string
  /** One line of at most 300 characters; empty where the body says nothing. */
  message: string
  details?: ErrorDetail[]
}

const longestMessage = 300
const longestText = 20_000
const mostDetails = 5

export function parseErrorBody(body: string, secrets: readonly string[] = []): ErrorBody {
  const line = (value: unknown): string => oneLine(value, secrets)
  const parsed = parseJson(body)
  if (parsed === undefined) return { message: looksLikeHtml(body) ? 'an HTML page' : line(body) }
  if (!isRecord(parsed)) return { message: line(parsed) }
  if (Array.isArray(parsed['detail'])) return ofDetails(parsed['detail'], line)
  const inner = isRecord(parsed['error']) ? parsed['error'] : parsed
  const said = inner['message'] ?? parsed['detail'] ?? parsed['error']
  const code = codeOf(inner['code'], line)
  return code === undefined ? { message: line(said) } : { code, message: line(said) }
}

export function looksLikeHtml(body: string): boolean {
  return /^\s*<(!doctype|html|head|body|\?xml)/i.test(body.slice(0, 500))
}

function ofDetails(entries: unknown[], line: (value: unknown) => string): ErrorBody {
  const details = entries
    .filter(isRecord)
    .slice(0, mostDetails)
    .map(({ loc, msg }) => ({
      loc: line(Array.isArray(loc) ? loc.map(String).join('.') : loc),
      msg: line(msg),
    }))
  const message = line(details.map(({ loc, msg }) => `${loc}: ${msg}`).join('; '))
  return { message, details }
}

function codeOf(code: unknown, line: (value: unknown) => string): string | undefined {
  if (typeof code !== 'string' && typeof code !== 'number') return undefined
  const text = line(code)
  return /^[\w.-]{1,64}$/.test(text) ? text : undefined
}

function oneLine(value: unknown, secrets: readonly string[]): string {
  if (typeof value !== 'string' && typeof value !== 'number') return ''
  const clean = scrub(String(value).slice(0, longestText), secrets)
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
  const characters = Array.from(clean)
  if (characters.length <= longestMessage) return clean
  return `${characters.slice(0, longestMessage - 1).join('')}…`
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
