import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ownFeed } from '../../../../src/event.ts'
import { systemClock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromFile, secretFromText } from '../../../../src/lib/secret.ts'
import { findPagerDutyErrors } from '../../../../src/sandbox/receivers/pagerduty-receiver.ts'
import { type Delivery, type Sink, SinkError } from '../../../../src/sinks/sink.ts'
import type { PagerDutyConfig } from '../../../../src/sinks/pagerduty/config.ts'
import { createPagerDutySink } from '../../../../src/sinks/pagerduty/pagerduty-sink.ts'
import { aDelivery, aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import {
  type PagerDutyEvent,
  type PagerDutyReceiver,
  refusal,
  startPagerDutyReceiver,
} from '../../../support/pagerduty-receiver.ts'
import { manyMembers, summarised } from '../../../support/summaries.ts'
import { anyMember } from '../../../unit/sinks/any-member.ts'

const routingKey = 'c04d9e77b1Q4xZv8hJt2T7F3E9A51C2p'
let server: PagerDutyReceiver
let sinks: Sink[] = []

beforeEach(async () => {
  server = await startPagerDutyReceiver(routingKey)
})

afterEach(async () => {
  await Promise.all(sinks.map((sink) => sink.close()))
  sinks = []
  await server.stop()
})

test('an event is an incident with what a responder must know', async () => {
  const sink = aSink()
  const { answer } = await send(sink, { members: [aMember({ feed: 'brand' })] })
  expect(answer).toBe('202 success, dedup_key 0123456789abcdef')
  const [event] = server.events()
  expect(event).toMatchObject({
    routing_key: routingKey,
    event_action: 'trigger',
    dedup_key: '0123456789abcdef',
    client: 'Tocsin',
    payload: {
      summary: expect.stringMatching(/^[A-Z]+ Stealer log: /),
      timestamp: '2026-11-01T12:02:00.000Z',
      component: 'brand',
      group: 'main',
      class: 'stealer_log',
      custom_details: {
        Matched: 'example[.]com',
        Context: expect.stringContaining('feed brand (team brand)'),
        Routes: ['urgent'],
        Delivery: '0123456789abcdef',
      },
    },
    links: [{ href: expect.stringContaining('https://app.example.com/'), text: 'Open event' }],
  })
})

test.each([
  ['critical', 'critical'],
  ['high', 'error'],
  ['medium', 'warning'],
  ['low', 'info'],
  ['info', 'info'],
  ['unknown', 'critical'],
  ['none', 'critical'],
  ['hi\u200Bgh', 'critical'],
])('severity %j is %s at PagerDuty', async (severity, expected) => {
  await send(aSink(), { members: [aMember({ event: aThreatEvent({ severity }) })] })
  expect(lastEvent().payload.severity).toBe(expected)
})

test('whatever a feed holds, the event is one that PagerDuty takes', async () => {
  const sink = aSink()
  await fc.assert(
    fc.asyncProperty(anyMember, async (member) => {
      expect(await send(sink, { members: [member] })).toMatchObject({
        answer: expect.stringMatching(/^202 success/),
      })
    }),
    { numRuns: 100 },
  )
})

test('facts of the same name are all told', async () => {
  const highlights = { highlights: ['first finding', 'second finding'] }
  const event = aThreatEvent({ type: 'threat_flow_report', uid: 'report/x/1', highlights })
  await send(aSink(), { members: [aMember({ event })] })
  expect(lastEvent().payload.custom_details).toMatchObject({
    Highlight: 'first finding',
    'Highlight (2)': 'second finding',
  })
})

describe('several events', () => {
  test.each(['group', 'storm', 'backlog', 'held'] as const)(
    'a %s is one incident that is as grave as its gravest event',
    async (kind) => {
      const members = manyMembers(40)
      const { total } = summarised(members).summary!
      await send(aSink(), summarised(members, { kind }))
      expect(server.events()).toHaveLength(1)
      const { payload, links } = lastEvent()
      expect(payload.severity).toBe('critical')
      expect(payload.summary).toContain(`${total} `)
      expect(payload.custom_details['Events']).toHaveLength(25)
      expect(payload.custom_details['Events']?.[0]).toMatch(/^1\. CRITICAL /)
      expect(payload.custom_details['Not listed']).toMatch(/^and 15 more: "tocsin items show /)
      expect(links[1]?.text).toBe('Open event 2')
    },
  )

  test('what all of them have in common names the source', async () => {
    const event = aThreatEvent({ severity: 'low', identifiers: [{ id: 1, name: 'Example Bank' }] })
    const members = [aMember({ event }), aMember({ event })]
    await send(aSink(), summarised(members))
    expect(lastEvent().payload).toMatchObject({
      source: 'Example Bank',
      severity: 'info',
      component: 'brand',
      group: 'main',
      class: 'stealer_log',
    })
    await send(aSink(), summarised(manyMembers(12)))
    expect(lastEvent().payload.source).toBe('tocsin')
    expect(lastEvent().payload.component).toBeUndefined()
  })

  test('one of unknown severity makes the incident critical', async () => {
    const members = ['low', 'none'].map((severity) =>
      aMember({ event: aThreatEvent({ severity }) }),
    )
    await send(aSink(), summarised(members))
    expect(lastEvent().payload.severity).toBe('critical')
  })

  test('are refused without a summary, for no event may be left out silently', async () => {
    const members = [aMember(), aMember({ id: 'item2' })]
    expect(await failureOf(aSink(), { members })).toMatchObject({ reason: 'invalid' })
    expect(server.requests).toEqual([])
  })
})

describe('what nobody must be woken for', () => {
  const critical = aThreatEvent({ severity: 'critical' })

  test('a test opens an incident of severity info', async () => {
    await send(aSink(), { members: [aMember({ event: critical })], isTest: true })
    expect(lastEvent()).toMatchObject({ event_action: 'trigger', payload: { severity: 'info' } })
  })

  test('a canary ends an incident that never began, so none is opened', async () => {
    const member = aMember({ event: { ...critical, type: 'canary' }, feed: ownFeed })
    await send(aSink(), { members: [member], isTest: true })
    expect(lastEvent()).toMatchObject({ event_action: 'resolve', dedup_key: '0123456789abcdef' })
  })

  test('canaries that were held and come together end none either', async () => {
    const event = aThreatEvent({ type: 'canary' })
    const members = [1, 2].map((n) => aMember({ id: `item${n}`, event, feed: ownFeed }))
    await send(aSink(), { ...summarised(members), isTest: true })
    expect(lastEvent().event_action).toBe('resolve')
  })

  test('a self-alert is no canary', async () => {
    await send(aSink(), { members: [aMember({ event: critical, feed: ownFeed })] })
    expect(lastEvent()).toMatchObject({
      event_action: 'trigger',
      payload: { severity: 'critical' },
    })
  })

  test("the end of Tocsin's own trouble resolves the incident of its begin, and no other", async () => {
    const sink = aSink()
    const tell = (uid: string, feed = ownFeed): Promise<unknown> =>
      send(sink, { members: [aMember({ event: aThreatEvent({ uid, type: 'notice' }), feed })] })
    await tell('notice/tocsin/feed-stalled-brand-1-begin')
    await tell('notice/tocsin/feed-stalled-brand-1-end')
    await tell('notice/tocsin/feed-stalled-brand-1-end', 'brand')
    expect(server.events().map((one) => [one.event_action, one.dedup_key])).toEqual([
      ['trigger', 'notice/tocsin/feed-stalled-brand-1'],
      ['resolve', 'notice/tocsin/feed-stalled-brand-1'],
      ['trigger', '0123456789abcdef'],
    ])
  })
})

test('a refusal says why, in the words of PagerDuty without the key', async () => {
  server.script(refusal(["'payload.summary' is too long", `see ${routingKey.slice(3, 12)} there`]))
  expect((await failureOf(aSink())).message).toBe(
    "pagerduty answered 400 invalid event: 'payload.summary' is too long; see <secret> there",
  )
  server.script(refusal(Array.from({ length: 50 }, () => 'x'.repeat(100))))
  expect((await failureOf(aSink())).message.length).toBeLessThan(250)
})

test('the key is read from its file at each send, and one that cannot be a key is not sent', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-pagerduty-'))
  const file = join(folder, 'key')
  try {
    const sink = aSink({ routingKey: secretFromFile(file) })
    expect((await failureOf(sink)).reason).toBe('misconfigured')
    writeFileSync(file, 'u+REST-API-key-of-20')
    expect(await failureOf(sink)).toMatchObject({
      reason: 'misconfigured',
      message: expect.not.stringContaining('REST-API'),
    })
    expect(server.requests).toEqual([])
    writeFileSync(file, `${routingKey}\n`)
    await send(sink)
    expect(lastEvent().routing_key).toBe(routingKey)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a private address is refused before a byte is sent', async () => {
  const url = `https://127.0.0.1:${server.port}`
  expect((await failureOf(aSink({ url, allowPrivate: false }))).reason).toBe('forbidden_address')
  expect((await failureOf(aSink({ allowPrivate: false }))).message).toContain('url is not https')
  expect(server.requests).toEqual([])
})

describe('the receiver of these tests', () => {
  const valid = {
    routing_key: routingKey,
    event_action: 'trigger',
    dedup_key: 'a',
    client: 'Tocsin',
    payload: {
      summary: 'a',
      source: 'a',
      severity: 'info',
      timestamp: '2026-11-01T12:02:00.000Z',
      custom_details: { a: 'a' },
    },
    links: [],
  }
  const { payload } = valid

  test('takes what is valid', () => {
    expect(findPagerDutyErrors(JSON.stringify(valid), routingKey)).toEqual([])
  })

  test.each([
    ['a short key', { routing_key: routingKey.slice(1) }],
    ['another key', { routing_key: 'z'.repeat(32) }],
    ['an unknown action', { event_action: 'open' }],
    ['a long dedup_key', { dedup_key: 'a'.repeat(256) }],
    ['an unknown field', { priority: 1 }],
    ['no payload', { payload: undefined }],
    ['no summary', { payload: { ...payload, summary: '' } }],
    ['a long summary', { payload: { ...payload, summary: 'a'.repeat(1025) } }],
    ['a torn summary', { payload: { ...payload, summary: '\uD83D' } }],
    ['no source', { payload: { ...payload, source: ' ' } }],
    ['a severity of ours', { payload: { ...payload, severity: 'high' } }],
    ['a time that is none', { payload: { ...payload, timestamp: '+275760-09-13T00:00:00Z' } }],
    ['a blank class', { payload: { ...payload, class: '' } }],
    ['512 KB', { payload: { ...payload, custom_details: { a: 'a'.repeat(512_000) } } }],
    ['a link without address', { links: [{ href: 'x', text: 'x' }] }],
    ['an image without address', { images: [{ alt: 'x' }] }],
    ['an image from an insecure address', { images: [{ src: 'http://example.com/a.png' }] }],
  ])('refuses %s', (_, change) => {
    expect(findPagerDutyErrors(JSON.stringify({ ...valid, ...change }), routingKey)).toHaveLength(1)
  })
})

function aSink(config: Partial<PagerDutyConfig> = {}): Sink {
  const sink = createPagerDutySink(
    {
      name: 'duty',
      type: 'pagerduty',
      url: server.url,
      routingKey: secretFromText(routingKey),
      limitPerSecond: undefined,
      allowPrivate: true,
      ...config,
    },
    { logger: createLogger({ level: 'silent' }), clock: systemClock },
  )
  sinks.push(sink)
  return sink
}

function send(sink: Sink, delivery: Partial<Delivery> = {}): Promise<{ answer: string }> {
  return sink.send(aDelivery(sink, delivery), { signal: AbortSignal.timeout(45_000) })
}

async function failureOf(sink: Sink, delivery: Partial<Delivery> = {}): Promise<SinkError> {
  const error: unknown = await send(sink, delivery).catch((thrown: unknown) => thrown)
  if (error instanceof SinkError) return error
  throw new Error(`expected a SinkError, not ${JSON.stringify(error)}`, { cause: error })
}

function lastEvent(): PagerDutyEvent {
  const event = server.events().at(-1)
  if (event === undefined) throw new Error('nothing arrived')
  return event
}
