import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Document } from '../../../src/messages/document.ts'
import { messageLimits, renderMessage } from '../../../src/messages/message.ts'
import { renderSummary, summaryLimits } from '../../../src/messages/summary-message.ts'
import type { DigestFacts, SummaryAbout } from '../../../src/messages/summary.ts'
import { type DeliveryMember } from '../../../src/sinks/sink.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { digestFacts, summarised } from '../../support/summaries.ts'
import { anySummarised } from '../sinks/any-summary.ts'
import { linkable, unseenCharacters } from './any-unicode.ts'
import { runs } from '../../support/runs.ts'

const firstTry = { id: 'b1', attempt: 1, mayBeRepeat: false }

function render(members: DeliveryMember[], about: Partial<SummaryAbout> = {}): Document {
  const { summary } = summarised(members, about)
  return renderSummary({ ...firstTry, members, summary: summary! })
}

function renderDigest(facts: Partial<DigestFacts>, members: DeliveryMember[] = []): Document {
  return render(members, { kind: 'digest', route: null, digest: digestFacts(facts) })
}

const caughtUpMs = Date.UTC(2026, 10, 21, 4, 12)

test('whatever the feed says, no text hides, breaks, links or is longer than promised', () => {
  fc.assert(
    fc.property(anySummarised, (content) => {
      const message = renderSummary({
        id: 'b1',
        attempt: 3,
        mayBeRepeat: true,
        isTest: true,
        ...content,
      })
      const { lines, ...rest } = message
      const texts = [...textsIn(rest), ...lines.flatMap((line) => textsIn({ ...line, link: null }))]
      for (const text of texts) {
        expect(text).not.toMatch(unseenCharacters)
        expect(text).not.toMatch(linkable)
        expect(text.isWellFormed()).toBe(true)
        expect(Array.from(text).length).toBeLessThanOrEqual(messageLimits.uid)
      }
      expect(Array.from(message.title).length).toBeLessThanOrEqual(summaryLimits.title)
      expect(Array.from(message.subject).length).toBeLessThanOrEqual(summaryLimits.subject)
      expect(message.bySeverity.length).toBeLessThanOrEqual(9)
    }),
    { numRuns: runs({ short: 20, long: 100 }), endOnFailure: true },
  )
})

describe('the title', () => {
  test('leads with an unknown severity before a critical one, however long its word', () => {
    const members = [
      aMember({ event: aThreatEvent({ type: 'paste', severity: 'critical' }) }),
      aMember({ event: aThreatEvent({ type: 'ransomleak', severity: 'x'.repeat(40) }) }),
    ]
    const { headline, lines } = render(members)
    expect(headline).toBe(`2 new events, worst: ${lines[1]?.title}`)
  })

  test('calls nothing the worst where the worst is no longer stored', () => {
    const [critical, low] = ['critical', 'low'].map((severity) =>
      aMember({ event: aThreatEvent({ severity }) }),
    )
    const { summary } = summarised([critical!, low!])
    const { headline, lines } = renderSummary({ ...firstTry, members: [low!], summary: summary! })
    expect(headline).toBe(`2 new events, among them: ${lines[0]?.title}`)
  })

  test('of one event that was held is that event’s', () => {
    const message = render([aMember()], { kind: 'held' })
    expect(message.headline).toBe(`1 held event: ${message.lines[0]?.title}`)
  })

  test.each([
    [
      'group',
      '2 new events: 2 high — stealer logs of feed brand (account acme, team x)',
      '2 new events of acme, worst: ',
    ],
    [
      'storm',
      '2 events at once: 2 high — stealer logs of feed brand (account acme, team x)',
      '2 events of acme at once, worst: ',
    ],
    [
      'backlog',
      'Backlog of feed brand: 2 events: 2 high (account acme)',
      'Backlog of acme: 2 events, worst: ',
    ],
  ] as const)('of a %s says whose it is where several accounts are configured', (kind, ...said) => {
    const [title, opening] = said
    const members = [1, 2].map(() => aMember({ account: 'acme', namesAccount: true }))
    const message = render(members, { kind, labels: { team: 'x' } })
    expect(message.title).toBe(title)
    expect(message.headline).toBe(`${opening}${message.lines[0]?.title}`)
    expect(message.subject).toContain(message.headline)
    expect(message.lines.map(({ remark }) => remark)).toEqual([null, null])
    const alone = render([aMember(), aMember()], { kind, labels: { team: 'x' } })
    expect(alone.title + alone.subject).not.toContain('account')
  })
})

describe('an empty digest', () => {
  test.each([
    [
      'what could not be read',
      { quarantined: 5 },
      '5 items could not be read',
      '5 items of feed brand could not be read and wait in the quarantine',
    ],
    [
      'a feed that cannot be read',
      { quarantined: 5, isUnreadable: true },
      'feed brand cannot be read',
      'Half or more of what feed brand shows cannot be read, so events are missing here',
    ],
  ])('says %s in subject and alarm, and claims no quiet', (_what, about, inSubject, alarm) => {
    const feeds = [
      { feed: 'staff', lastCaughtUpMs: caughtUpMs, isBehind: false },
      { feed: 'brand', lastCaughtUpMs: caughtUpMs, isBehind: false, ...about },
    ]
    const message = renderDigest({ feeds })
    expect(message.subject).toBe(`Digest 2026-11-21 08:00: nothing new, but ${inSubject}`)
    expect(message.alarms).toEqual([`${alarm}.`])
    expect(message.statement).toMatch(/does not mean/)
    expect(message.feeds[0]).toMatchObject({ feed: 'brand', isBehind: true })
    expect(message.feeds[0]?.text).toMatch(/; 5 in the quarantine$/)
  })

  test('names the feed that is behind in subject, title and alarm, first of all feeds', () => {
    const brand = { feed: 'brand', lastCaughtUpMs: caughtUpMs, isBehind: true }
    const message = renderDigest({ feeds: [...digestFacts().feeds, brand] })
    expect(message.subject).toBe(
      'Digest 2026-11-21 08:00: nothing new, but feed brand is behind since 2026-11-21 05:12',
    )
    expect(message.title).toBe(message.subject)
    expect(message.alarms).toEqual([
      'Feed brand is behind: events after 2026-11-21 05:12 may be missing here.',
    ])
    expect(message.statement).toMatch(/does not mean/)
    expect(message.feeds[0]).toMatchObject({ feed: 'brand', isBehind: true })
  })

  test('never claims quiet for a feed that was not read, for dead or for held events', () => {
    const never = { feed: 'brand', lastCaughtUpMs: null, isBehind: true }
    for (const facts of [
      { feeds: [never] },
      { feeds: [] },
      { held: 1 },
      { suppressed: 1 },
      { dead: 1 },
      { diverted: 1 },
      { alreadySent: [{ severity: 'high', count: 1 }] },
    ]) {
      const message = renderDigest(facts)
      expect(message.statement).not.toMatch(/every feed was read/)
    }
    expect(renderDigest({ feeds: [never] }).subject).toContain('was never read to its end')
    expect(renderDigest({ dead: 2 }).subject).toContain('2 could not be delivered')
    expect(renderDigest({ diverted: 3 }).subject).toContain('3 went to another sink')
    expect(renderDigest({ dead: 2 }).alarms[0]).toBe('2 events could not be delivered to you.')
  })
})

describe('a digest of one account', () => {
  const members = [aMember({ account: 'acme', namesAccount: true })]

  test('names it in its subject and its heading, each once, and in no line', () => {
    const { subject, title, lines } = renderDigest({ account: 'acme' }, members)
    expect(subject).toBe('Digest of acme 2026-11-21 08:00: 1 event (1 high)')
    expect(title).toBe(subject)
    expect(lines.map(({ remark }) => remark)).toEqual([null])
  })

  test('is no digest of several, whose lines name theirs', () => {
    const { subject, lines } = renderDigest({}, members)
    expect(subject).not.toContain('acme')
    expect(lines.map(({ remark }) => remark)).toEqual(['account acme'])
  })
})

test('a digest names what could not be delivered, by title or else by uid, with the page where it is known', () => {
  const died = { severity: 'high', type: 'stealer_log', uid: 'stealer_log/a/1' }
  const pageUrl = 'https://tocsin.example.net/events/acme/5f2c9a1b7d3e4f6a8b0c1d2e'
  const { undelivered, alarms } = renderDigest({
    dead: 2,
    undelivered: [
      { ...died, title: 'Stealer log: joe@acme.com', account: 'acme', pageUrl },
      { ...died, severity: 'low' },
    ],
  })
  expect(undelivered).toEqual([
    { severity: 'high', title: 'Stealer log: joe@acme[.]com (account acme)', link: pageUrl },
    {
      severity: 'low',
      title: 'Stealer log: content no longer stored, uid stealer_log/a/1',
      link: null,
    },
  ])
  expect(alarms).toEqual(['2 events could not be delivered to you.'])
})

describe('a leaked secret in clear', () => {
  const event = aThreatEvent({ type: 'leaked_credential' })
  const detail = { identity_name: 'alice', password: 'h••••2' }
  const factsOf = (secret?: string): Record<string, string> =>
    Object.fromEntries(
      renderMessage(aMember({ event, detail, secret }), firstTry).facts.map((fact) => [
        fact.label,
        fact.value,
      ]),
    )

  test('is one fact where the sink may show it, masked where it may not', () => {
    expect(factsOf('hunter2')['Password']).toBe('hunter2')
    expect(factsOf()['Password']).toBe('h••••2')
  })

  test('says so where it had to be changed to link to nothing', () => {
    expect(factsOf('my.acme.com')).toMatchObject({ 'Password (defanged)': 'my[.]acme[.]com' })
  })

  test('stands in no other text, and in no summary', () => {
    const member = aMember({ event, detail, secret: 'hunter2-in-clear' })
    const { facts: _facts, details: _details, ...rest } = renderMessage(member, firstTry)
    expect(JSON.stringify(rest)).not.toContain('hunter2')
    expect(JSON.stringify(render([member, member]))).not.toContain('hunter2')
  })
})

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
