/** Stands between the command line and the sandbox, and holds the requests that change something. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** `before`: it has not been passed on; `after`: it was done, and the answer has not been passed back. */
export type Moment = 'before' | 'after'

export interface WriteGate {
  url: string
  /**
   * At the write of this number, 0 being the next, `act` is called and the request never answered;
   * the promise resolves then.
   */
  stopAt(write: number, moment: Moment, act: () => void): Promise<void>
  /** After each write that was passed on. */
  onWritten(listener: () => void): void
}

/** Gone after the test. */
export async function startWriteGate(target: string): Promise<WriteGate> {
  let stop: { write: number; moment: Moment; act: () => void } | undefined
  let writes = 0
  let written = (): void => undefined

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    const isWrite = request.method !== 'GET' && request.url?.startsWith('/firework/') === true
    const stopped = isWrite && writes++ === stop?.write ? stop : undefined
    if (stopped?.moment === 'before') return stopped.act()
    const answer = await passOn(request, body)
    if (isWrite) written()
    if (stopped !== undefined) return stopped.act()
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  }

  function passOn({ method = 'GET', url, headers }: IncomingMessage, body: Buffer) {
    const kept = ['authorization', 'content-type'] as const
    return fetch(`${target}${url}`, {
      method,
      headers: kept.flatMap((name): [string, string][] =>
        headers[name] === undefined ? [] : [[name, headers[name]]],
      ),
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    })
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stopAt: (write, moment, act) =>
      new Promise((resolve) => {
        writes = 0
        stop = {
          write,
          moment,
          act() {
            act()
            resolve()
          },
        }
      }),
    onWritten: (listener) => (written = listener),
  }
}
