import type { Book } from './book.ts'

/**
 * Which of the keys an event of another record has set within the window: what inhibits this one. The
 * answers stand in the order of `asked`. `nowMs`: Redis' clock, as near as this machine knows it.
 */
export async function areInhibited(
  book: Book,
  asked: readonly { recordId: string; key: string; windowMs: number }[],
  nowMs: number,
): Promise<boolean[]> {
  if (asked.length === 0) return []
  const lookups = book.redis.pipeline()
  for (const { key, windowMs } of asked) {
    lookups.zrangebyscore(book.key('inhibit', key), nowMs - windowMs, '+inf')
  }
  const answers = (await lookups.exec()) ?? []
  return asked.map(({ recordId }, i) => {
    const [error, sources] = answers[i] ?? []
    if (error) throw error
    return (sources as string[]).some((source) => source !== recordId)
  })
}
