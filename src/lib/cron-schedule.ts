/**
 * When a cron of five fields fires in a time zone. croner provides the calendar, applied only to
 * readings of the local clock. On days when clocks change, a schedule fires at the first instant at
 * which the clock shows the reading. If that is skipped, a later one counts.
 */
import { Cron } from 'croner'
import { refusal, type Refusal } from './config/config-fields.ts'
import { toInstant, isTimeZone, latestReadingBy } from './time-zone.ts'

export interface Schedule {
  /** The first instant at which it fires strictly after another, ms. */
  next(afterMs: number): number
  /** The last instant at which it fired before or at another, ms. */
  previous(atOrBeforeMs: number): number
}

export interface ScheduleOptions {
  cron: string
  /** IANA name; the fields are local times there. */
  timeZone: string
}

/** A digest is not a ticker: readers get at least a quarter of an hour between two. */
const minGapMinutes = 15

/** Croner reads sun-sun as every day. */
const names =
  /jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun(?!-sun)|mon|tue|wed|thu|fri|sat/gi

const fields = [
  { name: 'minute', remedy: 'write 0 to 59' },
  { name: 'hour', remedy: 'write 0 to 23' },
  { name: 'day of the month', remedy: 'write 1 to 31' },
  { name: 'month', remedy: 'write 1 to 12 or jan to dec' },
  { name: 'day of the week', remedy: 'write 0 (Sunday) to 7 or sun to sat' },
]

const formRemedy =
  "write five fields: minute, hour, day of the month, month, day of the week, such as '0 8,16 * * *'"

/** Returns why a cron cannot be a schedule; undefined: it can. */
export function cronProblem(cron: string): Refusal | undefined {
  const cronFields = cron.trim().split(/\s+/)
  const wrongForm = formProblem(cronFields) ?? fieldProblem(cronFields)
  if (wrongForm) return wrongForm
  if (!parseCron(cron).nextRun(new Date(0))) {
    return refusal('never fires', 'write a day that its months have')
  }
  return gapProblem(cronFields)
}

function formProblem(cronFields: string[]): Refusal | undefined {
  if (cronFields.length === 6 || cronFields.length === 7) {
    return refusal(`${cronFields.length} fields: seconds and years are not taken`, formRemedy)
  }
  return cronFields.length === 5 ? undefined : refusal('not a cron of five fields', formRemedy)
}

/** Takes what all crons agree on: lists, ranges and steps, and not croner's additions. */
function fieldProblem(cronFields: string[]): Refusal | undefined {
  const wrong = fields.find((_field, index) => {
    const isCommon = /^[\d*,/-]+$/.test((cronFields[index] ?? '').replaceAll(names, '0'))
    const alone = cronFields.map((field, at) => (at === index ? field : '*'))
    return !isCommon || !isCalendar(alone)
  })
  if (!wrong) return undefined
  return refusal(
    `its ${wrong.name} is not understood`,
    `${wrong.remedy}, as a list (1,3), a range (1-5) or with a step (*/2 or 1-9/2)`,
  )
}

function isCalendar(cronFields: string[]): boolean {
  try {
    return parseCron(cronFields.join(' ')) !== undefined
  } catch {
    return false
  }
}

/**
 * Checks the times of day, as if on consecutive days: the last of a day is followed by the first of
 * the next.
 */
function gapProblem([minute = '*', hour = '*']: string[]): Refusal | undefined {
  const everyDay = parseCron(`${minute} ${hour} * * *`)
  const leastGapMs = minGapMinutes * 60_000
  const dayBeginMs = 0
  const dayEndMs = 86_400_000
  let last = everyDay.nextRun(new Date(dayBeginMs - 1))?.getTime() ?? dayEndMs
  while (last < dayEndMs) {
    const next = everyDay.nextRun(new Date(last))?.getTime() ?? Number.POSITIVE_INFINITY
    if (next - last < leastGapMs) {
      return refusal(
        `fires more often than every ${minGapMinutes} minutes`,
        `write times of day that lie ${minGapMinutes} minutes apart or more, such as '*/15 * * * *'`,
      )
    }
    last = next
  }
  return undefined
}

/** Runs nothing: without a function, croner only calculates times. */
function parseCron(cron: string): Cron {
  return new Cron(cron, { mode: '5-part', paused: true, utcOffset: 0 })
}

/** Throws if `cronProblem` finds a problem, or for an unknown zone; both are checked before. */
export function createSchedule({ cron, timeZone }: ScheduleOptions): Schedule {
  const wrong = cronProblem(cron)
  if (wrong) throw new Error(`Cron: ${wrong.problem}; ${wrong.remedy}`)
  if (!isTimeZone(timeZone))
    throw new Error('Cron: not a time zone; write one such as Europe/Zurich')
  const calendar = parseCron(cron)

  function toInstantOrThrow(reading: Date | null | undefined): number {
    if (!reading) throw new Error('Cron: asked about a time beyond the calendar')
    return toInstant(reading.getTime(), timeZone)
  }

  return {
    next: (afterMs) =>
      toInstantOrThrow(calendar.nextRun(new Date(latestReadingBy(afterMs, timeZone)))),
    previous: (atOrBeforeMs) => {
      // Croner looks strictly before; readings are whole minutes.
      const over = new Date(latestReadingBy(atOrBeforeMs, timeZone) + 1)
      return toInstantOrThrow(calendar.previousRuns(1, over)[0])
    },
  }
}
