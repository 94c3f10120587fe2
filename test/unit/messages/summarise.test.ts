import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { severityRank } from '../../../src/event.ts'
import {
  compareForDigest,
  formatSeverity,
  perDay,
  severityLabel,
  summarise,
  type SummaryPart,
} from '../../../src/messages/summary.ts'
import { zonedTime } from '../../../src/messages/types/description.ts'

const word = fc.constantFrom('info', 'low', 'medium', 'high', 'critical', 'urgent', 'constructor')
const anyPart: fc.Arbitrary<SummaryPart> = fc.record({
  severity: word,
  type: fc.oneof(word, fc.string()),
  feed: word,
  identifiers: fc.array(word, { maxLength: 4 }),
  fetchedAtMs: fc.integer({ min: 0, max: 4e12 }),
  createdAtMs: fc.option(fc.integer({ min: 0, max: 100 })),
})
const about = { kind: 'group', labels: { team: 'brand' }, route: 'urgent' } as const

function sum(entries: readonly { count: number }[]): number {
  return entries.reduce((total, { count }) => total + count, 0)
}

describe('a summary', () => {
  test('counts every event once by severity, type and feed, the gravest and most frequent first', () => {
    fc.assert(
      fc.property(fc.array(anyPart, { maxLength: 60 }), (parts) => {
        const summary = summarise(parts, about)
        expect(summary.total).toBe(parts.length)
        for (const entries of [summary.bySeverity, summary.byType, summary.byFeed]) {
          expect(sum(entries)).toBe(parts.length)
        }
        const ranks = summary.bySeverity.map(({ severity }) => severityRank(severity))
        expect(ranks).toEqual(ranks.toSorted((a, b) => b - a))
        for (const entries of [summary.byType, summary.byIdentifier]) {
          expect(entries.length).toBeLessThanOrEqual(11)
          const counts = entries.slice(0, 10).map(({ count }) => count)
          expect(counts).toEqual(counts.toSorted((a, b) => b - a))
        }
      }),
    )
  })

  test('does not depend on the order in which events are added', () => {
    fc.assert(
      fc.property(fc.array(anyPart, { maxLength: 30 }), (parts) => {
        expect(summarise(parts.toReversed(), about)).toEqual(summarise(parts, about))
      }),
    )
  })

  test('names an unknown severity before critical', () => {
    const parts = ['critical', 'dire', 'info'].map((severity) => aPart({ severity }))
    const { bySeverity } = summarise(parts, about)
    expect(bySeverity.map(({ severity }) => severity)).toEqual(['dire', 'critical', 'info'])
  })
})

describe('the order of a digest', () => {
  test('is a total order: turned around it is the opposite, and it never runs in a circle', () => {
    fc.assert(
      fc.property(anyPart, anyPart, anyPart, (a, b, c) => {
        expect(Math.sign(compareForDigest(a, b))).toBe(-Math.sign(compareForDigest(b, a)) || 0)
        const [first, second, third] = [a, b, c].toSorted(compareForDigest)
        expect(compareForDigest(first!, third!)).toBeLessThanOrEqual(0)
        expect(compareForDigest(first!, second!)).toBeLessThanOrEqual(0)
      }),
    )
  })

  test('is by severity, then by what matched, then by age; what is not known comes last', () => {
    const parts = [
      aPart({ severity: 'low', identifiers: ['a'] }),
      aPart({ severity: 'high', identifiers: [] }),
      aPart({ severity: 'high', identifiers: ['b'], createdAtMs: null }),
      aPart({ severity: 'high', identifiers: ['b'], createdAtMs: 2 }),
      aPart({ severity: 'high', identifiers: ['b'], createdAtMs: 1 }),
      aPart({ severity: 'critical', identifiers: ['z'] }),
      aPart({ severity: 'dire', identifiers: ['z'] }),
    ]
    expect(parts.toSorted(compareForDigest)).toEqual(parts.toReversed())
  })
})

describe('events per local day', () => {
  const { day } = zonedTime('Europe/Zurich')
  const midnight = Date.UTC(2026, 10, 19, 23)

  test('are counted on the day at the place, days without any listed too', () => {
    const window = { fromMs: midnight - 1, toMs: midnight + 3 * 86_400_000 - 1 }
    const parts = [
      { severity: 'high', fetchedAtMs: midnight - 1 },
      { severity: 'low', fetchedAtMs: midnight },
      { severity: 'high', fetchedAtMs: midnight },
    ]
    expect(perDay(parts, day, window)).toEqual([
      { day: '2026-11-19', bySeverity: [{ severity: 'high', count: 1 }] },
      {
        day: '2026-11-20',
        bySeverity: [
          { severity: 'high', count: 1 },
          { severity: 'low', count: 1 },
        ],
      },
      { day: '2026-11-21', bySeverity: [] },
      { day: '2026-11-22', bySeverity: [] },
    ])
  })

  test('none is lost, whatever the window, and at most 31 days are listed', () => {
    const time = fc.integer({ min: Date.UTC(2026, 0), max: Date.UTC(2027, 0) })
    fc.assert(
      fc.property(fc.array(time, { maxLength: 20 }), time, time, (times, a, b) => {
        const window = { fromMs: Math.min(a, b), toMs: Math.max(a, b) }
        const parts = times.map((fetchedAtMs) => ({ severity: 'low', fetchedAtMs }))
        const days = perDay(parts, day, window)
        expect(days.length).toBeLessThanOrEqual(31)
        expect(days.map((each) => each.day)).toEqual(days.map((each) => each.day).toSorted())
        expect(days.at(-1)?.day).toBe(day(window.toMs))
        expect(sum(days.flatMap(({ bySeverity }) => bySeverity))).toBe(times.length)
      }),
    )
  })

  test('a day of 25 hours and one of 23 are one day each', () => {
    const fall = { fromMs: Date.UTC(2026, 9, 24, 22), toMs: Date.UTC(2026, 9, 26, 0) }
    const spring = { fromMs: Date.UTC(2026, 2, 28, 23), toMs: Date.UTC(2026, 2, 30, 0) }
    for (const [window, days] of [
      [fall, ['2026-10-25', '2026-10-26']],
      [spring, ['2026-03-29', '2026-03-30']],
    ] as const) {
      expect(perDay([], day, window).map((each) => each.day)).toEqual(days)
    }
  })
})

function aPart(overrides: Partial<SummaryPart> = {}): SummaryPart {
  return {
    severity: 'high',
    type: 'paste',
    feed: 'brand',
    identifiers: ['example.com'],
    fetchedAtMs: 1,
    createdAtMs: 1,
    ...overrides,
  }
}

test.each([
  ['high', 'HIGH', 'high'],
  ['none', 'UNKNOWN ("none")'],
  ['unknown', 'UNKNOWN'],
  ['', 'UNKNOWN'],
  ['\u202E', 'UNKNOWN'],
  ['tel:', 'UNKNOWN ("tel[:]")'],
  ['see "evil.com"\n', `UNKNOWN ("see 'evil[.]com'")`],
  ['x'.repeat(40), `UNKNOWN ("${'x'.repeat(19)}…")`],
])('the severity %j is called %s', (severity, label, inSentence = label) => {
  expect([severityLabel(severity), formatSeverity(severity)]).toEqual([label, inSentence])
})
