import { duration, refusal, type Refusal } from './config/config-fields.ts'

const agoField = duration('How long ago.')
const isoTimePattern =
  /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})?)?$/

/** Reads `7d` (ago) or `2026-11-01T12:00Z` (UTC by default) as ms; a future time is refused. */
export function readPastTime(text: string, nowMs: number): number | Refusal {
  const atMs = readTime(text, nowMs)
  if (typeof atMs !== 'number' || atMs <= nowMs) return atMs
  return refusal(
    `${new Date(atMs).toISOString()} lies in the future`,
    'name a time that has passed',
  )
}

/** Reads where a period ends, as readPastTime: a day ends with its last millisecond, the future is now. */
export function readPeriodEnd(text: string, nowMs: number): number | Refusal {
  const atMs = readTime(text, nowMs)
  if (typeof atMs !== 'number') return atMs
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text)
  return Math.min(nowMs, isDay ? atMs + dayMs - 1 : atMs)
}

const dayMs = 86_400_000

function readTime(text: string, nowMs: number): number | Refusal {
  const span = agoField.safeParse(text)
  const atMs = span.success ? nowMs - span.data : readIsoTime(text)
  if (!Number.isNaN(atMs)) return atMs
  const remedy = 'write how long ago, such as 12h or 7d, or a time such as 2026-11-01T12:00Z'
  return refusal(`"${text}" is neither a time nor a duration`, remedy)
}

/** NaN for whatever is no time. */
function readIsoTime(text: string): number {
  if (!isoTimePattern.test(text)) return Number.NaN
  const hasTime = text.length > 'yyyy-mm-dd'.length
  const hasZone = /(Z|[+-]\d{2}:\d{2})$/.test(text.slice('yyyy-mm-dd'.length))
  return Date.parse(`${text.replace(' ', 'T')}${hasTime && !hasZone ? 'Z' : ''}`)
}
