/**
 * Silences made by command, shared by all replicas, as texts that the routing room writes and
 * parses; and the lookup of inhibitions.
 */
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import type { AccountLedger } from './account-ledger.ts'

export async function readSilenceTexts(redis: Redis, keys: Keys): Promise<Map<string, string>> {
  return new Map(Object.entries(await redis.hgetall(keys.shared('silences'))))
}

/** Adds a silence, or replaces the one with the same id. */
export async function writeSilence(
  redis: Redis,
  keys: Keys,
  { id, text }: { id: string; text: string },
): Promise<void> {
  await redis.hset(keys.shared('silences'), id, text)
}

export async function removeSilence(redis: Redis, keys: Keys, id: string): Promise<void> {
  await redis.hdel(keys.shared('silences'), id)
}

/**
 * Tells for each query whether an event of another record has set the inhibition key within the
 * window. Answers are in the order of `queries`. `nowMs`: Redis' clock, as near as this machine
 * knows it.
 */
export async function areInhibited(
  ledger: AccountLedger,
  queries: readonly { recordId: string; key: string; windowMs: number }[],
  nowMs: number,
): Promise<boolean[]> {
  const lookups = ledger.redis.pipeline()
  for (const { key, windowMs } of queries) {
    lookups.zrangebyscore(ledger.key('inhibit', key), nowMs - windowMs, '+inf')
  }
  const answers = (await lookups.exec()) ?? []
  return queries.map(({ recordId }, i) => {
    const [error, sources] = answers[i] ?? []
    if (error) throw error
    return (sources as string[]).some((source) => source !== recordId)
  })
}
