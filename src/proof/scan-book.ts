/**
 * One walk over what is pending in a book, or was until just now: items counted as of the moment at which its
 * counters were read, and pending ones looked at.
 */
import {
  pendingOf,
  readAccountingAt,
  type Accounting,
  type AccountingAt,
} from '../ledger/accounting.ts'
import type { Book } from '../ledger/book.ts'
import { scanRecords } from '../ledger/records.ts'
import type { SinkDifference } from './ledger-proof.ts'
import { addLater, addPendingAt, isPending, offBy, type PendingTallies } from './pending-at.ts'

export interface BookScan extends AccountingAt {
  differences: SinkDifference[]
}

/** Records between two steps, at which the caller may pause. */
const stepLength = 500

/** Records with pending items that are handed on together. */
const pageLength = 50

/** Yields how many records were read; `onPending` gets ids of records that have pending items. */
export async function* scanBook(
  book: Book,
  onPending: (recordIds: string[]) => Promise<void> = () => Promise.resolve(),
): AsyncGenerator<number, BookScan> {
  const counted = await readAccountingAt(book)
  const { atMs, accounting } = counted
  const tallies: PendingTallies = new Map()
  let records = 0
  let pending: string[] = []
  for await (const { recordId, items } of scanRecords(book, atMs)) {
    for (const item of items) addPendingAt(tallies, item, atMs)
    if (items.some(isPending)) pending.push(recordId)
    if (pending.length >= pageLength) await onPending(pending.splice(0))
    records += 1
    if (records % stepLength === 0) yield records
  }
  await onPending(pending)
  addLater(tallies, atMs, (await readAccountingAt(book)).atMs)
  return { ...counted, differences: differencesIn(accounting, tallies) }
}

function differencesIn({ sinks }: Accounting, tallies: PendingTallies): SinkDifference[] {
  return [...new Set([...Object.keys(sinks), ...tallies.keys()])].flatMap((sink) => {
    const account = sinks[sink]
    const counted = account ? pendingOf(account) : 0
    const off = offBy(counted, tallies.get(sink) ?? { least: 0, most: 0 })
    return off === 0 ? [] : [{ sink, counted, found: counted - off }]
  })
}

/**
 * Those that a second scan shows too, by as much: an item that was sent again while the first went on, or a
 * record that it read twice, is none.
 */
export function confirmedBy(first: SinkDifference[], second: SinkDifference[]): SinkDifference[] {
  return second.filter(({ sink, counted, found }) =>
    first.some((one) => one.sink === sink && one.counted - one.found === counted - found),
  )
}
