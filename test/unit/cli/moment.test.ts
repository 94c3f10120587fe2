import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parsePastTime } from '../../../src/cli/options.ts'

const now = Date.UTC(2026, 10, 21, 12)

test.each([
  ['7d', now - 7 * 86_400_000],
  ['90m', now - 90 * 60_000],
  ['2026-11-01', Date.UTC(2026, 10, 1)],
  ['2026-11-01T12:30', Date.UTC(2026, 10, 1, 12, 30)],
  ['2026-11-01 12:30:15', Date.UTC(2026, 10, 1, 12, 30, 15)],
  ['2026-11-01T12:30Z', Date.UTC(2026, 10, 1, 12, 30)],
  ['2026-11-01T12:30+01:00', Date.UTC(2026, 10, 1, 11, 30)],
])('%s is a time', (text, atMs) => {
  expect(parsePastTime(text, now)).toBe(atMs)
})

test.each(['yesterday', '', '7', '-7d', '2026-13-01', '2026-11-01T25:00', '11/01/2026', '1e3'])(
  '"%s" is none, and the refusal says what to write',
  (text) => {
    expect(() => parsePastTime(text, now)).toThrow('write how long ago, such as 12h or 7d')
  },
)

test('what any clock prints is read back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: now }), (atMs) => {
      expect(parsePastTime(new Date(atMs).toISOString(), now)).toBe(atMs)
    }),
  )
})

test('the future is refused', () => {
  fc.assert(
    fc.property(fc.integer({ min: now + 1, max: 2 * now }), (atMs) => {
      const text = new Date(atMs).toISOString()
      expect(() => parsePastTime(text, now)).toThrow('lies in the future')
    }),
  )
})
