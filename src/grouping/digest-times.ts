/** When a sink accepted its last digest, and when the next one is due. */
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { digestGroupId, type Outlet } from './placement.ts'

export interface DigestTimes {
  /** When the sink last accepted a digest, ms. */
  lastSentMs: number | undefined
  /** When the next digest is due, ms; in the past while it is overdue. */
  nextDueMs: number
}

/** Reads the leading account's ledger; resolves with undefined for a sink without a digest. */
export async function readDigestTimes(
  { lead, redis, keys }: { lead: AccountLedger; redis: Redis; keys: Keys },
  { name, digest, destinations }: Outlet,
  nowMs: number,
): Promise<DigestTimes | undefined> {
  if (!digest) return undefined
  const due: number[] = []
  for (const { id: destination } of destinations) {
    const from = await lead.redis.hget(lead.key('group', digestGroupId(destination)), 'from')
    due.push(digest.schedule.next(from === null ? nowMs : Number(from)))
  }
  const sent = await redis.hget(keys.shared('digests-sent'), name)
  return { lastSentMs: sent === null ? undefined : Number(sent), nextDueMs: Math.min(...due) }
}

export async function noteDigestSent(
  redis: Redis,
  keys: Keys,
  { sink, atMs }: { sink: string; atMs: number },
): Promise<void> {
  await redis.hset(keys.shared('digests-sent'), sink, Math.floor(atMs))
}
