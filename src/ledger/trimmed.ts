import type { Book } from './book.ts'

/**
 * Events that were seen before then may have been dropped to make room, ms; 0: none ever was. What was created
 * later was seen later, so of that nothing is missing.
 */
export async function trimmedUntilMs(book: Book): Promise<number> {
  return Number((await book.redis.get(book.key('trimmed'))) ?? 0)
}
