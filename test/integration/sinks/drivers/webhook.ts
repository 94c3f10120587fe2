/** The receiver of a webhook answers with a status alone. */
import { expect } from 'vitest'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import type { Sink, SinkReason } from '../../../../src/sinks/sink.ts'
import { createWebhookSink } from '../../../../src/sinks/webhook/webhook-sink.ts'
import { hostileTexts } from '../../../support/deliveries.ts'
import {
  type HttpServer,
  type ScriptedAnswer,
  startHttpServer,
} from '../../../support/http-server.ts'
import {
  answered,
  type AnswerRow,
  httpReceiver,
  type Received,
  type SinkDriver,
} from './sink-driver.ts'

const pathToken = 'tok-7f3e9a51c2'
const queryToken = 'qry-58d1b0e4aa'
const signingSecret = 'sig-c04d9e77b1-a8e2f650c3'
const authToken = 'aut-9b3c60d7f2'

export const webhook: SinkDriver<ScriptedAnswer> = {
  async start({ logger, clock }) {
    const server = await startHttpServer()
    const sink: Sink = createWebhookSink(
      {
        name: 'siem',
        type: 'webhook',
        url: secretFromText(`${server.url}/hooks/${pathToken}?key=${queryToken}`),
        secret: secretFromText(signingSecret),
        headers: [{ name: 'authorization', value: secretFromText(`Splunk ${authToken}`) }],
        allowPrivate: true,
        batch: { max: 50, waitMs: 1000, maxBytes: 262_144 },
        limitPerSecond: undefined,
        reveal: false,
      },
      { logger, clock },
    )
    return httpReceiver(server, {
      sink,
      secrets: [pathToken, queryToken, signingSecret, authToken],
      accept: () => server.script({ status: 204 }),
      receivedOf: ({ headers, body }) => ({
        id: String(headers['webhook-id']),
        text: body,
        saysRepeat: headers['tocsin-possible-repeat'] === 'true',
        saysTest: headers['tocsin-test'] === 'true' && JSON.parse(body).data.test === true,
      }),
      expectInert: (message) => expectInert(message, server),
    })
  },
  answers: [
    ...rows('redirected', [301, 302, 303, 304, 307, 308]),
    ...rows('invalid', [400, 413, 422]),
    ...rows('unauthorized', [401, 403]),
    ...rows('gone', [410]),
    ...rows('rejected', [402, 404, 405, 409, 415, 418, 451]),
    ...rows('unavailable', [408, 425, 500, 501, 502, 503, 504, 599]),
    ...rows('rate_limited', [429]),
    waiting(429, 'rate_limited', '20', 20_000),
    waiting(429, 'rate_limited', '0', 1000),
    waiting(429, 'rate_limited', '86400', 900_000),
    waiting(429, 'rate_limited', 'Sun, 06 Nov 1994 08:49:37 GMT', 1000),
    waiting(503, 'unavailable', '120', 120_000),
    answered(
      'a failure whose body echoes the request',
      { status: 400, body: `${pathToken} ${queryToken} ${signingSecret} Splunk ${authToken}` },
      'invalid',
    ),
  ],
}

/** JSON on one line that parses back to the very text, and no header that a text would have forged. */
function expectInert({ text }: Received, server: HttpServer): void {
  expect(text).toBe(JSON.stringify(JSON.parse(text)))
  const storable = hostileTexts.map((one) => one.toWellFormed().replaceAll('\0', '\ufffd'))
  expect(storable).toContain(JSON.parse(text).data.notes)
  const headers = server.requests.flatMap((request) => Object.keys(request.headers))
  expect(headers).not.toContain('x-forged')
}

function rows(reason: SinkReason, statuses: number[]): AnswerRow<ScriptedAnswer>[] {
  return statuses.map((status) => answered(`status ${status}`, { status }, reason))
}

function waiting(
  status: number,
  reason: SinkReason,
  retryAfter: string,
  retryAfterMs: number,
): AnswerRow<ScriptedAnswer> {
  const title = `status ${status} with Retry-After: ${retryAfter}`
  return answered(title, { status, headers: { 'retry-after': retryAfter } }, reason, retryAfterMs)
}
