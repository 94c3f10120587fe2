import { duration } from '../runtime/config-fields.ts'
import { CommandError } from './command-error.ts'

const ago = duration('How long ago.')
const isoTime = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})?)?$/

/** `7d` (ago) or `2026-11-01T12:00Z` (UTC unless it says otherwise); ms. Throws CommandError, also for the future. */
export function parseMoment(text: string, nowMs: number): number {
  const span = ago.safeParse(text)
  const atMs = span.success ? nowMs - span.data : timeOf(text)
  if (Number.isNaN(atMs)) {
    const remedy = 'write how long ago, such as 12h or 7d, or a time such as 2026-11-01T12:00Z'
    throw new CommandError('mistake', `"${text}" is neither a time nor a duration; ${remedy}`)
  }
  if (atMs > nowMs) {
    const at = new Date(atMs).toISOString()
    throw new CommandError('mistake', `${at} lies in the future; name a time that has passed`)
  }
  return atMs
}

function timeOf(text: string): number {
  if (!isoTime.test(text)) return Number.NaN
  const hasTime = text.length > 'yyyy-mm-dd'.length
  const hasZone = /(Z|[+-]\d{2}:\d{2})$/.test(text.slice('yyyy-mm-dd'.length))
  return Date.parse(`${text.replace(' ', 'T')}${hasTime && !hasZone ? 'Z' : ''}`)
}

/** A time to come, as `parseMoment` reads one that has passed; ms. Throws CommandError. */
export function parseEnd(text: string, nowMs: number): number {
  const atMs = timeOf(text)
  if (Number.isNaN(atMs)) {
    throw new CommandError(
      'mistake',
      `"${text}" is not a time; write a time such as 2026-11-01T12:00Z`,
    )
  }
  if (atMs <= nowMs) {
    const at = new Date(atMs).toISOString()
    throw new CommandError('mistake', `${at} has passed; name a time that is to come`)
  }
  return atMs
}
