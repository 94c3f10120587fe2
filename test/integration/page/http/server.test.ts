import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { Writable } from 'node:stream'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { defaultTimings, systemClock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { createMetrics } from '../../../../src/lib/metrics/metrics.ts'
import {
  createHttpServer,
  HttpError,
  type HttpServer,
  type HttpServerOptions,
} from '../../../../src/page/http/server.ts'
import { until } from '../../../support/until.ts'

const running: HttpServer[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

function aServer(overrides: Partial<HttpServerOptions> = {}): HttpServer {
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    hosts: [],
    metrics: createMetrics(),
    health: () => ({ ok: true, loops: [] }),
    ready: async () => ({ ok: true, reasons: [] }),
    logger: createLogger({ level: 'silent' }),
    ...overrides,
  })
  running.push(server)
  return server
}

async function started(overrides: Partial<HttpServerOptions> = {}): Promise<string> {
  return (await aServer(overrides).start()).url
}

/** A logger, and the lines that it has written. */
function aLog(): { lines: string[]; logger: HttpServerOptions['logger'] } {
  const lines: string[] = []
  const destination = new Writable({
    write(line, _encoding, done) {
      lines.push(String(line))
      done()
    },
  })
  return { lines, logger: createLogger({ destination }) }
}

function never<T>(): Promise<T> {
  return new Promise(() => {})
}

/** What a raw TCP client reads until the server closes. */
async function raw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.end(text)
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  return answer
}

describe('/metrics', () => {
  test('answers in Prometheus text format', async () => {
    const metrics = createMetrics()
    metrics.feedPollsTotal.inc({ feed: 'brand' })
    const answer = await fetch(`${await started({ metrics })}/metrics`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    const body = await answer.text()
    expect(body).toContain('tocsin_feed_polls_total{feed="brand"} 1\n')
    expect(body).toContain('tocsin_redis_up 1\n')
  })
})

describe('a flood of scrapes', () => {
  test('is answered from one rendering for all who ask within a second', async () => {
    let rendered = 0
    let nowMs = 0
    const clock = { ...systemClock, monotonic: () => nowMs }
    const render = async (): Promise<{ contentType: string; body: string }> => {
      rendered += 1
      return { contentType: 'text/plain', body: `rendering ${rendered}` }
    }
    const url = await started({ metrics: { render }, clock })
    const scrape = async (): Promise<string> => (await fetch(`${url}/metrics`)).text()
    const all = await Promise.all(Array.from({ length: 30 }, scrape))
    expect(new Set(all)).toEqual(new Set(['rendering 1']))
    nowMs = 1000
    expect(await scrape()).toBe('rendering 2')
  })

  test('that is pipelined is cut off after two, and others are answered meanwhile', async () => {
    const asked = vi.fn<HttpServerOptions['health']>(() => ({ ok: true, loops: [] }))
    const url = await started({ health: asked })
    const { hostname, port, host } = new URL(url)
    const request = `GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`
    const flood = async (): Promise<void> => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {}).write(request.repeat(5000))
      await new Promise((resolve) => socket.on('close', resolve))
    }
    await Promise.all(Array.from({ length: 20 }, flood))
    expect(asked.mock.calls.length).toBeLessThanOrEqual(20 * 2)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
  })
})

describe('/healthz', () => {
  test.each([
    [true, 200],
    [false, 503],
  ])('says ok: %s with status %i, and each loop', async (ok, status) => {
    const loops = [{ name: 'poller', lastProgressMs: 1_790_000_000_000, ok }]
    const answer = await fetch(`${await started({ health: () => ({ ok, loops }) })}/healthz`)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toEqual({ ok, loops })
  })
})

describe('/readyz', () => {
  test.each([
    [{ ok: true, reasons: [] }, 200],
    [{ ok: false, reasons: ['Redis is not reachable'] }, 503],
  ])('says %j with status %i', async (readiness, status) => {
    const answer = await fetch(`${await started({ ready: async () => readiness })}/readyz`)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toEqual(readiness)
  })

  test('is not ready, and says so after 900 ms, when nothing answers', async () => {
    const answer = await fetch(`${await started({ ready: never })}/readyz`)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toEqual({ ok: false, reasons: ['Redis: no answer within 900 ms'] })
  })

  test('is not ready when asking fails, and keeps the error to the log', async () => {
    const ready = (): Promise<never> => Promise.reject(new Error('hunter2 is wrong'))
    const answer = await fetch(`${await started({ ready })}/readyz`)
    expect(answer.status).toBe(503)
    expect(await answer.text()).not.toContain('hunter2')
  })
})

describe('every answer', () => {
  test.each(['/nowhere', '/metrics/', '/Metrics', '/..%2fmetrics'])(
    'GET %s finds nothing, in JSON',
    async (path) => {
      const answer = await fetch((await started()) + path)
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ error: 'not found' })
    },
  )

  test.each(['/', '/metrics', '/healthz', '/readyz', '/nowhere'])(
    'of %s forbids sniffing and caching, and names no product',
    async (path) => {
      const { headers } = await fetch((await started()) + path)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.has('server')).toBe(false)
      expect(headers.has('x-powered-by')).toBe(false)
    },
  )

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s is refused', async (method) => {
    const url = await started()
    for (const path of ['/metrics', '/nowhere']) {
      const answer = await fetch(url + path, { method })
      expect(answer.status).toBe(405)
      expect(answer.headers.get('allow')).toBe('GET, HEAD')
    }
  })

  test('a path that cannot be decoded is a bad request that echoes nothing', async () => {
    const answer = await fetch(`${await started()}/%zz<script>`)
    expect(answer.status).toBe(400)
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await answer.json()).toEqual({ error: 'bad request' })
  })

  test('text that is not HTTP is refused', async () => {
    expect(await raw(await started(), 'HELLO\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  })
})

describe('start and stop', () => {
  test('a port in use is named together with the host and the key to change', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const failure = await aServer({ port })
      .start()
      .catch((error: unknown) => error)
    other.close()
    expect(failure).toBeInstanceOf(HttpError)
    expect(failure).toMatchObject({ reason: 'port_in_use', code: 'TOCSIN_HTTP' })
    const { message } = failure as HttpError
    for (const part of ['127.0.0.1', String(port), 'http.port']) expect(message).toContain(part)
  })

  test('stopping does not wait for a client that keeps its connection', async () => {
    const server = aServer()
    const { url } = await server.start()
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write('GET /metrics HTTP/1.1\r\n')
    const closed = new Promise((resolve) => socket.on('error', () => {}).on('close', resolve))
    await server.stop()
    await closed
    await expect(fetch(url)).rejects.toThrow('fetch failed')
  })
})

describe('strangers', () => {
  test.each([
    '127.0.0.1',
    '10.1.2.3:9464',
    '[::1]:9464',
    'localhost',
    'tocsin:9464',
    'Metrics.Example.Net',
  ])('a request for %s is answered', async (host) => {
    const url = await started({ hosts: ['metrics.example.net'] })
    const answer = await raw(
      url,
      `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('a page whose name was made to lead here reads nothing, and the log says how to let a name in', async () => {
    const { lines, logger } = aLog()
    const url = await started({ logger })
    for (const path of ['/metrics', '/healthz', '/readyz', '/', '/nothing']) {
      const answer = await raw(
        url,
        `GET ${path} HTTP/1.1\r\nHost: rebound.attacker.example\r\nConnection: close\r\n\r\n`,
      )
      expect(answer).toMatch(/^HTTP\/1\.1 421 /)
      expect(answer).toContain('{"error":"not a name of this server; see http.hosts"}')
    }
    const told = lines.filter((line) => line.includes('foreign name'))
    expect(told).toHaveLength(1)
    expect(told[0]).toContain('rebound.attacker.example')
  })

  test('half-sent requests without end hold few connections, and those for seconds only', async () => {
    expect(defaultTimings.httpRequestMs).toBe(5_000)
    const url = await started({ timings: { httpRequestMs: 2_000 } })
    const { hostname, port } = new URL(url)
    const sockets = Array.from({ length: 300 }, () => connect(Number(port), hostname))
    let closed = 0
    let late = 0
    for (const socket of sockets) {
      socket.on('error', () => {}).on('close', () => (closed += 1))
      socket.on('data', () => (late += 1)) // 408; one above the cap is closed without a word
      socket.on('connect', () => socket.write('GET /metrics HTTP/1.1\r\nHost: lo'))
    }
    await until('all are closed', () => closed === sockets.length)
    expect(late).toBeGreaterThan(0)
    expect(late).toBeLessThanOrEqual(64)
    await vi.waitFor(async () => expect((await fetch(`${url}/healthz`)).status).toBe(200), 45_000)
  })
})

describe('readers that do not read', () => {
  test('are those alone: who reads little by little gets all of it', async () => {
    const url = await started({
      timings: { httpRequestMs: 300 },
      metrics: { render: async () => ({ contentType: 'text/plain', body: 'x'.repeat(16e6) }) },
    })
    const { hostname, port, host } = new URL(url)
    const socket = connect(Number(port), hostname)
    onTestFinished(() => void socket.destroy())
    let read = 0
    socket.on('data', (chunk) => {
      read += chunk.length
      if (read % 16 === 0) return
      socket.pause() // as many times as make it longer than one that reads nothing may stay
      setTimeout(() => socket.resume(), 5)
    })
    socket.write(`GET /metrics HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    await once(socket, 'close')
    expect(read).toBeGreaterThan(16e6)
  })

  test('are not those who wait for the second of two answers', async () => {
    const slow = async (): Promise<{ contentType: string; body: string }> => {
      await systemClock.sleep(900)
      return { contentType: 'text/plain', body: 'late' }
    }
    const url = await started({ timings: { httpRequestMs: 200 }, metrics: { render: slow } })
    const { hostname, port, host } = new URL(url)
    const socket = connect(Number(port), hostname)
    let answer = ''
    socket.on('data', (chunk) => (answer += String(chunk)))
    const ask = (path: string, more = ''): string =>
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`
    socket.write(ask('/healthz') + ask('/metrics', 'Connection: close\r\n'))
    await once(socket, 'close')
    expect(answer).toContain('late')
  })

  test('lose their places, while an act that takes longer gets its answer', async () => {
    const acted = Promise.withResolvers<{ done: boolean }>()
    const url = await started({
      timings: { httpRequestMs: 1_000 },
      metrics: { render: async () => ({ contentType: 'text/plain', body: 'x'.repeat(16e6) }) },
      page: {
        routes: async (scope) => void scope.post('/act', () => acted.promise),
        publicUrl: () => undefined,
        notFound: () => '',
      },
    })
    const act = fetch(`${url}/act`, { method: 'POST' })
    const { hostname, port, host } = new URL(url)
    const sockets = Array.from({ length: 63 }, () => connect(Number(port), hostname).pause())
    onTestFinished(() => sockets.forEach((socket) => socket.destroy()))
    for (const socket of sockets) {
      socket.on('error', () => {}).write(`GET /metrics HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(2))
    }
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    await vi.waitFor(async () => expect((await fetch(`${url}/healthz`)).status).toBe(200), 20_000)
    acted.resolve({ done: true })
    expect(await (await act).json()).toEqual({ done: true })
  })
})
