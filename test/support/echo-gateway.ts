/**
 * Stands between the daemon and everything it speaks HTTP with. It passes requests on, remembers every
 * bearer token, and below `/echo/<status>/` refuses them with all that it was sent in the answer.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface EchoGateway {
  url: string
  /** Every bearer token that was used, each once. */
  tokens: Set<string>
  /** How many requests were refused below `/echo/<status>/`. */
  echoed(status: number): number
  close(): Promise<void>
}

/** `grant` is the token that the refusing services hand out before they refuse everything else. */
export async function startEchoGateway(target: string, grant: string): Promise<EchoGateway> {
  const tokens = new Set<string>()
  const counts = new Map<number, number>()
  const server = createServer((request, response) => {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (token !== undefined) tokens.add(token)
    answer(request, response).catch(() => response.destroy())
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    const status = Number(/^\/echo\/(\d+)\//.exec(request.url ?? '')?.[1] ?? 0)
    if (status === 0) return forward(request, response, body)
    if (request.url?.endsWith('/grant/tokens/generate')) {
      return void response.end(JSON.stringify({ token: grant }))
    }
    counts.set(status, (counts.get(status) ?? 0) + 1)
    const said = `${request.url} ${JSON.stringify(request.headers)} ${body.toString()}`
    const refusal = request.url?.includes('/plain/')
      ? said
      : JSON.stringify({ message: said, code: request.headers.authorization, error: said })
    response.writeHead(status, `No ${request.headers.authorization ?? ''}`, {
      'content-type': 'application/json',
      location: `${target}${request.url}`,
      'x-echo': said.slice(0, 4_000).replaceAll(/[^\x20-\x7e]/g, '?'),
    })
    response.end(refusal)
  }

  async function forward(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
  ): Promise<void> {
    const { host: _host, connection: _connection, ...headers } = request.headers
    const hasBody = request.method !== 'GET'
    const answered = await fetch(`${target}${request.url}`, {
      method: request.method ?? 'GET',
      headers: Object.entries(headers).map(([name, value]): [string, string] => [
        name,
        String(value),
      ]),
      ...(hasBody && { body: new Uint8Array(body) }),
    })
    const type = answered.headers.get('content-type') ?? 'application/json'
    response.writeHead(answered.status, { 'content-type': type })
    response.end(Buffer.from(await answered.arrayBuffer()))
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tokens,
    echoed: (status) => counts.get(status) ?? 0,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
