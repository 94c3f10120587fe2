import { expect, test } from 'vitest'
import { createRateWindows } from '../../../src/sandbox/api/guard.ts'

const organizations = [{ id: 7, limits: { search: 1, basic: 4 }, keys: [] }]

test('at most the number of the tier comes through in any window of a second', () => {
  const rates = createRateWindows(organizations, 0)
  const arrivals = [0, 100, 200, 900, 950, 1000, 1050, 1099, 1100]
  const refused = arrivals.filter((atMs) => rates.isOverLimit(7, 'basic', atMs))
  expect(refused).toEqual([950, 1050, 1099])
  expect(rates.violations()).toBe(3)
})

test('tiers and organizations do not share their windows', () => {
  const rates = createRateWindows([...organizations, { id: 8, keys: [] }], 0)
  expect(rates.isOverLimit(7, 'search', 0)).toBe(false)
  expect(rates.isOverLimit(8, 'search', 0)).toBe(false)
  expect(rates.isOverLimit(7, 'basic', 0)).toBe(false)
  expect(rates.isOverLimit(7, 'search', 999)).toBe(true)
  expect(rates.isOverLimit(7, 'search', 1000)).toBe(false)
})

test('a request that is early by less than the tolerance comes through', () => {
  const rates = createRateWindows(organizations, 100)
  expect([0, 899, 900].map((atMs) => rates.isOverLimit(7, 'search', atMs))).toEqual([
    false,
    true,
    false,
  ])
})

test('a limit below one stretches the window', () => {
  const rates = createRateWindows([{ id: 7, limits: { search: 0.5, basic: 4 }, keys: [] }], 0)
  expect([0, 1999, 2000].map((atMs) => rates.isOverLimit(7, 'search', atMs))).toEqual([
    false,
    true,
    false,
  ])
})
