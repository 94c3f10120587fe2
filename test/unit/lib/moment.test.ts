import { expect, test } from 'vitest'
import { readPastTime, readPeriodEnd } from '../../../src/lib/moment.ts'

const nowMs = Date.UTC(2026, 10, 27, 12)

test.each([
  ['7d', Date.UTC(2026, 10, 20, 12)],
  ['30s', nowMs - 30_000],
  ['2026-11-26', Date.UTC(2026, 10, 26)],
  ['2026-11-26T10:00', Date.UTC(2026, 10, 26, 10)],
  ['2026-11-26 10:00+02:00', Date.UTC(2026, 10, 26, 8)],
])('%s is a past time', (text, expected) => {
  expect(readPastTime(text, nowMs)).toBe(expected)
})

test.each(['', 'yesterday', '2026-13-01', '2026-11-28', '7 days'])(
  '%j is no past time, with what to write instead',
  (text) => {
    expect(readPastTime(text, nowMs)).toMatchObject({
      problem: expect.stringMatching(/\w/),
      remedy: expect.stringMatching(/\w/),
    })
  },
)

test.each([
  ['2026-11-26', Date.UTC(2026, 10, 27) - 1],
  ['2026-11-27', nowMs],
  ['2026-12-24', nowMs],
  ['2026-11-26T10:00Z', Date.UTC(2026, 10, 26, 10)],
  ['1h', nowMs - 3_600_000],
])('a period until %s ends with that day or time, at most now', (text, expected) => {
  expect(readPeriodEnd(text, nowMs)).toBe(expected)
})
