import { expect, test } from 'vitest'
import { toRangeFilter, resolvePeriod } from '../../../../src/cli/options.ts'

const asOfMs = Date.UTC(2026, 10, 10)

test('a duration counts from when the walk began', () => {
  expect(toRangeFilter(resolvePeriod({ since: '7d', until: '1d' }, asOfMs))).toEqual({
    gte: '2026-11-03T00:00:00.000Z',
    lte: '2026-11-09T00:00:00.000Z',
  })
})

test('either side may be open', () => {
  expect(toRangeFilter(resolvePeriod({ since: '2026-11-01' }, asOfMs))).toEqual({
    gte: '2026-11-01T00:00:00.000Z',
  })
  expect(toRangeFilter(resolvePeriod({ until: '2026-11-01T12:00Z' }, asOfMs))).toEqual({
    lte: '2026-11-01T12:00:00.000Z',
  })
  expect(toRangeFilter(resolvePeriod({}, asOfMs))).toBeUndefined()
})

test('a span that ends before it begins is refused', () => {
  expect(() => resolvePeriod({ since: '1d', until: '7d' }, asOfMs)).toThrow(
    '--since lies after --until',
  )
})
