/**
 * Promises of an e-mail sink: those of every sink, and of every sink for people (`summary-conformance.ts`, `template-conformance.ts`), with the replies of an SMTP server as its `answers`.
 * To add a driver for another type, copy this file: `test/support/sink-conformance.ts` says what each member of a driver does.
 */
import { expect } from 'vitest'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import type { SinkReason } from '../../../../src/sinks/sink.ts'
import {
  describeSinkConformance,
  type AnswerRow,
  type Received,
  type SinkConformance,
  type SinkDriver,
} from '../../../support/sink-conformance.ts'
import { describeSummaryConformance } from '../../../support/summary-conformance.ts'
import { describeTemplateConformance } from '../../../support/template-conformance.ts'
import { parseMail } from './parse-mail.ts'
import { startRawSmtpServer, type Replies } from './raw-smtp-server.ts'

interface EmailDriver extends SinkDriver {
  script(replies: Replies): void
}

const password = 'pw-7f3e9a51c2/&='

const suite: SinkConformance<EmailDriver> = {
  name: 'the e-mail sink',
  async create(environment) {
    const server = await startRawSmtpServer()
    const smtp = `smtp://relay:${encodeURIComponent(password)}@127.0.0.1:${server.port}`
    const sink = createEmailSink(
      {
        name: 'oncall',
        type: 'email',
        smtp: secretFromText(smtp),
        from: 'Tocsin <tocsin@example.com>',
        to: ['oncall@example.com'],
        tls: 'required',
        limitPerSecond: undefined,
        digest: undefined,
        reveal: false,
        autoSubmitted: true,
        templates: environment.templates,
      },
      environment,
    )
    return {
      sink,
      secrets: [
        password,
        encodeURIComponent(password),
        Buffer.from(`\0relay\0${password}`).toString('base64'),
      ],
      async accept() {
        server.script({})
        await server.listen()
      },
      answerLost: () => server.script({ END: 'cut' }),
      hang: () => server.script({ END: 'hang' }),
      refuse: () => server.refuse(),
      script: (replies) => server.script(replies),
      received: () => server.mails.map(receivedOf),
      openConnections: () => server.openConnections(),
      expectInert,
      stop: () => server.refuse(),
    }
  },
  answers: [
    row('550 to the recipient', 'recipient_refused', { RCPT: '550 5.1.1 no such user' }),
    row('a cut within the message', 'connection_lost', { BODY: 'cut' }),
    row('a refused password', 'unauthorized', { AUTH: `535 5.7.8 not ${password}` }),
  ],
}

describeSinkConformance(suite)
describeSummaryConformance(suite)
describeTemplateConformance(suite)

function row(title: string, reason: SinkReason, replies: Replies): AnswerRow<EmailDriver> {
  return { title, reason, arrange: (driver) => driver.script(replies) }
}

function receivedOf(raw: string): Received {
  const { headers, text, html } = parseMail(raw)
  return {
    id: headers.get('message-id') ?? '',
    text: raw,
    decoded: text + html,
    saysRepeat: headers.get('tocsin-possible-repeat') === 'true' && raw.includes('May be a repeat'),
    saysTest:
      headers.get('tocsin-test') === 'true' && (headers.get('subject') ?? '').includes('TEST'),
  }
}

const ownHeaders = [
  'auto-submitted',
  'content-type',
  'date',
  'from',
  'in-reply-to',
  'list-id',
  'message-id',
  'mime-version',
  'references',
  'subject',
  'to',
  'x-auto-response-suppress',
]

/** The last two are Outlook's conditional comments. */
const ownTags = [
  'a',
  'b',
  'body',
  'br',
  'div',
  'doctype',
  'h1',
  'h2',
  'head',
  'html',
  'meta',
  'p',
  'pre',
  'span',
  'table',
  'td',
  'title',
  'tr',
  '--[if',
  '[endif]--',
]

/** No header and no tag that is not ours, and one part each of text and HTML. */
function expectInert({ text }: Received): void {
  const { headers, html } = parseMail(text)
  const ofUrgent = headers.has('importance') ? ['importance', 'x-priority'] : []
  expect([...headers.keys()].toSorted()).toEqual([...ownHeaders, ...ofUrgent].toSorted())
  if (ofUrgent.length > 0) {
    expect([headers.get('importance'), headers.get('x-priority')]).toEqual(['high', '1'])
  }
  expect(headers.get('to')).toBe('oncall@example.com')
  const tags = [...html.matchAll(/<[/!]?([^\s>]*)/g)].map((match) => match[1])
  expect(ownTags).toEqual(expect.arrayContaining([...new Set(tags)]))
  const attributes = [...html.matchAll(/<[^>]*>/g)].map(([tag]) => tag.replaceAll(/"[^"]*"/g, '""'))
  for (const tag of attributes) expect(tag).not.toMatch(/\s(?:on\w+|src)\s*=/i)
  const links = [...html.matchAll(/href="([^"]*)"/g)].map((match) => match[1])
  expect(links).not.toEqual([])
  for (const link of links) expect(link).toMatch(/^https:\/\/app\.example\.com\//)
}
