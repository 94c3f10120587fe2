import type { Book } from '../ledger/book.ts'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { digestIdOf, type CollectingSink } from './placement.ts'
import { countMembers } from './timers.ts'

export interface DigestState {
  /** Items that wait, over all recipients and accounts. */
  items: number
  /** When the sink last accepted a digest, ms. */
  lastSentMs: number | undefined
  /** When the next one is due, ms: in the past while it is overdue. */
  nextDueMs: number
}

/** undefined for a sink without a digest. */
export async function readDigestState(
  { books, redis, keys }: { books: readonly Book[]; redis: Redis; keys: Keys },
  sink: CollectingSink,
  nowMs: number,
): Promise<DigestState | undefined> {
  const [lead] = books
  const times = lead && (await readDigestTimes({ lead, redis, keys }, sink, nowMs))
  if (!times) return undefined
  let items = 0
  for (const { id: destination } of sink.destinations) {
    for (const book of books) items += await countMembers(book, digestIdOf(destination))
  }
  return { items, ...times }
}

/** The same without the items, from what the leading book holds. */
export async function readDigestTimes(
  { lead, redis, keys }: { lead: Book; redis: Redis; keys: Keys },
  { name, digest, destinations }: CollectingSink,
  nowMs: number,
): Promise<Pick<DigestState, 'lastSentMs' | 'nextDueMs'> | undefined> {
  if (!digest) return undefined
  const due: number[] = []
  for (const { id: destination } of destinations) {
    const from = await lead.redis.hget(lead.key('gather', digestIdOf(destination)), 'from')
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
