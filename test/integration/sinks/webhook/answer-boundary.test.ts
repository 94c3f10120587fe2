/** Which failures lost an answer and which cannot have: the line that decides on "may be a repeat". */
import type { LookupFunction } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { aTcpServer, aWebhookSink, anHttpServer, failureOf, send } from './harness.ts'

const wholeRequest = /\r\n\r\n\{.*\}$/s

test('a name that does not resolve loses no answer', async () => {
  const resolve: LookupFunction = (name, _options, callback) =>
    callback(
      Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }),
      '',
      0,
    )
  const sink = aWebhookSink('http://siem.test/hooks/tok', {}, { resolve })
  expect(await failureOf(send(sink))).toMatchObject({ reason: 'unavailable' })
})

test('a resolver that never answers is given up with the signal, and loses no answer', async () => {
  let asked = 0
  const sink = aWebhookSink('http://siem.test/', {}, { resolve: () => void (asked += 1) })
  const [stop, later] = [new AbortController(), new AbortController()]
  const waiting = failureOf(send(sink, {}, later.signal))
  const failed = failureOf(send(sink, {}, stop.signal))
  await expect.poll(() => asked).toBe(2)
  stop.abort()
  // nothing else ended it: who has waited for longer still waits
  expect(await Promise.race([waiting.then(() => 'the other'), failed])).not.toBe('the other')
  expect(await failed).toMatchObject({ reason: 'unavailable' })
  later.abort()
  expect(await waiting).toMatchObject({ reason: 'unavailable' })
})

test('a signal that aborts while connecting writes nothing, also when the connection comes later', async () => {
  const server = await aTcpServer()
  const held = Promise.withResolvers<() => void>()
  const resolve: LookupFunction = (_name, _options, callback) =>
    held.resolve(() => callback(null, [{ address: '127.0.0.1', family: 4 }]))
  const sink = aWebhookSink(`http://siem.test:${server.port}/`, {}, { resolve })
  const stop = new AbortController()
  const failed = failureOf(send(sink, {}, stop.signal))
  const letConnect = await held.promise
  stop.abort()
  expect(await failed).toMatchObject({ reason: 'unavailable' })
  letConnect()
  await expect.poll(() => server.connections()).toBe(1)
  await sink.close()
  expect(server.seen()).toBe('')
})

test('a server that accepts and closes at once may have read the request', async () => {
  const server = await aTcpServer({ onConnect: (socket) => socket.destroy() })
  const sink = aWebhookSink(`http://127.0.0.1:${server.port}/`)
  expect(await failureOf(send(sink))).toMatchObject({ reason: 'connection_lost' })
})

test.each([
  ['cut in its status line', 'HTTP/1.1 20'],
  ['cut in its headers', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ['not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
])('an answer that is %s is lost', async (_title, bytes) => {
  const server = await aTcpServer({
    onBytes: (socket, seen) => void (wholeRequest.test(seen) && socket.end(bytes)),
  })
  const sink = aWebhookSink(`http://127.0.0.1:${server.port}/`)
  expect(await failureOf(send(sink))).toMatchObject({ reason: 'connection_lost' })
})

test.each([
  ['cut', 'Content-Length: 100\r\n\r\nhalf'],
  ['larger than 64 KiB', `Content-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`],
  [
    'larger than 64 KiB in chunks',
    `Transfer-Encoding: chunked\r\n\r\n30d40\r\n${'x'.repeat(200_000)}\r\n`,
  ],
])('a 200 whose body is %s is accepted', async (_title, rest) => {
  const server = await aTcpServer({
    onBytes: (socket, seen) =>
      void (wholeRequest.test(seen) && socket.end(`HTTP/1.1 200 OK\r\n${rest}`)),
  })
  const sink = aWebhookSink(`http://127.0.0.1:${server.port}/`)
  expect(await send(sink)).toEqual({ answer: 'HTTP 200' })
})

test('a 200 whose body never ends is accepted when the time is up', async () => {
  const answered = Promise.withResolvers<void>()
  const server = await aTcpServer({
    onBytes(socket, seen) {
      if (!wholeRequest.test(seen)) return
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', () => answered.resolve())
    },
  })
  const sink = aWebhookSink(`http://127.0.0.1:${server.port}/`)
  const stop = new AbortController()
  const sent = send(sink, {}, stop.signal)
  await answered.promise
  // what a server of this process wrote is read within a few turns of its loop
  for (let turn = 0; turn < 200; turn += 1) await setImmediate()
  stop.abort()
  expect(await sent).toEqual({ answer: 'HTTP 200' })
})

test('a 200 whose body is endless is accepted, and the connection is cut', async () => {
  const cut = Promise.withResolvers<void>()
  const server = await aTcpServer({
    onBytes(socket, seen) {
      if (!wholeRequest.test(seen)) return
      const pour = (): boolean => socket.write(`4000\r\n${'x'.repeat(0x4000)}\r\n`)
      socket.on('drain', pour).on('close', () => cut.resolve())
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      while (pour());
    },
  })
  const sink = aWebhookSink(`http://127.0.0.1:${server.port}/`)
  expect(await send(sink)).toEqual({ answer: 'HTTP 200' })
  await cut.promise
})

test('a kept connection that the server drops before the next request does not fail it', async () => {
  const server = await anHttpServer()
  const sink = aWebhookSink(server.url)
  await send(sink)
  await server.refuse()
  await expect.poll(() => server.openConnections()).toBe(0)
  await server.listen()
  await send(sink)
  expect(server.requests).toHaveLength(2)
})
