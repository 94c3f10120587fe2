/** Sinks of every type through a company's proxy, to servers of its own authority. */
import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { runProbes } from '../../../src/operator/probes/probe.ts'
import { probes } from '../../../src/cli/set-up/probes.ts'
import type { Config, Environment } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { openTunnel } from '../../../src/lib/outbound.ts'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { createSink } from '../../../src/sinks/create-sink.ts'
import type { SinkConfig } from '../../../src/sinks/sink-types.ts'
import { createAuthority } from '../../support/certificates.ts'
import { aDelivery } from '../../support/deliveries.ts'
import { freePort } from '../../support/free-port.ts'
import { aProxy } from '../../support/proxy.ts'
import { startTcpServer } from '../../support/tcp-server.ts'
import { startRawSmtpServer } from './email/raw-smtp-server.ts'

const authority = createAuthority()
const stranger = createAuthority('Somebody Else')
afterAll(() => {
  authority.remove()
  stranger.remove()
})
/** A name that only the proxy knows. */
const server = authority.issue('hooks.corp.test')
/** Of a proxy: it names no host behind it. */
const own = authority.issue('proxy.corp.test')
const alien = stranger.issue('alien')
const folder = dirname(authority.file)

interface Receiver {
  port: number
  /** How many messages it took. */
  taken: number
}

async function anHttpsReceiver(): Promise<Receiver> {
  const own: Receiver = { port: 0, taken: 0 }
  const receiver = createServer(server, (request, response) => {
    request.resume().on('end', () => {
      own.taken += 1
      response.end('ok')
    })
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  onTestFinished(() => {
    receiver.close()
    receiver.closeAllConnections()
  })
  own.port = (receiver.address() as AddressInfo).port
  return own
}

async function aMailReceiver(more: SMTPServerOptions = {}): Promise<Receiver> {
  const own: Receiver = { port: 0, taken: 0 }
  const receiver = new SMTPServer({
    ...server,
    secure: true,
    authOptional: true,
    disableReverseLookup: true,
    ...more,
    onData(stream, _session, callback) {
      stream.resume().on('end', () => {
        own.taken += 1
        callback()
      })
    },
  })
  receiver.on('error', () => undefined)
  receiver.listen(0, '127.0.0.1')
  await once(receiver.server, 'listening')
  onTestFinished(() => new Promise<void>((done) => receiver.close(() => done())))
  own.port = (receiver.server.address() as AddressInfo).port
  return own
}

const addresses: Record<string, (host: string) => string> = {
  webhook: (host) => `type: webhook, url: "https://${host}/hook", allow_private: true`,
  email: (host) => `type: email, smtp: "smtps://${host}", from: a@b.example, to: [c@d.example]`,
}

interface Written {
  type: string
  host: string
  /** Lines of the sink besides its address. */
  keys: string
}

function aConfig({ type, host, keys }: Written, scheme = 'smtps:'): Config & { sink: SinkConfig } {
  const address = addresses[type]?.(host).replace('smtps:', scheme)
  const text = `
accounts: { main: { base_url: "https://api.example.com", api_key: key } }
feeds: { brand: { type: events, identifier_group: 7 } }
sinks: { it: { ${address}, ${keys} } }
route: { sinks: [it] }
`
  const { config } = parseConfig(text, { file: join(folder, 'tocsin.yaml'), env: {} })
  const [sink] = config.sinks
  if (sink === undefined) throw new Error('there is no sink')
  return { ...config, sink }
}

async function aSink({ sink: config }: { sink: SinkConfig }): Promise<Sink> {
  const parts = { logger: createLogger({ level: 'silent' }), clock: systemClock }
  const sink = await createSink(config, parts)
  onTestFinished(() => sink.close())
  return sink
}

async function send(sink: Sink): Promise<void> {
  await sink.send(aDelivery(sink), { signal: AbortSignal.timeout(20_000) })
}

/** What `doctor` says: `ok: …` or the problem and its remedy. */
async function diagnose(written: Written, env: Environment = {}): Promise<string> {
  const { sink, ...config } = aConfig(written)
  const stop = new AbortController().signal
  const [finding] = await runProbes(probes.sinkReach, { sink, config, env }, stop)
  return `${finding?.status}: ${finding?.detail}; ${finding?.remedy}`
}

const trusting = 'ca_file: ca.pem'

test('a connection that hangs in its TLS handshake keeps no other message waiting', async () => {
  const receiver = await anHttpsReceiver()
  const front = await startTcpServer({
    onConnect(socket) {
      if (front.connections() === 1) return
      const onward = connect(receiver.port, '127.0.0.1').on('error', () => socket.destroy())
      socket.pipe(onward).pipe(socket)
    },
  })
  onTestFinished(() => front.stop())
  const proxy = await aProxy({ resolve: () => front.port })
  const keys = `proxy: "${proxy.url}", ${trusting}`
  const sink = await aSink(aConfig({ type: 'webhook', host: 'hooks.corp.test:443', keys }))
  const first = send(sink).catch(() => 'refused')
  await expect.poll(() => front.connections()).toBe(1)
  expect(await Promise.race([first, send(sink).then(() => 'told')])).toBe('told')
  expect(receiver.taken).toBe(1)
})

test('mail that begins in clear goes by the proxy too, and turns to TLS', async () => {
  const receiver = await aMailReceiver({ secure: false })
  const proxy = await aProxy({ resolve: () => receiver.port })
  const keys = `proxy: "${proxy.url}", ${trusting}`
  await send(await aSink(aConfig({ type: 'email', host: 'hooks.corp.test:25', keys }, 'smtp:')))
  expect(receiver.taken).toBe(1)
})

test('mail to localhost stays in clear only where no proxy stands between', async () => {
  const receiver = await aMailReceiver({ secure: false, hideSTARTTLS: true })
  const proxy = await aProxy({ resolve: () => receiver.port })
  const host = `localhost:${receiver.port}`
  const written = { type: 'email', host, keys: `proxy: "${proxy.url}"` }
  const sink = await aSink(aConfig(written, 'smtp:'))
  await expect(send(sink)).rejects.toMatchObject({ reason: 'misconfigured' })
  expect(receiver.taken).toBe(0)
  await send(await aSink(aConfig({ ...written, keys: 'fallback_after: 9m' }, 'smtp:')))
  expect(receiver.taken).toBe(1)
})

test('a tunnel that opens once the sink is closed is closed too', async () => {
  const server = await startRawSmtpServer()
  onTestFinished(() => server.refuse())
  server.script({ GREETING: 'hang' })
  const proxy = await aProxy({
    resolve() {
      void sink.close()
      return server.port
    },
  })
  const sink = await aSink(
    aConfig({ type: 'email', host: 'hooks.corp.test', keys: `proxy: "${proxy.url}"` }, 'smtp:'),
  )
  await expect(send(sink)).rejects.toMatchObject({ reason: 'unavailable' })
  expect(server.connections()).toBe(1)
  await expect.poll(() => server.openConnections()).toBe(0)
})

test('a proxy that drips its answer is given up, though it is never silent', async () => {
  let drips = 0
  const drip = (socket: Socket): void => {
    drips += 1
    if (drips === 1) socket.write('HTTP/1.1 200 So\r\nx: ')
    if (drips > 100) return void socket.write('\r\n\r\n')
    socket.write('x')
    if (!socket.destroyed) setTimeout(drip, 10, socket)
  }
  const proxy = await startTcpServer({ onBytes: drip })
  onTestFinished(() => proxy.stop())
  const outbound = { proxy: secretFromText(`http://localhost:${proxy.port}`) }
  const end = { hostname: 'hooks.corp.test', port: 443, timeoutMs: 200 }
  await expect(openTunnel(outbound, end)).rejects.toThrow('was not reached (the time was up)')
})

/** Sinks over HTTP share their transport; the conformance tests send by each. */
describe.each(['webhook', 'email'])('a sink of type %s', (type) => {
  const host = 'hooks.corp.test:4433'
  let receiver: Receiver

  beforeEach(async () => {
    receiver = type === 'email' ? await aMailReceiver() : await anHttpsReceiver()
  })

  test('sends by a proxy with a login, which resolves the name', async () => {
    const proxy = await aProxy({ login: 'joe:pr0xy', resolve: () => receiver.port })
    await send(await aSink(aConfig({ type, host, keys: `proxy: "${proxy.url}", ${trusting}` })))
    expect(receiver.taken).toBe(1)
    expect(proxy.tunnels.map(({ authority: asked }) => asked)).toEqual([host])
  })

  test.each(['localhost', '127.0.0.1'])(
    'sends by a proxy at %s that speaks TLS by a certificate of its own',
    async (at) => {
      const proxy = await aProxy({ identity: own, resolve: () => receiver.port })
      const url = proxy.url.replace('localhost', at)
      await send(await aSink(aConfig({ type, host, keys: `proxy: "${url}", ${trusting}` })))
      expect(receiver.taken).toBe(1)
    },
  )

  test.each(['localhost', '.localhost', '127.0.0.0/8'])(
    'leaves the proxy aside for %s',
    async (noProxy) => {
      const proxy = await aProxy({ resolve: () => receiver.port })
      const near = `${noProxy.startsWith('1') ? '127.0.0.1' : 'localhost'}:${receiver.port}`
      const keys = `proxy: "${proxy.url}", no_proxy: "x.test, ${noProxy}", ${trusting}`
      await send(await aSink(aConfig({ type, host: near, keys })))
      expect(receiver.taken).toBe(1)
      expect(proxy.tunnels).toEqual([])
    },
  )

  test('takes up renewed authorities without a restart', async () => {
    const renewed = join(folder, 'renewed.pem')
    copyFileSync(stranger.file, renewed)
    const keys = 'ca_file: renewed.pem'
    const sink = await aSink(aConfig({ type, host: `localhost:${receiver.port}`, keys }))
    await expect(send(sink)).rejects.toMatchObject({ name: 'SinkError' })
    copyFileSync(authority.file, renewed)
    await send(sink)
    expect(receiver.taken).toBe(1)
  })

  describe('is judged by doctor', () => {
    const near = (): string => `localhost:${receiver.port}`

    test('without a message where all is well', async () => {
      const proxy = await aProxy({ login: 'joe:pr0xy', resolve: () => receiver.port })
      const said = await diagnose({ type, host, keys: `proxy: "${proxy.url}", ${trusting}` })
      expect(said).toMatch(/^ok: .*hooks\.corp\.test:4433; null$/)
      expect(receiver.taken).toBe(0)
    })

    test('to need ca_file', async () => {
      expect(await diagnose({ type, host: near(), keys: 'fallback_after: 9m' })).toMatch(
        /authority that is not trusted here.*\(misconfigured\); name its PEM file in ca_file$/,
      )
    })

    test.each(['40', '42', '116'])('by the alert %s of a server', async (alert) => {
      const bytes = Buffer.from([21, 3, 3, 0, 2, 2, Number(alert)]) // RFC 8446, 6.2
      const refusing = await startTcpServer({ onBytes: (socket) => socket.end(bytes) })
      onTestFinished(() => refusing.stop())
      const written = { type, host: `localhost:${refusing.port}`, keys: trusting }
      expect(await diagnose(written)).toMatch(
        /refuses the TLS handshake.*\(misconfigured\); if it asks for a client certificate/,
      )
    })

    test('to name a host that the certificate does not', async () => {
      const proxy = await aProxy({ resolve: () => receiver.port })
      const keys = `proxy: "${proxy.url}", ${trusting}`
      expect(await diagnose({ type, host: 'other.corp.test:443', keys })).toMatch(
        /certificate is for another host.*\(misconfigured\); write the host that the certificate names$/,
      )
    })

    test('by what the proxy says', async () => {
      const asking = await aProxy({ login: 'joe:pr0xy', resolve: () => receiver.port })
      const [refusing, failing] = [await aProxy({ refuses: 403 }), await aProxy({ refuses: 502 })]
      const sealed = await aProxy({ identity: alien })
      const by = (url: string): Promise<string> =>
        diagnose({ type, host, keys: `proxy: "${url}", ${trusting}` })
      expect(await by(asking.url.replace('joe:pr0xy', 'joe:wr0ng'))).toMatch(
        /the proxy asks for another login \(407\) \(misconfigured\); write its user and password into proxy/,
      )
      expect(await by(refusing.url)).toMatch(
        /does not connect to hooks\.corp\.test:4433 \(403\) \(misconfigured\); .*name the host in no_proxy$/,
      )
      expect(await by(failing.url)).toMatch(/hooks\.corp\.test:4433 \(502\) \(unavailable\)/)
      expect(await by(`http://localhost:${await freePort()}`)).toMatch(
        /the proxy was not reached \(ECONNREFUSED\) \(unavailable\)/,
      )
      expect(await by(sealed.url)).toMatch(
        /of the proxy: its certificate is of an authority that is not trusted here.*ca_file$/,
      )
    })

    test('to need the proxy that the environment names', async () => {
      const written = { type, host: `localhost:${await freePort()}`, keys: 'fallback_after: 9m' }
      const env = { HTTPS_PROXY: 'http://proxy.example:3128' }
      expect(await diagnose(written, env)).toMatch(
        /\(unavailable\); .*write proxy: \$\{HTTPS_PROXY\}/,
      )
      expect(await diagnose(written)).not.toContain('proxy')
    })
  })
})
