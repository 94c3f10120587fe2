/**
 * The HTTP server: /metrics, /healthz and /readyz for probes and Prometheus, the page and its API.
 * It answers the former within a second, with or without Redis, and without an event. The latter
 * judge for themselves who may use them.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  fastify,
  type FastifyError,
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
} from 'fastify'
import {
  type Clock,
  defaultTimings,
  limitSilence,
  systemClock,
  type Timings,
} from '../../lib/clock.ts'
import { errorCode, errorMessage, ReasonedError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { SharedAnswers } from './shared-answers.ts'
import { createOwnHostCheck } from '../../lib/config/web-address.ts'

export interface HttpServer {
  /**
   * Rejects with HttpError if it cannot listen. `url` has no trailing slash.
   */
  start(): Promise<{ url: string }>
  /** Cuts open connections: a scrape is repeated anyway. */
  stop(): Promise<void>
}

interface Health {
  ok: boolean
  loops: { name: string; lastProgressMs: number; ok: boolean }[]
}

interface Readiness {
  ok: boolean
  /** What is missing, in words for the operator; empty when ready. */
  reasons: string[]
}

export interface HttpServerOptions {
  host: string
  /** 0: any free one. */
  port: number
  /** Names by which others reach it, beside `host`. */
  hosts: readonly string[]
  metrics: { render(): Promise<{ contentType: string; body: string }> }
  /** Whether this process's own loops make progress; never queries Redis. */
  health: () => Health
  ready: () => Promise<Readiness>
  /** Left out: `/` lists the paths of this server. */
  page?: {
    routes: FastifyPluginAsync
    /** The address under which people reach it by the configuration of now. */
    publicUrl: () => string | undefined
    /** For a browser that asks for what there is not; returns HTML. */
    notFound: () => string
  }
  logger: Logger
  clock?: Clock
  timings?: Pick<Timings, 'httpRequestMs'>
}

const indexText = `Tocsin
/metrics  what Prometheus scrapes
/healthz  whether this process is alive
/readyz   whether it is configured and reaches Redis
`

const headers = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}

/** Of whatever may be an answer of the page. */
const pageHeaders = {
  ...headers,
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

const yearSeconds = 31_536_000

function headersFor({ page }: Pick<HttpServerOptions, 'page'>, path?: string): object {
  if (page === undefined || (path !== undefined && machinePaths.has(path))) return headers
  if (!page.publicUrl()?.startsWith('https:')) return pageHeaders
  return { ...pageHeaders, 'strict-transport-security': `max-age=${yearSeconds}` }
}

/** Of programs, which read no such headers. */
const machinePaths: ReadonlySet<string> = new Set(['/metrics', '/healthz', '/readyz'])

/** Leaves a tenth of the second in which a probe expects its answer. */
const readyPatienceMs = 900

/** Leaves the other descriptors (1,024 is a usual limit) to Redis, upstream and the sinks. */
const maxConnections = 64

/**
 * Requests of one connection that may wait for their answers. One that is kept alive has its next
 * request at times before Node knows that the last answer is written.
 */
const maxInHand = 2

/** An act of the page may take a minute. */
const longestAnswerMs = 70_000

/** Cuts off a connection that asks again and again before it was answered (HTTP pipelining). */
function createBoundedServer(
  handle: (...exchange: [IncomingMessage, ServerResponse]) => void,
  requestMs: number,
): Server {
  const timeouts = {
    requestTimeout: requestMs,
    keepAliveTimeout: requestMs,
    headersTimeout: requestMs,
    connectionsCheckingInterval: requestMs / 5, // Node's default is 30 s
  }
  const inHand = new WeakMap<Socket, number>()
  const addInHand = (socket: Socket, change: number): number => {
    const count = (inHand.get(socket) ?? 0) + change
    inHand.set(socket, count)
    return count
  }
  const server = createServer(timeouts, (request, response) => {
    const { socket } = request
    if (addInHand(socket, 1) > maxInHand) socket.destroy()
    if (socket.destroyed) return // the parser still reads what came with it
    response.on('close', () => {
      // the limit was of the answer that is read now, not of the one that is still being made
      if (addInHand(socket, -1) > 0) limitSilence(socket, longestAnswerMs)
    })
    handle(request, response)
  })
  server.maxConnections = maxConnections
  return server
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { host, port, logger, page } = options
  const { httpRequestMs } = options.timings ?? defaultTimings
  const server = fastify({
    forceCloseConnections: true,
    serverFactory: (handle) => createBoundedServer(handle, httpRequestMs),
    frameworkErrors: (error, _request, reply) => void answerError(error, reply, options),
  })
  addPolicies(server, options)
  cutUnread(server, httpRequestMs)
  addRoutes(server, options)
  if (page) void server.register(async (scope) => page.routes(scope, {}))
  return {
    async start() {
      try {
        await server.listen({ host, port })
      } catch (error) {
        throw listenError(error, host, port)
      }
      const bound = boundPort(server) ?? port
      logger.info({ host, port: bound }, 'http server listens')
      return { url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}` }
    },
    stop: () => server.close(),
  }
}

function boundPort(server: FastifyInstance): number | undefined {
  const address = server.server.address()
  return typeof address === 'object' ? address?.port : undefined
}

/** Applies to every answer: headers, allowed host names and methods, and the text of errors. */
function addPolicies(server: FastifyInstance, options: HttpServerOptions): void {
  const { logger, host, hosts, page } = options
  const isOwn = createOwnHostCheck([host, ...hosts])
  const isPublic = (name: string): boolean =>
    URL.parse(page?.publicUrl() ?? '')?.hostname === name.toLowerCase()
  server.addHook('onRequest', async (request, reply) => {
    reply.headers(headersFor(options, request.routeOptions.url))
    if (!isOwn(request.hostname) && !isPublic(request.hostname)) {
      const about = { host: request.hostname.slice(0, 100) }
      const message =
        'http request for a foreign name refused; if it is one of ours, add it to http.hosts'
      logger.repeated.warn(about, message, {
        cause: 'foreign host',
        list: 'hosts',
        name: about.host,
      })
      return reply.code(421).send({ error: 'not a name of this server; see http.hosts' })
    }
    if (request.method === 'GET' || request.method === 'HEAD') return
    if (!request.is404) return
    return reply.code(405).header('allow', 'GET, HEAD').send({ error: 'only GET and HEAD' })
  })
  server.setNotFoundHandler(({ method, headers: { accept = '' } }, reply) =>
    page && method === 'GET' && accept.includes('text/html')
      ? reply.code(404).type('text/html; charset=utf-8').send(page.notFound())
      : reply.code(404).send({ error: 'not found', paths: ['/metrics', '/healthz', '/readyz'] }),
  )
  server.setErrorHandler((error: FastifyError, request, reply) => {
    const isOurs = (error.statusCode ?? 500) >= 500
    if (isOurs) logger.error({ err: error, path: request.routeOptions.url }, 'http answer failed')
    return answerError(error, reply, options)
  })
}

/**
 * Cuts off a connection that reads nothing of its answer for this time. Who reads nothing keeps no
 * place, and who reads slowly gets all of it.
 */
function cutUnread(server: FastifyInstance, requestMs: number): void {
  server.addHook('onSend', async ({ socket }) => limitSilence(socket, requestMs))
}

/** Never repeats the error's own text, which may come from anywhere. */
function answerError(
  error: FastifyError,
  reply: FastifyReply,
  options: HttpServerOptions,
): FastifyReply {
  const status = error.statusCode ?? 500
  const text = status >= 500 ? 'internal error; see the log' : 'bad request'
  return reply
    .headers(headersFor(options, reply.request.routeOptions.url))
    .code(status)
    .send({ error: text })
}

/** A scrape is made once for all who ask within this time. */
const scrapeSharedMs = 1_000

function addRoutes(
  server: FastifyInstance,
  { metrics, health, ready, logger, page, clock = systemClock }: HttpServerOptions,
): void {
  if (page === undefined) {
    server.get('/', async (_request, reply) =>
      reply.type('text/plain; charset=utf-8').send(indexText),
    )
  }
  const shared = new SharedAnswers(clock, scrapeSharedMs)
  server.get('/metrics', async (_request, reply) => {
    const { contentType, body } = await shared.read('metrics', async () => {
      const rendered = await metrics.render()
      return { ...rendered, body: Buffer.from(rendered.body) } // one for all who read it, however slowly
    })
    return reply.header('content-type', contentType).send(body)
  })
  server.get('/healthz', async (_request, reply) => {
    const answer = health()
    return reply.code(answer.ok ? 200 : 503).send(answer)
  })
  server.get('/readyz', async (_request, reply) => {
    const answer = await readyWithin(readyPatienceMs, { ready, logger, clock })
    return reply.code(answer.ok ? 200 : 503).send(answer)
  })
}

/** Not ready beats no answer: a probe that times out says nothing about why. */
async function readyWithin(
  patienceMs: number,
  { ready, logger, clock }: { ready: () => Promise<Readiness>; logger: Logger; clock: Clock },
): Promise<Readiness> {
  const answered = new AbortController()
  const late = clock
    .sleep(patienceMs, answered.signal)
    .then(() => ({ ok: false, reasons: [`Redis: no answer within ${patienceMs} ms`] }))
  try {
    return await Promise.race([ready(), late])
  } catch (error) {
    logger.warn({ reason: errorMessage(error) }, 'readiness cannot be determined')
    return { ok: false, reasons: ['readiness cannot be determined; see the log'] }
  } finally {
    answered.abort()
  }
}

export type HttpReason =
  | 'port_in_use'
  | 'port_forbidden' // a port below 1024 without the right to it
  | 'bad_host' // not an address of this machine, or a name that does not resolve
  | 'other'

/** The HTTP server could not begin to listen. */
export class HttpError extends ReasonedError<HttpReason> {
  override readonly name = 'HttpError'
  readonly code = 'TOCSIN_HTTP'
}

const badHost: readonly [HttpReason, string] = [
  'bad_host',
  ': not an address of this machine; set http.host to one, e.g. 127.0.0.1 or 0.0.0.0',
]

const listenProblems: Readonly<Record<string, readonly [HttpReason, string]>> = {
  EADDRINUSE: [
    'port_in_use',
    ': another process uses this port; stop it or set http.port to a free one',
  ],
  EACCES: ['port_forbidden', ': not permitted; set http.port to one above 1023'],
  EADDRNOTAVAIL: badHost,
  ENOTFOUND: badHost,
  EAI_AGAIN: badHost,
  EINVAL: badHost,
}

/** Names the configuration key to change. */
function listenError(cause: unknown, host: string, port: number): HttpError {
  const code = errorCode(cause)
  const other: readonly [HttpReason, string] = ['other', ` (${code}); see http.host and http.port`]
  const [reason, problem] = listenProblems[code ?? ''] ?? other
  return new HttpError(reason, `http: cannot listen on ${host} port ${port}${problem}`, { cause })
}
