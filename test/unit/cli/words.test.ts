import fc from 'fast-check'
import { expect, test } from 'vitest'
import { measureWidth } from '../../../src/lib/text-width.ts'
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

const rows = [
  ['id', 'dead since', 'reason', 'uid'],
  ['3f9a1c', '2026-11-01 12:00:05 UTC', 'unauthorized', `stealer/${'x'.repeat(120)}`],
  ['77', '2026-11-01 12:00:05 UTC', '拒絶'.repeat(20), 'short'],
]

test('a table pads by width, not by characters, and cuts nothing', () => {
  const lines = formatTable(rows)
  const titles = 'id      dead since               reason'
  expect(measureWidth(lines[2]!.slice(0, lines[2]!.indexOf('short')))).toBe(
    lines[0]!.indexOf('uid'),
  )
  expect(lines[0]).toMatch(new RegExp(`^${titles} +uid$`))
  expect(lines[1]).toContain('x'.repeat(120))
})
