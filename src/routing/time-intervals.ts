/**
 * Named times, such as nights and holidays, during which a route holds or drops. Judged by the
 * readings of the local clock, as Alertmanager does: a reading that comes twice counts twice.
 */
import { z } from 'zod'
import { list, messageFor, refusal, type Refusal } from '../runtime/config-fields.ts'
import { named, section } from '../runtime/config-section.ts'
import { timeZone } from '../runtime/config-time-zone.ts'
import { readingAt, startOfDay, whenItShows } from '../runtime/time-zone.ts'
import {
  dayOfMonth,
  daysOfMonth,
  months,
  times,
  weekdays,
  years,
  type Range,
  type TimeRange,
} from './time-ranges.ts'

const minuteMs = 60_000
const dayMs = 86_400_000
const wholeDay: TimeRange = { begin: 0, end: 24 * 60 }

/** `mutedUntil` looks no further: longer than any yearly interval, and short enough to compute. */
const horizonMs = 400 * dayMs

/** Active where all that it names holds; what it leaves out holds always. */
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

/** By name; a name is active while any of its intervals is. */
export type TimeIntervals = Record<string, TimeInterval[]>

const timeInterval = section(
  {
    times: times.optional(),
    weekdays: weekdays.optional(),
    days_of_month: daysOfMonth.optional(),
    months: months.optional(),
    years: years.optional(),
    location: timeZone('Zone of the local time, such as Europe/Zurich.'),
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
  const wrong = uselessness(interval)
  if (!wrong) return interval
  context.addIssue({ code: 'custom', message: messageFor(wrong) })
  return z.NEVER
})

const intervalRemedy =
  "write at least one interval, such as [{times: [{start_time: '22:00', end_time: '24:00'}]}]"

/** The file's `time_intervals`. */
export const timeIntervalsConfig = named(
  list(timeInterval, 'Active while any of these is.', intervalRemedy),
  { describe: 'Times at which routes may be muted, by name.', thing: 'time interval' },
)

export function isActive(interval: TimeInterval, atMs: number): boolean {
  const reading = readingAt(atMs, interval.timeZone)
  return isOnDay(interval, reading) && lastMinuteOf(interval, reading) !== undefined
}

/**
 * The first instant (whole minute) after `atMs` at which none of the named intervals is active, or
 * 400 days after it where there is none before; undefined: none is active at `atMs`.
 */
export function mutedUntil(
  intervals: TimeIntervals,
  names: readonly string[],
  atMs: number,
): number | undefined {
  const all = names.flatMap((name) => (Object.hasOwn(intervals, name) ? intervals[name] : []) ?? [])
  let untilMs = atMs
  while (untilMs < atMs + horizonMs) {
    const endsMs = all.flatMap((interval) => stretchEnd(interval, untilMs) ?? [])
    if (endsMs.length === 0) return untilMs === atMs ? undefined : untilMs
    untilMs = Math.max(...endsMs)
  }
  return atMs + horizonMs
}

/** Up to where an interval is surely active from `atMs` on; undefined: it is not active. */
function stretchEnd(interval: TimeInterval, atMs: number): number | undefined {
  const reading = readingAt(atMs, interval.timeZone)
  const endMinute = isOnDay(interval, reading) ? lastMinuteOf(interval, reading) : undefined
  if (endMinute === undefined) return undefined
  return whenItShows(startOfDay(reading) + endMinute * minuteMs, atMs, interval.timeZone)
}

/** The minute of the day at which the latest of the `times` around a reading ends. */
function lastMinuteOf(
  { times: parts = [wholeDay] }: TimeInterval,
  reading: number,
): number | undefined {
  const minute = Math.floor((reading - startOfDay(reading)) / minuteMs)
  const ends = parts.filter(({ begin, end }) => begin <= minute && minute < end)
  return ends.length === 0 ? undefined : Math.max(...ends.map(({ end }) => end))
}

function isOnDay(interval: TimeInterval, reading: number): boolean {
  const date = new Date(reading)
  return (
    isIn(interval.years, date.getUTCFullYear()) &&
    isIn(interval.months, date.getUTCMonth() + 1) &&
    isIn(interval.weekdays, date.getUTCDay()) &&
    isDayOfMonth(interval.daysOfMonth, date)
  )
}

function isIn(ranges: Range[] | undefined, value: number): boolean {
  return ranges?.some(({ begin, end }) => begin <= value && value <= end) ?? true
}

function isDayOfMonth(ranges: Range[] | undefined, date: Date): boolean {
  if (!ranges) return true
  const length = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  const inThisMonth = ranges.map(({ begin, end }) => ({
    begin: dayOfMonth(begin, length),
    end: dayOfMonth(end, length),
  }))
  return isIn(inThisMonth, date.getUTCDate())
}

/** Why an interval cannot be meant: it mutes always, or never. */
function uselessness(interval: TimeInterval): Refusal | undefined {
  const days = daysCovered(interval)
  if (days === 'none') return refusal('no day fits all of it', 'correct its days, months or years')
  if (days === 'some' || !coversDay(interval.times ?? [wholeDay])) return undefined
  return refusal(
    'always active',
    'write times, weekdays, days_of_month, months or years that leave some time out',
  )
}

/** Over a hundred years: every date falls on every day of the week in these. */
function daysCovered(interval: TimeInterval): 'every' | 'some' | 'none' {
  let hit = false
  let miss = false
  for (const { begin } of interval.years ?? [{ begin: 2000 }]) {
    const start = Date.UTC(begin, 0, 1)
    const end = start + 36_525 * dayMs
    for (let day = start; day < end && !(hit && miss); day += dayMs) {
      if (isOnDay(interval, day)) hit = true
      else miss = true
    }
  }
  if (!hit) return 'none'
  return miss ? 'some' : 'every'
}

function coversDay(parts: TimeRange[]): boolean {
  let minute = wholeDay.begin
  for (const { begin, end } of parts.toSorted((one, other) => one.begin - other.begin)) {
    if (begin <= minute) minute = Math.max(minute, end)
  }
  return minute >= wholeDay.end
}
