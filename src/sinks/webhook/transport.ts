/** One POST over undici: bounded in time and size, no redirect, no proxy, exact about what was written. */
import type { LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import { Agent, buildConnector, request } from 'undici'
import { guardConnector, publicLookup } from '../address-guard.ts'
import { errorOfFailure, type Answer } from './classify.ts'

const connectTimeoutMs = 5000
const headersTimeoutMs = 10_000
const bodyTimeoutMs = 5000
const maxAnswerBytes = 64 * 1024

export interface Transport {
  /** Resolves with any status; throws SinkError where no status came. */
  post(url: URL, message: Message, signal: AbortSignal): Promise<Answer>
  /** Likewise; whether a GET was written is not known, so one that is cut once connected counts as written. */
  get(url: URL, signal: AbortSignal): Promise<Answer>
  close(): Promise<void>
}

export interface Message {
  headers: Record<string, string>
  body: string
}

export interface TransportOptions {
  allowPrivate: boolean
  resolve: LookupFunction
  maxConnections: number
}

export function createTransport(options: TransportOptions): Transport {
  // A plain Agent heeds no proxy variables: behind a proxy the address checks would see only the proxy.
  const agent = new Agent({
    connect: connectorFor(options),
    connections: options.maxConnections,
    headersTimeout: headersTimeoutMs,
    bodyTimeout: bodyTimeoutMs,
  })

  async function ask(url: URL, asked: Asked, signal: AbortSignal): Promise<Answer> {
    const sent = request(url, { dispatcher: agent, ...asked, signal })
    const response = await Promise.race([sent, rejectionOf(signal)])
    // The status is the answer. The rest is read only so that the connection can serve again;
    // a body that is endless, cut or slow takes nothing back.
    await response.body.dump({ limit: maxAnswerBytes, signal }).catch(() => undefined)
    return { status: response.statusCode, retryAfter: response.headers['retry-after'] }
  }

  async function post(url: URL, { headers, body }: Message, signal: AbortSignal): Promise<Answer> {
    let wasWritten = false
    const stream = readOnce(body, () => (wasWritten = true))
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    try {
      const message = { method: 'POST', headers: { ...headers, ...length }, body: stream } as const
      return await ask(url, message, signal)
    } catch (error) {
      throw errorOfFailure({ error, wasWritten, wasAborted: signal.aborted })
    }
  }

  async function get(url: URL, signal: AbortSignal): Promise<Answer> {
    try {
      return await ask(url, { method: 'GET', headers: { 'user-agent': 'tocsin' } }, signal)
    } catch (error) {
      throw errorOfFailure({ error, wasWritten: true, wasAborted: signal.aborted })
    }
  }

  return { post, get, close: () => agent.destroy() }
}

interface Asked {
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: Readable
}

/** A body that tells when undici asks for it, which it does on a live connection, about to write. */
function readOnce(body: string, onRead: () => void): Readable {
  return new Readable({
    read() {
      onRead()
      this.push(body)
      this.push(null)
    },
  })
}

/** undici looks at the signal only once it is connected; this ends the wait for a connection too. */
function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

function connectorFor({ allowPrivate, resolve }: TransportOptions): buildConnector.connector {
  // HTTP/1.1 alone: a request has a connection to itself there, so that "written" is exact.
  const settings = { timeout: connectTimeoutMs, allowH2: false }
  if (allowPrivate) return buildConnector({ ...settings, lookup: resolve })
  return guardConnector(buildConnector({ ...settings, lookup: publicLookup(resolve) }))
}
