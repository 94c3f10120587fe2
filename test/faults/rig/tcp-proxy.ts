/** Stands between the replicas and Redis: cuts, stalls, or swallows answers of what was carried out. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface TcpProxy {
  readonly port: number
  /** Every connection ends at once; new ones are taken. */
  cut(): void
  /** Answers are swallowed for so long, then every connection is cut: it was done, and nobody knows. */
  swallow(ms: number): Promise<void>
  /** No byte moves either way for so long. */
  stall(ms: number): Promise<void>
  stop(): Promise<void>
}

interface Pair {
  client: Socket
  server: Socket
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  let isSwallowing = false
  let isStalled = false
  const listener = createServer((client) => {
    const server = connect(targetPort, '127.0.0.1')
    const pair = { client, server }
    pairs.add(pair)
    const end = (): void => {
      pairs.delete(pair)
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
    client.on('data', (chunk) => server.write(chunk))
    server.on('data', (chunk) => void (isSwallowing || client.write(chunk)))
    if (isStalled) pause(pair)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')

  function cut(): void {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
  }

  return {
    port: (listener.address() as AddressInfo).port,
    cut,
    async swallow(ms) {
      isSwallowing = true
      await sleep(ms)
      cut()
      isSwallowing = false
    },
    async stall(ms) {
      isStalled = true
      pairs.forEach(pause)
      await sleep(ms)
      isStalled = false
      for (const { client, server } of pairs) {
        client.resume()
        server.resume()
      }
    },
    async stop() {
      const closed = once(listener, 'close')
      listener.close()
      cut()
      await closed
    },
  }
}

function pause({ client, server }: Pair): void {
  client.pause()
  server.pause()
}
