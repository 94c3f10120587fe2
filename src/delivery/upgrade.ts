/**
 * Takes over a store that an older version wrote. Layout 1 (0.1 to 0.4) had a BullMQ job for each delivery; layout 2
 * has claims. What is to be delivered stands in the ledger alike, so that only the queues have to go.
 */
import { Queue } from 'bullmq'
import type { Book } from '../ledger/book.ts'
import { sinksOf } from '../ledger/due.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { claimSchema, layout, readSchema } from '../redis/safety.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'

export interface UpgradeOptions {
  redis: Redis
  keys: Keys
  books: readonly Book[]
  /** Of the configuration; those of the ledger are found there. */
  sinks: readonly string[]
  /** How long replicas of the older version get to end what they send, ms. */
  waitMs: number
  clock: Clock
  logger: Logger
}

/**
 * Replicas of an older version that still run find no work any more: their queues stay paused. Interrupted, it begins
 * anew at the next start.
 */
export async function upgradeStore(options: UpgradeOptions): Promise<void> {
  const { redis, keys, books, waitMs, clock, logger } = options
  const stored = await readSchema(redis, keys)
  if (stored !== undefined && stored < layout) {
    const names = new Set([...options.sinks, ...(await Promise.all(books.map(sinksOf))).flat()])
    logger.warn(
      { from: stored, to: layout, waitMs, queues: names.size },
      'the store of an older version is taken over: its replicas send nothing more, and do not start again here',
    )
    const queues = [...names].map((sink) => openQueue(redis, keys, sink))
    for (const queue of queues) await queue.pause()
    await clock.sleep(waitMs)
    for (const queue of queues) await queue.drain(true)
    await Promise.all(queues.map((queue) => queue.close()))
  }
  await claimSchema(redis, keys, { isUpgrade: true })
}

function openQueue(redis: Redis, keys: Keys, sink: string): Queue {
  const queue = new Queue(`sink-${sink}`, { connection: redis, prefix: keys.queuePrefix })
  queue.on('error', () => undefined) // what fails rejects
  return queue
}
