import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sanitize, formatDuration, formatTable, formatUtcTime } from '../../../src/cli/terminal.ts'

test.each([
  [0, '0 s'],
  [999, '0 s'],
  [45_000, '45 s'],
  [60_000, '1 min'],
  [61_000, '1 min 1 s'],
  [90 * 60_000, '1 h 30 min'],
  [86_400_000 + 5_000, '1 d'],
  [49 * 3_600_000, '2 d 1 h'],
])('%d ms are %s', (ms, words) => {
  expect(formatDuration(ms)).toBe(words)
})

test('a time says its zone', () => {
  expect(formatUtcTime(Date.UTC(2026, 10, 1, 12, 0, 5))).toBe('2026-11-01 12:00:05 UTC')
})

test('columns begin below each other', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.stringMatching(/^\w{0,9}$/), fc.constant('x'))), (rows) => {
      const places = formatTable(rows).map((line) => line.lastIndexOf('x'))
      expect(new Set(places).size).toBeLessThanOrEqual(1)
    }),
  )
})

test('nothing that others wrote moves the cursor of a terminal', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(sanitize(`${text}\u001B[2J\u009B1A\r\n`)).not.toMatch(/[\p{Cc}\u202A-\u202E]/u)
    }),
  )
})
