/**
 * A port that takes a second to connect to: its queue is full when the first packet comes, and the
 * system asks again a second later, when it has room.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { onTestFinished } from 'vitest'

const program = `
const { createServer } = require('node:http')
const { parentPort, workerData } = require('node:worker_threads')
const server = createServer((request, response) => response.end('{"items":[],"next":null}'))
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port)
  parentPort.once('message', () => {
    parentPort.postMessage('stands still')
    Atomics.wait(workerData, 0, 0)
  })
})`

export interface SlowServer {
  port: number
  /** Lets it take connections again. */
  wake(): void
}

/** Ends with the test. Answers every request as an empty page of the API. */
export async function aSlowServer(): Promise<SlowServer> {
  const awake = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(program, { eval: true, workerData: awake })
  function wake(): void {
    Atomics.store(awake, 0, 1)
    Atomics.notify(awake, 0)
  }
  const [port] = (await once(worker, 'message')) as [number]
  worker.postMessage('stand still')
  await once(worker, 'message')
  // Linux takes one more than the backlog; the rest wait as the test does.
  const waiting = Array.from({ length: 4 }, () => connect(port, '127.0.0.1'))
  for (const socket of waiting) socket.on('error', () => undefined)
  await Promise.all(waiting.slice(0, 2).map((socket) => once(socket, 'connect')))
  onTestFinished(async () => {
    wake()
    for (const socket of waiting) socket.destroy()
    await worker.terminate()
  })
  return { port, wake }
}
