import type { Book } from './book.ts'

/** The service's clock may be ahead of Redis' by so much: an event is then created after it was seen. */
export const clocksDifferMs = 300_000

/**
 * Events that were created before then may have been dropped to make room, ms; 0: none ever was. What was
 * created later was seen later than any that was dropped.
 */
export async function trimmedUntilMs(book: Book): Promise<number> {
  const lastSeen = await book.redis.get(book.key('trimmed'))
  return lastSeen === null ? 0 : Number(lastSeen) + clocksDifferMs
}
