import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { post, type Answer } from './client.ts'

let sandbox: Sandbox

beforeEach(async () => {
  sandbox = await startSandbox()
})
afterEach(() => sandbox.close())

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
