/**
 * What audits saw and the ledger did not have, and since when. An event without a match time may have
 * become visible a moment ago; that it stays unknown although a sweep has passed proves that it is missing.
 */
import type { Book } from '../ledger/book.ts'

/** By uid, or by the digest of what is malformed; ms. */
export type Sightings = ReadonlyMap<string, number>

const mostKept = 5_000
const keptMs = 90 * 24 * 3_600_000

export async function readSightings(book: Book, feed: string): Promise<Sightings> {
  const stored = await book.redis.hgetall(book.key('audit-saw', feed))
  return new Map(Object.entries(stored).map(([id, atMs]) => [id, Number(atMs)]))
}

/** In the place of those before. */
export async function writeSightings(book: Book, feed: string, seen: Sightings): Promise<void> {
  const key = book.key('audit-saw', feed)
  const kept = [...seen].slice(0, mostKept).flat()
  const change = book.redis.multi().del(key)
  if (kept.length > 0) change.hset(key, ...kept).pexpire(key, keptMs)
  await change.exec()
}
