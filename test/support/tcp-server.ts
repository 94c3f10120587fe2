/** A raw TCP server for what no HTTP server does: half answers, silence, closing at the wrong moment. */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'

export interface TcpServer {
  port: number
  /** All bytes read so far, over all connections. */
  seen(): string
  connections(): number
  stop(): Promise<void>
}

export interface TcpBehaviour {
  onConnect?: (socket: Socket) => void
  onBytes?: (socket: Socket, seen: string) => void
}

export async function startTcpServer({
  onConnect,
  onBytes,
}: TcpBehaviour = {}): Promise<TcpServer> {
  const sockets = new Set<Socket>()
  let seen = ''
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      seen += chunk.toString('latin1')
      onBytes?.(socket, seen)
    })
    onConnect?.(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    seen: () => seen,
    connections: () => connections,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
