import { expect, test } from 'vitest'
import { cutToWidth, measureWidth } from '../../../src/lib/text-width.ts'

test('East Asian letters and emoji take two columns, marks none', () => {
  expect(measureWidth('abc')).toBe(3)
  expect(measureWidth('数据库')).toBe(6)
  expect(measureWidth('🔥')).toBe(2)
  expect(measureWidth('e\u0301')).toBe(1)
  expect(cutToWidth('数据库', 5)).toBe('数据…')
  expect(cutToWidth('数据库', 4)).toBe('数…')
  expect(cutToWidth('abc', 3)).toBe('abc')
})
