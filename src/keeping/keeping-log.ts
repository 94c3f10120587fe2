/** What the last walk found, for metrics and the next one; and whose turn it is. */
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease } from '../redis/lease.ts'

export interface KeepingNote {
  endedAtMs: number
  /** What records and payloads take, after what had to go was dropped. */
  bytes: number
  /** The limit that it kept to. */
  maxBytes: number
  /** What Redis used then for everything, less what was dropped. */
  usedBytes: number
  /** When the next walk is due at the latest. */
  dueAtMs: number
}

/** A walk goes over all that the last one left. */
export async function writeKeepingNote(redis: Redis, keys: Keys, note: KeepingNote): Promise<void> {
  await redis.set(keys.shared('keeping'), JSON.stringify(note))
}

/** undefined: there was no walk yet. */
export async function readKeepingNote(redis: Redis, keys: Keys): Promise<KeepingNote | undefined> {
  const text = await redis.get(keys.shared('keeping'))
  return text === null ? undefined : (JSON.parse(text) as KeepingNote)
}

/** How long a replica that no longer says so is believed to walk, ms. */
const leaseMs = 60_000

/** Whether this replica may walk, or goes on with it. */
export function holdWalk(redis: Redis, keys: Keys, holder: string): Promise<boolean> {
  return holdLease(redis, keys.shared('walking'), { holder, ms: leaseMs })
}

export function releaseWalk(redis: Redis, keys: Keys, holder: string): Promise<void> {
  return releaseLease(redis, keys.shared('walking'), holder)
}
