/** What an operator does with many items at once: each in one script, so that an interruption loses none. */
import type { Book } from '../ledger/book.ts'
import type { Movable, PlacedItem, Redirected } from '../ledger/redirect.ts'
import type { Context } from './context.ts'
import { needIndex, type OpenLedger } from './open-ledger.ts'
import { harmless } from './words.ts'

/** An item and where it is; small, because there may be a hundred thousand. */
export interface BookedItem extends Movable {
  book: Book
  item: Pick<PlacedItem['item'], 'severity' | 'state' | 'destination'>
}

export type RedirectCounts = Record<Exclude<Redirected, 'collect'>, number>

/** Fewer are done before anybody wonders. */
const worthProgress = 100

/** Everything that `placed` finds in the books, with progress. */
export async function gatherItems(
  context: Context,
  ledger: OpenLedger,
  placed: (book: Book) => AsyncIterable<PlacedItem>,
): Promise<BookedItem[]> {
  await needIndex(context, ledger)
  const { terminal } = context
  const found: BookedItem[] = []
  for (const book of ledger.books) {
    for await (const { ref, record, item } of placed(book)) {
      const { severity, state, destination } = item
      found.push({ book, ref, record: { uid: record.uid }, item: { severity, state, destination } })
      if (found.length % 500 === 0) terminal.progress(`found ${found.length} items`)
    }
  }
  terminal.progress('')
  return found
}

export async function redirectAll(
  { terminal }: Context,
  items: readonly BookedItem[],
  redirect: (item: BookedItem) => Promise<Redirected>,
): Promise<RedirectCounts> {
  const counts: RedirectCounts = { done: 0, busy: 0, other: 0, no_payload: 0 }
  for (const [index, item] of items.entries()) {
    if (items.length > worthProgress && index % 50 === 0) {
      terminal.progress(`${index} of ${items.length}`)
    }
    const outcome = await redirect(item)
    counts[outcome === 'collect' ? 'done' : outcome] += 1
  }
  terminal.progress('')
  return counts
}

/** `10 queued, 2 held`; `3 critical, 1 high`. */
export function tallyInWords(words: readonly string[]): string {
  const counts = Map.groupBy(words, (word) => word)
  return [...counts].map(([word, all]) => `${all.length} ${harmless(word, 40)}`).join(', ')
}
