/** A server whose page is a few routes behind the door of the real one, and browsers that come to it. */
import { once } from 'node:events'
import { Agent, type IncomingHttpHeaders, request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { Writable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { createMetrics, type Metrics } from '../../src/lib/metrics/metrics.ts'
import { secretFromText } from '../../src/lib/config/secret.ts'
import type { HttpUser } from '../../src/page/http/access-config.ts'
import type { HttpConfig } from '../../src/page/http/config.ts'
import { createHttpServer } from '../../src/page/http/server.ts'
import { accessPlugin } from '../../src/page/access/access-plugin.ts'
import type { Render } from '../../src/page/access/access.ts'
import { issueFormToken } from '../../src/page/access/form-token.ts'
import type { Redis } from '../../src/redis/client.ts'
import type { Keys } from '../../src/redis/keys.ts'

export const password = 'a whole sentence'

export function aUser(over: Partial<HttpUser> = {}): HttpUser {
  const passwordHash = secretFromText(`hash of ${password}`)
  return { name: 'ana', role: 'act', accounts: 'all', passwordHash, ...over }
}

export interface Door {
  url: string
  port: number
  /** Followed at the next request. */
  http: HttpConfig
  /** Acts that were done: their paths. */
  acts: string[]
  /** Each hash that was compared; how many at once at most; what each comparison waits for. */
  judged: { hashes: string[]; most: number; until?: Promise<void> }
  logged: () => string
  metrics: Metrics
}

interface DoorOptions {
  redis: Redis
  keys: Keys
  http?: Partial<HttpConfig>
  clock?: Clock
}

/** Quick, and as a real one never twice in one turn of the event loop. */
function countingCheck(judged: Door['judged']) {
  let running = 0
  return async (given: string, hash: string): Promise<boolean> => {
    judged.hashes.push(hash)
    running += 1
    judged.most = Math.max(judged.most, running)
    await (judged.until ?? new Promise((resolve) => setImmediate(resolve)))
    running -= 1
    return hash === `hash of ${given}`
  }
}

const render: Render = (view: string, data: object) =>
  `<!doctype html><link rel="icon" href="data:,"><title>${view}</title><pre>${JSON.stringify(data)}</pre>
<form method="post" action="/sign-in"><input name="name"><input name="password" type="password"><button>in</button></form>`

export async function aDoor({
  redis,
  keys,
  http = {},
  clock = systemClock,
}: DoorOptions): Promise<Door> {
  const config: HttpConfig = {
    host: '127.0.0.1',
    port: 0,
    hosts: [],
    users: [aUser()],
    ...http,
  }
  let lines = ''
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines += String(chunk)
      done()
    },
  })
  const judged: Door['judged'] = { hashes: [], most: 0 }
  const metrics = createMetrics()
  const door: Door = {
    url: '',
    port: 0,
    http: config,
    acts: [],
    judged,
    logged: () => lines,
    metrics,
  }
  const logger = createLogger({ destination })
  const options = { redis, keys, clock, logger, metrics, render, http: () => door.http }
  const server = createHttpServer({
    ...config,
    metrics,
    logger,
    health: () => ({ ok: true, loops: [] }),
    ready: async () => ({ ok: true, reasons: [] }),
    page: {
      notFound: () => '',
      publicUrl: () => door.http.publicUrl,
      routes: async (page) => {
        await page.register(accessPlugin({ ...options, isPassword: countingCheck(judged) }))
        page.get('/style.css', { config: { access: 'public' } }, async (_request, reply) =>
          reply.type('text/css').send('body{}'),
        )
        page.get('/', async ({ user, session }, reply) => {
          const token = session ? issueFormToken(session, '/acts/resend') : ''
          return reply.type('text/html').send(
            `<!doctype html><link rel="icon" href="data:,"><title>page</title><pre>${JSON.stringify({ user, token })}</pre>
<form method="post" action="/acts/resend"><input type="hidden" name="form_token" value="${token}"><button>resend</button></form>`,
          )
        })
        page.get('/api/v1/status', async ({ user }) => ({ user }))
        page.get('/broken', async () => {
          throw new Error('hunter2')
        })
        for (const path of ['/acts/resend', '/acts/other', '/api/v1/acts/resend']) {
          page.post(path, async (request) => {
            door.acts.push(path)
            return { done: path, by: request.user.name }
          })
        }
      },
    },
  })
  const { url } = await server.start()
  onTestFinished(() => server.stop())
  return Object.assign(door, { url, port: Number(new URL(url).port) })
}

export interface Asked {
  method?: string
  headers?: Record<string, string>
  /** An object is sent as a form, or to the API as JSON. */
  body?: Record<string, string> | string
  /** The address of this machine from which it is asked. */
  from?: string
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
  /** What the page says in JSON. */
  said: Record<string, never> & { user: { name: string; role: string }; token: string }
}

/** For many at once: the server holds few connections. */
export const keptAgent = (): Agent => {
  const agent = new Agent({ keepAlive: true, maxSockets: 40 })
  onTestFinished(() => agent.destroy())
  return agent
}

export async function ask(
  { port }: Pick<Door, 'port'>,
  path: string,
  { method, headers = {}, body, from }: Asked = {},
  agent?: Agent,
): Promise<Answer> {
  const isApi = path.startsWith('/api')
  const form = typeof body === 'object' && !isApi ? new URLSearchParams(body).toString() : undefined
  const sent = form ?? (typeof body === 'object' ? JSON.stringify(body) : body)
  const type = isApi ? 'application/json' : 'application/x-www-form-urlencoded'
  const request = httpRequest({
    host: '127.0.0.1',
    port,
    path,
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      accept: 'text/html',
      ...(sent !== undefined && { 'content-type': type }),
      ...headers,
    },
    agent: agent ?? false,
    ...(from !== undefined && { localAddress: from }),
  })
  // as bytes: with a text Node writes the headers in its encoding, too
  request.end(sent === undefined ? undefined : Buffer.from(sent))
  const [response] = await once(request, 'response')
  const answered = await text(response)
  const json = /<pre>(.*)<\/pre>/.exec(answered)?.[1] ?? answered
  return {
    status: response.statusCode,
    headers: response.headers,
    body: answered,
    said: json.startsWith('{') ? JSON.parse(json) : {},
  }
}

/** The cookie of an answer as it goes back; '' if it sets none. */
export function cookieOf({ headers }: Answer): string {
  return headers['set-cookie']?.[0]?.split(';')[0] ?? ''
}

export async function signIn(
  door: Door,
  over: Record<string, string> = {},
  asked: Asked = {},
): Promise<{ answer: Answer; cookie: string }> {
  const answer = await ask(door, '/sign-in', { ...asked, body: { name: 'ana', password, ...over } })
  return { answer, cookie: cookieOf(answer) }
}

/** Headers of somebody who is signed in, with a token for `/acts/resend`. */
export async function signedIn(
  door: Door,
  over: Record<string, string> = {},
): Promise<{ headers: { cookie: string }; token: string }> {
  const { cookie } = await signIn(door, over)
  const { said } = await ask(door, '/', { headers: { cookie } })
  return { headers: { cookie }, token: said.token }
}

/** How often each reason was counted. */
export async function refusalsOf({ metrics }: Door): Promise<Record<string, number>> {
  const { body } = await metrics.render()
  const found = body.matchAll(/^tocsin_http_refusals_total\{reason="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries(
    [...found]
      .map(([, reason = '', count]) => [reason, Number(count)] as const)
      .filter(([, count]) => count > 0),
  )
}
