import { expect, test } from 'vitest'
import { formatTally } from '../../../src/cli/ledger/items-act.ts'
import type { CircuitReading } from '../../../src/delivery/circuit.ts'
import { withoutShared } from '../../../src/operator/problems.ts'
import {
  deafSinks,
  formatPending,
  type SinkReport,
} from '../../../src/operator/reports/sink-report.ts'
import { aProblem } from '../../support/self-alerts.ts'

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

test.each([
  [{ state: 'closed' }, true],
  [{ state: 'closed', paused: { reason: 'works', sinceMs: 0 } }, false],
  [{ state: 'open' }, false],
  [{ state: 'half_open' }, false],
  [{ state: 'disabled' }, false],
])('a sink of the circuit %j takes messages: %s', (circuit, takes) => {
  const deaf = deafSinks([{ name: 'soc', circuit: circuit as CircuitReading }])
  expect(deaf).toEqual(takes ? [] : ['soc'])
})

test('who sees some accounts learns of a sink its dead letters, and nothing of the daemon', () => {
  const problems = [
    aProblem('daemon-down', 'tocsin run', { check: 'daemon' }),
    aProblem('circuit-open', 'soc', { check: 'delivery' }),
    aProblem('feed-paused', 'brand'),
  ]
  const sinks = [{ name: 'soc', deadLetters: 2 } as SinkReport]
  const seen = withoutShared({ problems, sinks }).problems
  expect(seen.map(({ kind }) => kind)).toEqual(['feed-paused', 'dead-letters'])
})
