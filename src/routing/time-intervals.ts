/**
 * Named time intervals, such as nights and holidays, during which a route holds or drops, in
 * Alertmanager's terms. They are matched against readings of the local clock, as Alertmanager does:
 * a reading that occurs twice counts twice.
 */
import { z } from 'zod'
import {
  list,
  messageFor,
  namedEntries,
  refusal,
  type Refusal,
  section,
  textField,
  timeZone,
  wrongKind,
} from '../lib/config/config-fields.ts'
import { readingAt, startOfDay, nextInstantShowing } from '../lib/time-zone.ts'

/** From `begin` to `end`, both included. */
interface Range {
  begin: number
  end: number
}

/** Minutes of the local day; `end` is excluded, 1440 is midnight. */
type TimeRange = Range

type Parse = (input: string) => number | undefined

interface RangesOptions {
  describe: string
  /** What to write, e.g. `write days, such as …`. */
  remedy: string
  examples: string[]
  /** Parses one end of a range; undefined: not valid. */
  parse: Parse
  /** Checks a whole range. Default: its end must not come before its beginning. */
  check?: (range: Range) => Refusal | undefined
}

/** A list of `begin:end` or single values; YAML reads `12` as a number, so these pass too. */
function ranges(options: RangesOptions): z.ZodType<Range[]> {
  const { describe, remedy, examples, parse } = options
  const check = options.check ?? checkOrder
  const written = z.union([z.string().meta({ examples }), z.number()], wrongKind('a range', remedy))
  const range = written.transform((input, context): Range => {
    const [begin, end] = parseEnds(String(input), parse)
    const wrong =
      begin === undefined || end === undefined
        ? refusal('not a range of these', remedy)
        : check({ begin, end })
    if (begin !== undefined && end !== undefined && !wrong) return { begin, end }
    if (wrong) context.addIssue({ code: 'custom', message: messageFor(wrong) })
    return z.NEVER
  })
  return list(range, describe, remedy)
}

function parseEnds(input: string, parse: Parse): [number | undefined, number | undefined] {
  const [first = '', second = first, ...more] = input.trim().toLowerCase().split(':')
  return more.length > 0 ? [undefined, undefined] : [parse(first), parse(second)]
}

function checkOrder({ begin, end }: Range): Refusal | undefined {
  if (begin <= end) return undefined
  return refusal('ends before it begins', 'write the earlier one first, or two ranges')
}

function wordParser(words: readonly string[]): Parse {
  return (input) => (words.includes(input) ? words.indexOf(input) : undefined)
}

const weekdayNames = [
  'sunday',
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
] as const

/** 0 (Sunday) to 6. */
const weekdays = ranges({
  describe: 'Days of the week, from sunday to saturday.',
  remedy: "write days in English, such as 'monday:friday' or 'sunday'",
  examples: ['monday:friday', 'sunday'],
  parse: wordParser(weekdayNames),
})

const monthNames = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
] as const

/** 1 to 12. */
const months = ranges({
  describe: 'Months of the year.',
  remedy: "write months in English or as numbers, such as 'january:march' or '12'",
  examples: ['january:march', '12'],
  parse: (input) => {
    const named = wordParser(monthNames)(input)
    return named === undefined ? numberWithin(input, 1, 12) : named + 1
  },
})

const years = ranges({
  describe: 'Years.',
  remedy: "write years of four digits, such as '2026:2028' or '2026'",
  examples: ['2026:2028', '2026'],
  parse: (input) => numberWithin(input, 1970, 9999),
})

/** 1 to 31, or -1 (the last of the month) to -31. */
const daysOfMonth = ranges({
  describe: 'Days of the month; negative ones count from its end.',
  remedy: "write days from 1 to 31 or from -31 to -1, such as '1:5' or '-3:-1'",
  examples: ['1:5', '-3:-1'],
  parse: (input) => {
    const day = numberWithin(input, -31, 31)
    return day === 0 ? undefined : day
  },
  check: checkMonthOrder,
})

/** Refuses, like Alertmanager, a range that would end before it begins in a month of 28 days. */
function checkMonthOrder({ begin, end }: Range): Refusal | undefined {
  const turns = isFromEnd(begin) && !isFromEnd(end)
  if (!turns && dayOfMonth(begin, 28) <= dayOfMonth(end, 28)) return undefined
  const problem = 'ends before it begins in a month of 28 days'
  return refusal(problem, "write two ranges, such as '20:-1' and '1:10'")
}

/** The day counted from 1 in a month of `length` days; 0 or less if the month has no such day. */
function dayOfMonth(day: number, length: number): number {
  return isFromEnd(day) ? length + 1 + day : day
}

function isFromEnd(day: number): boolean {
  return day < 0
}

function numberWithin(input: string, least: number, most: number): number | undefined {
  const value = /^-?\d{1,4}$/.test(input) ? Number(input) : undefined
  return value !== undefined && value >= least && value <= most ? value : undefined
}

function timeOfDay(describe: string): z.ZodType<number> {
  const remedy = "write hours and minutes in quotes, from '00:00' to '24:00'"
  return textField({
    describe,
    remedy,
    expected: 'a time of day',
    examples: ['08:00', '24:00'],
    parse: (input) => {
      const [, hours, minutes] = /^(\d\d):(\d\d)$/.exec(input) ?? []
      const minute = Number(hours) * 60 + Number(minutes)
      const isTime = minutes !== undefined && Number(minutes) < 60 && minute <= 24 * 60
      return isTime ? minute : refusal('not a time of day', remedy)
    },
  })
}

const timeRange = section(
  {
    start_time: timeOfDay('The first minute.'),
    end_time: timeOfDay('The minute after the last; 24:00 is the end of the day.'),
  },
  { describe: 'A part of the local day.' },
).transform((file, context): TimeRange => {
  const range = { begin: file.start_time, end: file.end_time }
  if (range.begin < range.end) return range
  context.addIssue({ code: 'custom', path: ['end_time'], message: messageFor(orderRefusal(range)) })
  return z.NEVER
})

function orderRefusal({ begin, end }: TimeRange): Refusal {
  if (begin === end) return refusal('the same as start_time', 'write a later time')
  return refusal(
    'before start_time',
    'write two entries of times: one from start_time to 24:00, one from 00:00 to end_time',
  )
}

const times = list(
  timeRange,
  'Parts of the local day.',
  "write entries, such as {start_time: '22:00', end_time: '24:00'}",
)

const minuteMs = 60_000
const dayMs = 86_400_000
const wholeDay: TimeRange = { begin: 0, end: 24 * 60 }

/** How far `mutedUntil` looks: beyond any yearly interval, and short enough to compute. */
const horizonMs = 400 * dayMs

/** Active while all fields that are given hold. */
export interface TimeInterval {
  times: TimeRange[] | undefined
  /** 0 is Sunday. */
  weekdays: Range[] | undefined
  /** 1 to 31; -1 is the last of the month. */
  daysOfMonth: Range[] | undefined
  /** 1 to 12. */
  months: Range[] | undefined
  years: Range[] | undefined
  timeZone: string
}

/** `00:00–07:00, monday–friday, Europe/Zurich`. */
export function describeInterval(interval: TimeInterval): string {
  const parts: [Range[] | undefined, (value: number) => string][] = [
    [interval.times, formatMinute],
    [interval.weekdays, (day) => weekdayNames[day] ?? ''],
    [interval.daysOfMonth, (day) => `day ${day}`],
    [interval.months, (month) => monthNames[month - 1] ?? ''],
    [interval.years, String],
  ]
  const said = parts.flatMap(([given, format]) =>
    given === undefined ? [] : [given.map((range) => formatRange(range, format)).join(' and ')],
  )
  return [...said, interval.timeZone].join(', ')
}

function formatRange({ begin, end }: Range, format: (value: number) => string): string {
  return begin === end ? format(begin) : `${format(begin)}–${format(end)}`
}

function formatMinute(minute: number): string {
  const [hours, minutes] = [Math.floor(minute / 60), minute % 60]
  return [hours, minutes].map((part) => String(part).padStart(2, '0')).join(':')
}

/** By name; a name is active while any of its intervals is. */
export type TimeIntervals = Record<string, TimeInterval[]>

const timeInterval = section(
  {
    times: times.optional(),
    weekdays: weekdays.optional(),
    days_of_month: daysOfMonth.optional(),
    months: months.optional(),
    years: years.optional(),
    location: timeZone('Zone of the local time, such as Europe/Zurich.').prefault('UTC'),
  },
  { describe: 'A time at which all that is written here holds.' },
).transform((file, context): TimeInterval => {
  const interval = {
    times: file.times,
    weekdays: file.weekdays,
    daysOfMonth: file.days_of_month,
    months: file.months,
    years: file.years,
    timeZone: file.location,
  }
  const { timeZone: _zone, ...said } = interval
  if (Object.values(said).some((ranges) => ranges !== undefined)) return interval
  const message = messageFor(refusal('says no time', 'write times, weekdays or others of its keys'))
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

const intervalRemedy =
  "write at least one interval, such as [{times: [{start_time: '22:00', end_time: '24:00'}]}]"

/** The file's `time_intervals`. */
export const timeIntervalsConfig = namedEntries(
  list(timeInterval, 'Active while any of these is.', intervalRemedy),
  { describe: 'Times at which routes may be muted, by name.', thing: 'time interval' },
)

export function isActive(interval: TimeInterval, atMs: number): boolean {
  const reading = readingAt(atMs, interval.timeZone)
  return isOnDay(interval, reading) && endMinuteOf(interval, reading) !== undefined
}

/**
 * Returns the first instant (whole minute) after `atMs` at which none of the named intervals is
 * active, at most 400 days after it. undefined if none is active at `atMs`.
 */
export function mutedUntil(
  intervals: TimeIntervals,
  names: readonly string[],
  atMs: number,
): number | undefined {
  const all = names.flatMap((name) => (Object.hasOwn(intervals, name) ? intervals[name] : []) ?? [])
  let untilMs = atMs
  while (untilMs < atMs + horizonMs) {
    const [endMs] = all.flatMap((interval) => findStretchEnd(interval, untilMs) ?? [])
    if (endMs === undefined) return untilMs === atMs ? undefined : untilMs
    untilMs = endMs
  }
  return atMs + horizonMs
}

/** Until when an interval is certain to stay active from `atMs`; undefined if it is not active. */
function findStretchEnd(interval: TimeInterval, atMs: number): number | undefined {
  const reading = readingAt(atMs, interval.timeZone)
  const endMinute = isOnDay(interval, reading) ? endMinuteOf(interval, reading) : undefined
  if (endMinute === undefined) return undefined
  return nextInstantShowing(startOfDay(reading) + endMinute * minuteMs, atMs, interval.timeZone)
}

/** The minute of the day at which the `times` entry around a reading ends. */
function endMinuteOf(
  { times: parts = [wholeDay] }: TimeInterval,
  reading: number,
): number | undefined {
  const minute = Math.floor((reading - startOfDay(reading)) / minuteMs)
  return parts.find(({ begin, end }) => begin <= minute && minute < end)?.end
}

function isOnDay(interval: TimeInterval, reading: number): boolean {
  const date = new Date(reading)
  return (
    isInRanges(interval.years, date.getUTCFullYear()) &&
    isInRanges(interval.months, date.getUTCMonth() + 1) &&
    isInRanges(interval.weekdays, date.getUTCDay()) &&
    isDayOfMonth(interval.daysOfMonth, date)
  )
}

function isInRanges(ranges: Range[] | undefined, value: number): boolean {
  return ranges?.some(({ begin, end }) => begin <= value && value <= end) ?? true
}

function isDayOfMonth(ranges: Range[] | undefined, date: Date): boolean {
  if (!ranges) return true
  const length = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  const inThisMonth = ranges.map(({ begin, end }) => ({
    begin: dayOfMonth(begin, length),
    end: dayOfMonth(end, length),
  }))
  return isInRanges(inThisMonth, date.getUTCDate())
}
