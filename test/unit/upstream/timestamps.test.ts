import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { parseTimestamp } from '../../../src/upstream/timestamps.ts'

const zone = process.env['TZ']

afterEach(() => {
  if (zone === undefined) delete process.env['TZ']
  else process.env['TZ'] = zone
})

describe('a time of the service', () => {
  test.each([
    ['2025-01-01T16:30:37.589388Z', '2025-01-01T16:30:37.589Z'],
    ['2025-01-01T16:30:37.589388+00:00', '2025-01-01T16:30:37.589Z'],
    ['2025-01-01T00:00:00', '2025-01-01T00:00:00.000Z'],
    ['2025-01-01T00:00:00.5', '2025-01-01T00:00:00.500Z'],
    ['2025-07-01 12:00:00', '2025-07-01T12:00:00.000Z'],
    ['2025-01-01T12:00', '2025-01-01T12:00:00.000Z'],
    ['2025-01-01T05:30:00+05:30', '2025-01-01T00:00:00.000Z'],
    ['2025-01-01T00:00:00-0330', '2025-01-01T03:30:00.000Z'],
    ['2026-01-16', '2026-01-16T00:00:00.000Z'],
    ['2024-02-29T23:59:59.999999Z', '2024-02-29T23:59:59.999Z'],
    ['1960-05-05T10:00:00.25Z', '1960-05-05T10:00:00.250Z'],
  ])('%s is %s', (text, utc) => {
    expect(parseTimestamp(text)).toBe(Date.parse(utc))
  })

  test.each([
    '',
    'yesterday',
    '2025-02-30',
    '2025-13-01T00:00:00Z',
    '2025-01-01T25:00:00Z',
    '0001-01-01T00:00:00',
    '2025-01-01T00:00:00+99:00',
    '2025-01-01T00:00:00 GMT',
    '1735689600',
    '2025-01-01T00:00:00Z; drop',
  ])('%j is no time', (text) => {
    expect(parseTimestamp(text)).toBeNull()
  })

  test.each(['America/New_York', 'Asia/Kolkata', 'Pacific/Auckland'])(
    'without a zone is UTC on a machine in %s',
    (place) => {
      process.env['TZ'] = place
      expect(new Date('2025-07-01T12:00:00').getTimezoneOffset()).not.toBe(0)
      expect(parseTimestamp('2025-07-01T12:00:00')).toBe(Date.UTC(2025, 6, 1, 12))
      expect(parseTimestamp('2025-07-01')).toBe(Date.UTC(2025, 6, 1))
    },
  )

  test('comes back from every ISO string', () => {
    const date = fc.date({
      noInvalidDate: true,
      min: new Date('1900-01-01'),
      max: new Date('2200-01-01'),
    })
    fc.assert(
      fc.property(date, (at) => {
        expect(parseTimestamp(at.toISOString())).toBe(at.getTime())
      }),
    )
  })

  test('is never an error, whatever the text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const parsed = parseTimestamp(text)
        expect(parsed === null || Number.isInteger(parsed)).toBe(true)
      }),
    )
  })
})
