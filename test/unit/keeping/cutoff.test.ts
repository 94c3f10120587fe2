import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  addSettled,
  cutoffOf,
  fairShareOf,
  isWalkDue,
  noWeights,
  pauseOf,
  totalOf,
  type Weights,
} from '../../../src/keeping/cutoff.ts'

const minuteMs = 60_000

interface Kept {
  settledAtMs: number
  bytes: number
}

const kept = fc.array(
  fc.record({
    settledAtMs: fc.integer({ min: 0, max: 200 * minuteMs }),
    bytes: fc.integer({ min: 1, max: 5_000 }),
  }),
  { maxLength: 200 },
)

function sumOf(some: Kept[]): number {
  return some.reduce((sum, { bytes }) => sum + bytes, 0)
}

test('of any ages and sizes the oldest go, enough of them, and none that could stay', () => {
  const given = fc.record({
    kept,
    unsettledBytes: fc.nat(300_000),
    maxBytes: fc.integer({ min: 1, max: 500_000 }),
  })
  fc.assert(
    fc.property(given, ({ kept: all, unsettledBytes, maxBytes }) => {
      const weights = { ...noWeights(), unsettledBytes }
      for (const { settledAtMs, bytes } of all) addSettled(weights, settledAtMs, bytes)
      const total = sumOf(all) + unsettledBytes
      expect(totalOf(weights)).toBe(total)
      const cutoff = cutoffOf(weights, maxBytes)
      expect(cutoff !== undefined).toBe(total > maxBytes)
      if (!cutoff) return
      const left = all.filter(({ settledAtMs }) => settledAtMs >= cutoff.beforeMs)
      expect(cutoff.leftBytes).toBe(sumOf(left) + unsettledBytes)
      // within the limit, unless nothing that is settled is left
      expect(left.length === 0 || cutoff.leftBytes <= 0.9 * maxBytes).toBe(true)
      const lastMinute = all.filter(
        ({ settledAtMs }) =>
          settledAtMs < cutoff.beforeMs && settledAtMs >= cutoff.beforeMs - minuteMs,
      )
      const isNeeded = cutoff.leftBytes + sumOf(lastMinute) > 0.9 * maxBytes
      expect(cutoff.beforeMs === 0 || isNeeded).toBe(true)
    }),
  )
})

describe('the share of an account', () => {
  const account = fc.record({ settled: fc.nat(100_000), unsettled: fc.nat(50_000) })
  const given = fc.record({
    accounts: fc.array(account, { minLength: 1, maxLength: 8 }),
    maxBytes: fc.integer({ min: 1, max: 400_000 }),
  })

  test('is never less than an equal part, whatever the others keep', () => {
    fc.assert(
      fc.property(given, ({ accounts, maxBytes }) => {
        const share = fairShareOf(accounts.map(weightsOf), maxBytes)
        expect(share).toBeGreaterThanOrEqual(maxBytes / accounts.length)
      }),
    )
  })

  test('leaves nothing unused that somebody needs, and fits unless too much is not settled', () => {
    fc.assert(
      fc.property(given, ({ accounts, maxBytes }) => {
        const share = fairShareOf(accounts.map(weightsOf), maxBytes)
        const needed = accounts.reduce((sum, one) => sum + one.settled + one.unsettled, 0)
        const kept = accounts.reduce(
          (sum, { settled, unsettled }) =>
            sum + Math.max(unsettled, Math.min(settled + unsettled, share)),
          0,
        )
        const isEqualPart = share === maxBytes / accounts.length
        expect(kept <= maxBytes || isEqualPart).toBe(true)
        const isUsed = kept >= Math.min(needed, maxBytes) - 1
        expect(isUsed || isEqualPart).toBe(true)
      }),
    )
  })

  function weightsOf({ settled, unsettled }: { settled: number; unsettled: number }): Weights {
    const weights = { ...noWeights(), unsettledBytes: unsettled }
    addSettled(weights, 0, settled)
    return weights
  }
})

describe('the next walk comes', () => {
  const limit = 1_000_000
  const hourMs = 3_600_000

  test.each([
    ['after a minute where nothing is known of the growth', 0, undefined, minuteMs],
    ['after an hour where nothing grows', 999_999, { bytes: 0, inMs: hourMs }, hourMs],
    ['after an hour where it shrinks', 10, { bytes: -500, inMs: minuteMs }, hourMs],
    ['in half of the time that is left', 800_000, { bytes: 100_000, inMs: 600_000 }, 600_000],
    ['after a minute where it is full', limit + 1, { bytes: 1, inMs: hourMs }, minuteMs],
  ])('%s', (_when, bytes, grown, expected) => {
    expect(pauseOf(bytes, limit, grown)).toBe(expected)
  })
})

describe('a walk is due', () => {
  const nowMs = 10 * 3_600_000
  const note = {
    endedAtMs: nowMs,
    dueAtMs: nowMs + minuteMs,
    bytes: 900,
    maxBytes: 1_000,
    usedBytes: 5_000,
  }
  const now = { nowMs, maxBytes: 1_000, usedBytes: 5_000 }

  test.each([
    ['not before its time', note, now, false],
    ['when its time has come', note, { ...now, nowMs: note.dueAtMs }, true],
    ['where its time is too far off to be true', { ...note, dueAtMs: nowMs * 2 }, now, true],
    ['for a limit that is passed already', note, { ...now, maxBytes: 899 }, true],
    ['not for a limit that is not', note, { ...now, maxBytes: 950 }, false],
    ['not while what came fits', note, { ...now, usedBytes: 5_100 }, false],
    ['where it may not fit', note, { ...now, usedBytes: 5_101 }, true],
    [
      'not again and again where what is not settled does not fit',
      { ...note, bytes: 2_000 },
      now,
      false,
    ],
  ])('%s', (_when, last, present, expected) => {
    expect(isWalkDue(last, present)).toBe(expected)
  })
})
