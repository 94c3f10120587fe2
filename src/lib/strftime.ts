/**
 * Times in the words of a format, by the conversions of strftime, in English. The zone and the
 * language of the process play no part, so that every machine writes the same.
 */
import { readingAt, zoneAbbreviation } from './time-zone.ts'

const conversion = /%([-_0^#:]*)(\d*)(.?)/gsu
const maxWidth = 40

const days = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')
const months =
  'January February March April May June July August September October November December'.split(' ')

interface Moment {
  atMs: number
  /** What the clock of the zone shows, as the UTC fields of a date. */
  shown: Date
  zone: string
}

type Convert = (moment: Moment) => string | number

const short = (name = ''): string => name.slice(0, 3)
const hour12 = ({ shown }: Moment): number => shown.getUTCHours() % 12 || 12
const halfDay = ({ shown }: Moment): string => (shown.getUTCHours() < 12 ? 'AM' : 'PM')

/** A number with the width and character that fill it; a text is not filled. */
const conversions: Readonly<Record<string, [convert: Convert, width?: number, fill?: string]>> = {
  a: [({ shown }) => short(days[shown.getUTCDay()])],
  A: [({ shown }) => days[shown.getUTCDay()] ?? ''],
  b: [({ shown }) => short(months[shown.getUTCMonth()])],
  B: [({ shown }) => months[shown.getUTCMonth()] ?? ''],
  C: [({ shown }) => Math.floor(shown.getUTCFullYear() / 100), 2],
  d: [({ shown }) => shown.getUTCDate(), 2],
  e: [({ shown }) => shown.getUTCDate(), 2, ' '],
  G: [({ shown }) => isoWeek(shown).year, 4],
  h: [({ shown }) => short(months[shown.getUTCMonth()])],
  H: [({ shown }) => shown.getUTCHours(), 2],
  I: [hour12, 2],
  j: [({ shown }) => dayOfYear(shown), 3],
  k: [({ shown }) => shown.getUTCHours(), 2, ' '],
  l: [hour12, 2, ' '],
  L: [({ shown }) => shown.getUTCMilliseconds(), 3],
  m: [({ shown }) => shown.getUTCMonth() + 1, 2],
  M: [({ shown }) => shown.getUTCMinutes(), 2],
  n: [() => '\n'],
  p: [halfDay],
  P: [(moment) => halfDay(moment).toLowerCase()],
  s: [({ atMs }) => Math.floor(atMs / 1000)],
  S: [({ shown }) => shown.getUTCSeconds(), 2],
  t: [() => '\t'],
  u: [({ shown }) => shown.getUTCDay() || 7],
  U: [({ shown }) => weekOfYear(shown, 0), 2],
  V: [({ shown }) => isoWeek(shown).week, 2],
  w: [({ shown }) => shown.getUTCDay()],
  W: [({ shown }) => weekOfYear(shown, 1), 2],
  y: [({ shown }) => ((shown.getUTCFullYear() % 100) + 100) % 100, 2],
  Y: [({ shown }) => shown.getUTCFullYear(), 4],
  z: [({ atMs, shown }) => formatOffset(shown.getTime() - atMs, '')],
  Z: [({ atMs, zone }) => zoneAbbreviation(atMs, zone)],
  '%': [() => '%'],
}

/** Each stands for a format of its own. */
const composites: Readonly<Record<string, string>> = {
  c: '%a %b %e %H:%M:%S %Y',
  D: '%m/%d/%y',
  F: '%Y-%m-%d',
  r: '%I:%M:%S %p',
  R: '%H:%M',
  T: '%H:%M:%S',
  x: '%m/%d/%y',
  X: '%H:%M:%S',
}

export const timeConversions = [...Object.keys(conversions), ...Object.keys(composites)]

/** The first part of a format that is no conversion, such as `%Q`; undefined: there is none. */
export function findUnknownConversion(format: string): string | undefined {
  const unknown = [...format.matchAll(conversion)].find(
    ([, , width = '', letter = '']) =>
      !timeConversions.includes(letter) || Number(width) > maxWidth,
  )
  return unknown?.[0]
}

/** undefined: the time is out of what a calendar shows. Throws RangeError for an unknown zone. */
export function formatAs(format: string, atMs: number, zone: string): string | undefined {
  if (Number.isNaN(new Date(atMs).getTime())) return undefined
  const shown = new Date(zone === 'UTC' ? atMs : readingAt(atMs, zone))
  return format.replace(conversion, (found, flags: string, width: string, letter: string) =>
    convert({ atMs, shown, zone }, { found, flags, width: Number(width), letter }),
  )
}

interface Conversion {
  found: string
  flags: string
  /** 0: that of the letter. */
  width: number
  letter: string
}

function convert(moment: Moment, { found, flags, width, letter }: Conversion): string {
  const composite = composites[letter]
  if (composite !== undefined) {
    return pad(setCase(formatAs(composite, moment.atMs, moment.zone) ?? '', flags), width, ' ')
  }
  if (letter === 'z' && flags.includes(':')) {
    return formatOffset(moment.shown.getTime() - moment.atMs, ':')
  }
  const [read, ownWidth = 0, ownFill = '0'] = conversions[letter] ?? [() => found]
  const value = read(moment)
  const text = setCase(String(value), flags)
  if (flags.includes('-')) return text
  const fill = typeof value === 'string' ? ' ' : ownFill
  return pad(text, width || ownWidth, readFill(flags) ?? fill)
}

function readFill(flags: string): string | undefined {
  if (flags.includes('_')) return ' '
  return flags.includes('0') ? '0' : undefined
}

function setCase(text: string, flags: string): string {
  if (flags.includes('^')) return text.toUpperCase()
  if (!flags.includes('#')) return text
  return /[a-z]/.test(text) ? text.toUpperCase() : text.toLowerCase()
}

/** A minus stays in front of zeros. */
function pad(text: string, width: number, fill: string): string {
  return fill === '0' && text.startsWith('-')
    ? `-${text.slice(1).padStart(width - 1, fill)}`
    : text.padStart(width, fill)
}

function formatOffset(offsetMs: number, separator: string): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000)
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60]
  return `${offsetMs < 0 ? '-' : '+'}${pad(String(hours), 2, '0')}${separator}${pad(String(rest), 2, '0')}`
}

const dayMs = 86_400_000

function dayOfYear(shown: Date): number {
  const day = Date.UTC(2000, shown.getUTCMonth(), shown.getUTCDate()) - Date.UTC(2000, 0, 1)
  const isAfterLeapDay = shown.getUTCMonth() > 1 && !isLeapYear(shown.getUTCFullYear())
  return day / dayMs + (isAfterLeapDay ? 0 : 1)
}

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

/** Days before the first `firstDay` of the year are in week 0. */
function weekOfYear(shown: Date, firstDay: number): number {
  const sinceFirst = (shown.getUTCDay() - firstDay + 7) % 7
  return Math.floor((dayOfYear(shown) + 6 - sinceFirst) / 7)
}

/** ISO 8601: a week is of the year in which its Thursday is. */
function isoWeek(shown: Date): { year: number; week: number } {
  const thursday = new Date(shown.getTime() + (4 - (shown.getUTCDay() || 7)) * dayMs)
  return { year: thursday.getUTCFullYear(), week: Math.ceil(dayOfYear(thursday) / 7) }
}
