import type { MalformedItem } from '../intake/intake.ts'
import type { Book } from '../ledger/book.ts'

/**
 * What the ledger knows of something that a feed shows. taken: mark and record; unrecorded: a mark without
 * its record; quarantined: of a malformed item.
 */
export type LedgerWord = 'taken' | 'unrecorded' | 'quarantined' | 'unknown'

/** One word for each event, and one for each malformed item; read at one instant. */
export async function lookUp(
  book: Book,
  feed: string,
  { uids, malformed = [] }: { uids: readonly string[]; malformed?: readonly MalformedItem[] },
): Promise<{ events: LedgerWord[]; malformed: LedgerWord[] }> {
  if (uids.length + malformed.length === 0) return { events: [], malformed: [] }
  const { digests, horizonMs } = book
  const asked = {
    feed,
    horizon: horizonMs,
    events: uids.map((uid) => ({
      rid: digests.recordId(uid),
      seen: digests.seenMark(feed, uid),
    })),
    bad: malformed.map(({ raw, identity = raw }) => digests.malformedMark(feed, identity)),
  }
  const words = (await book.run('look-up-events', JSON.stringify(asked))) as LedgerWord[]
  return { events: words.slice(0, uids.length), malformed: words.slice(uids.length) }
}
