import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  excessBytes,
  fairShareBytes,
  isPassDue,
  nextPauseMs,
  totalBytes,
  type Weights,
} from '../../../src/store/retention.ts'

const minuteMs = 60_000

test('an account gives up what is beyond nine tenths of its share, once it is beyond all of it, and never more than is settled', () => {
  const given = fc.record({
    weights: fc.record({ settledBytes: fc.nat(300_000), unsettledBytes: fc.nat(300_000) }),
    shareBytes: fc.integer({ min: 1, max: 500_000 }),
  })
  fc.assert(
    fc.property(given, ({ weights, shareBytes }) => {
      const excess = excessBytes(weights, shareBytes)
      const total = totalBytes(weights)
      expect(excess > 0).toBe(total > shareBytes && weights.settledBytes > 0)
      if (excess === 0) return
      expect(total - excess <= 0.9 * shareBytes || excess === weights.settledBytes).toBe(true)
      expect(total - excess + 1).toBeGreaterThan(0.9 * shareBytes)
    }),
  )
})

test('an account that takes just its share gives nothing up', () => {
  expect(excessBytes({ settledBytes: 60, unsettledBytes: 40 }, 100)).toBe(0)
  expect(excessBytes({ settledBytes: 61, unsettledBytes: 40 }, 100)).toBe(11)
})

describe('the share of an account', () => {
  /** Each account as what is settled of it, and what is not. */
  test.each([
    [
      'of two that are alike is half of it',
      [
        [600, 0],
        [600, 0],
      ],
      500,
    ],
    [
      'is what a small one leaves over',
      [
        [100, 0],
        [2_000, 0],
      ],
      900,
    ],
    [
      'is the same for all that are above it',
      [
        [100, 0],
        [5_000, 0],
        [700, 0],
      ],
      450,
    ],
    [
      'counts what is not settled as its own',
      [
        [600, 600],
        [300, 0],
      ],
      700,
    ],
    [
      'is not less because another has more that is not settled',
      [
        [0, 700],
        [1_000, 0],
      ],
      500,
    ],
    [
      'is an equal part at least where all fit',
      [
        [100, 0],
        [200, 0],
      ],
      500,
    ],
  ])('%s', (_what, accounts, expected) => {
    const weights = accounts.map(([settled = 0, unsettled = 0]) =>
      weightsOf({ settled, unsettled }),
    )
    expect(fairShareBytes(weights, 1_000)).toBeCloseTo(expected, 1)
  })

  const account = fc.record({ settled: fc.nat(100_000), unsettled: fc.nat(50_000) })
  const given = fc.record({
    accounts: fc.array(account, { minLength: 1, maxLength: 8 }),
    maxBytes: fc.integer({ min: 1, max: 400_000 }),
  })

  test('is never less than an equal part, whatever the others keep', () => {
    fc.assert(
      fc.property(given, ({ accounts, maxBytes }) => {
        const share = fairShareBytes(accounts.map(weightsOf), maxBytes)
        expect(share).toBeGreaterThanOrEqual(maxBytes / accounts.length)
      }),
    )
  })

  test('leaves nothing unused that somebody needs, and fits unless too much is not settled', () => {
    fc.assert(
      fc.property(given, ({ accounts, maxBytes }) => {
        const share = fairShareBytes(accounts.map(weightsOf), maxBytes)
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
    return { settledBytes: settled, unsettledBytes: unsettled }
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
    ['so, too, where it grows by a byte a millisecond', 200_000, { bytes: 9, inMs: 9 }, 400_000],
    ['so, too, where the last was in this millisecond', 0, { bytes: 2, inMs: 0 }, 250_000],
    ['after a minute where it is full', limit + 1, { bytes: 1, inMs: hourMs }, minuteMs],
    ['after an hour where it is full and nothing grows', limit, { bytes: 0, inMs: 1 }, hourMs],
  ])('%s', (_when, bytes, grown, expected) => {
    expect(nextPauseMs(bytes, limit, grown)).toBe(expected)
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
  const full = { ...note, bytes: 1_000 }
  const now = { nowMs, maxBytes: 1_000, usedBytes: 5_000 }

  test.each([
    ['not before its time', note, now, false],
    ['not a millisecond before it', note, { ...now, nowMs: note.dueAtMs - 1 }, false],
    ['when its time has come', note, { ...now, nowMs: note.dueAtMs }, true],
    ['not where its time is an hour off', { ...note, dueAtMs: nowMs + 3_600_000 }, now, false],
    ['where its time is too far off to be true', { ...note, dueAtMs: nowMs * 2 }, now, true],
    ['for a limit that is passed already', note, { ...now, maxBytes: 899 }, true],
    ['not for a limit that is not', note, { ...now, maxBytes: 950 }, false],
    ['not for one that is just kept', note, { ...now, maxBytes: 900 }, false],
    ['not while what came fits', note, { ...now, usedBytes: 5_100 }, false],
    ['where it may not fit', note, { ...now, usedBytes: 5_101 }, true],
    ['not for a hundredth that comes and goes', full, { ...now, usedBytes: 5_010 }, false],
    ['for more than that where it is full', full, { ...now, usedBytes: 5_011 }, true],
    [
      'not again and again where what is not settled does not fit',
      { ...note, bytes: 2_000 },
      now,
      false,
    ],
  ])('%s', (_when, last, present, expected) => {
    expect(isPassDue(last, present)).toBe(expected)
  })
})
