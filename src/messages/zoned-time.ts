import { formatLocal, localDay } from '../runtime/time-zone.ts'

/** Times as a reader at some place has them on the wall. */
export interface ZonedTime {
  timeZone: string
  /** `2026-11-21` */
  day: (atMs: number) => string
  /** `2026-11-21 08:00`, without the zone. */
  minute: (atMs: number) => string
}

/** Throws RangeError for a zone that is none: configuration is checked long before. */
export function zonedTime(timeZone: string): ZonedTime {
  return {
    timeZone,
    day: (atMs) => (isDated(atMs) ? localDay(atMs, timeZone) : 'undated'),
    minute: (atMs) => (isDated(atMs) ? formatLocal(atMs, timeZone).slice(0, 16) : 'undated'),
  }
}

/** A day short of what a Date holds, so that no zone's clock leaves it. */
const lastMs = 8.64e15 - 86_400_000

function isDated(atMs: number): boolean {
  return Math.abs(atMs) <= lastMs
}

/** `2026-11-20` → "Fri 20 Nov", whatever the zone it is a day of; other text as it is. */
export function dayInWords(day: string): string {
  const atMs = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T12:00:00Z`) : Number.NaN
  if (Number.isNaN(atMs)) return day
  const parts = { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' } as const
  return new Intl.DateTimeFormat('en-GB', parts).format(atMs).replaceAll(',', '')
}
