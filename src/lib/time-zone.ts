/**
 * Local time of an IANA zone. A *reading* is what the zone's clock shows at an instant, written as
 * the instant at which a clock in UTC shows the same. Readings compare and add like instants. But
 * clocks are set forward (some readings are skipped) and back (some occur twice).
 */

const minuteMs = 60_000
const dayMs = 86_400_000

/**
 * Building a format costs a hundred times as much as using it; the zones are those of the
 * configuration.
 */
const formats = new Map<string, Intl.DateTimeFormat>()

/**
 * A name of the zone database, such as `Europe/Zurich` or `UTC`; an offset such as `+01:00` is not
 * one.
 */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    zoneFormat(name)
    return true
  } catch {
    return false
  }
}

function zoneFormat(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  formats.set(zone, format)
  return format
}

/** What the zone's clock shows at an instant. Throws RangeError for an unknown zone. */
export function readingAt(atMs: number, zone: string): number {
  const [month = 1, day = 1, year = 1970, hour, minute, second] = (
    zoneFormat(zone).format(atMs).match(/\d+/g) ?? []
  ).map(Number)
  const belowSecondMs = ((atMs % 1000) + 1000) % 1000
  return Date.UTC(year, month - 1, day, hour, minute, second) + belowSecondMs
}

function offsetAt(atMs: number, zone: string): number {
  return readingAt(atMs, zone) - atMs
}

/**
 * The first instant at which the zone's clock shows this or a later reading. For a skipped reading
 * it is the end of the gap, for one that occurs twice the first.
 */
export function toInstant(reading: number, zone: string): number {
  const offsetBefore = offsetAt(reading - dayMs, zone)
  const before = reading - offsetBefore
  if (offsetAt(before, zone) === offsetBefore) return before
  const offsetAfter = offsetAt(reading + dayMs, zone)
  const after = reading - offsetAfter
  if (offsetAt(after, zone) === offsetAfter) return after
  return changeBetween(after, before, zone)
}

/** Whether the zone's clock shows the same at another instant, because it is set back. */
export function isShownTwice(atMs: number, zone: string): boolean {
  const reading = readingAt(atMs, zone)
  return [reading - dayMs, reading + dayMs].some((nearMs) => {
    const otherMs = reading - offsetAt(nearMs, zone)
    return otherMs !== atMs && readingAt(otherMs, zone) === reading
  })
}

/**
 * The latest reading that the zone's clock has shown up to an instant: after being set back it
 * shows earlier readings again for a while. Readings up to this one are over.
 */
export function latestReadingBy(atMs: number, zone: string): number {
  const reading = readingAt(atMs, zone)
  const dayBeforeMs = atMs - dayMs
  if (offsetAt(dayBeforeMs, zone) <= reading - atMs) return reading
  const changeMs = changeBetween(dayBeforeMs, atMs, zone)
  return Math.max(reading, readingAt(changeMs - 1, zone))
}

/**
 * The instant at which the clock shows `reading` if its offset stays the same, else the instant of
 * the change.
 */
export function nextInstantShowing(reading: number, afterMs: number, zone: string): number {
  const offset = offsetAt(afterMs, zone)
  const atMs = reading - offset
  return offsetAt(atMs, zone) === offset ? atMs : changeBetween(afterMs, atMs, zone)
}

/**
 * The first minute with another offset than that of `fromMs`; expects one at `toMs` and a single
 * change between.
 */
function changeBetween(fromMs: number, toMs: number, zone: string): number {
  const offset = offsetAt(fromMs, zone)
  let last = Math.floor(fromMs / minuteMs)
  let first = Math.ceil(toMs / minuteMs)
  while (first - last > 1) {
    const middle = Math.floor((first + last) / 2)
    if (offsetAt(middle * minuteMs, zone) === offset) last = middle
    else first = middle
  }
  return first * minuteMs
}

/** The midnight before or at a reading. */
export function startOfDay(reading: number): number {
  return Math.floor(reading / dayMs) * dayMs
}

/** `2026-11-20` */
export function localDay(atMs: number, zone: string): string {
  return new Date(readingAt(atMs, zone)).toISOString().slice(0, 10)
}

/** `2026-11-20 08:00 Europe/Zurich` */
export function formatLocal(atMs: number, zone: string): string {
  const shown = new Date(readingAt(atMs, zone)).toISOString()
  return `${shown.slice(0, 10)} ${shown.slice(11, 16)} ${zone}`
}

/** `2026-11-20 08:00 CET`; a zone without an abbreviation has its offset: `GMT+9`. */
export function formatInZone(atMs: number, zone: string): string {
  const reading = formatLocal(atMs, zone).slice(0, -zone.length - 1)
  return `${reading} ${zoneAbbreviation(atMs, zone)}`
}

/** Each English knows the abbreviations of its own parts of the world; the others say an offset. */
const englishes = ['en-US', 'en-GB', 'en-AU', 'en-CA', 'en-IN']

function zoneAbbreviation(atMs: number, zone: string): string {
  let offset: string | undefined
  for (const locale of englishes) {
    const name = shortZoneName(atMs, zone, locale)
    if (!/^(?:GMT|UTC)[+-]/u.test(name)) return name
    offset ??= name
  }
  return offset ?? zone
}

/** By language and zone. */
const nameFormats = new Map<string, Intl.DateTimeFormat>()

function shortZoneName(atMs: number, zone: string, locale: string): string {
  const key = `${locale} ${zone}`
  const format =
    nameFormats.get(key) ??
    new Intl.DateTimeFormat(locale, { timeZone: zone, timeZoneName: 'short' })
  nameFormats.set(key, format)
  return format.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value ?? zone
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** `2026-11-01 12:00:05 UTC`. */
export function formatUtcTime(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** The two largest units: `2 d 3 h`, `45 s`, `0 s`. */
export function formatDuration(ms: number): string {
  const first = units.findIndex(([, unitMs]) => ms >= unitMs)
  if (first === -1) return '0 s'
  let restMs = ms
  const parts = units.slice(first, first + 2).map(([unit, unitMs]) => {
    const count = Math.floor(restMs / unitMs)
    restMs -= count * unitMs
    return { unit, count }
  })
  return parts
    .filter(({ count }) => count > 0)
    .map(({ unit, count }) => `${count} ${unit}`)
    .join(' ')
}
