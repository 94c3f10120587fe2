/** Mails: what all of them keep to, what a feed cannot forge in them, and their headers. */
import { describe, expect, test } from 'vitest'
import { measureWidth } from '../../../../src/lib/text-width.ts'
import { renderMessage } from '../../../../src/messages/message.ts'
import { emailType } from '../../../../src/sinks/email/config.ts'
import { composeMail, mailContent } from '../../../../src/sinks/email/email-sink.ts'
import { renderHtml } from '../../../../src/sinks/email/mail-html.ts'
import { renderText } from '../../../../src/sinks/email/mail-text.ts'
import type { Delivery } from '../../../../src/sinks/sink.ts'
import { aMember, hostileMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { delivery, otherScenes, typeScenes } from '../../../support/scenes.ts'
import { aBusyDigest, summarised } from '../../../support/summaries.ts'

describe.each([...typeScenes, ...otherScenes])('the mail about %s', (_name, one) => {
  const { html, text } = mailContent(one, 'oncall')

  test('says in words what its colours say', () => {
    const chips = [...html.matchAll(/<span style="[^"]*color:#ffffff[^"]*">([^<]*)<\/span>/g)]
    for (const [, words] of chips)
      expect(words).toMatch(/critical|high|medium|low|info|unknown|behind/i)
    const rows = html.match(/<td width="4" bgcolor/g) ?? []
    expect(chips.length).toBeGreaterThanOrEqual(rows.length)
  })

  test('has a contrast of 4.5 where words stand on a colour, and of 3 for the colour on light and dark', () => {
    for (const [, colour = ''] of html.matchAll(/color:#ffffff;background-color:(#[0-9a-f]{6})/g)) {
      expect(contrast('#ffffff', colour)).toBeGreaterThanOrEqual(4.5)
    }
    const colours = [...html.matchAll(/(?:bgcolor="|background-color:|solid )(#[0-9a-f]{6})/g)]
    for (const [, colour = ''] of colours) {
      expect(contrast('#ffffff', colour)).toBeGreaterThanOrEqual(3)
      expect(contrast('#121212', colour)).toBeGreaterThanOrEqual(3)
    }
  })

  test('says language and direction, is laid out by tables that are none to a screen reader, and has its headings in order', () => {
    expect(html).toMatch(/<html lang="en" dir="ltr">/)
    const tables = html.match(/<table\b[^>]*/g) ?? []
    expect(tables.filter((tag) => !tag.includes('role="presentation"'))).toEqual([])
    const [first, ...others] = [...html.matchAll(/<h(\d)/g)].map(([, level]) => level)
    expect(first).toBe('1')
    expect(others.filter((level) => level !== '2')).toEqual([])
  })

  test('loads nothing, stays below the 102 kB at which mail programs clip, and within 78 columns but for a link or a uid', () => {
    expect(html).not.toMatch(/<(?:img|link|style|script|iframe)|src=/)
    expect(Buffer.byteLength(html)).toBeLessThan(102_000)
    expect(Buffer.byteLength(text)).toBeLessThan(102_000)
    const wide = text.split('\n').filter((line) => measureWidth(line) > 78)
    expect(wide.filter((line) => !/^ *(?:https:\/\/\S+|uid: \S+)$/.test(line))).toEqual([])
  })
})

/** WCAG 2.2, relative luminance. */
function contrast(one: string, other: string): number {
  const luminance = (colour: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

test('what the feed says in another direction has its own, and does not turn what stands beside it', () => {
  const hebrew = '\u05E9\u05DC\u05D5\u05DD'
  const event = aThreatEvent({
    highlights: { content: [hebrew] },
    identifiers: [{ id: 1, name: hebrew }],
  })
  const { html } = mailContent(delivery([aMember({ event })]), 'oncall')
  const [, body = ''] = html.split('<body')
  const quoted = [...body.matchAll(/<(\w+)([^<>]*)>([^<]*)/g)].filter(([, , , text]) =>
    text!.startsWith(hebrew),
  )
  expect(quoted.length).toBeGreaterThan(0)
  expect(quoted.filter(([, , attributes]) => !attributes!.includes('dir="auto"'))).toEqual([])
})

test('an inbox and a locked phone, which show the beginning of a mail, show no leaked secret', () => {
  const event = aThreatEvent({ type: 'leaked_credential' })
  const detail = { identity_name: 'alice', domain: 'acme.com', password: 'h••••2' }
  const member = aMember({ event, detail, secret: 'hunter2-in-clear' })
  for (const body of [undefined, ['hunter2-in-clear of alice']]) {
    const html = renderHtml(renderMessage(member, { id: 'abc', own: { body } }), 'oncall')
    const [, lead = '', rest = ''] = /display:none[^>]*>([^<]*)<\/div>(.*)/s.exec(html) ?? []
    expect(lead).toContain('Fetched at: ')
    expect(lead).not.toContain('hunter2')
    const length = lead.replaceAll(/&#?\w+;/g, '_').length
    expect(length).toBeGreaterThanOrEqual(300) // behind it an inbox goes on with the page
    expect(rest).toContain('hunter2-in-clear')
  }
})

describe('the plain part', () => {
  test('has lines of a template, which may be words of a feed alone, behind the bar', () => {
    const body = [
      'uid: FORGED',
      'Next step: FORGED',
      'tocsin FORGED',
      'Open event: FORGED',
      '* FORGED',
      '--',
      `Note: FORGED ${'FORGED '.repeat(20)}`.trim(),
    ]
    const text = renderText(renderMessage(aMember(), { id: 'abc', own: { body } }), 'oncall')
    const own = text.split('\n').filter((line) => !line.startsWith('  | '))
    expect(own.filter((line) => line.includes('FORGED'))).toEqual([])
    expect(own.filter((line) => line === '--')).toHaveLength(1)
    expect(text).toContain('  | uid: FORGED\n  | Next step: FORGED\n')
  })

  test.each(['uid: FORGED', 'Next step: FORGED', '--\nuid: FORGED'])(
    'begins no line of ours with what matched: %j',
    (words) => {
      const event = aThreatEvent({
        type: words,
        source: words,
        notes: words,
        tags: [words],
        identifiers: [{ id: 1, name: words }],
        highlights: { [words]: [words], content: [words] },
      })
      const lines = mailContent(delivery([aMember({ event })]), 'oncall').text.split('\n')
      const forged = lines.filter((line) => /^\W*(?:uid|Next step): FORGED/.test(line))
      expect(forged.filter((line) => !line.startsWith('  | '))).toEqual([])
    },
  )

  test('breaks long words of a feed, and what follows keeps the bar', () => {
    const member = aMember({ event: hostileMember('西'.repeat(300)).event })
    const lines = mailContent(delivery([member]), 'oncall').text.split('\n')
    expect(Math.max(...lines.map(measureWidth))).toBeLessThanOrEqual(78)
    const follow = lines.filter((line) => /^\W*西+/.test(line))
    expect(follow.length).toBeGreaterThan(3)
    expect(follow.filter((line) => !line.startsWith('  | '))).toEqual([])
  })
})

function compose(content: Partial<Delivery>, from = 'a@b.example'): ReturnType<typeof composeMail> {
  return composeMail(
    { ...delivery([aMember()]), id: 'abc', ...content },
    { sink: 'oncall', from, to: 'a@example.com', nowMs: 0 },
  )
}

test('a digest’s mail stands with its sink’s digests of the local day, and carries its file', () => {
  const { summary, ...content } = aBusyDigest(300)
  const digest = { ...summary!.digest!, dueAtMs: Date.UTC(2026, 10, 20, 23, 30) }
  const mail = compose({ ...content, summary: { ...summary!, digest } })
  expect(mail).toMatchObject({
    messageId: expect.stringMatching(/^<abc\.[0-9a-f]{16}@b\.example>$/),
    references: '<digest.oncall.2026-11-21.tocsin@b.example>',
    inReplyTo: mail.references,
    headers: { 'List-Id': '<digest.oncall.tocsin.b.example>' },
    attachments: [
      {
        filename: 'tocsin-digest-2026-11-21.csv',
        contentType: 'text/csv; charset=utf-8',
        content: Buffer.from('a,b\r\n'),
      },
    ],
    html: expect.stringMatching(/and \d+ more: see the attached tocsin-digest-2026-11-21\.csv/),
  })
})

const critical = (severity = 'critical'): Partial<Delivery> => ({
  members: [aMember({ event: aThreatEvent({ severity }) })],
})
const own = '<abc.tocsin@b.example>'
const ofDay = expect.stringMatching(/^<(?:brand|digest\.oncall)\./)

test.each<[what: string, content: Partial<Delivery>, isUrgent: boolean]>([
  ['of severity critical', critical(), true],
  ['of an unknown severity', critical('sev1'), true],
  ['about a critical group', summarised([...critical().members!, aMember()]), true],
  ['of severity high', critical('high'), false],
  ['that is a TEST', { ...critical(), isTest: true }, false],
  ['about a digest', aBusyDigest(3), false],
])('a mail %s is marked, in a thread of its own: %s', (_what, content, isUrgent) => {
  const { headers, references } = compose(content)
  const { Importance: importance, 'X-Priority': first } = headers as Record<string, unknown>
  expect([importance, first]).toEqual(isUrgent ? ['high', '1'] : [undefined, undefined])
  expect(references).toEqual(isUrgent ? own : ofDay)
})

const usual = { type: 'email', smtp: 'smtp://h.example', from: 'a@b.example', to: ['c@d.example'] }

test.each([
  ['a@b.example', 'Tocsin'],
  ['<a@b.example>', 'Tocsin'],
  ['Night watch <a@b.example>', 'Night watch'],
  ['"Watch, night" <a@b.example>', 'Watch, night'],
  ['The "night" watch <a@b.example>', 'The "night" watch'],
  ['"night" watch<a@b.example>', '"night" watch'],
])('%j is the sender a@b.example, called %j', (from, name) => {
  expect(emailType.config.safeParse({ ...usual, from }).success).toBe(true)
  expect(compose({}, from).from).toEqual({ name, address: 'a@b.example' })
})

test.each(['\u0007', '\u0000', '\u009F', '\u001B'])(
  'the control character %j stands in no address and no name',
  (character) => {
    for (const wrong of [
      { from: `a@b${character}.example` },
      { from: `N${character} <a@b.example>` },
      { to: [`a${character}@b.example`] },
    ]) {
      expect(emailType.config.safeParse({ ...usual, ...wrong }).success).toBe(false)
    }
  },
)
