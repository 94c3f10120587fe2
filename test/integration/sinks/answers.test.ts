/** What counts as acceptance, and how long a receiver is left alone. */
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import type { SinkError, SinkReason } from '../../../src/sinks/sink.ts'
import { createSink } from '../../../src/sinks/create-sink.ts'
import { sinkConfig, type SinkConfig } from '../../../src/sinks/sink-types.ts'
import { aDelivery } from '../../support/deliveries.ts'
import { type ScriptedAnswer, startHttpServer } from '../../support/http-server.ts'

const types = {
  slack: { url: '/services/T/B/x' },
  teams: { url: '/flow?sig=x' },
  pagerduty: { url: '', routing_key: 'k'.repeat(32) },
  webhook: { url: '/hook' },
}
type Type = keyof typeof types
const all = Object.keys(types) as Type[]

/** What became of a message that is answered so: the receipt, or the error. */
async function outcome(type: Type, answer: ScriptedAnswer, nowMs?: number): Promise<unknown> {
  const server = await startHttpServer()
  onTestFinished(() => server.stop())
  server.script(answer)
  const keys = { ...types[type], url: `${server.url}${types[type].url}` }
  const config = {
    ...(sinkConfig.parse({ type, allow_private: true, ...keys }) as object),
    name: 'it',
  } as SinkConfig
  const clock = nowMs === undefined ? systemClock : { ...systemClock, now: () => nowMs }
  const parts = { logger: createLogger({ level: 'silent' }), clock }
  const sink = await createSink(config, parts)
  onTestFinished(() => sink.close())
  const signal = AbortSignal.timeout(10_000)
  const told: unknown = await sink
    .send(aDelivery(sink), { signal })
    .catch((error: unknown) => error)
  expect(server.requests).toHaveLength(1)
  return told
}

test.each(all)('any 2xx that names no error is acceptance: %s', async (type) => {
  const answers = [
    { status: 200, body: 'ok' },
    { status: 200, body: '{"ok":true}' },
    { status: 200, body: '{"success":true,"error":null,"errors":[]}' },
    ...['0', '{}', '""', '"none"', '"0"'].map((none) => ({
      status: 200,
      body: `{"error":${none},"errors":${none}}`,
    })),
    { status: 201, body: 'created' },
    { status: 202, body: '{"status":"success","dedup_key":"x"}' },
    { status: 200, body: '<?xml version="1.0"?><response><status>accepted</status></response>' },
    { status: 204 },
    { status: 200, body: 'ok'.repeat(100_000) },
  ]
  for (const answer of answers) {
    expect(await outcome(type, answer)).toEqual({ answer: expect.stringMatching(/^(HTTP )?20\d/) })
  }
})

test.each<[string, string, SinkReason]>([
  ['an error', '{"ok":false,"error":"something_new"}', 'rejected'],
  ['a failure without a word', '{"success":false}', 'rejected'],
  ['an error as a section', '{"error":{"code":"Whatever","message":"secret words"}}', 'rejected'],
  ['a failure as text', '{"success":"false"}', 'rejected'],
  ['no ok, as text', '{"ok":"False"}', 'rejected'],
  ['a failure behind a byte order mark', '\uFEFF{"ok":false}', 'rejected'],
  ['an error as a status', '{"status":"error","message":"secret words"}', 'rejected'],
  ['errors', '{"errors":["secret words"]}', 'rejected'],
  ['a web page', '\n<!doctype html><title>secret words</title>', 'misconfigured'],
  ['a page of XHTML', '<?xml version="1.0"?>\n<!-- a --><html><p>secret words', 'misconfigured'],
])('a 2xx that is %s is none', async (_title, body, reason) => {
  for (const type of all) {
    for (const status of [200, 202]) {
      const told = await outcome(type, { status, body })
      expect(told).toMatchObject({ reason, status })
      expect((told as SinkError).message).not.toContain('secret words')
    }
  }
})

function page(title: string): string {
  return `<html>\r\n<head><title>400 ${title}</title></head>\r\n<body></body></html>`
}

test.each<[string, number, string]>([
  ['wants a certificate', 400, page('No required SSL certificate was sent')],
  ['wants a certificate, by its own status', 496, ''],
  ['refuses the certificate', 400, page('The SSL certificate error')],
  ['refuses the certificate, by its own status', 495, ''],
  ['speaks TLS', 400, page('The plain HTTP request was sent to HTTPS port')],
  ['speaks TLS, by its own status', 497, ''],
  ['speaks TLS and is written in Go', 400, 'Client sent an HTTP request to an HTTPS server.\n'],
])('a server that %s lays nothing at the event', async (_title, status, body) => {
  for (const type of all) {
    const told = await outcome(type, { status, body })
    expect(told).toMatchObject({ reason: 'misconfigured', status })
  }
})

test.each([
  '400 No required SSL certificate was sent',
  '<title>400 No required SSL certificate was sent</title>',
  page('The SSL certificate error'),
])('an event that quotes such a server is refused as any other: %s', async (quoted) => {
  for (const body of [JSON.stringify({ refused: quoted }), `refused: ${quoted}`])
    expect(await outcome('webhook', { status: 400, body })).toMatchObject({ reason: 'invalid' })
})

test.each<[Type, number, string, SinkReason]>([
  ['slack', 200, 'no_active_hooks', 'gone'],
  ['slack', 404, 'no_active_hooks', 'gone'],
  ['slack', 200, '{"ok":false,"error":"channel_is_archived"}', 'gone'],
  ['slack', 200, 'action_prohibited', 'unauthorized'],
  ['teams', 202, '{"error":{"code":"WorkflowTriggerIsNotEnabled"}}', 'misconfigured'],
  ['teams', 200, '{"error":"constructor"}', 'rejected'],
  ['slack', 200, '{"error":"constructor"}', 'rejected'],
])('an error that %s names beside %i, %s, is %s', async (type, status, body, reason) => {
  expect(await outcome(type, { status, body })).toMatchObject({ reason })
})

test.each(all)(
  'a wait until a date counts from the date of the answer, whatever our clock says: %s',
  async (type) => {
    const noon = Date.UTC(2026, 10, 1, 12)
    const headers = {
      date: new Date(noon).toUTCString(),
      'retry-after': new Date(noon + 120_000).toUTCString(),
    }
    for (const offMs of [-600_000, 0, 600_000]) {
      const told = await outcome(type, { status: 429, headers }, noon + offMs)
      expect(told).toMatchObject({ reason: 'rate_limited', retryAfterMs: 120_000 })
    }
  },
)
