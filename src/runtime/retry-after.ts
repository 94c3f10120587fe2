/** No answer makes Tocsin wait less than a second or more than a quarter of an hour. */
const leastMs = 1000
const mostMs = 15 * 60_000

/**
 * Milliseconds to wait by a `Retry-After` header, in either form: seconds, or an HTTP date (read
 * against `nowMs`, at best the answer's own Date). Undefined where there is none or it is not readable.
 */
export function parseRetryAfter(
  header: string | string[] | undefined,
  nowMs: number,
): number | undefined {
  const text = [header].flat()[0]?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(text)) return clamp(Number(text) * 1000)
  const atMs = parseHttpDate(text)
  return atMs === undefined ? undefined : clamp(atMs - nowMs)
}

/** An HTTP date (always GMT; RFC 9110, 5.6.7) as milliseconds since 1970. */
export function parseHttpDate(text: string | undefined): number | undefined {
  if (text === undefined || !/^[A-Z][a-z]{2,8},? .* GMT$/.test(text)) return undefined
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? undefined : atMs
}

function clamp(ms: number): number {
  return Math.min(mostMs, Math.max(leastMs, Math.ceil(ms)))
}
