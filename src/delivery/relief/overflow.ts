/** Bounds what waits for a sink: beyond `pending_max` the least severe are given up, of those the oldest. */
import { severityRank } from '../../events/severity.ts'
import { pendingOf, readAccounting } from '../../ledger/accounting.ts'
import type { Book } from '../../ledger/book.ts'
import { overflowItems } from '../../ledger/collecting.ts'
import { pendingItems } from '../../ledger/redirect.ts'
import { isIndexed } from '../../store/record-index.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { WorkTeller } from '../work-hints.ts'
import type { Diverter } from './diverter.ts'
import type { Paging } from './each-page.ts'
import type { ReliefSink } from './relief-sink.ts'

export interface Overflow {
  /** Looks at the counters; where there are too many, at all pending records, and then not again for a while. */
  relieve(sink: ReliefSink, paging: Paging): Promise<void>
}

export interface OverflowOptions {
  drains: Pick<WorkTeller, 'booksOf'>
  diverter: Diverter
  clock: Clock
  logger: Logger
  /** Items that were given up. */
  onOverflow: (sink: string, items: number) => void
}

/** A walk over all pending records takes seconds. */
const betweenScansMs = 60_000

const chunk = 100

interface Waiting {
  book: Book
  ref: string
  rank: number
  createdAtMs: number
}

export function createOverflow(options: OverflowOptions): Overflow {
  const { drains, clock } = options
  const lastScanMs = new Map<string, number>()
  return {
    async relieve(sink, paging) {
      const books = drains.booksOf(sink.name)
      const pending = await countPending(books, sink.name)
      const excess = sumOf(pending.values()) - sink.pendingMax
      const nowMs = clock.now()
      if (excess <= 0 || nowMs - (lastScanMs.get(sink.name) ?? 0) < betweenScansMs) return
      lastScanMs.set(sink.name, nowMs)
      // the least severe may be among those that an upgrade has not put into the index yet
      if (!(await Promise.all(books.map(isIndexed))).every(Boolean)) return
      const least = (await findWaiting(books, sink.name, paging))
        .toSorted((a, b) => a.rank - b.rank || a.createdAtMs - b.createdAtMs)
        .slice(0, excess)
      for (const [book, its] of Map.groupBy(least, (waiting) => waiting.book)) {
        const refs = its.map(({ ref }) => ref)
        const keep = (pending.get(book) ?? 0) - refs.length
        await giveUp(options, sink, { book, refs, keep }, paging)
      }
    },
  }
}

async function countPending(books: readonly Book[], sink: string): Promise<Map<Book, number>> {
  const counts = books.map(async (book) => {
    const account = (await readAccounting(book)).sinks[sink]
    return [book, account === undefined ? 0 : pendingOf(account)] as const
  })
  return new Map(await Promise.all(counts))
}

function sumOf(counts: Iterable<number>): number {
  return [...counts].reduce((sum, count) => sum + count, 0)
}

/** What is in a message already, or being sent, stays. */
async function findWaiting(
  books: readonly Book[],
  sink: string,
  { alive }: Paging,
): Promise<Waiting[]> {
  const found: Waiting[] = []
  for (const book of books) {
    for await (const { ref, item } of pendingItems(book, sink)) {
      alive()
      if (item.state === 'sending' || item.state === 'batch') continue
      const { severity, createdAtMs } = item
      found.push({ book, ref, rank: severityRank(severity), createdAtMs })
    }
  }
  return found
}

interface TooMany {
  book: Book
  refs: string[]
  /** Where another replica has been here meanwhile, so many stay all the same. */
  keep: number
}

async function giveUp(
  { diverter, logger, onOverflow }: OverflowOptions,
  { name, fallback, pendingMax }: ReliefSink,
  { book, refs, keep }: TooMany,
  paging: Paging,
): Promise<void> {
  const about = { sink: name, pendingMax }
  if (fallback !== undefined) {
    const { length: items } = await diverter.divertItems(book, refs, paging)
    logger.warn(
      { ...about, fallback, items },
      'more than pending_max wait: items go to the fallback',
    )
    return
  }
  let items = 0
  for (let at = 0; at < refs.length && (await paging.goesOn()); at += chunk) {
    paging.alive()
    items += await overflowItems(book, refs.slice(at, at + chunk), { sink: name, keep })
  }
  onOverflow(name, items)
  logger.warn({ ...about, items }, 'more than pending_max wait: the least severe are dead letters')
}
