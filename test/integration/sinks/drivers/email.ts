/** A server of mail answers at each step of the dialogue. */
import { expect } from 'vitest'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import { parseMail } from '../email/parse-mail.ts'
import { startRawSmtpServer, type Replies } from '../email/raw-smtp-server.ts'
import { answered, type Received, type SinkDriver } from './sink-driver.ts'

const password = 'pw-7f3e9a51c2/&='

export const email: SinkDriver<Replies> = {
  async start(environment) {
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
      answer: (replies) => server.script(replies),
      received: () => server.mails.map(receivedOf),
      openConnections: () => server.openConnections(),
      expectInert,
      stop: () => server.refuse(),
    }
  },
  answers: [
    answered('550 to the recipient', { RCPT: '550 5.1.1 no such user' }, 'recipient_refused'),
    answered('a cut within the message', { BODY: 'cut' }, 'connection_lost'),
    answered('a refused password', { AUTH: `535 5.7.8 not ${password}` }, 'unauthorized'),
  ],
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
