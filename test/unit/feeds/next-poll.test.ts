import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextPollMs } from '../../../src/feeds/poll-run.ts'
import type { PollOutcome } from '../../../src/feeds/poll-run.ts'

const times = fc.nat({ max: 1e9 }).map((nowMs) => ({ nowMs }))

function next(outcome: PollOutcome, given: { nowMs: number }, failures = 0) {
  return nextPollMs(outcome, { ...given, failures })
}

test('a feed that was read, or stopped, waits for nothing but its turn by the rule', () => {
  fc.assert(
    fc.property(times, (given) => {
      expect(next({ status: 'more' }, given)).toBe(given.nowMs)
      expect(next({ status: 'caught_up' }, given)).toBe(given.nowMs)
      expect(next({ status: 'stopped' }, given)).toBe(given.nowMs)
    }),
  )
})

test('a feed that waits for room or for its newer configuration looks again within seconds', () => {
  expect(next({ status: 'full' }, zero)).toBe(10_000)
  expect(next({ status: 'superseded' }, zero)).toBe(2_000)
})

test('a feed that is paused, or has no searches left, looks within seconds whether it may go on', () => {
  expect(next({ status: 'paused' }, zero)).toBe(5_000)
  expect(next({ status: 'quota' }, zero)).toBe(15_000)
})

test('a failing feed waits 5 s, doubling to 5 minutes, and never less than the service asks', () => {
  const waits = [1, 2, 3, 6, 7, 8, 5_000].map((failures) =>
    next({ status: 'failed', reason: 'unavailable', retryAfterMs: undefined }, zero, failures),
  )
  expect(waits).toEqual([5_000, 10_000, 20_000, 160_000, 300_000, 300_000, 300_000])
  fc.assert(
    fc.property(
      fc.nat({ max: 900_000 }),
      fc.integer({ min: 1, max: 50 }),
      (retryAfterMs, count) => {
        const atMs = next({ status: 'failed', reason: 'rate_limited', retryAfterMs }, zero, count)
        expect(atMs).toBeGreaterThanOrEqual(Math.max(retryAfterMs, 5_000))
      },
    ),
  )
})

test('a feed whose account is paused looks within seconds whether it may go on, however long the pause', () => {
  const waits = [1_000, 30_000, 900_000].map((retryAfterMs) =>
    next({ status: 'failed', reason: 'auth', retryAfterMs }, zero, 50),
  )
  expect(waits).toEqual([1_000, 15_000, 15_000])
})

const zero = { nowMs: 0 }
