/** What is kept of a report, and what of it cannot be read. */
import { expect, test } from 'vitest'
import type { ThreatEvent } from '../../../src/event.ts'
import { parseReport, type ReportOutcome } from '../../../src/feed-types/reports.ts'
import { withheldText } from '../../../src/masking/masking.ts'

function eventOf(report: unknown, outcome: ReportOutcome['outcome'] = 'completed'): ThreatEvent {
  return parseReport({ requestId: 'r1', outcome, report } as ReportOutcome, 'low')
}

const whole = {
  id: 12,
  title: 'Week 47',
  subtitle: 'What matters',
  summary: 'Two leaks.',
  content: '# Long',
  highlights: ['one', '', 'two'],
  related_activity_uids: ['paste/x/1', 'leak/y/2'],
  created_at: '2026-11-20T08:00:00Z',
  format_type: 'weekly',
  intel_type: 'cti',
  reading_time: '5 min',
  tags: ['apt', 'ann@example.com:hunter22'],
}

test('of a report is kept what a message shows of it, and what it is about', () => {
  expect(eventOf(whole)).toEqual({
    uid: 'threat_flow/report/12',
    kind: 'report',
    type: 'threat_flow_report',
    source: 'threat_flow',
    severity: 'low',
    originalSeverity: null,
    createdAtMs: null,
    matchedAtMs: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
    url: null,
    tags: ['apt', withheldText],
    notes: null,
    identifiers: [],
    highlights: {
      title: ['Week 47'],
      subtitle: ['What matters'],
      summary: ['Two leaks.'],
      highlights: ['one', 'two'],
      related_activity_uids: ['paste/x/1', 'leak/y/2'],
      created_at: ['2026-11-20T08:00:00Z'],
      format_type: ['weekly'],
      intel_type: ['cti'],
      reading_time: ['5 min'],
      request: ['r1'],
    },
  })
})

test('the content stands in for a summary that is not there', () => {
  expect(eventOf({ ...whole, summary: '' }).highlights).toMatchObject({ content: ['# Long'] })
  expect(eventOf({ ...whole, summary: '' }).highlights).not.toHaveProperty('summary')
})

test.each(['failed', 'refused', 'overdue'] as const)(
  'a report that is %s has its request and its outcome, and lacks nothing',
  (outcome) => {
    const event = eventOf(null, outcome)
    expect(event.uid).toBe(`threat_flow/request/r1/${outcome}`)
    expect(event.highlights).toEqual({ outcome: [outcome], request: ['r1'] })
    expect(event.tags).toEqual([])
    expect(eventOf(whole, outcome)).toEqual(event)
    expect(event.unread).toBeUndefined()
  },
)

test('what of a report cannot be read is named, and it goes by its request where it has no id', () => {
  const event = eventOf({ id: 'x', title: true, tags: [true, 'apt'] })
  expect(event.uid).toBe('threat_flow/request/r1/completed')
  expect(event.tags).toEqual(['apt'])
  expect(event.unread).toEqual(['id', 'tags', 'title'])
  expect(eventOf('no report').unread).toEqual(['id', 'report'])
  expect(eventOf(null).unread).toBeUndefined()
  expect(eventOf({ id: 1, title: ['one', 'two'] }).highlights).toMatchObject({ title: ['one'] })
})

test('of each field so much is kept', () => {
  const words = 'a b '.repeat(5_000)
  const many = <T>(one: T): T[] => Array.from({ length: 200 }, () => one)
  const most = (length: number): string => `${words.slice(0, length)}…`
  const { tags, highlights } = eventOf({
    ...Object.fromEntries(Object.keys(whole).map((name) => [name, words])),
    id: 12,
    summary: [words],
    highlights: many(words),
    related_activity_uids: many(words),
    tags: many(words),
  })
  expect(tags).toEqual(Array.from({ length: 100 }, () => most(200)))
  expect(highlights).toEqual({
    title: [most(300)],
    subtitle: [most(300)],
    summary: [most(4000)],
    highlights: Array.from({ length: 10 }, () => most(500)),
    related_activity_uids: Array.from({ length: 50 }, () => most(512)),
    created_at: [most(40)],
    format_type: [most(100)],
    intel_type: [most(100)],
    reading_time: [most(100)],
    request: ['r1'],
  })
})
