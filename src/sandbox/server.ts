/** The sandbox's HTTP server: every request is logged, then struck by a fault where one is due. */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { systemClock } from '../runtime/clock.ts'
import { sendError } from './error-bodies.ts'
import type { Fault, Faults } from './faults.ts'
import type { RequestLog } from './request-log.ts'

export interface ServerParts {
  faults: Faults
  log: RequestLog
  /** Aborted when the sandbox closes: ends what a fault delays. */
  closing: AbortSignal
}

/** Where the control routes live, which no fault strikes and no log counts. */
export const controlPrefix = '/_sandbox/'

export function createServer({ faults, log, closing }: ServerParts): FastifyInstance {
  const app = fastify({ forceCloseConnections: true, bodyLimit: 16 * 1024 * 1024 })
  const struck = new WeakMap<FastifyRequest, Fault>()

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onRequest', async (request) => {
    if (!isControl(request)) log.open(request)
  })
  app.addHook('preHandler', async (request, reply) => {
    if (isControl(request)) return
    const entry = log.entryOf(request)
    entry.body = jsonOf(request)
    const fault = faults.strike({
      on: entry.path,
      method: request.method,
      organization: entry.organization,
      withCursor: hasCursor(entry.body) || hasCursor(entry.query),
    })
    if (!fault) return
    entry.fault = fault.effect
    struck.set(request, fault)
    await strikeBefore(fault, { request, reply, closing })
  })
  app.addHook('onSend', async (request, _reply, payload) => {
    const fault = struck.get(request)
    if (typeof payload === 'string' && payload !== '' && fault) {
      return spoil(fault, request, payload)
    }
    if (fault?.effect === 'lose-answer' || fault?.effect === 'cut') request.raw.socket.destroy()
    return payload
  })
  app.addHook('onResponse', async (request, reply) => {
    if (isControl(request)) return
    const entry = log.entryOf(request)
    const isCut = entry.fault === 'cut' || entry.fault === 'lose-answer'
    entry.status = isCut ? null : reply.statusCode
  })
  return app
}

/** The exact bytes of a request's body. */
export function bytesOf(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
}

/** The body as JSON; its text where it is none; undefined where it is empty. */
function jsonOf(request: FastifyRequest): unknown {
  const text = bytesOf(request).toString('utf8')
  if (text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function hasCursor(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'from' in body && Boolean(body.from)
}

function isControl(request: FastifyRequest): boolean {
  return request.url.startsWith(controlPrefix)
}

/** Effects that come before the request is acted upon. */
async function strikeBefore(
  fault: Fault,
  {
    request,
    reply,
    closing,
  }: { request: FastifyRequest; reply: FastifyReply; closing: AbortSignal },
): Promise<void> {
  switch (fault.effect) {
    case 'status':
      await sendError(reply.headers(fault.headers), { ...fault, shape: fault.body })
      return
    case 'hang':
      reply.hijack()
      return
    case 'refuse':
      reply.hijack()
      request.raw.socket.destroy()
      return
    case 'delay':
      await systemClock.sleep(fault.ms, closing)
      return
    case 'drip':
      reply.hijack()
      void drip(request.raw.socket, fault.ms, closing)
      return
    case 'lose-answer':
    case 'cut':
    case 'invalid-json':
    case 'wrong-shape':
  }
}

/** Headers without an end, a byte at a time, until the other side has had enough. */
async function drip(socket: Socket, everyMs: number, closing: AbortSignal): Promise<void> {
  const text = `HTTP/1.1 200 OK\r\nx-patience: ${'.'.repeat(1_000)}`
  for (let sent = 0; !socket.destroyed && !closing.aborted; sent += 1) {
    socket.write(text[sent] ?? '.')
    await systemClock.sleep(everyMs, closing)
  }
}

/** Effects on the answer of a request that was acted upon. */
function spoil(fault: Fault, request: FastifyRequest, payload: string): string | Readable {
  const half = payload.slice(0, Math.floor(payload.length / 2))
  switch (fault.effect) {
    case 'lose-answer':
      request.raw.socket.destroy()
      return payload
    case 'cut':
      return Readable.from(cutAfter(half))
    case 'invalid-json':
      return half
    case 'wrong-shape':
      return JSON.stringify({ items: { 0: 'not a list' }, next: 7, token: null })
    case 'status':
    case 'hang':
    case 'refuse':
    case 'delay':
    case 'drip':
      return payload
  }
}

async function* cutAfter(half: string): AsyncGenerator<string> {
  yield half
  await systemClock.sleep(0)
  throw new Error('cut by the sandbox')
}
