import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createCsv, toCsvRow } from '../../../src/messages/csv.ts'
import { messageLimits, renderMessage } from '../../../src/messages/message.ts'
import {
  formatRemainder,
  listCommand,
  outlineSummary,
  renderSummary,
  summaryLimits,
  type SummaryMessage,
} from '../../../src/messages/summary-message.ts'
import type { DigestFacts, SummaryAbout } from '../../../src/messages/summary.ts'
import { formatContext, type DeliveryMember } from '../../../src/sinks/sink.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aBusyDigest, digestFacts, summarised } from '../../support/summaries.ts'
import { anySummarised } from '../sinks/any-summary.ts'
import { linkable, unseenCharacters } from './any-unicode.ts'
import { runs } from '../../support/runs.ts'

const firstTry = { attempt: 1, mayBeRepeat: false }

function render(members: DeliveryMember[], about: Partial<SummaryAbout> = {}): SummaryMessage {
  const { summary } = summarised(members, about)
  return renderSummary({ ...firstTry, members, summary: summary! })
}

function renderDigest(facts: Partial<DigestFacts>, members: DeliveryMember[] = []): SummaryMessage {
  return render(members, { kind: 'digest', route: null, digest: digestFacts(facts) })
}

const caughtUpMs = Date.UTC(2026, 10, 21, 4, 12)

test('whatever the feed says, no text hides, breaks, links or is longer than promised', () => {
  fc.assert(
    fc.property(anySummarised, (content) => {
      const message = renderSummary({ attempt: 3, mayBeRepeat: true, isTest: true, ...content })
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

test('a fallback says how much could not be delivered where, and what sends it there again', () => {
  const sinceMs = Date.UTC(2026, 10, 21, 4, 12, 7, 900)
  const message = render([aMember(), aMember()], { undelivered: { sink: 'soc', sinceMs } })
  expect(message.title).toMatch(/^2 events could not be delivered to soc: 2 \w+ — /)
  expect(message.headline).toMatch(/^2 events could not be delivered to soc, worst: /)
  expect(message.notes).toEqual([
    'Sink soc cannot be reached, and this is its fallback. Nothing of this goes there by itself; once it takes messages again, this sends it there: tocsin items resend --sink soc --state diverted --since 2026-11-21T04:12:07Z',
  ])
  const ours = aMember({ account: 'acme', namesAccount: true })
  expect(render([ours], { undelivered: { sink: 'soc', sinceMs } }).headline).toMatch(
    /^1 event of acme could not be delivered to soc: Stealer log: /,
  )
})

describe('the title', () => {
  const stealers = ['critical', 'high', 'high'].map((severity) =>
    aMember({ event: aThreatEvent({ severity }) }),
  )

  test('of a group says what its events have in common', () => {
    const message = render(stealers, { labels: { feed: 'brand', type: 'stealer_log', team: 'x' } })
    expect(message.title).toBe(
      '3 new events: 1 critical, 2 high — stealer logs of feed brand (team x)',
    )
  })

  test.each([
    ['group', '3 new events, worst: '],
    ['backlog', 'Backlog of feed brand: 3 events, worst: '],
    ['held', '3 held events, worst: '],
    ['storm', '3 events at once, worst: '],
  ] as const)('of a %s leads with its worst event, wherever that stands', (kind, opening) => {
    const members = ['ann', 'bob', 'eve'].map((name, index) => {
      const severity = index === 2 ? 'critical' : 'high'
      const identifiers = [{ id: index, name: `${name}.example.com` }]
      return aMember({ event: aThreatEvent({ type: 'paste', severity, identifiers }) })
    })
    const message = render(members, { kind })
    expect(message.headline.startsWith(opening)).toBe(true)
    expect(message.headline.slice(opening.length)).toBe(message.lines[2]?.title)
    expect(message.headline).toContain('eve[.]example[.]com')
    expect(message.subject).toBe(`[1 CRITICAL] ${message.headline}`)
  })

  test.each(['ignoredAtMs', 'remediatedAtMs'] as const)(
    'leads with an open event before one that is closed by %s',
    (closed) => {
      const members = ['ann', 'bob'].map((name, index) => {
        const identifiers = [{ id: index, name: `${name}.example.com` }]
        const event = aThreatEvent({ type: 'paste', severity: 'critical', identifiers })
        return aMember({ event: index === 0 ? { ...event, [closed]: 1 } : event })
      })
      expect(render(members, { kind: 'group' }).headline).toContain('bob[.]example')
      expect(render(members.slice(0, 1), { kind: 'group' }).headline).toContain('ann[.]example')
    },
  )

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
    ['backlog', 'Backlog of feed brand: 3 events: 1 critical, 2 high'],
    ['held', '3 held events: 1 critical, 2 high — stealer logs of feed brand'],
    ['storm', '3 events at once: 1 critical, 2 high — stealer logs of feed brand'],
  ] as const)('of a %s says so, and a note says why', (kind, title) => {
    const message = render(stealers, { kind })
    expect(message.title).toBe(title)
    expect(message.notes).toHaveLength(1)
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

  test.each([
    ['docker_repository', 'docker repositories'],
    ['leaked_data', 'leaked data'],
    ['driller_source_code', 'source code'],
    ['domain_ip_address', 'domain IP addresses'],
    ['domain_dns_records', 'domain DNS records'],
    ['bot', 'bots for sale'],
    ['seller', 'market sellers'],
  ])('speaks of several %s as %s', (type, words) => {
    const members = [1, 2].map(() => aMember({ event: aThreatEvent({ type }) }))
    expect(render(members).title).toContain(` — ${words} of feed brand`)
  })

  test('of a test says TEST', () => {
    const { summary } = summarised(stealers)
    const message = renderSummary({
      ...firstTry,
      isTest: true,
      members: stealers,
      summary: summary!,
    })
    expect(message.title).toMatch(/^TEST 3 new events/)
    expect(message.subject).toContain('TEST')
  })

  test('of a digest is its time at the reader’s place and its count', () => {
    expect(renderDigest({}, stealers).subject).toBe(
      'Digest 2026-11-21 08:00: 3 events (1 critical, 2 high)',
    )
  })
})

test('what matched, and when, reads alike in a single message, a group, a digest and the attached table', () => {
  const vip = { id: 1, name: 'VIP: A. Muster' }
  const highlights = { hostname: ['vpn.example.com'] }
  const event = aThreatEvent({ type: 'service', source: 'scan', identifiers: [vip], highlights })
  const matched = aMember({ event })
  const single = renderMessage(matched, firstTry)
  expect(single.title).toContain('(matched VIP: A. Muster)')
  expect(formatContext(single)).toContain('matched 2026-11-01 12:01 UTC')
  const [line] = render([matched, matched]).lines
  expect(line).toMatchObject({ title: single.title, time: 'matched 2026-11-01 12:01 UTC' })
  const [entry] = renderDigest({}, [matched]).lines
  expect(entry).toMatchObject({ title: single.title, time: 'matched 2026-11-01 13:01' })
  const table = Buffer.from(createCsv().add(toCsvRow(matched)).finish())
    .toString()
    .split('\r\n')
  expect(table[0]).toContain('"created","matched","fetched"')
  expect(table[1]).toContain(`"${single.title}"`)
})

test('a digest tells a time from the same one an hour later, when clocks are set back, and no other', () => {
  const times = [23.5, 24.5, 25.5].map((hour) => Date.UTC(2026, 9, 24, 0, hour * 60))
  const found = times.map((matchedAtMs) => aMember({ event: aThreatEvent({ matchedAtMs }) }))
  expect(renderDigest({}, found).lines.map(({ time }) => time)).toEqual([
    'matched 2026-10-25 01:30',
    'matched 2026-10-25 02:30 CEST',
    'matched 2026-10-25 02:30 CET',
  ])
  const dueAtMs = times[1]!
  expect(renderDigest({ dueAtMs }).subject).toMatch(/^Digest 2026-10-25 02:30 CEST: /u)
  const [single] = found.slice(1).map((member) => {
    const options = { attempt: 1, mayBeRepeat: false, timeZone: 'Europe/Zurich' }
    return formatContext(renderMessage(member, options))
  })
  expect(single).toContain('matched 2026-10-25 02:30 CEST (00:30 UTC)')
})

test('a line says which of its times it shows, and an identifier that the title leaves out as matched', () => {
  const [vip, host] = ['VIP', 'vpn.example.com'].map((name, id) => ({ id, name }))
  const highlights = { hostname: ['vpn.example.com'] }
  const event = aThreatEvent({ type: 'service', identifiers: [vip!, host!], highlights })
  const found = aMember({ event: { ...event, matchedAtMs: null } })
  const undated = aMember({ event: { ...event, matchedAtMs: null, createdAtMs: null } })
  expect(render([found, undated]).lines).toMatchObject([
    { identifier: 'matched VIP', time: 'created 2026-11-01 12:00 UTC' },
    { identifier: 'matched VIP', time: 'fetched 2026-11-01 12:02 UTC' },
  ])
})

test('a digest of several accounts says of each event whose it is, and so does its table', () => {
  const members = ['acme', 'globex'].map((account) => aMember({ account, namesAccount: true }))
  const raised = aMember({ account: 'acme', namesAccount: true, raisedFrom: 'low' })
  const { lines, title } = renderDigest({}, [...members, raised])
  expect(lines.map(({ remark }) => remark)).toEqual([
    'account acme',
    'account globex',
    'account acme, raised from low',
  ])
  expect(title).not.toContain('account')
  expect(renderDigest({}, [aMember()]).lines[0]?.remark).toBeNull()
  const table = Buffer.from(createCsv().add(toCsvRow(raised)).finish()).toString()
  expect(table).toMatch(/,"account"\r\n.*,"acme"\r\n$/u)
})

test('a digest says of which zone its days are where its times are of another', () => {
  const { summary } = aBusyDigest(3)
  const given = { ...firstTry, members: [], summary: summary! }
  expect(renderSummary(given).dayZone).toBeNull()
  expect(renderSummary({ ...given, timeZone: 'Europe/Zurich' }).dayZone).toBeNull()
  const elsewhere = renderSummary({ ...given, timeZone: 'America/New_York' })
  expect(elsewhere.dayZone).toBe('Europe/Zurich')
  const times = (timeZone: string): string[] =>
    renderSummary({ ...aBusyDigest(3), ...firstTry, summary: summary!, timeZone }).lines.map(
      ({ time }) => time,
    )
  expect(times('America/New_York')).toHaveLength(3)
  expect(times('America/New_York')).not.toEqual(times('Europe/Zurich'))
  const outline = outlineSummary(elsewhere, { names: 1, feeds: 1 })
  expect(outline.coverage.map(({ label }) => label)).toContain('Days (Europe/Zurich)')
})

describe('a digest after what was sent at once', () => {
  test('does not call it unlisted where it lists it', () => {
    expect(renderDigest(twelve).coverage?.unlisted).toEqual([])
    expect(renderDigest({ alreadySentTotal: 2 }).coverage?.unlisted).toEqual([
      '2 already sent at once',
    ])
  })

  const twelve = {
    alreadySentTotal: 12,
    alreadySentBySeverity: [{ severity: 'critical', count: 12 }],
    alreadySent: [
      {
        severity: 'critical',
        type: 'paste',
        uid: 'paste/x/1',
        sentAtMs: caughtUpMs,
        title: 'Paste: example[.]com in "dump"',
        serviceLink: 'https://app.example.com/1',
      },
      { severity: 'critical', type: 'paste', uid: 'paste/x/2', sentAtMs: caughtUpMs },
    ],
  }
  const medium = aMember({ event: aThreatEvent({ severity: 'medium' }) })

  test('counts the worst of its window first, in subject and title', () => {
    const subject = 'Digest 2026-11-21 08:00: 12 critical already sent, 1 new event (1 medium)'
    expect(renderDigest(twelve, [medium])).toMatchObject({ subject, title: subject })
    expect(renderDigest(twelve).subject).toBe(
      'Digest 2026-11-21 08:00: 12 critical already sent, nothing else new',
    )
    const mixed = [...twelve.alreadySentBySeverity, { severity: 'high', count: 3 }]
    expect(renderDigest({ alreadySentTotal: 15, alreadySentBySeverity: mixed }).subject).toContain(
      '15 already sent (12 critical, 3 high), nothing else new',
    )
  })

  test('names the account of each, where there are several, as the lines of new events do', () => {
    const [sent] = twelve.alreadySent
    const alreadySent = [{ ...sent!, account: 'acme' }, sent!]
    expect(renderDigest({ alreadySent }).coverage?.alreadySent.map((one) => one.sent)).toEqual([
      '2026-11-21 05:12, account acme',
      '2026-11-21 05:12',
    ])
  })

  test('names each by its title with its link, and by its uid what is no longer kept', () => {
    expect(renderDigest(twelve).coverage).toMatchObject({
      alreadySent: [
        { title: 'Paste: example[.]com in "dump"', link: 'https://app.example.com/1' },
        { title: 'Paste: content no longer stored, uid paste/x/2', link: null },
      ],
      moreAlreadySent: 10,
    })
  })
})

test('a digest names the feeds of an account that left, though nobody is late with them', () => {
  const people = { feed: 'people', lastCaughtUpMs: caughtUpMs, isBehind: false, hasLeft: true }
  const { coverage, alarms } = renderDigest({ feeds: [people] })
  expect(coverage?.feeds).toMatchObject([
    { feed: 'people', text: expect.stringMatching(/^not configured any more; read to its end at/) },
  ])
  expect(alarms).toEqual([])
})

describe('an empty digest', () => {
  test('claims quiet only where every feed was read and nothing was kept back', () => {
    const message = renderDigest({})
    expect(message.subject).toBe('Digest 2026-11-21 08:00: nothing new')
    expect(message.alarms).toEqual([])
    expect(message.coverage?.statement).toBe('Nothing new, and every feed was read to its end.')
  })

  test.each([
    [
      'what could not be read',
      { quarantined: { fresh: 3, open: 5 } },
      '3 items could not be read',
      '3 items of feed brand could not be read and are missing here',
    ],
    [
      'a feed that cannot be read',
      { quarantined: { fresh: 0, open: 5 }, isUnreadable: true },
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
    expect(message.alarms).toEqual([
      `${alarm}; "tocsin items list --state quarantined" shows which.`,
    ])
    expect(message.coverage?.statement).toMatch(/does not mean/)
    expect(message.coverage?.feeds[0]).toMatchObject({ feed: 'brand', isBehind: true })
    expect(message.coverage?.feeds[0]?.text).toMatch(/; 5 in the quarantine$/)
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
    expect(message.coverage?.statement).toMatch(/does not mean/)
    expect(message.coverage?.feeds[0]).toMatchObject({ feed: 'brand', isBehind: true })
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
      { alreadySentTotal: 1 },
    ]) {
      const message = renderDigest(facts)
      expect(message.coverage?.statement).not.toMatch(/every feed was read/)
    }
    expect(renderDigest({ feeds: [never] }).subject).toContain('was never read to its end')
    expect(renderDigest({ dead: 2 }).subject).toContain('2 could not be delivered')
    expect(renderDigest({ diverted: 3 }).subject).toContain('3 went to another sink')
    expect(renderDigest({ dead: 2 }).alarms[0]).toContain('items list --state dead')
  })
})

test('a digest states its window, its late sending and what went another way, in its zone', () => {
  const { members, summary } = aBusyDigest()
  const digest = { ...summary!.digest!, isLate: true }
  const message = renderSummary({ ...firstTry, members, summary: { ...summary!, digest } })
  expect(message.notes[0]).toMatch(/^Late: this digest was due at 2026-11-21 08:00/)
  expect(message.coverage).toMatchObject({
    window: '2026-11-15 08:00 to 2026-11-21 08:00',
    unlisted: [
      '4 held back for later',
      '2 suppressed by a silence, a mute or another event',
      '1 could not be delivered',
    ],
    moreAlreadySent: 1,
  })
  expect(message.timeZone).toBe('Europe/Zurich')
  expect(message.lines[0]?.time).not.toContain('UTC')
})

test('a line says what the event is, what it matched, when, and what became of it', () => {
  const event = aThreatEvent({
    type: 'paste',
    source: 'pastebin',
    highlights: {},
    ignoredAtMs: 0,
  })
  const [line] = render([aMember({ event, raisedFrom: 'medium' })]).lines
  expect(line).toMatchObject({
    severity: 'high',
    title: 'Paste: example[.]com mentioned on pastebin',
    identifier: null,
    time: 'matched 2026-11-01 12:01 UTC',
    remark: 'raised from medium, ignored',
    link: event.url,
  })
})

test('a message about one event says that its severity was raised', () => {
  const message = renderMessage(aMember({ raisedFrom: 'medium' }), firstTry)
  expect(message.notes).toContain('Severity raised from medium.')
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
    const { facts: _facts, ...rest } = renderMessage(member, firstTry)
    expect(JSON.stringify(rest)).not.toContain('hunter2')
    expect(JSON.stringify(render([member, member]))).not.toContain('hunter2')
  })
})

test('what is not shown is counted, with the place where it is', () => {
  expect(formatRemainder({ total: 5, attachment: null }, 5, 'b1')).toBeNull()
  expect(formatRemainder({ total: 5, attachment: null }, 3, 'b1')).toBe(
    'and 2 more: "tocsin items show b1" lists all',
  )
  expect(formatRemainder({ total: 5, attachment: 'a.csv' }, 0, 'b1')).toBe(
    '5 not listed here: see the attached a.csv',
  )
})

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

test('a message of several names the command that lists its events; one of none has no such command', () => {
  expect(listCommand({ total: 3 }, 'b1')).toBe('tocsin items show b1')
  expect(listCommand({ total: 0 }, 'b1')).toBeNull()
})
