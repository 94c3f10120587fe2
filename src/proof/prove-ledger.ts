/**
 * Proves from the records themselves, while everything runs, that no event is lost in the ledger: counters
 * and records agree, every item that is not final stands where something will move it, and the index has
 * every record where it belongs. It changes
 * nothing, and asks nobody but Redis.
 */
import type { Book } from '../ledger/book.ts'
import { walkPending, walkSettled, type IndexEntry } from '../store/record-index.ts'
import { findDangling, findMisfiled } from './find-dangling.ts'
import { lookForStranded, stillStranded } from './find-stranded.ts'
import type { BookProof, DanglingRef, StrandedItem } from './ledger-proof.ts'
import { confirmedBy, scanBook, type BookScan } from './scan-book.ts'

/** Named at most, of each kind; one is enough to ring. */
const mostNamed = 1_000

/** Entries of the index that one script looks at: it stops everybody else meanwhile. */
const pageLength = 100

export interface ProofOptions {
  /** Of each account, from where on settled records are compared with the index: when they were settled, ms. */
  settledFromMs: (account: string) => number
  /** How many of them at most; what is pending is always compared. */
  mostSettled: number
}

const everything: ProofOptions = { settledFromMs: () => 0, mostSettled: Infinity }

/** Yields how many records it has read, so that the caller may pause in between. */
export async function* proveLedger(
  books: readonly Book[],
  options = everything,
): AsyncGenerator<number, BookProof[]> {
  const proofs: BookProof[] = []
  let before = 0
  for (const book of books) {
    const steps = proveBook(book, books, options)
    let step = await steps.next()
    for (; !step.done; step = await steps.next()) yield before + step.value
    before += step.value.records
    proofs.push(step.value)
  }
  return proofs
}

/** What moves meanwhile is no finding: each is looked at a second time. */
async function* proveBook(
  book: Book,
  books: readonly Book[],
  options: ProofOptions,
): AsyncGenerator<number, BookProof> {
  const suspects: StrandedItem[] = []
  const scan = yield* confirmedScan(book, async (recordIds) => {
    if (suspects.length > mostNamed) return
    suspects.push(...(await lookForStranded(book, books, recordIds)))
  })
  const dangling: DanglingRef[] = []
  for await (const some of findDangling(book)) {
    if (dangling.length <= mostNamed) dangling.push(...some)
    yield 0
  }
  const settledToMs = yield* checkIndex(book, options, (some) => {
    if (dangling.length <= mostNamed) dangling.push(...some)
  })
  const stranded = await stillStranded(book, books, suspects)
  return {
    account: book.account,
    ...scan,
    settledToMs,
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

/** Compares entries with records; resolves with where the next look at settled ones goes on, 0: from the first. */
async function* checkIndex(
  book: Book,
  { settledFromMs, mostSettled }: ProofOptions,
  onFound: (found: DanglingRef[]) => void,
): AsyncGenerator<number, number> {
  let read = 0
  for await (const entries of walkPending(book)) {
    yield (read += await check(entries))
  }
  let left = mostSettled
  for await (const entries of walkSettled(book, settledFromMs(book.account))) {
    yield (read += await check(entries))
    left -= entries.length
    if (left <= 0) return entries.at(-1)?.score ?? 0
  }
  return 0

  async function check(entries: readonly IndexEntry[]): Promise<number> {
    for (let at = 0; at < entries.length; at += pageLength) {
      onFound(await findMisfiled(book, entries.slice(at, at + pageLength)))
    }
    return entries.length
  }
}
