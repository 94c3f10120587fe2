import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ownFeed } from '../../../../src/event.ts'
import { systemClock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromFile, secretFromText } from '../../../../src/lib/config/secret.ts'
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
import { summarised } from '../../../support/summaries.ts'
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

describe('several events', () => {
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
