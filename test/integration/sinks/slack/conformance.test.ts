/**
 * Promises of a Slack sink: those of every sink, and of every sink for people (`summary-conformance.ts`, `template-conformance.ts`), with words of Slack that stand in a body as its `answers`.
 * To add a driver for another type, copy this file: `test/support/sink-conformance.ts` says what each member of a driver does.
 */
import { expect } from 'vitest'
import { objectsIn } from '../../../support/objects-in.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import type { SinkReason } from '../../../../src/sinks/sink.ts'
import { createSlackSink } from '../../../../src/sinks/slack/slack-sink.ts'
import { startHttpServer, type ScriptedAnswer } from '../../../support/http-server.ts'
import {
  describeSinkConformance,
  type AnswerRow,
  type Received,
  type SinkConformance,
  type SinkDriver,
} from '../../../support/sink-conformance.ts'
import { describeSummaryConformance } from '../../../support/summary-conformance.ts'
import { describeTemplateConformance } from '../../../support/template-conformance.ts'

interface SlackDriver extends SinkDriver {
  answer(answer: ScriptedAnswer): void
}

const workspace = 'T7F3E9A51C2'
const service = 'B58D1B0E4AA'
const token = 'c04d9e77b1QxZv8hJt2'

const suite: SinkConformance<SlackDriver> = {
  name: 'the Slack sink',
  async create(environment) {
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
    return {
      sink,
      secrets: [workspace, service, token],
      async accept() {
        server.script({ status: 200, body: 'ok' })
        await server.listen()
      },
      answerLost: () => server.script('cut'),
      hang: () => server.script('hang'),
      refuse: () => server.refuse(),
      answer: (answer) => server.script(answer),
      received: () => server.requests.map(({ body }) => receivedOf(body)),
      openConnections: () => server.openConnections(),
      expectInert,
      stop: () => server.stop(),
    }
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
    {
      title: 'no_text with status 200',
      arrange: (driver) => driver.answer({ status: 200, body: 'no_text' }),
      reason: 'invalid',
    },
    {
      title: 'ok: false with status 200',
      arrange: (driver) =>
        driver.answer({ status: 200, body: '{"ok": false, "error": "channel_not_found"}' }),
      reason: 'gone',
    },
    {
      title: 'a page of some portal with status 200',
      arrange: (driver) => driver.answer({ status: 200, body: `<html>ok ${token}</html>` }),
      reason: 'misconfigured',
    },
    {
      title: '404 without a known word',
      arrange: (driver) => driver.answer({ status: 404, body: `/services/${token} not found` }),
      reason: 'rejected',
    },
    {
      title: 'a redirect',
      arrange: (driver) =>
        driver.answer({ status: 302, headers: { location: `/elsewhere/${token}` } }),
      reason: 'redirected',
    },
    waiting('429 with seconds', 'rate_limited', { 'retry-after': '30' }, 30_000),
    waiting('429 without Retry-After', 'rate_limited', {}, undefined),
  ],
}

describeSinkConformance(suite)
describeSummaryConformance(suite)
describeTemplateConformance(suite)

function receivedOf(body: string): Received {
  return {
    id: /delivery ([a-z0-9]+)/.exec(body)?.[1] ?? '',
    text: body,
    saysRepeat: body.includes('May be a repeat'),
    saysTest: body.includes('TEST'),
  }
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

function words(reason: SinkReason, statuses: Record<string, number>): AnswerRow<SlackDriver>[] {
  return Object.entries(statuses).map(([body, status]) => ({
    title: `${status} ${body}`,
    arrange: (driver) => driver.answer({ status, body }),
    reason,
  }))
}

function waiting(
  title: string,
  reason: SinkReason,
  headers: Record<string, string>,
  retryAfterMs: number | undefined,
): AnswerRow<SlackDriver> {
  return {
    title,
    arrange: (driver) => driver.answer({ status: 429, headers, body: 'rate_limited' }),
    reason,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}
