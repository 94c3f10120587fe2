import { expect, test } from 'vitest'
import { formatTrouble, type Trouble } from '../../../src/lib/trouble.ts'

const sinceMs = Date.parse('2026-11-01T03:12:40Z')
const nowMs = sinceMs + 42 * 60_000
const trouble: Trouble = {
  reason: 'timeout',
  answer: 'no answer within 30 s',
  sinceMs,
  lastMs: nowMs - 10_000,
  count: 17,
  nextTryMs: nowMs + 90_000,
}

test.each([
  [
    trouble,
    'failing since 2026-11-01 03:12 UTC (42 min), 17 times, last: timeout, no answer within 30 s; next try 03:56:10 UTC',
  ],
  [
    { ...trouble, count: 1, answer: '', nextTryMs: undefined },
    'failing since 2026-11-01 03:12 UTC (42 min), once, last: timeout',
  ],
  [
    { ...trouble, sinceMs: nowMs + 1, count: 1, answer: '', nextTryMs: nowMs - 7_200_000 },
    'failing since 2026-11-01 03:54 UTC (0 s), once, last: timeout; next try has been due for 2 h',
  ],
])('trouble %# says since when, how often, what was last, and what is next', (given, said) => {
  expect(formatTrouble(given, nowMs)).toBe(said)
})
