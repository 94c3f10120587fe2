import { expect, test } from 'vitest'
import { formatTally } from '../../../src/cli/ledger/items-act.ts'
import { formatPending } from '../../../src/operator/reports/sink-report.ts'

test.each([
  [{}, 'none'],
  [{ queued: 1 }, '1 queued'],
  [{ queued: 2, group: 3, batch: 1, digest: 4 }, '2 queued, 7 grouped, 1 frozen'],
])('pending items %j read as words', (pending, said) => {
  expect(formatPending(pending)).toBe(said)
})

test('words are counted in the order in which they come, harmless to a terminal', () => {
  expect(formatTally(['critical', 'high', 'critical'])).toBe('2 critical, 1 high')
  expect(formatTally(['\u001B[2Jodd'])).not.toMatch(/\p{Cc}/u)
  expect(formatTally([])).toBe('')
})
