import { Queue } from 'bullmq'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import { queueNameOf } from '../../../src/delivery/work-queue.ts'
import {
  countDeadLetters,
  listDeadLetters,
  replayDeadLetter,
} from '../../../src/ledger/dead-letters.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { sinkNames, type Stage } from './stage.ts'

export interface Operator {
  /** Once the trouble is over: resumes each sink, replays its dead letters, lets nothing wait for hours. */
  act(): Promise<void>
  close(): Promise<void>
}

export function callOperator({ book, store }: Pick<Stage, 'book' | 'store'>): Operator {
  const keys = createKeys('tocsin')
  const circuit = createCircuit(store.client, keys)
  const open = (sink: string): Queue =>
    new Queue(queueNameOf(sink), { connection: store.client, prefix: keys.queuePrefix })
  const queues = sinkNames.map(open)

  async function replay(sink: string): Promise<void> {
    if ((await countDeadLetters(book, sink)) === 0) return
    const { letters } = await listDeadLetters(book, sink, { offset: 0, count: 500 })
    for (const { ref } of letters) {
      await replayDeadLetter(book, ref, sink === 'batch' ? 300 : undefined)
    }
  }

  return {
    async act() {
      for (const sink of sinkNames) {
        await circuit.pause(sink, undefined)
        await replay(sink)
      }
      for (const queue of queues) await hasten(queue)
    },
    close: async () => void (await Promise.all(queues.map((queue) => queue.close()))),
  }
}

/** Tries that would come in minutes or hours come now: the table of waits has its own tests. */
async function hasten(queue: Queue): Promise<void> {
  for (const job of await queue.getDelayed()) {
    await job?.promote().catch(() => undefined) // taken up meanwhile
  }
}
