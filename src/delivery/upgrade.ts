/**
 * Takes over a store that an older version wrote. Layout 1 (0.1 to 0.4) had a BullMQ job for each delivery and each
 * feed; layout 2 has claims and lanes. What is to be delivered stands in the ledger alike, so that only the queues
 * have to go.
 */
import { Queue } from 'bullmq'
import type { AccountLedger } from '../store/account-ledger.ts'
import { readSinkNames } from '../store/pending-items.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { claimSchema, schemaVersion, readSchema } from '../redis/health.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { resetMigrationScan } from '../store/record-index.ts'

export interface UpgradeOptions {
  redis: Redis
  keys: Keys
  ledgers: readonly AccountLedger[]
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
  const { redis, keys, ledgers, waitMs, clock, logger } = options
  const stored = await readSchema(redis, keys)
  if (stored !== undefined && stored < schemaVersion) {
    const sinks = new Set([
      ...options.sinks,
      ...(await Promise.all(ledgers.map(readSinkNames))).flat(),
    ])
    const names = ['feeds', ...[...sinks].map((sink) => `sink-${sink}`)]
    logger.warn(
      { from: stored, to: schemaVersion, waitMs, queues: names.length },
      'the store of an older version is taken over: its replicas ask and send nothing more, and do not start again here',
    )
    await redis.sadd(oldQueuesKey(keys), names)
    await withQueues(options, names, (queue) => queue.pause())
    await clock.sleep(waitMs)
    await withQueues(options, names, (queue) => queue.drain(true))
    const accounts = ledgers.map(({ account }) => account)
    await resetMigrationScan({ redis, keys }, accounts)
  }
  await claimSchema(redis, keys, { isUpgrade: true })
}

/**
 * Empties the queues once more, `afterMs` later: replicas of the older version that still ran had added the jobs of
 * their feeds and items again, which nobody takes. Does nothing where nothing was taken over since. Never throws.
 */
export async function drainOldQueues(
  options: Pick<UpgradeOptions, 'redis' | 'keys' | 'clock' | 'logger'> & { afterMs: number },
  signal: AbortSignal,
): Promise<void> {
  const { redis, keys, clock, logger, afterMs } = options
  try {
    const names = await redis.smembers(oldQueuesKey(keys))
    if (names.length === 0) return
    await clock.sleep(afterMs, signal)
    if (signal.aborted) return
    await withQueues(options, names, (queue) => queue.drain(true))
    await redis.del(oldQueuesKey(keys))
  } catch (error) {
    logger.debug({ err: error }, 'queues of the older version are emptied after the next start')
  }
}

/** The queues that are to be emptied once more. */
function oldQueuesKey(keys: Keys): string {
  return keys.shared('upgraded')
}

async function withQueues(
  { redis, keys }: Pick<UpgradeOptions, 'redis' | 'keys'>,
  names: readonly string[],
  action: (queue: Queue) => Promise<void>,
): Promise<void> {
  for (const name of names) {
    const queue = new Queue(name, { connection: redis, prefix: keys.queuePrefix })
    queue.on('error', () => undefined) // what fails rejects
    try {
      await action(queue)
    } finally {
      await queue.close()
    }
  }
}
