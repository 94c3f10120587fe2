/** Stands before a service and writes hostile words into every text of its answers. */
import { startHttpServer, type ReceivedRequest } from '../support/http-server.ts'

export interface HostileService {
  url: string
  /** Whose answers it gives, changed. */
  standsBefore(url: string): void
  /** What it writes behind every text from now on. */
  says(words: string): void
  stop(): Promise<void>
}

/** By these one thing is told from another: changed, an answer would be another answer. */
const untouched = new Set(['token', 'next', 'uid', 'uuid', 'status'])

export async function startHostileService(): Promise<HostileService> {
  const server = await startHttpServer()
  let target = ''
  let words = ''
  server.script(async (request) => {
    const answered = await forward(target, request)
    const body = await answered.text()
    return { status: answered.status, headers: hostileHeaders, body: hostile(body, words) }
  })
  return {
    url: server.url,
    standsBefore: (url) => void (target = url),
    says: (next) => void (words = next),
    stop: () => server.stop(),
  }
}

const hostileHeaders = { 'content-type': 'application/json', 'x-said': '\u009B2J \u0085 forged' }

function forward(
  target: string,
  { method, path, headers, body }: ReceivedRequest,
): Promise<Response> {
  const { authorization = '' } = headers
  return fetch(`${target}${path}`, {
    method,
    headers: { authorization, 'content-type': 'application/json' },
    ...(method !== 'GET' && body !== '' && { body }),
  })
}

function hostile(body: string, words: string): string {
  return body === '' ? '' : JSON.stringify(within(JSON.parse(body), words))
}

function within(value: unknown, words: string, key = ''): unknown {
  if (typeof value === 'string') return untouched.has(key) ? value : `${value} ${words}`
  if (Array.isArray(value)) return value.map((entry) => within(entry, words))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, within(member, words, name)]),
  )
}
