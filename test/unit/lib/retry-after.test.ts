import { expect, test } from 'vitest'
import { parseRetryAfter } from '../../../src/lib/config/web-address.ts'

const now = Date.parse('2025-06-01T12:00:00Z')

test.each([
  ['30', 30_000],
  [' 2 ', 2000],
  ['1.5', 1500],
  ['0', 1000],
  ['86400', 900_000],
  ['Sun, 01 Jun 2025 12:01:00 GMT', 60_000],
  ['Sun, 01 Jun 2025 11:00:00 GMT', 1000],
  ['Mon, 02 Jun 2025 12:00:00 GMT', 900_000],
  ['900', 900_000],
  ['901', 900_000],
  ['99999999999999999999', 900_000],
  ['Sunday, 01-Jun-25 12:00:45 GMT', 45_000],
  ['Sun Jun  1 12:00:45 2025 GMT', 45_000],
  ['Sun, 99 Nov 2026', undefined],
  ['30s', undefined],
  ['-5', undefined],
  ['soon', undefined],
  ['2025-06-01T12:01:00', undefined],
  ['', undefined],
  [undefined, undefined],
])('Retry-After %j is %j ms', (value, ms) => {
  expect(parseRetryAfter(value, now)).toBe(ms)
})

test.each([
  ['Sun, 01 Jun 2025 12:01:00 GMT', 'Sun, 01 Jun 2025 11:59:00 GMT', 120_000],
  ['Sun, 01 Jun 2025 12:01:00 GMT', 'soon', 60_000],
  ['30', 'Sun, 01 Jun 2025 11:59:00 GMT', 30_000],
])('Retry-After %j of an answer of %j is a wait of %i ms', (header, date, expected) => {
  expect(parseRetryAfter(header, now, date)).toBe(expected)
})

test('of a repeated header the first counts', () => {
  expect(parseRetryAfter(['7', '60'], now)).toBe(7000)
})
