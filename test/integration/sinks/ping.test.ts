import type { LookupFunction } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import { sendPing } from '../../../src/sinks/http.ts'
import type { SinkError } from '../../../src/sinks/sink.ts'
import { freePort } from '../../support/free-port.ts'
import { anHttpServer, aTcpServer, failureOf } from './webhook/harness.ts'

test('2xx is success, and the request says who asks', async () => {
  const server = await anHttpServer()
  server.script({ status: 204 })
  await sendPing({ url: secretFromText(`${server.url}/p`), allowPrivate: true })
  expect(server.requests).toMatchObject([{ method: 'GET', headers: { 'user-agent': 'tocsin' } }])
})

test('a switch that does not answer in time is given up', async () => {
  const server = await anHttpServer()
  server.script('hang')
  const target = { url: secretFromText(server.url), allowPrivate: true }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const failed = failureOf(sendPing(target, { timeoutMs: 600_000 }))
  await expect.poll(() => server.requests.length).toBe(1)
  vi.advanceTimersByTime(600_000)
  expect(await failed).toMatchObject({ reason: 'timeout' })
})

test('a switch that is not there was not reached', async () => {
  const closed = `http://127.0.0.1:${await freePort()}`
  // the system's may wait for its own server longer than a ping does
  const resolve: LookupFunction = (name, _options, callback) =>
    callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }), '')
  for (const url of [closed, 'http://nobody.invalid']) {
    const target = { url: secretFromText(`${url}/tok-1`), allowPrivate: true }
    const { message } = await failureOf(sendPing(target, { resolve }))
    expect(message).toMatch(/^the receiver was not reached \((ECONNREFUSED|ENOTFOUND)\)$/)
  }
})

test('TLS on one side alone is said with what to write', async () => {
  const plain = await anHttpServer()
  const ping = (url: string): Promise<SinkError> =>
    failureOf(sendPing({ url: secretFromText(url), allowPrivate: true }))
  expect(await ping(plain.url.replace('http:', 'https:'))).toMatchObject({
    reason: 'misconfigured',
    message: 'what answers there speaks no TLS: https:// needs a port that does',
  })
  const alert = Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x0a])
  const alerting = await aTcpServer({ onBytes: (socket) => socket.end(alert) })
  expect(await ping(`http://127.0.0.1:${alerting.port}`)).toMatchObject({
    reason: 'misconfigured',
    message: 'what answers there speaks TLS: the address begins with https://',
  })
})

test('a private address is asked only where that is allowed, and clear text likewise', async () => {
  const server = await aTcpServer()
  const ping = (url: string): Promise<void> =>
    sendPing({ url: secretFromText(url), allowPrivate: false })
  const refused = await failureOf(ping(`https://127.0.0.1:${server.port}/tok-1`))
  expect(refused).toMatchObject({ reason: 'forbidden_address' })
  const named = await failureOf(ping(`https://localhost:${server.port}/tok-1`))
  expect(named).toMatchObject({ reason: 'forbidden_address' })
  const clear = await failureOf(ping(`http://127.0.0.1:${server.port}/tok-1`))
  expect(clear).toMatchObject({ reason: 'misconfigured' })
  expect(`${refused.message} ${named.message} ${clear.message}`).not.toContain('tok-1')
  expect(server.connections()).toBe(0)
})
