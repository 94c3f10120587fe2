/** Which items of the quarantine a command speaks of. */
import type { Config } from '../config/config.ts'
import type { Book } from '../ledger/book.ts'
import { listQuarantined, type QuarantineEntry } from '../ledger/quarantine.ts'
import { CommandError, findNamed } from './command-error.ts'
import type { OpenLedger } from './open-ledger.ts'

/** Enough to be unique among the few thousand that there can be. */
export function shortId({ id }: QuarantineEntry): string {
  return id.slice(0, 12)
}

/**
 * All of the books, or what one feed showed, newest first; also of a feed that the configuration no
 * longer has. Throws CommandError.
 */
export async function entriesOf(
  books: readonly Book[],
  { feeds }: Config,
  feed: string | undefined,
): Promise<QuarantineEntry[]> {
  const inBooks = await Promise.all(books.map((book) => listQuarantined(book)))
  const entries = inBooks.flat().toSorted((left, right) => right.atMs - left.atMs)
  if (feed === undefined) return entries
  const names = new Set([...feeds.map(({ name }) => name), ...entries.flatMap(feedsOf)])
  findNamed(
    [...names].map((name) => ({ name })),
    feed,
    'feed',
  )
  return entries.filter((entry) => feedsOf(entry).includes(feed))
}

/** Every feed that is known to have shown the item. */
export function feedsOf({ feed, markedBy }: QuarantineEntry): string[] {
  return [...new Set([feed, ...markedBy])]
}

/** By its id or a beginning of it. Throws CommandError. */
export async function entryById({ books }: OpenLedger, given: string): Promise<QuarantineEntry> {
  if (!/^[0-9a-f]{4,24}$/i.test(given)) {
    const remedy = 'take one from "quarantine list", four characters of it at least'
    throw new CommandError('mistake', `"${given}" is not the id of a quarantined item; ${remedy}`)
  }
  const prefix = given.toLowerCase()
  const inBooks = await Promise.all(books.map((book) => listQuarantined(book, prefix)))
  const [found, ...others] = inBooks.flat()
  if (found === undefined) {
    throw new CommandError(
      'refused',
      `there is no quarantined item ${given}: it was replayed, or closed because it reads by now, or its time is over`,
    )
  }
  if (others.length === 0) return found
  const ids = [found, ...others].map(({ id }) => id).join(', ')
  throw new CommandError('mistake', `"${given}" begins more than one id; write more of it: ${ids}`)
}

/** Of an entry whose marks are unknown: it stays, and nothing is lost by that. */
export const unmarkedHelp =
  'an older version of Tocsin set it aside and kept no mark of it; leave it: if it reads by now, the next sweep takes it in all the same'
