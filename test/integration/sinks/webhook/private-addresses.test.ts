/** Webhooks cannot be pointed at private addresses unless these are allowed. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import { aProxy } from '../../../support/proxy.ts'
import { aTcpServer, aWebhookSink, failureOf, send } from './harness.ts'

test.each(['127.0.0.1', '169.254.169.254', '[64:ff9b::a9fe:a9fe]', 'localhost', 'db.localhost'])(
  'https://%s is refused behind a proxy too, and the proxy is not asked',
  async (host) => {
    const proxy = await aProxy()
    const config = { allowPrivate: false, proxy: secretFromText(proxy.url) }
    const sink = aWebhookSink(`https://${host}/hooks`, config)
    expect(await failureOf(send(sink))).toMatchObject({ reason: 'forbidden_address' })
    expect(proxy.tunnels).toEqual([])
  },
)

test('an IPv6 address in brackets is reached, and refused where private ones are', async () => {
  const server = createServer((socket) => socket.end())
  await once(server.listen(0, '::1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const url = `http://[::1]:${port}/hook`
  const { answer } = await aWebhookSink(url).reach(AbortSignal.timeout(45_000))
  expect(answer).toBe(`TCP to [::1]:${port}`)
  const guarded = aWebhookSink(url.replace('http', 'https'), { allowPrivate: false })
  const refusal = failureOf(guarded.reach(AbortSignal.timeout(45_000)))
  expect(await refusal).toMatchObject({ reason: 'forbidden_address' })
})

test('plain http needs allow_private, and nothing connects', async () => {
  const server = await aTcpServer()
  const sink = aWebhookSink(`http://127.0.0.1:${server.port}/`, { allowPrivate: false })
  const error = await failureOf(send(sink))
  expect(error).toMatchObject({
    reason: 'misconfigured',
    message: expect.stringContaining('https'),
  })
  expect(server.connections()).toBe(0)
})
