import { expect, test } from 'vitest'
import { measureWidth } from '../../../src/lib/text-width.ts'

test('East Asian letters and emoji take two columns, marks none', () => {
  expect(measureWidth('abc')).toBe(3)
  expect(measureWidth('数据库')).toBe(6)
  expect(measureWidth('🔥')).toBe(2)
  expect(measureWidth('e\u0301')).toBe(1)
})
