import type { Book } from '../ledger/book.ts'
import type { ItemState } from '../ledger/records.ts'
import type { Lack, StrandedItem } from './ledger-proof.ts'
import { headOf } from './message-head.ts'

interface StoredFinding {
  r: string
  u: string
  k: string
  st: ItemState
  why?: string
  b?: string
  lacks: Lack | 'lead'
}

/** Records that one script looks at: it stops everybody else meanwhile. */
const pageLength = 50

/** Pending items of the records that nothing would move, each record as it is at one instant. */
export async function lookForStranded(
  book: Book,
  books: readonly Book[],
  recordIds: readonly string[],
): Promise<StrandedItem[]> {
  const found: StrandedItem[] = []
  for (let at = 0; at < recordIds.length; at += pageLength) {
    const page = recordIds.slice(at, at + pageLength)
    const stored = await book.ask<StoredFinding[]>('find-stranded', ...page)
    for (const one of await withoutLed(books, stored)) found.push(one)
  }
  return found
}

/** A member of a message is led by what has its head: often in another account's book. */
async function withoutLed(
  books: readonly Book[],
  stored: readonly StoredFinding[],
): Promise<StrandedItem[]> {
  const heads = new Map<string, Lack | undefined>()
  const found: StrandedItem[] = []
  for (const { r: ref, u: uid, k: sink, st: state, why: heldFor, b = '', lacks } of stored) {
    const item = { ref, uid, sink, state, heldFor }
    if (lacks !== 'lead') {
      found.push({ ...item, lacks })
      continue
    }
    if (!heads.has(b)) heads.set(b, await headOf(books, { messageId: b, sink }))
    const lack = heads.get(b)
    if (lack) found.push({ ...item, lacks: lack })
  }
  return found
}

/** Those that are so still, and in the same way: all else moved on between two looks. */
export async function stillStranded(
  book: Book,
  books: readonly Book[],
  before: readonly StrandedItem[],
): Promise<StrandedItem[]> {
  const recordIds = [...new Set(before.map(({ ref }) => ref.split(':')[1] ?? ''))]
  const now = await lookForStranded(book, books, recordIds)
  const known = new Set(before.map(nameOf))
  return now.filter((item) => known.has(nameOf(item)))
}

function nameOf({ ref, state, lacks }: StrandedItem): string {
  return [ref, state, lacks].join(' ')
}
