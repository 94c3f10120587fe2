/** The page as a process of its own, so that nothing else is counted as its work. It ends with its parent. */
import { type PageServer, startPageServer, type Taken } from './page-server.ts'

export type PageCall =
  | { name: 'start'; config: object }
  | { name: 'take' }
  | { name: 'memory' }
  | { name: 'setShared'; isShared: boolean }

export interface PageMemory {
  rssBytes: number
  heapBytes: number
}

export type PageReply = { url: string } | Taken[] | PageMemory | null

let server: PageServer

async function answer(call: PageCall): Promise<PageReply> {
  if (call.name === 'start') {
    server = await startPageServer(call.config)
    return { url: server.url }
  }
  if (call.name === 'take') return server.take()
  if (call.name === 'memory') return readMemory()
  server.setShared(call.isShared)
  return null
}

/** After the collector has had its way. */
async function readMemory(): Promise<PageMemory> {
  for (let i = 0; i < 3; i += 1) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { rss, heapUsed } = process.memoryUsage()
  return { rssBytes: rss, heapBytes: heapUsed }
}

process.on('message', (call: PageCall) => {
  void answer(call).then(
    (reply) => process.send?.({ reply }),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
process.on('disconnect', () => process.exit())
