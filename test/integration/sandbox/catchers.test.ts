import { createHmac } from 'node:crypto'
import { createTransport, type Transporter } from 'nodemailer'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Received } from '../../../src/sandbox/receivers/received.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { post, type Answer } from './client.ts'

let sandbox: Sandbox
let heard: Received[]

beforeEach(async () => {
  sandbox = await startSandbox({ slackLimit: { perSecond: 0.01, burst: 3 } })
  heard = []
  sandbox.onReceived((message) => heard.push(message))
})
afterEach(() => sandbox.close())

describe('Slack', () => {
  test('a message is taken, and known by the event that it names', async () => {
    const { uid } = sandbox.addEvent({ uid: 'domain/flare/examp1e.com' })
    const text = 'see `domain/flare/examp1e[.]com` &amp; more'
    const blocks = [{ type: 'section', text: { type: 'mrkdwn', text } }]
    const answer = await post(sandbox.slackUrl, { text: 'new event', blocks })
    expect(answer).toMatchObject({ status: 200, text: 'ok' })
    expect(sandbox.received.slack).toMatchObject([{ id: uid, uids: [uid], json: { blocks } }])
    expect(heard).toEqual(sandbox.received.slack)
  })
})

describe('Teams', () => {
  const message = {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.2',
          msteams: { width: 'Full' },
          body: [{ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: 'paste/x/1' }] }],
        },
      },
    ],
  }

  test('a card is taken by 202 without a word, and known by the event that it names', async () => {
    const { uid } = sandbox.addEvent({ uid: 'paste/x/1' })
    expect(await post(sandbox.teamsUrl, message)).toMatchObject({ status: 202, text: '' })
    expect(sandbox.received.teams).toMatchObject([{ id: uid, uids: [uid], json: message }])
  })

  test('what Teams would not show is refused at once, and not kept', async () => {
    const [attachment] = message.attachments
    const inlines = [{ type: 'TextRun', text: 'x'.repeat(28 * 1024) }]
    const tooLarge = { ...attachment!.content, body: [{ type: 'RichTextBlock', inlines }] }
    const tooOld = { ...attachment!.content, version: '1.0' }
    const attached = (content: object): object => ({
      ...message,
      attachments: [{ ...attachment, content }],
    })
    for (const wrong of [attachment!.content, attached(tooLarge), attached(tooOld), 'no JSON']) {
      const { status, text } = await post(sandbox.teamsUrl, wrong)
      expect(status).toBe(400)
      expect(text).toContain('TriggerInputSchemaMismatch')
    }
    expect(sandbox.received.teams).toEqual([])
  })
})

describe('PagerDuty', () => {
  const event = {
    event_action: 'trigger',
    dedup_key: 'delivery1',
    client: 'Tocsin',
    payload: {
      summary: 'HIGH Leak',
      source: 'example.com',
      severity: 'error',
      timestamp: '2026-11-01T12:02:00.000Z',
      custom_details: { Uid: 'paste/x/1' },
    },
    links: [],
  }
  const send = (change: object = {}): Promise<Answer> => {
    const body = { ...event, routing_key: sandbox.pagerDutyKey, ...change }
    return post(`${sandbox.pagerDutyUrl}/v2/enqueue`, body)
  }

  test('an event is taken by 202 with its dedup_key, and known by it', async () => {
    const { uid } = sandbox.addEvent({ uid: 'paste/x/1' })
    const answer = await send()
    expect(answer.status).toBe(202)
    expect(JSON.parse(answer.text)).toMatchObject({ status: 'success', dedup_key: 'delivery1' })
    expect(sandbox.received.pagerduty).toMatchObject([{ id: 'delivery1', uids: [uid] }])
  })

  test('what PagerDuty would refuse is refused with its errors, and not kept', async () => {
    for (const [change, error] of [
      [{ routing_key: 'z'.repeat(32) }, 'Invalid routing key'],
      [{ dedup_key: 'x'.repeat(256) }, "'dedup_key': "],
      [{ payload: { ...event.payload, severity: 'high' } }, "'payload.severity': "],
    ] as const) {
      const { status, text } = await send(change)
      expect(status).toBe(400)
      expect(JSON.parse(text)).toMatchObject({
        status: 'invalid event',
        errors: [expect.stringContaining(error)],
      })
    }
    expect(sandbox.received.pagerduty).toEqual([])
  })
})

describe('webhook', () => {
  let startedS = 0 // one second for a whole test
  beforeEach(() => void (startedS = Math.floor(Date.now() / 1000)))
  const now = (): number => startedS

  function sign(body: string, timestamp: number, secret = sandbox.webhookSecret): string {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const mac = createHmac('sha256', key).update(`msg_1.${timestamp}.${body}`).digest('base64')
    return `v1,${mac}`
  }

  function send(body: string, timestamp: number, signature: string): Promise<Answer> {
    return post(sandbox.webhookUrl, body, {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signature,
    })
  }

  test('a signed message is taken with its id, its headers and its exact body', async () => {
    const { uid } = sandbox.addEvent()
    const body = JSON.stringify({ type: 'x', data: { uid } }, null, 2)
    expect((await send(body, now(), sign(body, now()))).status).toBe(204)
    expect(sandbox.received.webhook).toMatchObject([
      { id: 'msg_1', body, uids: [uid], to: '/hooks/siem', headers: { 'webhook-id': 'msg_1' } },
    ])
  })

  test.each([
    ['a changed body', () => send('{"a":2}', now(), sign('{"a":1}', now()))],
    ['an old timestamp', () => send('{}', now() - 301, sign('{}', now() - 301))],
    ['a timestamp from the future', () => send('{}', now() + 400, sign('{}', now() + 400))],
    ['a timestamp that was not signed', () => send('{}', now() - 1, sign('{}', now()))],
    ['another version', () => send('{}', now(), sign('{}', now()).replace('v1,', 'v2,'))],
    ['no signature', () => post(sandbox.webhookUrl, '{}')],
  ])('%s is refused, and not kept', async (_name, attempt) => {
    expect((await attempt()).status).toBe(401)
    expect(sandbox.received.webhook).toEqual([])
  })
})

describe('e-mail', () => {
  let transport: Transporter
  beforeEach(() => {
    transport = createTransport({ url: sandbox.smtpUrl })
  })
  afterEach(() => transport.close())

  const mail = {
    from: 'tocsin@example.com',
    to: ['one@example.com', 'two@example.com'],
    messageId: '<e1@tocsin.example>',
  }

  test('a mail is taken and read: headers, subject, text, HTML, attachment', async () => {
    const { uid } = sandbox.addEvent({ uid: 'paste/site/größe' })
    await transport.sendMail({
      ...mail,
      subject: 'Größe: критично 🔥 and a subject long enough that it must be folded somewhere',
      text: `Ereignis ${uid}\n${'ä'.repeat(200)}`,
      html: `<b>${uid}</b>`,
      attachments: [{ filename: 'events.csv', content: 'a,b\n1,2\n' }],
    })
    expect(sandbox.received.email).toMatchObject([
      {
        id: '<e1@tocsin.example>',
        to: 'one@example.com,two@example.com',
        uids: [uid],
        mail: {
          from: 'tocsin@example.com',
          recipients: ['one@example.com', 'two@example.com'],
          subject: 'Größe: критично 🔥 and a subject long enough that it must be folded somewhere',
          html: `<b>${uid}</b>`,
          attachments: [{ name: 'events.csv', content: 'a,b\n1,2\n' }],
        },
      },
    ])
    expect(sandbox.received.email[0]?.mail?.text).toContain('ä'.repeat(200))
  })
})
