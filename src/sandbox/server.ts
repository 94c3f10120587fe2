/** The sandbox's HTTP server: it logs every request, then applies a fault if one is due. */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { z } from 'zod'
import { systemClock } from '../lib/clock.ts'
import type { Random, Tier } from './options.ts'

interface ServerParts {
  faults: Faults
  log: RequestLog
  /** Aborted when the sandbox closes; ends the delays of faults. */
  closing: AbortSignal
}

/** Path of the control routes, which no fault affects and no log records. */
export const controlPrefix = '/_sandbox/'

export function createServer({ faults, log, closing }: ServerParts): FastifyInstance {
  const app = fastify({ forceCloseConnections: true, bodyLimit: 16 * 1024 * 1024 })
  const faultsByRequest = new WeakMap<FastifyRequest, Fault>()

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onRequest', async (request) => {
    if (!isControl(request)) log.open(request)
  })
  app.addHook('preHandler', async (request, reply) => {
    if (isControl(request)) return
    const entry = log.entryFor(request)
    entry.body = parseBody(request)
    const fault = faults.strike({
      on: entry.path,
      method: request.method,
      withCursor: hasCursor(entry.body) || hasCursor(entry.query),
    })
    if (!fault) return
    entry.fault = fault.effect
    faultsByRequest.set(request, fault)
    await applyBeforeHandling(fault, { request, reply, closing })
  })
  app.addHook('onSend', async (request, _reply, payload) => {
    const fault = faultsByRequest.get(request)
    if (typeof payload === 'string' && payload !== '' && fault) {
      return applyToAnswer(fault, request, payload)
    }
    if (fault?.effect === 'lose-answer' || fault?.effect === 'cut') request.raw.socket.destroy()
    return payload
  })
  app.addHook('onResponse', async (request, reply) => {
    if (isControl(request)) return
    const entry = log.entryFor(request)
    const isCut = entry.fault === 'cut' || entry.fault === 'lose-answer'
    entry.status = isCut ? null : reply.statusCode
  })
  return app
}

/** The exact bytes of a request's body. */
export function readBytes(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
}

/** The body parsed as JSON; its text if it is not JSON; undefined if it is empty. */
function parseBody(request: FastifyRequest): unknown {
  const text = readBytes(request).toString('utf8')
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

/** Applies effects that come before the request is handled. */
async function applyBeforeHandling(
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

/** Sends endless headers, one byte at a time, until the client gives up. */
async function drip(socket: Socket, everyMs: number, closing: AbortSignal): Promise<void> {
  const text = `HTTP/1.1 200 OK\r\nx-patience: ${'.'.repeat(1_000)}`
  for (let sent = 0; !socket.destroyed && !closing.aborted; sent += 1) {
    socket.write(text[sent] ?? '.')
    await systemClock.sleep(everyMs, closing)
  }
}

/** Applies effects to the answer of a request that was handled. */
function applyToAnswer(fault: Fault, request: FastifyRequest, payload: string): string | Readable {
  const half = payload.slice(0, Math.floor(payload.length / 2))
  switch (fault.effect) {
    case 'lose-answer':
      request.raw.socket.destroy()
      return payload
    case 'cut':
      return Readable.from(sendThenFail(half))
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

async function* sendThenFail(half: string): AsyncGenerator<string> {
  yield half
  await systemClock.sleep(0)
  throw new Error('cut by the sandbox')
}

/** One fault: which requests it strikes, how often, and what it does to them. */
const faultSchema = z.strictObject({
  /**
   * A path, where `*` matches anything (`/firework/*`, `/slack/*`), or a step of SMTP:
   * `smtp:connect`, `smtp:auth`, `smtp:mail`, `smtp:rcpt`, `smtp:data`.
   */
  on: z.string().min(1),
  /**
   * `status`: answers with `status` and does not handle the request. `hang`: never answers.
   * `refuse`: cuts the connection before the request is handled. `lose-answer`: handles it, then
   * cuts the connection without an answer. `cut`: handles it, and cuts the connection in the middle
   * of the answer. `delay`: goes on after `ms`. `drip`: does not handle it, and answers endlessly,
   * one byte every `ms`. `invalid-json`, `wrong-shape`: a 200 with an invalid body. SMTP supports
   * the first six.
   */
  effect: z.enum([
    'status',
    'hang',
    'refuse',
    'lose-answer',
    'cut',
    'delay',
    'drip',
    'invalid-json',
    'wrong-shape',
  ]),
  /** HTTP status or SMTP reply code for the effect `status`. */
  status: z.int().min(200).max(599).default(500),
  /** Shape of the error body; default: the one that the API uses for the status. */
  body: z.enum(['error', 'detail', 'message', 'text']).optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  /** Further headers, e.g. `retry-after` or `location`. */
  headers: z.record(z.string(), z.string()).default({}),
  ms: z.number().min(0).default(0),
  method: z.string().optional(),
  /** Only mail to this address. */
  recipient: z.string().optional(),
  /** true: only requests whose body or query has a cursor; false: only those without. */
  withCursor: z.boolean().optional(),
  /** How many times the fault strikes; default: no limit. */
  times: z.int().min(1).optional(),
  probability: z.number().min(0).max(1).default(1),
})

type Fault = z.infer<typeof faultSchema>
export type FaultInput = z.input<typeof faultSchema>

/** The request or SMTP step that faults are matched against. */
export interface Occasion {
  on: string
  method?: string
  recipient?: string
  withCursor?: boolean
}

export interface FaultControl {
  /** Adds a fault; returns a function that removes it. Throws ZodError if the fault is invalid. */
  add(fault: FaultInput): () => void
  clear(): void
  /** The active faults; `hits` is how often each has struck. */
  list(): (Fault & { hits: number })[]
}

export interface Faults extends FaultControl {
  /** Returns the oldest fault that strikes now, and counts the hit; null if none does. */
  strike(occasion: Occasion): Fault | null
}

export function createFaults(random: Random): Faults {
  let active: { fault: Fault; pattern: RegExp; hits: number }[] = []

  function strike(occasion: Occasion): Fault | null {
    const struck = active.find(
      ({ fault, pattern }) =>
        pattern.test(occasion.on) &&
        matchesOccasion(fault, occasion) &&
        random.chance(fault.probability),
    )
    if (!struck) return null
    struck.hits++
    if (struck.hits === struck.fault.times) active = active.filter((entry) => entry !== struck)
    return struck.fault
  }

  return {
    strike,
    add(input) {
      const fault = faultSchema.parse(input)
      const entry = { fault, pattern: globPattern(fault.on), hits: 0 }
      active.push(entry)
      return () => {
        active = active.filter((other) => other !== entry)
      }
    },
    clear() {
      active = []
    },
    list: () => active.map(({ fault, hits }) => ({ ...fault, hits })),
  }
}

function matchesOccasion(fault: Fault, occasion: Occasion): boolean {
  if (fault.method !== undefined && fault.method !== occasion.method) return false
  if (fault.recipient !== undefined && fault.recipient !== occasion.recipient) return false
  return fault.withCursor === undefined || fault.withCursor === occasion.withCursor
}

function globPattern(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 's')
}

/** The four shapes of an error body (docs/api-notes.md, Errors). */
type ErrorShape = 'error' | 'detail' | 'message' | 'text'

export interface ErrorAnswer {
  status: number
  code?: string | undefined
  message?: string | undefined
  shape?: ErrorShape | undefined
}

const errorCodes: Record<number, string> = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  429: 'RATELIMIT_REACHED',
}

export function sendError(reply: FastifyReply, answer: ErrorAnswer): FastifyReply {
  const body = errorBody(answer)
  return reply
    .code(answer.status)
    .type(typeof body === 'string' ? 'text/plain' : 'application/json')
    .send(typeof body === 'string' ? body : JSON.stringify(body))
}

function errorBody({ status, code, message, shape }: ErrorAnswer): unknown {
  const text = message ?? `the sandbox answers ${status}`
  const errorCode = code ?? errorCodes[status] ?? 'ERROR'
  switch (shape ?? defaultShape(status)) {
    case 'error':
      return { error: { code: errorCode, message: text, data: null } }
    case 'detail':
      return { detail: [validationEntry(['body'], text)] }
    case 'message':
      return { message: text, code: errorCode }
    case 'text':
      return message ?? 'upstream request timeout'
  }
}

/** One entry of a 422 body. */
export function validationEntry(
  loc: (string | number)[],
  msg: string,
  input: unknown = null,
): Record<string, unknown> {
  return { loc, msg, type: 'value_error', input, ctx: {} }
}

/**
 * The shape of errors at a path: v2 and v3 have one of their own (docs/api-notes.md, Errors).
 */
export function errorShapeOf(url: string): 'message' | 'error' {
  return /^\/firework\/v[23]\//.test(url) ? 'message' : 'error'
}

function defaultShape(status: number): ErrorShape {
  if (status === 422) return 'detail'
  return status >= 502 && status <= 504 ? 'text' : 'error'
}

/** One HTTP request that reached the sandbox, in order of arrival. */
export interface SandboxRequest {
  /** System wall clock, milliseconds. */
  atMs: number
  method: string
  /** Path without the query. */
  path: string
  query: Record<string, unknown>
  /** The parsed JSON body; undefined if there is none. */
  body: unknown
  /** null until answered, and for good if the connection was cut or hangs. */
  status: number | null
  organization: number | null
  tier: Tier | null
  /** Whether it came sooner than the limit of its tier allows. */
  isOverLimit: boolean
  /** Effect of the fault that struck it; null if none did. */
  fault: string | null
}

export interface RequestLog {
  readonly entries: readonly SandboxRequest[]
  open(request: FastifyRequest): SandboxRequest
  entryFor(request: FastifyRequest): SandboxRequest
}

export function createRequestLog(maxEntries: number): RequestLog {
  const entries: SandboxRequest[] = []
  const byRequest = new WeakMap<FastifyRequest, SandboxRequest>()

  function open(request: FastifyRequest): SandboxRequest {
    const entry: SandboxRequest = {
      atMs: systemClock.now(),
      method: request.method,
      path: request.url.split('?')[0] ?? request.url,
      query: request.query as Record<string, unknown>,
      body: undefined,
      status: null,
      organization: null,
      tier: null,
      isOverLimit: false,
      fault: null,
    }
    byRequest.set(request, entry)
    appendBounded(entries, entry, maxEntries)
    return entry
  }

  return { entries, open, entryFor: (request) => byRequest.get(request) ?? open(request) }
}

/**
 * Appends `entry`, and drops the oldest entries once `list` is a tenth over `max`, so that memory
 * stays bounded.
 */
export function appendBounded<T>(list: T[], entry: T, max: number): void {
  list.push(entry)
  if (list.length > max * 1.1) list.splice(0, list.length - max)
}
