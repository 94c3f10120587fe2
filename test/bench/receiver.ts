/** A receiver that notes when each event came and answers at once; it checks nothing. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerCalls, preciseMs, untilThere } from './called-process.ts'

export type ReceiverCalls = typeof calls

/** When each uid came first, in the order in which they came. */
const cameMs = new Map<string, number>()
const timesMs: number[] = []
/** Events that came again in another message. */
let repeats = 0

function take(body: string): void {
  const nowMs = preciseMs()
  const uids = new Set(Array.from(body.matchAll(/"uid":"([^"]+)"/g), ([, uid = '']) => uid))
  for (const uid of uids) {
    if (cameMs.has(uid)) {
      repeats += 1
      continue
    }
    cameMs.set(uid, nowMs)
    timesMs.push(nowMs)
  }
}

const server = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    response.writeHead(200, { 'content-length': 0 }).end()
    take(Buffer.concat(parts).toString())
  })
})

const calls = {
  async start() {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { url, webhookSecret: 'whsec_cmVoZWFyc2FsLW9ubHktbm90LWEtc2VjcmV0' }
  },
  /** Resolves, once so many events have come, to the time of the last of them. */
  until: (events: number) =>
    untilThere(
      () => timesMs[events - 1],
      () => `${timesMs.length} of ${events} events were received`,
      5,
    ),
  counts: () => ({ events: timesMs.length, repeats }),
  times: () => [...cameMs],
}

answerCalls(calls)
