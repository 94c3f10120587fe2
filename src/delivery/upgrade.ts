/**
 * Upgrades a store that an older version wrote. Layout 1 (0.1 to 0.4) had a BullMQ job for each
 * delivery and each feed; layout 2 has claims and lanes. Both keep pending deliveries in the
 * ledger, so only the queues have to be removed.
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
  /** Sinks of the configuration; the ledger's own are read from it. */
  sinks: readonly string[]
  /** Time that replicas of the older version have to finish their sends, ms. */
  waitMs: number
  clock: Clock
  logger: Logger
}

/**
 * Upgrades the store if needed. Replicas of the older version that still run find no more work,
 * because their queues stay paused. An interrupted upgrade starts again at the next start. Several
 * replicas may start at once: the first that has waited upgrades, and then works on the store.
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
    if ((await readSchema(redis, keys)) === schemaVersion) return // another replica was first
    await withQueues(options, names, emptyQueue)
    const accounts = ledgers.map(({ account }) => account)
    await resetMigrationScan({ redis, keys }, accounts)
  }
  await claimSchema(redis, keys, { isUpgrade: true })
}

/**
 * Empties the old queues once more, `afterMs` later: replicas of the older version that still ran
 * may have added jobs again, which nobody takes. Does nothing if no upgrade left queues to empty.
 * Never throws.
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
    await withQueues(options, names, emptyQueue)
    await redis.del(oldQueuesKey(keys))
  } catch (error) {
    logger.debug({ err: error }, 'queues of the older version are emptied after the next start')
  }
}

/** Jobs that one script removes: Redis serves nobody else while it runs. */
const jobsAtOnce = 500

const waitingKinds = ['paused', 'wait', 'prioritized', 'delayed'] as const

/** Removes all jobs; `drain` alone does so in one script, which takes seconds for a backlog. */
async function emptyQueue(queue: Queue): Promise<void> {
  for (const kind of waitingKinds) {
    let removed: string[]
    do removed = await queue.clean(0, jobsAtOnce, kind)
    while (removed.length === jobsAtOnce)
  }
  await queue.drain(true) // what remains: jobs of a clock that is ahead, and those of schedules
}

/** Redis key of the set of queues to be emptied once more. */
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
    queue.on('error', () => undefined) // a failing command rejects by itself
    try {
      await action(queue)
    } finally {
      await queue.close()
    }
  }
}
