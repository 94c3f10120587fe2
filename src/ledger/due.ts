/** What waits for its time, by sink; claims and the metrics read it. */
import type { Book } from './book.ts'

/** Every sink that the book ever had an item for, in the configuration or not. */
export function sinksOf(book: Book): Promise<string[]> {
  return book.redis.smembers(book.key('sinks'))
}

/** Refs of a sink that are due at `nowMs`, longest-waiting first, from `offset` on. */
export function overdueRefs(
  book: Book,
  sink: string,
  nowMs: number,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return book.redis.zrangebyscore(book.key('due', sink), '-inf', nowMs, 'LIMIT', offset, count)
}

/** Refs of a sink that are due or will be, in that order, from `offset` on. */
export function waitingRefs(
  book: Book,
  sink: string,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return book.redis.zrange(book.key('due', sink), String(offset), String(offset + count - 1))
}

/** Refs of items that wait for company, oldest first: in a sink's batch (by the sink), or in a collection. */
export function collectedRefs(
  book: Book,
  id: string,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return book.redis.zrange(book.key('collect', id), String(offset), String(offset + count - 1))
}

/** When the longest-waiting work of a sink became or becomes due, ms; undefined where none waits. */
export async function firstDueMs(book: Book, sink: string): Promise<number | undefined> {
  const [, score] = await book.redis.zrange(book.key('due', sink), '0', '0', 'WITHSCORES')
  return score === undefined ? undefined : Number(score)
}

/** Makes tries due now that wait for a later time because their sink failed; resolves with their refs. */
export async function wakeRetries(book: Book, sink: string, max: number): Promise<string[]> {
  return (await book.run('wake-retries', sink, max)) as string[]
}

/** Looks at a piece of due work again only after `forMs`. */
export async function putOff(book: Book, ref: string, forMs: number): Promise<void> {
  const [seconds] = await book.redis.time()
  const atMs = Number(seconds) * 1000 + forMs
  await book.redis.zadd(book.key('due', ref.split(':').at(-1) ?? ''), 'XX', atMs, ref)
}
