/** Nothing that the feed says begins a line, a header or a word of a mail that reads as Tocsin's own. */
import fc from 'fast-check'
import { createTransport } from 'nodemailer'
import { describe, expect, test } from 'vitest'
import { composeMail } from '../../src/sinks/email/email-sink.ts'
import type { Delivery, DeliveryMember } from '../../src/sinks/sink.ts'
import { parseMail } from '../../src/sandbox/receivers/mail-receiver.ts'
import { aMember, hostileMember } from '../support/deliveries.ts'
import { aSummary, digestFacts } from '../support/summaries.ts'
import { actedUpon } from './hostile-words.ts'

interface Sent {
  raw: string
  headers: Record<string, string>
  subject: string
  text: string
}

async function sent(content: Partial<Delivery>): Promise<Sent> {
  const delivery = {
    id: 'abc',
    destination: { id: 'oncall:1', label: 'oncall' },
    members: [aMember()],
    attempt: 1,
    mayBeRepeat: false,
    ...content,
  }
  const options = { sink: 'oncall', from: 'tocsin@example.com', to: 'a@example.com', nowMs: 0 }
  const mailer = createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
  const { message } = (await mailer.sendMail(composeMail(delivery, options))) as { message: Buffer }
  const raw = message.toString('utf8')
  return { raw, ...parseMail(raw) }
}

function deliveriesOf(members: DeliveryMember[]): [string, Partial<Delivery>][] {
  return [
    ['an event', { members: members.slice(0, 1) }],
    ['a group', { members, summary: aSummary(members) }],
    ['a digest', { members, summary: aSummary(members, { digest: digestFacts() }) }],
  ]
}

const breaks = [
  '\n',
  '\r\n',
  '\r',
  '\v',
  '\f',
  '\u0085',
  '\u2028',
  '\u2029',
  '\0\n',
  '\n\n\n',
  ' \n ',
]
/** Between the five facts of an event and the rest. */
const thinRule = '-'.repeat(20)

/** How lines of Tocsin's own begin; none of a mail about ordinary events begins with `FORGED`. */
const forged = [
  '--',
  thinRule,
  'Sent by Tocsin to sink FORGED, routes: all',
  'uid: FORGED',
  'delivery: FORGED',
  'CRITICAL FORGED',
  '* FORGED note',
  'Open event: FORGED',
  'Window: FORGED',
  'FORGED',
]

describe.each(breaks)('a break of %j in what the feed says', (lineBreak) => {
  const words = `x${lineBreak}${forged.join(lineBreak)}${lineBreak}`
  const members = [hostileMember(words), aMember()]

  test.each(deliveriesOf(members))('forges no line in a mail of %s', async (_what, content) => {
    const { text, headers } = await sent(content)
    const own = text.split(/\r?\n/).filter((line) => !/^\s+\| /.test(line))
    expect(own.filter((line) => /^\W*(?:[A-Za-z ]{1,30}:? )?FORGED/.test(line))).toEqual([])
    const rules = own.filter((line) => line.startsWith('--'))
    expect(rules).toEqual(rules.length === 1 ? ['--'] : [thinRule, '--'])
    expect(own.filter((line) => line.startsWith('Sent by Tocsin'))).toHaveLength(1)
    expect(Object.keys(headers).filter((name) => /forged|bcc/i.test(name))).toEqual([])
  })
})

const encodedWords = [
  '=?utf-8?B?4oCuZ3BqLmV4ZQ==?=', // turned text
  '=?utf-8?q?=0D=0ABcc:_victim=40example.net?=',
  '=?UTF-8?Q?=E2=80=8B?= =?utf-8*en?b?G1syag==?=',
  '=?iso-8859-1?q?bank=2Eexample?=',
]

test.each(encodedWords)('the encoded word %s stays as it is written', async (word) => {
  const forms = ['%', '% x', 'ü %', '"%', '=%=']
  const titles = [...forms.map((form) => form.replace('%', word)), `x=\u200B${word.slice(1)}`]
  for (const title of titles) {
    const member = hostileMember(title)
    for (const [, content] of deliveriesOf([member])) {
      const { raw, subject } = await sent(content)
      const [head = ''] = raw.split('\r\n\r\n')
      const written = [...head.matchAll(/=\?([\w*-]+)\?([bq])\?([^?]*)\?=/gi)]
      for (const [, charset, kind, coded = ''] of written) {
        expect([charset, kind]).toEqual(['UTF-8', 'Q'])
        expect(coded).not.toMatch(/=(?:0[0-9A-F]|1B|E2=80=8B|E2=80=AE)/i)
      }
      expect(subject).not.toMatch(actedUpon)
      expect(subject).not.toContain('=?')
    }
  }
})

test('of any text the headers are short lines of ASCII, and the same ones as of every mail', async () => {
  const ordinary = await sent({ members: [hostileMember('an ordinary title')] })
  const pieces = [...encodedWords, ...breaks, 'Bcc: x@y.z', '"', '<', '@', 'ü', 'a'.repeat(1_500)]
  const anyText = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 400 }),
    fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((some) => some.join('')),
  )
  await fc.assert(
    fc.asyncProperty(anyText, async (words) => {
      const { raw, headers, subject } = await sent({ members: [hostileMember(words)] })
      const head = raw.slice(0, raw.indexOf('\r\n\r\n')).split('\r\n')
      for (const line of head) expect(line).toMatch(/^[\t\x20-\x7e]{1,998}$/)
      for (const line of raw.split('\r\n')) expect(line.length).toBeLessThanOrEqual(998)
      expect(raw.replaceAll('\r\n', '')).not.toMatch(/[\r\n\0]/)
      expect(Object.keys(headers).toSorted()).toEqual(Object.keys(ordinary.headers).toSorted())
      for (const name of ['from', 'to', 'message-id', 'references', 'list-id']) {
        expect(headers[name]).toBe(ordinary.headers[name])
      }
      expect(subject).not.toMatch(actedUpon)
    }),
    { numRuns: 60 },
  )
})
