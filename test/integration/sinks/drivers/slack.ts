/** Slack answers with words in a body. */
import { expect } from 'vitest'
import { objectsIn } from '../../../support/objects-in.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import type { SinkReason } from '../../../../src/sinks/sink.ts'
import { createSlackSink } from '../../../../src/sinks/slack/slack-sink.ts'
import { type ScriptedAnswer, startHttpServer } from '../../../support/http-server.ts'
import {
  answered,
  type AnswerRow,
  httpReceiver,
  receivedChat,
  type Received,
  type SinkDriver,
} from './sink-driver.ts'

const workspace = 'T7F3E9A51C2'
const service = 'B58D1B0E4AA'
const token = 'c04d9e77b1QxZv8hJt2'

export const slack: SinkDriver<ScriptedAnswer> = {
  async start(environment) {
    const server = await startHttpServer()
    const url = `${server.url}/services/${workspace}/${service}/${token}`
    const sink = createSlackSink(
      {
        name: 'soc',
        type: 'slack',
        url: secretFromText(url),
        limitPerSecond: 1,
        allowPrivate: true,
        digest: undefined,
        reveal: false,
        templates: environment.templates,
      },
      environment,
    )
    return httpReceiver(server, {
      sink,
      secrets: [workspace, service, token],
      accept: () => server.script({ status: 200, body: 'ok' }),
      receivedOf: receivedChat,
      expectInert,
    })
  },
  answers: [
    ...words('gone', {
      no_service: 404,
      no_service_id: 404,
      no_team: 404,
      invalid_token: 403,
      team_disabled: 403,
      channel_not_found: 404,
      user_not_found: 400,
      channel_is_archived: 410,
    }),
    ...words('unauthorized', { action_prohibited: 403, posting_to_general_channel_denied: 403 }),
    ...words('invalid', {
      invalid_payload: 400,
      invalid_blocks: 400,
      no_text: 400,
      too_many_attachments: 400,
      msg_blocks_too_long: 400,
      a_word_of_tomorrow: 400,
    }),
    ...words('unavailable', { rollup_error: 500, try_later: 503, '': 502 }),
    answered('no_text with status 200', { status: 200, body: 'no_text' }, 'invalid'),
    answered(
      'ok: false with status 200',
      { status: 200, body: '{"ok": false, "error": "channel_not_found"}' },
      'gone',
    ),
    answered(
      'a page of some portal with status 200',
      { status: 200, body: `<html>ok ${token}</html>` },
      'misconfigured',
    ),
    answered(
      '404 without a known word',
      { status: 404, body: `/services/${token} not found` },
      'rejected',
    ),
    answered(
      'a redirect',
      { status: 302, headers: { location: `/elsewhere/${token}` } },
      'redirected',
    ),
    answered(
      '429 with seconds',
      { status: 429, headers: { 'retry-after': '30' }, body: 'rate_limited' },
      'rate_limited',
      30_000,
    ),
    answered('429 without Retry-After', { status: 429, body: 'rate_limited' }, 'rate_limited'),
  ],
}

/** Nothing is interpreted: no mrkdwn but the escaped summary, no emoji, no unfurling, no mention. */
function expectInert({ text }: Received): void {
  const payload = JSON.parse(text) as Record<string, unknown>
  expect(payload).toMatchObject({ mrkdwn: false, unfurl_links: false, unfurl_media: false })
  expect(Object.keys(payload).toSorted()).toEqual([
    'blocks',
    'mrkdwn',
    'text',
    'unfurl_links',
    'unfurl_media',
  ])
  expectEscaped(String(payload['text']))
  expect(payload['text']).not.toContain('`')
  const objects = objectsIn(payload['blocks'])
  expect(objects.some(({ type }) => type === 'plain_text')).toBe(true)
  expect(objects.some(({ url }) => url !== undefined)).toBe(true)
  for (const found of objects) {
    expect(found['type']).not.toBe('mrkdwn')
    if (found['type'] === 'link') expect(found['text']).toBe('open')
    expect(['broadcast', 'user', 'usergroup', 'emoji']).not.toContain(found['type'])
    if (found['type'] === 'plain_text') {
      expect(found['emoji']).toBe(false)
      expectEscaped(String(found['text']))
    }
    if (found['url'] !== undefined) {
      expect(found['url']).toMatch(/^https:\/\/app\.example\.com\/[^\s<>"]*$/)
    }
  }
}

function expectEscaped(text: string): void {
  expect(text).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/)
}

function words(reason: SinkReason, statuses: Record<string, number>): AnswerRow<ScriptedAnswer>[] {
  return Object.entries(statuses).map(([body, status]) =>
    answered(`${status} ${body}`, { status, body }, reason),
  )
}
