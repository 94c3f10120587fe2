import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { composeMail } from '../../../../src/sinks/email/email-sink.ts'
import type { Delivery } from '../../../../src/sinks/sink.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { aBusyDigest, aSummary, digestFacts, summarised } from '../../../support/summaries.ts'
import { anySummarised } from '../any-summary.ts'
import { runs } from '../../../support/runs.ts'

type Mail = ReturnType<typeof composeMail> & { html: string; text: string }

function compose(content: Partial<Delivery>): Mail {
  const delivery = {
    id: 'abc',
    destination: { id: 'oncall:1', label: 'oncall' },
    members: [],
    attempt: 1,
    mayBeRepeat: false,
    ...content,
  }
  const options = { sink: 'oncall', from: 'tocsin@example.com', to: 'a@example.com', nowMs: 0 }
  return composeMail(delivery, options) as Mail
}

const ownTags = new Set(
  'a b body br div h1 h2 head html meta p span table td title tr'
    .split(' ')
    .flatMap((tag) => [tag, `/${tag}`])
    .concat('!doctype', '!--[if', '![endif]--'),
)

test('whatever the feed says, no tag or entity comes from it, and no part is clipped or too long', () => {
  fc.assert(
    fc.property(anySummarised, (content) => {
      const { html, text, subject } = compose({ ...content, mayBeRepeat: true, isTest: true })
      expect(Buffer.byteLength(html)).toBeLessThan(100_000)
      expect(Buffer.byteLength(text)).toBeLessThan(200_000)
      expect(Array.from(subject ?? '').length).toBeLessThanOrEqual(180)
      for (const [tag, name = ''] of html.matchAll(/<([^\s>]*)[^>]*>?/g)) {
        expect(ownTags).toContain(name)
        expect(tag.replaceAll(/"[^"<>]*"/g, '""')).not.toMatch(/\s(?:on\w+|src)|"[^"]*</)
      }
      expect(html).not.toMatch(/&(?!amp;|lt;|gt;|quot;|#39;|middot;|nbsp;|zwnj;|#9888;)/)
      expect(html).not.toMatch(/url\(|<(?:img|link|style|script)/i)
      expectCounted(html, content.summary.total)
    }),
    { numRuns: runs({ short: 20, long: 100 }), endOnFailure: true },
  )
})

test('ten thousand events of the longest texts are under what mail programs clip', () => {
  for (const character of ['"', '&', '😀']) {
    const long = character.repeat(5000)
    const member = aMember({
      event: aThreatEvent({
        uid: long,
        type: long,
        severity: long,
        url: `https://app.example.com/${'&'.repeat(1900)}`,
        identifiers: [{ id: 1, name: long }],
      }),
    })
    const members = Array.from({ length: 200 }, () => member)
    const names = Array.from({ length: 11 }, () => ({ name: long, count: 1 }))
    const bySeverity = Array.from({ length: 12 }, () => ({ severity: long, count: 1 }))
    const sent = { severity: long, type: long, uid: long, sentAtMs: 0 }
    const digest = digestFacts({
      perDay: Array.from({ length: 31 }, () => ({ day: long, bySeverity })),
      feeds: Array.from({ length: 60 }, () => ({ feed: long, lastCaughtUpMs: 0, isBehind: true })),
      alreadySent: Array.from({ length: 50 }, () => sent),
      alreadySentTotal: 50,
    })
    const about = { byType: names, byFeed: names, byIdentifier: names, bySeverity }
    const summary = { ...aSummary(members, { kind: 'digest', digest }), ...about, total: 10_000 }
    const { html } = compose({ members, summary })
    expect(Buffer.byteLength(html)).toBeLessThan(100_000)
    expect(html.match(/>Open</g)!.length).toBeGreaterThanOrEqual(2)
    expectCounted(html, 10_000)
  }
})

describe('a digest’s mail', () => {
  test('has the id of its delivery, and stands with its sink’s digests of the local day', () => {
    const { members, summary } = aBusyDigest(3)
    const dueAtMs = Date.UTC(2026, 10, 20, 23, 30)
    const digest = { ...summary!.digest!, dueAtMs }
    const mail = compose({ members, summary: { ...summary!, digest } })
    expect(mail.messageId).toMatch(/^<abc\.[0-9a-f]{16}@example\.com>$/)
    expect(mail.references).toBe('<digest.oncall.2026-11-21.tocsin@example.com>')
    expect(mail.inReplyTo).toBe(mail.references)
    expect(mail.headers).toMatchObject({ 'List-Id': '<digest.oncall.tocsin.example.com>' })
  })

  test('carries its attachment and points to it for what it does not list', () => {
    const { html, attachments } = compose(aBusyDigest(300))
    expect(attachments).toEqual([
      {
        filename: 'tocsin-digest-2026-11-21.csv',
        contentType: 'text/csv; charset=utf-8',
        content: Buffer.from('a,b\r\n'),
      },
    ])
    expect(html).toMatch(/and \d+ more: see the attached tocsin-digest-2026-11-21\.csv/)
  })
})

describe('a critical mail', () => {
  const critical = (severity: string): Partial<Delivery> => ({
    members: [aMember({ event: aThreatEvent({ severity }) })],
  })
  const priority = (content: Partial<Delivery>): unknown => {
    const { Importance: importance, 'X-Priority': first } = compose(content).headers as Record<
      string,
      string | undefined
    >
    return { importance, first }
  }
  const urgent = { importance: 'high', first: '1' }
  const ordinary = { importance: undefined, first: undefined }

  test.each(['critical', 'none', 'sev1'])(
    'of severity %s is marked, in a thread of its own',
    (severity) => {
      expect(priority(critical(severity))).toEqual(urgent)
      expect(compose(critical(severity)).references).toBe('<abc.tocsin@example.com>')
    },
  )

  test('about a group is marked, too', () => {
    const { members = [] } = critical('critical')
    expect(priority(summarised([...members, aMember()]))).toEqual(urgent)
  })

  test('is none that is less, a digest or a TEST', () => {
    expect(priority(critical('high'))).toEqual(ordinary)
    expect(priority({ ...critical('critical'), isTest: true })).toEqual(ordinary)
    expect(priority(aBusyDigest(3))).toEqual(ordinary)
    expect(compose({ ...critical('critical'), isTest: true }).references).toMatch(/^<brand\./)
  })
})

function expectCounted(html: string, total: number): void {
  const lines = html.match(/<td width="4" /g)?.length ?? 0
  const more = /(?:and (\d+) more(?:: |, not)|(\d+) not listed here)/.exec(html)
  expect(lines + Number(more?.[1] ?? more?.[2] ?? 0)).toBe(total)
}
