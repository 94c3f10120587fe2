/**
 * Proves from the records themselves, while everything runs, that no event is lost in the ledger: counters
 * and records agree, and every item that is not final stands where something will move it. It changes
 * nothing, and asks nobody but Redis.
 */
import type { Book } from '../ledger/book.ts'
import { findDangling } from './find-dangling.ts'
import { lookForStranded, stillStranded } from './find-stranded.ts'
import type { BookProof, DanglingRef, StrandedItem } from './ledger-proof.ts'
import { confirmedBy, scanBook, type BookScan } from './scan-book.ts'

/** Named at most, of each kind; one is enough to ring. */
const mostNamed = 1_000

/** Yields how many records it has read, so that the caller may pause in between. */
export async function* proveLedger(books: readonly Book[]): AsyncGenerator<number, BookProof[]> {
  const proofs: BookProof[] = []
  let before = 0
  for (const book of books) {
    const steps = proveBook(book, books)
    let step = await steps.next()
    for (; !step.done; step = await steps.next()) yield before + step.value
    before += step.value.records
    proofs.push(step.value)
  }
  return proofs
}

/** What moves meanwhile is no finding: each is looked at a second time. */
async function* proveBook(book: Book, books: readonly Book[]): AsyncGenerator<number, BookProof> {
  const suspects: StrandedItem[] = []
  const scan = yield* confirmedScan(book, async (recordIds) => {
    if (suspects.length > mostNamed) return
    suspects.push(...(await lookForStranded(book, books, recordIds)))
  })
  const dangling: DanglingRef[] = []
  for await (const some of findDangling(book)) {
    if (dangling.length <= mostNamed) dangling.push(...some)
    yield scan.records
  }
  const stranded = await stillStranded(book, books, suspects)
  return {
    account: book.account,
    ...scan,
    stranded: stranded.slice(0, mostNamed),
    dangling: dangling.slice(0, mostNamed),
    hasMore: stranded.length > mostNamed || dangling.length > mostNamed,
  }
}

async function* confirmedScan(
  book: Book,
  onPending: (recordIds: string[]) => Promise<void>,
): AsyncGenerator<number, BookScan> {
  const first = yield* scanBook(book, onPending)
  if (first.differences.length === 0) return first
  const second = yield* scanBook(book)
  return { ...second, differences: confirmedBy(first.differences, second.differences) }
}
