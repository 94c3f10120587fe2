/** What an account has left of its global searches, for all replicas: by the last answer that said so. */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'

export interface QuotaReading {
  remaining: number
  /** When an answer said so, wall clock ms. */
  atMs: number
}

export async function noteQuota(
  redis: Redis,
  keys: Keys,
  account: string,
  { remaining, atMs }: QuotaReading,
): Promise<void> {
  await redis.hset(keys.shared('quota', account), 'remaining', remaining, 'at', Math.floor(atMs))
}

/** undefined: no answer has said so yet. */
export async function readQuota(
  redis: Redis,
  keys: Keys,
  account: string,
): Promise<QuotaReading | undefined> {
  const [remaining, at] = await redis.hmget(keys.shared('quota', account), 'remaining', 'at')
  return remaining && at ? { remaining: Number(remaining), atMs: Number(at) } : undefined
}
