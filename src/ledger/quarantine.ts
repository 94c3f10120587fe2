/** Items that were set aside because they do not parse as an event. */
import type { Book } from './book.ts'

export interface Quarantined {
  feed: string
  atMs: number
  problem: string
  /** Canonical JSON, secrets masked. Hostile text. */
  raw: string
}

/** The open entry of an item that gave this uid; it closes when the uid arrives whole. */
export async function findQuarantined(book: Book, uid: string): Promise<Quarantined | undefined> {
  const entry = await book.redis.hget(book.key('quarantine-uids'), uid)
  const text = entry && (await book.redis.hget(book.key('quarantine'), entry))
  if (!text) return undefined
  const stored = JSON.parse(text) as { feed: string; at: number; problem: string; raw: string }
  return { feed: stored.feed, atMs: stored.at, problem: stored.problem, raw: stored.raw }
}
