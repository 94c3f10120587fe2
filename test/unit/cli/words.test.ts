import fc from 'fast-check'
import { expect, test } from 'vitest'
import { measureWidth } from '../../../src/lib/text-width.ts'
import {
  sanitize,
  formatDuration,
  formatTable,
  formatUtcTime,
  shrinkColumns,
} from '../../../src/cli/terminal.ts'

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

test('a table fits in its terminal: the widest columns are cut, the first is whole', () => {
  const lines = formatTable(rows, 80)
  expect(Math.max(...lines.map(measureWidth))).toBe(80)
  expect(lines[0]).toMatch(/^id {6}dead since +reason +uid$/)
  expect(lines[1]).toMatch(/^3f9a1c {2}2026-11-01 12:00:05 UTC {2}unauthorized +stealer\/x+…$/)
})

test('the column that names a row is whole where it is the widest, too', () => {
  expect(shrinkColumns([40, 30, 20], 60)).toEqual([40, 8, 8])
})

test('a table for no terminal is whole', () => {
  expect(formatTable(rows)[1]).toContain('x'.repeat(120))
})
