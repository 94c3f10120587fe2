/**
 * A service in a thread of its own that only looks at the clock: of each search it says between
 * which moments it arrived. A thread that gets no processor makes that span longer, never wrong.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'

export interface Arrival {
  /** Not before, and not after; monotonic ms. */
  afterMs: number
  byMs: number
}

const arrivals: Arrival[] = []
/** When the loop last looked for what has arrived, newest last. */
let looks = Array.from({ length: 5 }, () => performance.now())

function lookAgain(): void {
  looks = [...looks.slice(1), performance.now()]
  setImmediate(lookAgain)
}

function answer(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const server = createServer((request, response) => {
  if (request.url === '/tokens/generate') return answer(response, { token: 't0ken' })
  // a new connection is taken, and what stands in it is read, a few looks later
  arrivals.push({ afterMs: looks[0]!, byMs: performance.now() })
  if (arrivals.length % 12 === 0) return undefined // hangs
  setTimeout(() => answer(response, { items: [], next: null }), (arrivals.length * 37) % 250)
  return undefined
})

server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port))
parentPort?.on('message', () => parentPort?.postMessage(arrivals))
lookAgain()
