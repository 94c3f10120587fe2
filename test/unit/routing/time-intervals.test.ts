import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import {
  describeInterval,
  isActive,
  mutedUntil,
  timeIntervalsConfig,
  type TimeInterval,
  type TimeIntervals,
} from '../../../src/routing/time-intervals.ts'
import { labelAt, readingOf, windowsOf, zones } from '../lib/reference-clock.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

type Written = z.input<typeof timeIntervalsConfig>

/** As the file has it, under the name `quiet`. */
function quiet(...intervals: Record<string, unknown>[]): TimeIntervals {
  return timeIntervalsConfig.parse({ quiet: intervals } as unknown as Written)
}

function untilOf(intervals: TimeIntervals, atIso: string): string | undefined {
  const untilMs = mutedUntil(intervals, ['quiet'], Date.parse(atIso))
  return untilMs === undefined ? undefined : new Date(untilMs).toISOString()
}

const part = (from: string, to: string): object => ({ start_time: from, end_time: to })

test('a weekend lasts until Monday, or until the holiday after it is over', () => {
  const weekend = { weekdays: ['saturday', 'sunday'] }
  const holiday = { days_of_month: ['28'], months: ['december'], years: [2026] }
  expect(untilOf(quiet(weekend), '2026-12-26T12:00:30Z')).toBe('2026-12-28T00:00:00.000Z')
  expect(untilOf(quiet(weekend, holiday), '2026-12-26T12:00:30Z')).toBe('2026-12-29T00:00:00.000Z')
  expect(untilOf(quiet(weekend, holiday), '2026-12-29T00:00:00Z')).toBeUndefined()
})

test('two names mute until neither is active, and a name that is not given mutes nothing', () => {
  const intervals = {
    evening: quiet({ times: [part('18:00', '23:00')] })['quiet'] ?? [],
    night: quiet({ times: [part('22:00', '24:00')] })['quiet'] ?? [],
  }
  const atMs = Date.parse('2026-11-20T19:00:00Z')
  expect(mutedUntil(intervals, ['evening', 'night'], atMs)).toBe(Date.parse('2026-11-21T00:00Z'))
  expect(mutedUntil(intervals, ['evening'], atMs)).toBe(Date.parse('2026-11-20T23:00Z'))
  expect(mutedUntil(intervals, ['night'], atMs)).toBeUndefined()
  expect(mutedUntil(intervals, [], atMs)).toBeUndefined()
  expect(mutedUntil(intervals, ['constructor'], atMs)).toBeUndefined()
})

test('where no end comes within 400 days, 400 days are the answer', () => {
  const atMs = Date.parse('2026-11-20T12:34:56Z')
  const intervals = quiet({ weekdays: ['monday:friday'] }, { weekdays: ['saturday', 'sunday'] })
  expect(mutedUntil(intervals, ['quiet'], atMs)).toBe(atMs + 400 * dayMs)
})

describe('the days of a month', () => {
  const active = (written: string, day: string): boolean => {
    const [interval] = quiet({ days_of_month: [written] })['quiet'] ?? []
    return isActive(interval!, Date.parse(`${day}T12:00:00Z`))
  }

  test.each([
    ['-1', '2028-02-29', true],
    ['-1', '2028-02-28', false],
    ['-3:-1', '2026-11-28', true],
    ['-3:-1', '2026-11-27', false],
    ['29:31', '2026-02-28', false],
    ['31', '2026-11-30', false],
    ['20:-1', '2026-02-28', true],
    ['-31:-28', '2026-02-01', true],
    ['1:5', '2026-11-06', false],
    [' 28:-1 ', '2027-02-28', true],
    ['1:-2', '2027-02-28', false],
  ])('%s holds %s: %s', (written, day, expected) => {
    expect(active(written, day)).toBe(expected)
  })
})

test('words and numbers of the file become ranges', () => {
  const written = {
    weekdays: ['monday:friday', 'Sunday'],
    days_of_month: [1, '-3:-1'],
    months: ['january:march', '12', 'MAY'],
    years: ['2026:2028', 2030],
    times: [part('08:00', '24:00')],
    location: 'Asia/Kathmandu',
  }
  expect(quiet(written)['quiet']).toEqual([
    {
      weekdays: [
        { begin: 1, end: 5 },
        { begin: 0, end: 0 },
      ],
      daysOfMonth: [
        { begin: 1, end: 1 },
        { begin: -3, end: -1 },
      ],
      months: [
        { begin: 1, end: 3 },
        { begin: 12, end: 12 },
        { begin: 5, end: 5 },
      ],
      years: [
        { begin: 2026, end: 2028 },
        { begin: 2030, end: 2030 },
      ],
      times: [{ begin: 480, end: 1440 }],
      timeZone: 'Asia/Kathmandu',
    },
  ])
})

test.each([
  [{ location: 'Europe/Zurich' }, 'says no time'],
  [{ months: [1] }, undefined],
  [{ months: [0] }, 'not a range of these'],
  [{ months: [13] }, 'not a range of these'],
  [{ days_of_month: [32] }, 'not a range of these'],
  [{ days_of_month: [-32] }, 'not a range of these'],
  [{ days_of_month: [0] }, 'not a range of these'],
  [{ years: [1969] }, 'not a range of these'],
  [{ years: [10_000] }, 'not a range of these'],
  [{ years: ['2028:2027'] }, 'ends before it begins'],
  [{ days_of_month: ['20:10'] }, 'ends before it begins in a month of 28 days'],
  [{ days_of_month: ['-3:1'] }, 'ends before it begins in a month of 28 days'],
  [{ days_of_month: ['29:-1'] }, 'ends before it begins in a month of 28 days'],
  [{ days_of_month: ['1:-29'] }, 'ends before it begins in a month of 28 days'],
  [{ days_of_month: ['-28:5'] }, 'ends before it begins in a month of 28 days'],
  [{ months: ['1:2:3'] }, 'not a range of these'],
  [{ months: [1.5] }, 'not a range of these'],
  [{ months: ['1e0'] }, 'not a range of these'],
])('%j is meant, or refused: %s', (written, problem) => {
  const result = timeIntervalsConfig.safeParse({ quiet: [written] })
  expect(result.error?.issues[0]?.message.split('\n')[0]).toBe(problem)
})

/** Local readings as Intl writes them; the ranges by listing what they hold. */
function isActiveSlowly(interval: TimeInterval, atMs: number): boolean {
  const date = new Date(readingOf(labelAt(atMs, interval.timeZone)))
  const minute = date.getUTCHours() * 60 + date.getUTCMinutes()
  const isTime = interval.times?.some(({ begin, end }) => minute >= begin && minute < end) ?? true
  const weekday = date.getUTCDay()
  const isDay = interval.weekdays?.some(({ begin, end }) => weekday >= begin && weekday <= end)
  return isTime && (isDay ?? true)
}

test('the end of a mute is the first minute at which a clock asked every minute finds none', () => {
  const minuteOfDay = fc.integer({ min: 0, max: 48 }).map((half) => half * 30)
  const times = fc
    .uniqueArray(minuteOfDay, { minLength: 2, maxLength: 2 })
    .map(([a = 0, b = 0]) => ({ begin: Math.min(a, b), end: Math.max(a, b) }))
  const weekday = fc.integer({ min: 0, max: 6 }).map((day) => ({ begin: day, end: day }))
  const interval: fc.Arbitrary<TimeInterval> = fc.record({
    times: fc.option(fc.array(times, { minLength: 1, maxLength: 2 }), { nil: undefined }),
    weekdays: fc.option(fc.array(weekday, { minLength: 1, maxLength: 4 }), { nil: undefined }),
    daysOfMonth: fc.constant(undefined),
    months: fc.constant(undefined),
    years: fc.constant(undefined),
    timeZone: fc.constantFrom(...zones),
  })
  const intervals = fc.array(interval, { minLength: 1, maxLength: 3 })
  const windows = fc.constantFrom(...zones.flatMap(windowsOf))
  const offset = fc.nat({ max: 5 * dayMs })
  fc.assert(
    fc.property(intervals, windows, offset, (quietOnes, { fromMs }, offsetMs) => {
      const atMs = fromMs + offsetMs
      const anyActive = (ms: number): boolean => quietOnes.some((one) => isActiveSlowly(one, ms))
      const untilMs = mutedUntil({ quiet: quietOnes }, ['quiet'], atMs)
      expect(untilMs !== undefined).toBe(anyActive(atMs))
      expect(quietOnes.some((one) => isActive(one, atMs))).toBe(anyActive(atMs))
      if (untilMs === undefined) return
      // Always muted: a few days of it are enough.
      const lookMs = Math.min(untilMs, atMs + 9 * dayMs)
      let minute = Math.floor(atMs / minuteMs) * minuteMs
      while (minute < lookMs && anyActive(minute)) minute += minuteMs
      expect(minute).toBeGreaterThanOrEqual(lookMs)
      expect(untilMs === atMs + 400 * dayMs || !anyActive(untilMs)).toBe(true)
    }),
    { numRuns: 150 },
  )
})

test.each([
  [
    'months',
    'january february march april may june july august september october november december',
    1,
  ],
  ['weekdays', 'sunday monday tuesday wednesday thursday friday saturday', 0],
])('%s are known by every name that there is', (key, names, first) => {
  const parsed = names.split(' ').map((name) => quiet({ [key]: [name] })['quiet'])
  expect(parsed).toMatchObject(
    names.split(' ').map((_name, at) => [{ [key]: [{ begin: first + at, end: first + at }] }]),
  )
})

test.each(['108:00', '08:000', '8:00', '24:01', '12:60'])('%s is no time of day', (from) => {
  expect(() => quiet({ times: [part(from, '24:00')] })).toThrow('not a time of day')
})

test.each([
  ['22:00', '07:00', 'before start_time'],
  ['22:00', '22:00', 'the same as start_time'],
])('a part of a day from %s to %s is refused at its end', (from, to, problem) => {
  const { error } = timeIntervalsConfig.safeParse({
    quiet: [{ times: [part(from, to)] }],
  } as Written)
  expect(error?.issues.map(({ path }) => path)).toEqual([['quiet', 0, 'times', 0, 'end_time']])
  expect(error?.issues[0]?.message.split('\n')[0]).toBe(problem)
})

test('an interval is described by all that it names, and its zone', () => {
  const described = quiet(
    { times: [part('22:00', '24:00'), part('00:00', '06:30')], location: 'Europe/Zurich' },
    { weekdays: ['saturday', 'monday:friday'], days_of_month: ['1:5', '-1'] },
    { months: ['december'], years: ['2026:2027'] },
  )['quiet']?.map(describeInterval)
  expect(described).toEqual([
    '22:00–24:00 and 00:00–06:30, Europe/Zurich',
    'saturday and monday–friday, day 1–day 5 and day -1, UTC',
    'december, 2026–2027, UTC',
  ])
})
