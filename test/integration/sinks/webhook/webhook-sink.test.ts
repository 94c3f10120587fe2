import { inspect } from 'node:util'
import { createHmac } from 'node:crypto'
import type { LookupFunction, Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../../../src/lib/clock.ts'
import { secretFromFile, secretFromText, createSecret } from '../../../../src/lib/config/secret.ts'
import { aDelivery, aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { summarised } from '../../../support/summaries.ts'
import { aTcpServer, aWebhookSink, anHttpServer, failureOf, send } from './harness.ts'

const secret = `whsec_${Buffer.from('a signing key of twenty-four').toString('base64')}`
const noon = Date.UTC(2026, 10, 1, 12, 0, 0, 999)
const clock = { ...systemClock, now: () => noon }

test('a delivery is one signed POST that a Standard Webhooks receiver can verify', async () => {
  const server = await anHttpServer()
  const sink = aWebhookSink(
    `${server.url}/hooks/tok?key=qry`,
    { secret: secretFromText(secret) },
    { clock },
  )
  expect(await send(sink, { id: 'd1', attempt: 3 })).toEqual({ answer: 'HTTP 200' })
  const [{ method, path, headers, body } = expect.fail('nothing arrived')] = server.requests
  expect([method, path]).toEqual(['POST', '/hooks/tok?key=qry'])
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': 'tocsin',
    'webhook-id': 'd1',
    'idempotency-key': 'd1',
    'webhook-timestamp': String(Math.floor(noon / 1000)),
    'tocsin-attempt': '3',
  })
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signed = `d1.${Math.floor(noon / 1000)}.${body}`
  const expected = createHmac('sha256', key).update(signed).digest('base64')
  expect(headers['webhook-signature']).toBe(`v1,${expected}`)
  expect(headers).not.toHaveProperty('tocsin-possible-repeat')
  expect(headers).not.toHaveProperty('tocsin-test')
})

test('a summary, sealed before the sink became a webhook, is refused for good and not posted', async () => {
  const server = await anHttpServer()
  const failed = send(aWebhookSink(server.url), summarised([aMember(), aMember()]))
  await expect(failed).rejects.toThrow('a summary is for people')
  await expect(failed).rejects.toMatchObject({ reason: 'invalid' })
  expect(server.requests).toEqual([])
})

test('further headers go with each request, as their files say then', async () => {
  const server = await anHttpServer()
  let value = 'first'
  const changing = createSecret(() => value)
  const sink = aWebhookSink(server.url, {
    headers: [
      { name: 'authorization', value: changing },
      { name: 'x-tenant', value: secretFromText('acme') },
    ],
  })
  await send(sink)
  value = 'second'
  await send(sink)
  for (const [at, word] of ['first', 'second'].entries()) {
    expect(server.requests[at]?.headers).toMatchObject({
      authorization: word,
      'x-tenant': 'acme',
      'webhook-id': expect.any(String),
    })
  }
  value = 'third\r\nX-Forged: 1'
  const error = await failureOf(send(sink))
  expect(error.reason).toBe('misconfigured')
  expect(error.message).toBe(
    'headers authorization: no value of a header; write it on one line, such as: Splunk <token>',
  )
  expect(server.requests).toHaveLength(2)
  const { added, headers } = sink.preview?.(aDelivery(sink)) ?? {}
  expect(added).toBe('webhook-timestamp and authorization and x-tenant')
  expect(headers).not.toHaveProperty('authorization')
})

test('a body has nothing of what databases refuse, where a template writes it, too', async () => {
  const text = 'NUL \0, halves \ud83d and \ude00, a pair \u{1f600}, a backslash \\u0000'
  const clean = 'NUL \ufffd, halves \ufffd and \ufffd, a pair \u{1f600}, a backslash \\u0000'
  const members = [aMember({ event: aThreatEvent({ notes: text }) })]
  const own = `{"whole": {{ notes | json }}, "own": "\\ud83d\\ude00\\ud83d"}`
  const server = await anHttpServer()
  await send(aWebhookSink(server.url), { members })
  await send(aWebhookSink(server.url, { templates: { webhook_body: own } }), { members })
  const [built, templated] = server.requests.map(({ body }) => JSON.parse(body) as unknown)
  expect(built).toMatchObject({ data: { notes: clean } })
  expect(templated).toEqual({ whole: clean, own: '\u{1f600}\ufffd' })
})

test('without a secret there is a timestamp and no signature', async () => {
  const server = await anHttpServer()
  await send(aWebhookSink(server.url))
  expect(server.requests[0]?.headers).toHaveProperty('webhook-timestamp')
  expect(server.requests[0]?.headers).not.toHaveProperty('webhook-signature')
})

test('the url and the secrets are read at every send', async () => {
  const server = await anHttpServer()
  let turn = 0
  const sink = aWebhookSink('', {
    url: createSecret(() => `${server.url}/${++turn}`),
    secret: createSecret(() => `a key of 24 bytes, turn ${turn}`),
  })
  await send(sink)
  await send(sink)
  expect(server.requests.map(({ path }) => path)).toEqual(['/1', '/2'])
  const signatures = server.requests.map(({ headers }) => headers['webhook-signature'])
  expect(new Set(signatures).size).toBe(2)
})

test.each([
  ['no URL at all', 'tok-1 qry-2'],
  ['without a host', 'https:///'],
  ['a user', 'https://tok-1@siem.example.com/'],
])('a url that is %s is the operator to mend, and is not repeated', async (_title, url) => {
  const error = await failureOf(send(aWebhookSink(url)))
  expect(error.reason).toBe('misconfigured')
  expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/tok-1|qry-2/)
})

test.each([
  ['url', { url: secretFromFile('/nonexistent/url') }],
  ['signing secret', { secret: secretFromFile('/nonexistent/secret') }],
  ['signing secret that is empty', { secret: secretFromText('') }],
])('an unusable %s is the operator to mend, and nothing is sent', async (_title, config) => {
  const server = await aTcpServer()
  const sink = aWebhookSink(`http://127.0.0.1:${server.port}/`, config)
  expect(await failureOf(send(sink))).toMatchObject({ reason: 'misconfigured' })
  expect(server.connections()).toBe(0)
})

test('answers that say much do not use up the connections', async () => {
  const server = await anHttpServer()
  server.script({ status: 200, body: 'x'.repeat(100_000) })
  const sink = aWebhookSink(server.url)
  const signal = AbortSignal.timeout(30_000)
  for (let turn = 0; turn < 3 * sink.concurrency; turn += 1) await send(sink, {}, signal)
  await expect.poll(() => server.openConnections()).toBeLessThanOrEqual(sink.concurrency)
})

test('a batch goes out as one request with every member', async () => {
  const server = await anHttpServer()
  const batch = { max: 50, waitMs: 1000, maxBytes: 262_144 }
  const sink = aWebhookSink(server.url, { batch, limitPerSecond: 2 })
  expect(sink).toMatchObject({ batch, limitPerSecond: 2 })
  await send(sink, { members: [aMember({ id: 'a' }), aMember({ id: 'b' })] })
  const { data } = JSON.parse(server.requests[0]?.body ?? '')
  expect(data.items.map((item: { id: string }) => item.id)).toEqual(['a', 'b'])
})

test('proxy variables of the environment are not heeded', async () => {
  const proxy = await anHttpServer()
  const server = await anHttpServer()
  onTestFinished(() => void vi.unstubAllEnvs())
  for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY']) vi.stubEnv(name, proxy.url)
  await send(aWebhookSink(server.url))
  expect(proxy.requests).toEqual([])
  expect(server.requests).toHaveLength(1)
})

test('closing in the middle of a send ends it as an answer lost', async () => {
  const server = await anHttpServer()
  server.script('hang')
  const sink = aWebhookSink(server.url)
  const failed = failureOf(send(sink))
  await expect.poll(() => server.requests.length).toBe(1)
  await sink.close()
  expect(await failed).toMatchObject({ reason: 'connection_lost' })
})

test('a reach that is given up ends at once, and closes the connection that comes all the same', async () => {
  const connected = Promise.withResolvers<Socket>()
  const server = await aTcpServer({ onConnect: connected.resolve })
  const asked = Promise.withResolvers<() => void>()
  const resolve: LookupFunction = (_host, _options, answer) =>
    asked.resolve(() => answer(null, [{ address: '127.0.0.1', family: 4 }]))
  const sink = aWebhookSink(`http://siem.example.com:${server.port}/`, {}, { resolve })
  const giving = new AbortController()
  const failed = failureOf(sink.reach(giving.signal))
  const answerName = await asked.promise
  giving.abort()
  expect(await failed).toMatchObject({
    reason: 'unavailable',
    message: expect.stringMatching(/ was not reached/),
  })
  answerName()
  const socket = await connected.promise
  await expect.poll(() => socket.destroyed).toBe(true)
})
