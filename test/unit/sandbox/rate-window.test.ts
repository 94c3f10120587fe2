import { expect, test } from 'vitest'
import { createRateWindows } from '../../../src/sandbox/api/guard.ts'

const organizations = [{ id: 7, limits: { search: 1, basic: 4 }, keys: [] }]

test('at most the number of the tier comes through in any window of a second, less a tenth', () => {
  const rates = createRateWindows(organizations)
  const arrivals = [0, 100, 200, 800, 850, 900, 950, 999, 1000]
  const refused = arrivals.filter((atMs) => rates.isOverLimit(7, 'basic', atMs))
  expect(refused).toEqual([850, 950, 999])
  expect(rates.violations()).toBe(3)
})

test('tiers and organizations do not share their windows', () => {
  const rates = createRateWindows([...organizations, { id: 8, keys: [] }])
  expect(rates.isOverLimit(7, 'search', 0)).toBe(false)
  expect(rates.isOverLimit(8, 'search', 0)).toBe(false)
  expect(rates.isOverLimit(7, 'basic', 0)).toBe(false)
  expect(rates.isOverLimit(7, 'search', 899)).toBe(true)
  expect(rates.isOverLimit(7, 'search', 900)).toBe(false)
})

test('a limit below one stretches the window', () => {
  const rates = createRateWindows([{ id: 7, limits: { search: 0.5, basic: 4 }, keys: [] }])
  expect([0, 1899, 1900].map((atMs) => rates.isOverLimit(7, 'search', atMs))).toEqual([
    false,
    true,
    false,
  ])
})
