/** The API writes times with and without a zone, to the microsecond, or as a bare date. */
const timestampPattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,12}))?)?\s?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i

/**
 * Returns milliseconds since 1970, or null if `text` is not a time. A time without a zone is UTC,
 * never local time. Digits below the millisecond are dropped.
 */
export function parseTimestamp(text: string): number | null {
  const match = timestampPattern.exec(text.trim())
  if (!match) return null
  const [year, month, day, hour, minute, second] = match
    .slice(1, 7)
    .map((digits: string | undefined) => Number(digits ?? 0)) as DateParts
  const utc = Date.UTC(year, month - 1, day, hour, minute, second)
  if (!isAt(new Date(utc), [year, month, day, hour, minute, second])) return null
  const offset = parseOffsetMs(match[8])
  return offset === null ? null : utc + parseMilliseconds(match[7]) - offset
}

type DateParts = [number, number, number, number, number, number]

/** Date.UTC rolls 30 February over and reads year 1 as 1901; a real time survives the round trip. */
function isAt(date: Date, [year, month, day, hour, minute, second]: DateParts): boolean {
  const isDay =
    date.getUTCFullYear() === year && date.getUTCMonth() + 1 === month && date.getUTCDate() === day
  const isTime =
    date.getUTCHours() === hour &&
    date.getUTCMinutes() === minute &&
    date.getUTCSeconds() === second
  return isDay && isTime
}

function parseMilliseconds(fraction = ''): number {
  return Number(fraction.slice(0, 3).padEnd(3, '0'))
}

function parseOffsetMs(zone: string | undefined): number | null {
  if (zone === undefined || zone.toUpperCase() === 'Z') return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(3).replace(':', '') || 0)
  if (hours > 23 || minutes > 59) return null
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}
