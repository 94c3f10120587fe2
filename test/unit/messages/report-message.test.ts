import { expect, test } from 'vitest'
import { parseReport, type ReportOutcome } from '../../../src/feed-types/reports.ts'
import { type Message, messageLimits, renderMessage } from '../../../src/messages/message.ts'
import { leastCpuMs } from '../../support/cpu-time.ts'

function messageOf(end: Partial<ReportOutcome>): Message {
  const event = parseReport({ requestId: 'r1', outcome: 'completed', report: null, ...end }, 'low')
  const subject = { account: 'main', feed: 'reports', routes: ['root'], event, fetchedAtMs: 0 }
  return renderMessage(subject, { attempt: 1, mayBeRepeat: false })
}

const report = {
  id: 12,
  title: 'Week 47',
  subtitle: 'What matters',
  summary: 'Two leaks and a ransom. See evil.example for more.',
  content: '# Long',
  highlights: ['one', 'two', 'three', 'four', 'five', 'six'],
  related_activity_uids: ['paste/x/1', 'leak/y/2'],
  created_at: '2026-11-20T08:00:00Z',
}

test('an endless report stays within the bounds of a message and of the ledger', () => {
  const long = 'x'.repeat(100_000)
  const many = Array.from({ length: 1_000 }, () => long)
  const given = { ...report, summary: long, title: long, highlights: many, tags: many }
  const end = { requestId: 'r1', outcome: 'completed' as const, report: given }
  expect(JSON.stringify(parseReport(end, 'low')).length).toBeLessThan(60_000)
  const { title, extract } = messageOf({ report: given })
  expect(title.length).toBeLessThanOrEqual(messageLimits.title)
  expect(extract?.text.length).toBeLessThanOrEqual(messageLimits.extract)
})

test('a report of megabytes does not hold the daemon up: what is not shown is not searched for secrets', () => {
  const cpuMs = (length: number): number => {
    const given = { ...report, summary: 'name="password" '.repeat(length / 16) }
    return leastCpuMs(() =>
      parseReport({ requestId: 'r1', outcome: 'completed', report: given }, 'low'),
    )
  }
  // a search of it all would be a hundred times as much
  expect(cpuMs(2_000_000)).toBeLessThan(5 * Math.max(cpuMs(20_000), 20))
})

test('what reads as a login in a report is masked before it is kept', () => {
  const given = { ...report, summary: 'seen: ann@example.com:hunter2' }
  const event = parseReport({ requestId: 'r1', outcome: 'completed', report: given }, 'low')
  expect(JSON.stringify(event)).not.toContain('hunter2')
})
