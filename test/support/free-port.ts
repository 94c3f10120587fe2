/**
 * Ports for servers of tests, below the range that systems choose those of outgoing connections from (32768
 * on Linux, 49152 elsewhere). A process holds a block of them by listening on its first, and gives each of
 * the rest once: so no other process of the tests takes a port before its server listens, or while it is down.
 */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

const first = 12_000
const blocks = 200
const blockSize = 100

interface Block {
  start: number
  given: number
}

// where test files share a process, each may have this module anew
const ours = globalThis as typeof globalThis & { tocsinPorts?: Promise<Block> }

export async function freePort(): Promise<number> {
  for (;;) {
    const taken = (ours.tocsinPorts ??= takeBlock())
    const block = await taken
    block.given += 1
    const port = block.start + block.given
    if (block.given < blockSize) {
      const probe = await listen(port)
      if (!probe) continue
      probe.close()
      await once(probe, 'close')
      return port
    }
    // its guard stays: what listens on its ports may still run
    if (ours.tocsinPorts === taken) delete ours.tocsinPorts
  }
}

async function takeBlock(): Promise<Block> {
  const from = randomInt(blocks)
  for (let i = 0; i < blocks; i += 1) {
    const start = first + ((from + i) % blocks) * blockSize
    const guard = await listen(start)
    if (!guard) continue
    guard.unref()
    return { start, given: 0 }
  }
  throw new Error(`every block of ports from ${first} to ${first + blocks * blockSize} is held`)
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer()
  const isListening = new Promise<boolean>((resolve) => {
    server.once('listening', () => resolve(true)).once('error', () => resolve(false))
  })
  server.listen(port, '127.0.0.1')
  return (await isListening) ? server : undefined
}
