import { expect, test } from 'vitest'
import { parseAccounting } from '../../../src/store/accounts.ts'

test('what a feed fetched and did not end, and what a sink got and neither ended nor holds, is unaccounted', () => {
  const { feeds, sinks } = parseAccounting([
    ['f|brand|fetched', '100'],
    ['f|brand|new', '10'],
    ['f|brand|duplicate', '20'],
    ['f|brand|quarantined', '3'],
    ['f|brand|baseline', '60'],
    ['s|soc|created', '50'],
    ['s|soc|replayed', '5'],
    ['s|soc|delivered', '20'],
    ['s|soc|dead', '6'],
    ['s|soc|suppressed', '7'],
    ['s|soc|diverted', '8'],
    ['s|soc|pending|queued', '4'],
    ['s|soc|pending|sending', '1'],
  ])
  expect(feeds['brand']?.unaccounted).toBe(7)
  expect(sinks['soc']?.unaccounted).toBe(9)
})
