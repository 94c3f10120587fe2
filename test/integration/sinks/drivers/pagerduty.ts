/** The Events API of PagerDuty answers with its errors in a body. */
import { expect } from 'vitest'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import { createPagerDutySink } from '../../../../src/sinks/pagerduty/pagerduty-sink.ts'
import type { ReceivedRequest, ScriptedAnswer } from '../../../support/http-server.ts'
import {
  type PagerDutyEvent,
  refusal,
  startPagerDutyReceiver,
} from '../../../support/pagerduty-receiver.ts'
import { answered, httpReceiver, type Received, type SinkDriver } from './sink-driver.ts'

const routingKey = 'c04d9e77b1Q4xZv8hJt2T7F3E9A51C2p'

export const pagerduty: SinkDriver<ScriptedAnswer> = {
  async start(environment) {
    const server = await startPagerDutyReceiver(routingKey)
    const sink = createPagerDutySink(
      {
        name: 'duty',
        type: 'pagerduty',
        url: server.url,
        routingKey: secretFromText(routingKey),
        limitPerSecond: undefined,
        allowPrivate: true,
        templates: environment.templates,
      },
      environment,
    )
    return httpReceiver(server, {
      sink,
      secrets: [routingKey, routingKey.slice(0, 10), routingKey.slice(-10)],
      accept: () => server.judge(),
      receivedOf,
      expectInert,
    })
  },
  answers: [
    answered('an invalid event', refusal(["'payload.summary' is too long"]), 'invalid'),
    answered('400 without a word', { status: 400 }, 'invalid'),
    answered('an event that is too large', { status: 413 }, 'invalid'),
    answered(
      'a key of the wrong length',
      refusal(["Length of 'routing_key' is incorrect (should be 32 characters)"]),
      'unauthorized',
    ),
    answered(
      'a key that is not known, quoted in the answer',
      {
        status: 400,
        body: `{"status":"Invalid routing key","message":"no integration ${routingKey}","errors":["${routingKey.slice(0, 12)}… is unknown","${routingKey.toLowerCase()}","x${routingKey}"]}`,
      },
      'unauthorized',
    ),
    answered('403', { status: 403, body: routingKey }, 'unauthorized'),
    answered('404', { status: 404 }, 'rejected'),
    answered(
      '202 with an error in it',
      { status: 202, body: '{"status":"invalid event","errors":["no summary"]}' },
      'rejected',
    ),
    answered('a redirect', { status: 302, headers: { location: '/elsewhere' } }, 'redirected'),
    answered('a page of some portal', { status: 500, body: `<html>${routingKey}` }, 'unavailable'),
    answered('503 with Retry-After', waiting(503, '30'), 'unavailable', 30_000),
    answered('429 with Retry-After', waiting(429, '30'), 'rate_limited', 30_000),
    answered('429 without Retry-After: minutes', { status: 429 }, 'rate_limited', 180_000),
  ],
}

function receivedOf({ body }: ReceivedRequest): Received {
  const event = JSON.parse(body) as PagerDutyEvent
  return {
    id: event.dedup_key,
    text: body,
    saysRepeat: String(event.payload.custom_details['Notes']).includes('May be a repeat'),
    saysTest: event.payload.summary.includes('TEST'),
  }
}

/** The only links are those to the service, under words of ours; no text holds one, nor what hides. */
function expectInert({ text }: Received): void {
  const { links, routing_key: _, ...event } = JSON.parse(text) as PagerDutyEvent
  for (const { href, text: words } of links) {
    expect(href).toMatch(/^https:\/\/app\.example\.com\/[^\s<>"]*$/)
    expect(words).toMatch(/^Open event( \d+)?$/)
  }
  for (const said of textsIn(event)) {
    expect(said).not.toMatch(/(?<!hxxps?):\/\//)
    expect(said).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
    expect(said.isWellFormed()).toBe(true)
  }
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)])
}

function waiting(status: number, seconds: string): ScriptedAnswer {
  return { status, headers: { 'retry-after': seconds } }
}
