import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Outbound } from '../../../src/lib/config/outbound-config.ts'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import type { AccountConfig } from '../../../src/upstream/config.ts'
import { errorFromAnswer } from '../../../src/upstream/failures.ts'
import { readAnswer } from '../../../src/upstream/access/session.ts'
import { notBegun, UpstreamError } from '../../../src/upstream/error.ts'
import {
  createConnections,
  createTransport,
  type Transport,
} from '../../../src/upstream/transport.ts'
import { wireSearchPage, type WireSearchPage } from '../../../src/upstream/resources/page.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startHttpServer, type HttpServer, type ScriptedAnswer } from '../../support/http-server.ts'
import { anAccount, testKey } from '../../support/replica.ts'
import { aProxy } from '../../support/proxy.ts'

const limits = {
  connectMs: 5_000,
  headersMs: 5_000,
  bodyMs: 5_000,
  totalMs: 10_000,
}
const hasty = { ...limits, headersMs: 250, bodyMs: 250 }
const page = { status: 200, body: '{"items":[],"next":null}' }

let server: HttpServer

beforeEach(async () => {
  server = await startHttpServer()
})
afterEach(() => server.stop())

describe('an answer', () => {
  test.each<[string, ScriptedAnswer, Partial<UpstreamError>]>([
    ['429', { status: 429 }, { reason: 'rate_limited', retryAfterMs: 10_000 }],
    ['429 with seconds', retry('7'), { reason: 'rate_limited', retryAfterMs: 7000 }],
    ['429 with an hour', retry('3600'), { reason: 'rate_limited', retryAfterMs: 900_000 }],
    ['401', { status: 401 }, { reason: 'auth', status: 401 }],
    ['403', { status: 403 }, { reason: 'auth', status: 403 }],
    [
      '400',
      { status: 400, body: '{"message":"x","code":"C"}' },
      { reason: 'rejected', serviceCode: 'C' },
    ],
    ['404', { status: 404 }, { reason: 'rejected' }],
    ['422', { status: 422 }, { reason: 'rejected' }],
    ['408', { status: 408 }, { reason: 'timeout' }],
    ['500', { status: 500 }, { reason: 'unavailable' }],
    ['504 in plain text', { status: 504, body: 'upstream timeout' }, { reason: 'unavailable' }],
    [
      '301',
      { status: 301, headers: { location: '/else' } },
      { reason: 'contract', fault: 'redirect' },
    ],
    ['204', { status: 204 }, { reason: 'contract' }],
    ['HTML', { status: 200, body: '<!doctype html><p>' }, { reason: 'contract', fault: 'html' }],
    ['half of JSON', { status: 200, body: '{"items":[' }, { reason: 'contract' }],
    ['JSON of another shape', { status: 200, body: '{"item":[]}' }, { reason: 'contract' }],
    ['null', { status: 200, body: 'null' }, { reason: 'contract' }],
    [
      'more than is taken',
      { status: 200, body: '"x'.padEnd(5000, 'x') },
      { reason: 'contract', fault: 'too_large' },
    ],
    ['none', 'hang', { reason: 'timeout' }],
    ['a reset', 'cut', { reason: 'unavailable', fault: 'cut' }],
  ])('%s is told apart', async (_title, answer, expected) => {
    server.script(answer)
    const error = await failure(aTransport(server.url, answer === 'hang' ? hasty : limits))
    expect(error).toMatchObject(expected)
    expect(server.requests).toHaveLength(1)
  })

  test('that is a web page is called so, and not a page of too many items', async () => {
    const script = `a={b:[${'1,'.repeat(500)}1]}`
    server.script({ status: 200, body: `<!doctype html><script>${script}</script>` })
    const error = await failure(aTransport())
    expect(error).toMatchObject({ reason: 'contract', fault: 'html' })
  })

  test('of an error is read as far as a message needs it, however much follows', async () => {
    const url = await rawServer((socket) => {
      socket.write('HTTP/1.1 500 X\r\ncontent-length: 99999999\r\n\r\n')
      socket.write(`out of order ${'{},'.repeat(30_000)}`) // and nothing more for ever
    })
    const error = await failure(aTransport(url, limits))
    expect(error).toMatchObject({ reason: 'unavailable', status: 500 })
    expect(error.message).toContain('out of order')
  })

  test('that stops in the middle is a time-out', async () => {
    server.script({ status: 200, headers: { 'content-length': '500' }, body: '{"items":[' })
    expect(await failure(aTransport(server.url, hasty))).toMatchObject({ reason: 'timeout' })
  })

  test('that is cut in the middle is unavailable', async () => {
    const url = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"items":')
      setTimeout(() => socket.destroy(), 20)
    })
    expect(await failure(aTransport(url))).toMatchObject({ reason: 'unavailable', fault: 'cut' })
  })

  test('that drips for ever ends at the time-out for all of it', async () => {
    const url = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n')
      const drip = setInterval(() => socket.write(' '), 50)
      socket.on('close', () => clearInterval(drip)).on('error', () => clearInterval(drip))
    })
    const error = await failure(aTransport(url, { ...limits, totalMs: 500 }))
    expect(error).toMatchObject({ reason: 'timeout' })
  })

  test('that is not HTTP breaks the contract', async () => {
    const url = await rawServer((socket) => socket.end('220 mail.example.com ESMTP\r\n'))
    expect(await failure(aTransport(url))).toMatchObject({ reason: 'contract', fault: 'not_http' })
  })
})

describe('no way to the service', () => {
  test('TLS where it is not expected is named, if the other side says so', async () => {
    const alert = Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x0a])
    const url = await rawServer((socket) => socket.end(alert))
    const error = await failure(aTransport(url))
    expect(error).toMatchObject({ reason: 'unavailable', fault: 'scheme' })
    expect(error.message).toContain('speaks TLS: the address begins with https://')
  })

  test('a caller that gives up gets a time-out at once', async () => {
    server.script('hang')
    const stop = new AbortController()
    // longer than the test may take
    const patient = { ...limits, headersMs: 120_000, totalMs: 120_000 }
    const failed = failure(aTransport(server.url, patient), stop.signal)
    await expect.poll(() => server.requests.length).toBe(1)
    stop.abort()
    expect(await failed).toMatchObject({ reason: 'timeout' })
  })
})

describe('a request', () => {
  test.each(['directly', 'through a proxy'])(
    'that may not begin once it is connected is not written, and the connection serves the next: %s',
    async (way) => {
      server.script(page)
      const ofProxy = way === 'directly' ? undefined : await aProxy()
      const proxy = ofProxy && secretFromText(ofProxy.url)
      const account = anAccount({ baseUrl: server.url, proxy })
      const transport = transportOf(account)
      const about = { method: 'POST', path: '/x', authorization: testKey, body: {} } as const
      const seen: number[] = []
      const mayBegin = (): boolean => {
        seen.push(server.openConnections())
        return seen.length > 2
      }
      await expect.poll(() => server.openConnections()).toBe(0)
      for (let n = 0; n < 2; n += 1)
        await expect(transport.request({ ...about, mayBegin })).rejects.toBe(notBegun)
      expect(await transport.request({ ...about, mayBegin })).toMatchObject({ status: 200 })
      expect(server.requests).toHaveLength(1)
      expect(seen.slice(1)).toEqual([1, 1])
      expect(server.openConnections()).toBe(1)
    },
  )
})

test('a proxy is used, with its credentials, and they are not sent on', async () => {
  const proxy = await aProxy({ login: 'user:pr0xy', resolve: () => server.port })
  server.script(page)
  const account = anAccount({
    baseUrl: 'http://api.example.com',
    proxy: secretFromText(proxy.url),
  })
  await ask(transportOf(account))
  expect(proxy.tunnels.map(({ authority }) => authority)).toEqual(['api.example.com:80'])
  expect(server.requests[0]?.headers.host).toBe('api.example.com')
  expect(server.requests[0]?.headers).not.toHaveProperty('proxy-authorization')
})

test('a service of a private authority is reached by ca_file', async () => {
  const { caFile, port } = await aPrivateService()
  const baseUrl = `https://localhost:${port}`
  function answerTo(outbound: Outbound): Promise<unknown> {
    const transport = transportOf(anAccount({ baseUrl, ...outbound }))
    return ask(transport).catch((error: unknown) => error)
  }
  expect(await answerTo({ caFile })).toEqual({ items: [], next: null })
  expect(await answerTo({})).toMatchObject({
    fault: 'tls',
    message: expect.stringContaining('name its PEM file in ca_file'),
  })
})

test('accounts that leave the network in the same way share connections', async () => {
  server.script(page)
  const connections = createConnections(limits)
  onTestFinished(() => connections.close())
  const [one, other] = [anAccount({ baseUrl: server.url }), anAccount({ name: 'other' })]
  expect(connections.of(one)).toBe(connections.of(other))
  const proxy = secretFromText('http://p:1')
  const others = [{ caFile: '/a.pem' }, { proxy }, { proxy, noProxy: ['x'] }]
  const ways = [{}, ...others].map((outbound) => connections.of({ ...one, ...outbound }))
  expect(new Set(ways).size).toBe(4)
  const transport = createTransport({ account: one, connections })
  expect(await ask(transport)).toEqual({ items: [], next: null })
  expect(server.openConnections()).toBeGreaterThan(0)
  await connections.close()
  await expect.poll(() => server.openConnections()).toBe(0)
})

test('a connection that hangs before it is one keeps no other request waiting', async () => {
  const { caFile, port } = await aPrivateService()
  const sockets: Socket[] = []
  const front = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    if (sockets.length > 1) socket.pipe(connect(port, '127.0.0.1')).pipe(socket)
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    front.close()
  })
  const baseUrl = `https://localhost:${(front.address() as AddressInfo).port}`
  const transport = transportOf(anAccount({ baseUrl, caFile }))
  const first = failure(transport)
  await expect.poll(() => sockets.length).toBe(1)
  const second = ask(transport)
  expect(await Promise.race([first, second])).toEqual({ items: [], next: null })
})

test('a base URL may have a path of its own', async () => {
  server.script(page)
  await ask(aTransport(`${server.url}/mirror`))
  expect(server.requests[0]?.path).toBe('/mirror/x')
})

function retry(after: string): ScriptedAnswer {
  return { status: 429, headers: { 'retry-after': after } }
}

function aTransport(baseUrl = server.url, given = limits): Transport {
  return transportOf(anAccount({ baseUrl }), given)
}

function transportOf(account: AccountConfig, given = limits): Transport {
  const connections = createConnections(given)
  onTestFinished(() => connections.close())
  return createTransport({ account, connections })
}

/** It speaks TLS by a certificate of its own authority. */
async function aPrivateService(): Promise<{ caFile: string; port: number }> {
  const authority = createAuthority()
  onTestFinished(() => authority.remove())
  const service = createHttpsServer(authority.issue('server'), (_request, response) =>
    response.end(page.body),
  )
  service.listen(0, '127.0.0.1')
  await once(service, 'listening')
  onTestFinished(() => void service.close())
  return { caFile: authority.file, port: (service.address() as AddressInfo).port }
}

async function ask(transport: Transport, signal?: AbortSignal): Promise<WireSearchPage> {
  const about = { path: '/x', authorization: testKey, body: {}, signal, maxBytes: 4_000 }
  const request = { method: 'POST', ...about } as const
  const answer = await transport.request(request)
  if (answer.status >= 300) throw errorFromAnswer(answer, [testKey])
  return readAnswer(answer, wireSearchPage)
}

async function failure(transport: Transport, signal?: AbortSignal): Promise<UpstreamError> {
  const error = await ask(transport, signal).catch((thrown: unknown) => thrown)
  if (error instanceof UpstreamError) return error
  throw new Error(`no UpstreamError: ${inspect(error)}`)
}

async function rawServer(answer: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const raw = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  raw.listen(0, '127.0.0.1')
  await once(raw, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    raw.close()
  })
  return `http://127.0.0.1:${(raw.address() as AddressInfo).port}`
}
