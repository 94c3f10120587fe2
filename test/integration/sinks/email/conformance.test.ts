/**
 * Promises of an e-mail sink: those of every sink, and of every sink for people (`summary-conformance.ts`, `template-conformance.ts`), with the replies of an SMTP server as its `answers`.
 * To add a driver for another type, copy this file: `test/support/sink-conformance.ts` says what each member of a driver does.
 */
import { expect } from 'vitest'
import { secretFromText } from '../../../../src/lib/secret.ts'
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
      script: (replies) => {
        server.dropConnections()
        server.script(replies)
      },
      received: () => server.mails.map(receivedOf),
      openConnections: () => server.openConnections(),
      expectInert,
      stop: () => server.refuse(),
    }
  },
  answers: [
    row('550 to the recipient', 'recipient_refused', { RCPT: '550 5.1.1 no such user' }),
    row('552 to the recipient', 'recipient_refused', { RCPT: '552 5.2.2 mailbox full' }),
    row('451 to the recipient', 'recipient_deferred', { RCPT: '451 4.7.1 greylisted' }),
    row('550 to the sender', 'misconfigured', { MAIL: '550 5.7.1 not your address' }),
    row('552 to the sender', 'invalid', { MAIL: '552 5.3.4 too big' }),
    row('530 to the sender', 'unauthorized', { MAIL: '530 5.7.0 sign in first' }),
    row('452 to the sender', 'unavailable', { MAIL: '452 4.3.1 no room' }),
    row('554 to DATA', 'misconfigured', { DATA: '554 5.5.1 no' }),
    row('451 to the message', 'unavailable', { END: '451 4.3.0 later' }),
    row('421 to the message', 'unavailable', { END: '421 4.3.2 closing' }),
    row('554 to the message', 'invalid', { END: '554 5.6.0 content refused' }),
    row('552 to the message', 'invalid', { END: '552 5.2.3 too long' }),
    row('550 5.1.1 to the message', 'recipient_refused', { END: '550 5.1.1 no such user' }),
    row('503 to the message', 'unavailable', { END: '503 5.5.1 wrong order' }),
    row('nonsense to the message', 'connection_lost', { END: '199 hm' }),
    row('a cut within the message', 'connection_lost', { BODY: 'cut' }),
    row('a refused password', 'unauthorized', { AUTH: `535 5.7.8 not ${password}` }),
    row('a sign-in to try later', 'unavailable', { AUTH: '454 4.7.0 later' }),
    row('a cut at the greeting', 'unavailable', { GREETING: 'cut' }),
    row('554 as greeting', 'misconfigured', { GREETING: '554 no service here' }),
    row('a cut at EHLO', 'unavailable', { EHLO: 'cut' }),
    row('a cut at AUTH', 'unavailable', { AUTH: 'cut' }),
    row('a cut at MAIL', 'unavailable', { MAIL: 'cut' }),
    row('a cut at RCPT', 'unavailable', { RCPT: 'cut' }),
    row('a cut at DATA', 'unavailable', { DATA: 'cut' }),
    row('421 at MAIL', 'unavailable', { MAIL: '421 4.3.2 closing' }),
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
