/** Reports: how counts are grouped, and how quantiles are read from buckets. */
import { expect, test } from 'vitest'
import type { DatedCount } from '../../../src/store/history/dated-counts.ts'
import { createReport, type Grouping, type Report } from '../../../src/store/history/report.ts'

const isForPeople = (sink: string): boolean => sink === 'soc'
const at = (day: number, account = 'main') => ({ atMs: day * 86_400_000, account })

const counts: DatedCount[] = [
  { ...at(1), kind: 'event', severity: 'high', count: 2 },
  { ...at(2, 'second'), kind: 'event', severity: 'high', count: 1 },
  { ...at(1), kind: 'new', feed: 'brand', severity: 'high', count: 3 },
  { ...at(2), kind: 'new', feed: 'leaks', severity: 'low', count: 2 },
  { ...at(2, 'second'), kind: 'new', feed: 'brand', severity: 'high', count: 1 },
  ended('soc:1', 'delivered', '', 4),
  ended('soc:2', 'suppressed', 'silence', 1),
  ended('lake', 'dead', 'invalid', 2),
  ended('lake', 'diverted', 'fallback', 5),
  { ...at(2), kind: 'message', destination: 'soc:1', count: 2 },
  told('soc:1', 5, 90),
  told('soc:1', 60, 9),
  told('soc:1', Infinity, 1),
  told('lake', 2, 7),
]

function ended(
  destination: string,
  outcome: 'delivered' | 'suppressed' | 'diverted' | 'dead',
  reason: string,
  count: number,
): DatedCount {
  return { ...at(2), kind: 'ended', destination, severity: 'high', outcome, reason, count }
}

function told(destination: string, withinS: number, count: number): DatedCount {
  return { ...at(2), kind: 'told', destination, severity: 'high', withinS, count }
}

function reportBy(by: Grouping): Report {
  const report = createReport({ by, isForPeople })
  for (const count of counts) report.add([count])
  return report
}

function sums(by: Grouping): Record<string, number[]> {
  const rows = reportBy(by).rows()
  return Object.fromEntries(
    rows.map(({ name, seen, told: toldItems, messages, suppressed, diverted, dead }) => [
      name,
      [seen, toldItems, messages, suppressed, diverted, dead],
    ]),
  )
}

test.each<[Grouping, Record<string, number[]>]>([
  ['day', { '1970-01-02': [2, 0, 0, 0, 0, 0], '1970-01-03': [1, 4, 2, 1, 5, 2] }],
  ['account', { main: [2, 4, 2, 1, 5, 2], second: [1, 0, 0, 0, 0, 0] }],
  ['feed', { brand: [4, 0, 0, 0, 0, 0], leaks: [2, 0, 0, 0, 0, 0] }],
  ['severity', { high: [3, 4, 0, 1, 5, 2] }],
  ['sink', { lake: [0, 0, 0, 0, 5, 2], soc: [0, 4, 2, 1, 0, 0] }],
  [
    'destination',
    { lake: [0, 0, 0, 0, 5, 2], 'soc:1': [0, 4, 2, 0, 0, 0], 'soc:2': [0, 0, 0, 1, 0, 0] },
  ],
  [
    'reason',
    { fallback: [0, 0, 0, 0, 5, 0], invalid: [0, 0, 0, 0, 0, 2], silence: [0, 0, 0, 1, 0, 0] },
  ],
])('counts are grouped by %s', (by, expected) => {
  expect(sums(by)).toEqual(expected)
})

test('reasons come by how much was not told, all else by name', () => {
  const names = reportBy('reason')
    .rows()
    .map(({ name }) => name)
  expect(names).toEqual(['fallback', 'invalid', 'silence'])
})

test('delays are upper bounds, people and machines apart', () => {
  expect(reportBy('day').total()).toMatchObject({
    seen: 3,
    toPeople: { events: 100, p50S: 5, p95S: 60, worstS: Infinity },
    toMachines: { events: 7, p50S: 2, p95S: 2, worstS: 2 },
  })
  expect(createReport({ by: 'day', isForPeople }).total().toPeople).toBeUndefined()
})

test('severities come by their rank', () => {
  const report = createReport({ by: 'severity', isForPeople })
  for (const severity of ['info', 'unknown', 'high', 'critical', 'low']) {
    report.add([{ ...at(1), kind: 'event', severity, count: 1 }])
  }
  const names = report.rows().map(({ name }) => name)
  expect(names).toEqual(['critical', 'unknown', 'high', 'low', 'info'])
})
