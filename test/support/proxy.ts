/** A real HTTP proxy on loopback that opens tunnels (CONNECT), and keeps what it was asked. */
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Identity } from './certificates.ts'

export interface Proxy {
  /** With the login, if it asks for one. */
  url: string
  port: number
  /** What tunnels were asked for, oldest first. */
  tunnels: { authority: string; headers: IncomingHttpHeaders }[]
}

export interface ProxyOptions {
  /** `user:password`; default: it asks for none. */
  login?: string
  /** Speaks TLS by this. */
  identity?: Identity
  /** Answers every tunnel by this status. */
  refuses?: number
  /** Where names lead that only the proxy knows. Default: loopback, whatever the name. */
  resolve?: (authority: string) => number
}

/** Ends with the test. */
export async function aProxy(options: ProxyOptions = {}): Promise<Proxy> {
  const {
    login,
    identity,
    refuses,
    resolve = (authority) => Number(authority.split(':').at(-1)),
  } = options
  const tunnels: Proxy['tunnels'] = []
  const open = new Set<Socket>()
  const server = identity ? createHttpsServer(identity) : createHttpServer()
  const expected = login && `Basic ${Buffer.from(login).toString('base64')}`

  server.on('connect', ({ url: authority = '', headers }, client: Socket, head: Buffer) => {
    open.add(client.on('error', () => client.destroy()))
    const answer = (status: number): boolean => client.write(`HTTP/1.1 ${status} So\r\n\r\n`)
    tunnels.push({ authority, headers })
    if (refuses !== undefined) return void (answer(refuses) && client.end())
    if (expected !== undefined && headers['proxy-authorization'] !== expected) {
      return void (answer(407) && client.end())
    }
    const target = connect(resolve(authority), '127.0.0.1')
    open.add(target.on('error', () => client.destroy()))
    target.on('connect', () => {
      answer(200)
      if (head.length > 0) target.write(head)
      target.pipe(client).pipe(target)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  const scheme = identity ? 'https' : 'http'
  return { url: `${scheme}://${login ? `${login}@` : ''}localhost:${port}`, port, tunnels }
}
