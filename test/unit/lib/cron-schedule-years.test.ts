/** The schedule against a reference that asks the local clock every minute and knows no rule. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSchedule } from '../../../src/lib/cron-schedule.ts'
import { minutesOf, windowsOf, zones, type Window } from './reference-clock.ts'
import { runs } from '../../support/runs.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

interface Field {
  text: string
  values: number[]
}

/** One field of a cron with what it means; `*` where `values` is the whole of it. */
function fields(least: number, most: number, step = 1): fc.Arbitrary<Field> {
  const value = fc.integer({ min: 0, max: Math.floor((most - least) / step) })
  const one = value.map((index) => least + index * step)
  const between = (from: number, to: number, by: number): number[] =>
    Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, index) => from + index * by)
  return fc.oneof(
    fc.constant({ text: '*', values: between(least, most, 1) }),
    fc.uniqueArray(one, { minLength: 1, maxLength: 4 }).map((values) => ({
      text: values.join(','),
      values,
    })),
    fc.tuple(one, one, fc.integer({ min: 1, max: 3 })).map(([a, b, by]) => {
      const [from, to] = [Math.min(a, b), Math.max(a, b)]
      return { text: `${from}-${to}/${by * step}`, values: between(from, to, by * step) }
    }),
  )
}

const crons = fc
  .record({
    minute: fields(0, 59, 15).filter(({ text }) => text !== '*'),
    hour: fields(0, 23),
    day: fields(1, 31),
    month: fc.constant({ text: '*', values: Array.from({ length: 12 }, (_, index) => index + 1) }),
    weekday: fields(0, 6),
  })
  .map((fieldsOf) => ({
    text: Object.values(fieldsOf)
      .map(({ text }) => text)
      .join(' '),
    matches: (reading: number): boolean => matches(fieldsOf, new Date(reading)),
  }))

type Fields = Record<'minute' | 'hour' | 'day' | 'month' | 'weekday', Field>

function matches({ minute, hour, day, month, weekday }: Fields, date: Date): boolean {
  const isDay = day.values.includes(date.getUTCDate())
  const isWeekday = weekday.values.includes(date.getUTCDay())
  const both = day.text === '*' || weekday.text === '*'
  return (
    minute.values.includes(date.getUTCMinutes()) &&
    hour.values.includes(date.getUTCHours()) &&
    month.values.includes(date.getUTCMonth() + 1) &&
    (both ? isDay && isWeekday : isDay || isWeekday)
  )
}

function expectedFires(window: Window, isDue: (reading: number) => boolean): number[] {
  return minutesOf(window)
    .filter(({ reached }) => reached.some(isDue))
    .map(({ atMs }) => atMs)
}

function iso(instants: number[]): string[] {
  return instants.map((atMs) => new Date(atMs).toISOString())
}

test('next and previous visit what a clock that is asked every minute reaches, in order', () => {
  const windows = fc.constantFrom(...zones.flatMap(windowsOf))
  fc.assert(
    fc.property(windows, crons, (window, cron) => {
      const schedule = createSchedule({ cron: cron.text, timeZone: window.zone })
      const expected = expectedFires(window, cron.matches)

      const forwards: number[] = []
      let atMs = schedule.next(window.fromMs - 1)
      // One more than expected is wrong already: no endless loop for a schedule that stands still.
      for (; atMs < window.toMs && forwards.length <= expected.length; atMs = schedule.next(atMs)) {
        forwards.push(atMs)
      }
      expect(iso(forwards)).toEqual(iso(expected))

      const backwards: number[] = []
      atMs = schedule.previous(window.toMs - 1)
      for (let left = expected.length; atMs >= window.fromMs && left >= 0; left -= 1) {
        backwards.unshift(atMs)
        atMs = schedule.previous(atMs - 1)
      }
      expect(iso(backwards)).toEqual(iso(expected))
    }),
    { numRuns: runs({ short: 24, long: 120 }) },
  )
})

test('between two fires, every instant has the same next and previous', () => {
  const zone = fc.constantFrom(...zones)
  const instants = fc.integer({ min: Date.UTC(2008, 0, 1), max: Date.UTC(2030, 0, 1) })
  fc.assert(
    fc.property(zone, crons, instants, (timeZone, cron, atMs) => {
      const schedule = createSchedule({ cron: cron.text, timeZone })
      const next = schedule.next(atMs)
      const previous = schedule.previous(atMs)
      expect(next).toBeGreaterThan(atMs)
      expect(previous).toBeLessThanOrEqual(atMs)
      expect(schedule.next(previous)).toBe(next)
      expect(schedule.previous(next - 1)).toBe(previous)
      expect(schedule.previous(next)).toBe(next)
    }),
  )
})

const localHours = [2, 8, 16]
const years = [
  { timeZone: 'Europe/Zurich', skipped: '2026-03-29T02:30', instead: '2026-03-29T03:00' },
  { timeZone: 'America/New_York', skipped: '2026-03-08T02:30', instead: '2026-03-08T03:00' },
  { timeZone: 'Asia/Kathmandu', skipped: undefined, instead: undefined },
]

test.each(years)('a year in $timeZone is visited once, whenever it restarts', (year) => {
  const { timeZone, skipped, instead } = year
  const firstDay = Date.UTC(2026, 0, 1)
  const days = Array.from({ length: 365 }, (_, index) => firstDay + index * dayMs)
  const readings = days.flatMap((day) =>
    localHours.map((hour) => new Date(day + hour * hourMs + 30 * minuteMs)),
  )
  const expected = readings.map((reading) => reading.toISOString().slice(0, 16))
  const clock = new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'short',
  })
  const yearEndMs = Date.UTC(2027, 0, 1)
  const naps = fc.infiniteStream(fc.integer({ min: minuteMs, max: 30 * hourMs }))

  fc.assert(
    fc.property(naps, (stream) => {
      const visited: string[] = []
      let wakeMs = Date.UTC(2025, 11, 31)
      let lastMs = createSchedule({ cron: '30 2,8,16 * * *', timeZone }).previous(wakeMs)
      // so far beyond that the longest nap does not sleep through the last of the year, in any zone
      while (wakeMs < yearEndMs + 2 * dayMs) {
        // What a new process knows: the clock, and the last instant that was written down.
        const schedule = createSchedule({ cron: '30 2,8,16 * * *', timeZone })
        for (let dueMs = schedule.next(lastMs); dueMs <= wakeMs; dueMs = schedule.next(lastMs)) {
          lastMs = dueMs
          visited.push(clock.format(dueMs).replace(' ', 'T'))
          if (visited.length > 2 * expected.length) throw new Error('it stands still')
        }
        wakeMs += stream.next().value ?? dayMs
      }
      const inYear = visited.filter((label) => label.startsWith('2026'))
      expect(inYear).toEqual(expected.map((label) => (label === skipped ? instead : label)))
    }),
    { numRuns: 5 },
  )
})
