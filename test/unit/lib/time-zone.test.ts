import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  formatInZone,
  formatLocal,
  toInstant,
  isShownTwice,
  isTimeZone,
  latestReadingBy,
  localDay,
  readingAt,
  nextInstantShowing,
} from '../../../src/lib/time-zone.ts'
import { labelAt, minutesOf, readingOf, windowsOf, zones, type Window } from './reference-clock.ts'

const minuteMs = 60_000
const at = (iso: string): number => Date.parse(iso)
const shown = (ms: number): string => new Date(ms).toISOString()

test.each(['Europe/Zurich', 'UTC', 'Etc/GMT-5', 'Asia/Kolkata'])('%s is a zone', (name) => {
  expect(isTimeZone(name)).toBe(true)
})

test.each(['', 'Europe/Zürich', 'Mars/Olympus', '+01:00', '-5', ' UTC', 'CEST', 'constructor'])(
  '%j is no zone',
  (name) => {
    expect(isTimeZone(name)).toBe(false)
  },
)

test('an unknown zone is an error, not UTC', () => {
  expect(() => readingAt(0, 'Mars/Olympus')).toThrow(RangeError)
})

test('a day and a minute are written with the zone they are true in', () => {
  const ms = at('2026-11-20T23:30:00Z')
  expect(localDay(ms, 'UTC')).toBe('2026-11-20')
  expect(localDay(ms, 'Europe/Zurich')).toBe('2026-11-21')
  expect(formatLocal(ms, 'Europe/Zurich')).toBe('2026-11-21 00:30 Europe/Zurich')
  expect(formatLocal(ms, 'UTC')).toBe('2026-11-20 23:30 UTC')
})

test('what is below the minute is kept, before 1970 too', () => {
  expect(readingAt(1234, 'Asia/Kathmandu') - 1234).toBe(5.5 * 3_600_000)
  expect(readingAt(-1, 'UTC')).toBe(-1)
})

describe('a reading', () => {
  test('is awaited no longer than to the next change of the clock', () => {
    const shownAtThree = at('2026-10-25T03:00:00Z')
    const beforeMs = at('2026-10-25T00:30:00Z')
    const changeMs = nextInstantShowing(shownAtThree, beforeMs, 'Europe/Zurich')
    expect(shown(changeMs)).toBe('2026-10-25T01:00:00.000Z')
    expect(shown(nextInstantShowing(shownAtThree, changeMs, 'Europe/Zurich'))).toBe(
      '2026-10-25T02:00:00.000Z',
    )
  })
})

const windows = fc.constantFrom(...zones.flatMap(windowsOf))

test('readings agree with a clock that is asked every minute, around every kind of change', () => {
  fc.assert(
    fc.property(windows, (window) => {
      expect(disagreements(window)).toEqual([])
    }),
    { numRuns: 20 },
  )
})

test('readings that a clock shows twice are known, and no others', () => {
  fc.assert(
    fc.property(windows, (window) => {
      const minutes = minutesOf(window)
      const byReading = Map.groupBy(minutes, ({ reading }) => reading)
      const wrong = minutes.filter(({ atMs, reading }) => {
        const isTwice = (byReading.get(reading)?.length ?? 0) > 1
        return isShownTwice(atMs, window.zone) !== isTwice
      })
      expect(wrong).toEqual([])
    }),
    { numRuns: 20 },
  )
})

function disagreements(window: Window): unknown[] {
  const { zone, fromMs } = window
  const found: unknown[] = []
  let latest = readingOf(labelAt(fromMs - minuteMs, zone))
  for (const { atMs, reading, reached } of minutesOf(window)) {
    latest = Math.max(latest, reading)
    const latestMinute = Math.floor(latestReadingBy(atMs, zone) / minuteMs) * minuteMs
    if (readingAt(atMs, zone) !== reading) found.push({ atMs, reading })
    if (latestMinute !== latest) found.push({ atMs, latest, latestMinute })
    for (const due of reached) if (toInstant(due, zone) !== atMs) found.push({ due, atMs })
  }
  return found
}

test('a format is built once for each zone and language, however many times are shown', () => {
  const built = vi.spyOn(Intl, 'DateTimeFormat')
  onTestFinished(() => built.mockRestore())
  for (let day = 0; day < 400; day += 1) {
    const shownAt = formatInZone(day * 86_400_000, 'Africa/Windhoek')
    expect(shownAt).toMatch(/^19\d\d-\d\d-\d\d \d\d:00 \S+$/)
  }
  expect(built.mock.calls.length).toBeLessThanOrEqual(6)
})
