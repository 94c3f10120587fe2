/** A real HTTP server on a free loopback port that does what a test says and keeps what it was asked. */
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedRequest {
  method: string
  /** Path and query as sent. */
  path: string
  headers: IncomingHttpHeaders
  body: string
}

/** `hang`: the request is read and never answered; `cut`: it is read, then the connection is reset. */
export type ScriptedAnswer =
  | 'hang'
  | 'cut'
  | { status: number; headers?: Record<string, string>; body?: string }

export type Script = (
  request: ReceivedRequest,
  index: number,
) => ScriptedAnswer | Promise<ScriptedAnswer>

export interface HttpServer {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly port: number
  /** Every request read whole, oldest first. */
  readonly requests: ReceivedRequest[]
  /** How requests are answered from now on; `index` counts from 0 at this call. Until then 200 `ok`. */
  script(script: Script | ScriptedAnswer): void
  openConnections(): number
  /** Nobody listens on the port any more, until `listen`. */
  refuse(): Promise<void>
  listen(): Promise<void>
  stop(): Promise<void>
}

export async function startHttpServer(): Promise<HttpServer> {
  const requests: ReceivedRequest[] = []
  let script: Script = () => ({ status: 200, body: 'ok' })
  let asked = 0
  let open = 0
  let port = 0

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming)
    requests.push(request)
    const answer = await script(request, asked++)
    if (answer === 'cut') incoming.socket.resetAndDestroy()
    else if (answer !== 'hang') {
      response.writeHead(answer.status, answer.headers).end(answer.body ?? '')
    }
  }

  const server = createServer((incoming, response) => {
    handle(incoming, response).catch(() => incoming.socket.destroy())
  })
  server.on('connection', (socket) => {
    open += 1
    socket.once('close', () => (open -= 1))
  })

  async function listen(): Promise<void> {
    if (server.listening) return
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }

  async function refuse(): Promise<void> {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }

  await listen()
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    script(next) {
      script = typeof next === 'function' ? next : () => next
      asked = 0
    },
    openConnections: () => open,
    refuse,
    listen,
    stop: refuse,
  }
}

async function readRequest(incoming: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return {
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    headers: incoming.headers,
    body: Buffer.concat(chunks).toString('utf8'),
  }
}
