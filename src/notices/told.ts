/** Where a notice is that was told: its items in the ledger know, whoever moved them. */
import type { Book } from '../ledger/book.ts'
import { pendingStates, readRecord } from '../ledger/records.ts'
import { moveItem, type PlacedItem } from '../ledger/redirect.ts'

export interface Told {
  /** The sink that has it, or had it last; undefined: the ledger does not know it, or the sink is no more. */
  sinkOf(uid: string): Promise<string | undefined>
  /** What of it still waits for `from` goes to `to`, and never back; how many items did. */
  passOn(uid: string, way: { from: string; to: string }): Promise<number>
}

export interface ToldOptions {
  book: Book
  destinationsOf: (sink: string) => readonly string[]
  batchWaitMs: (sink: string) => number | undefined
}

export function createTold({ book, destinationsOf, batchWaitMs }: ToldOptions): Told {
  async function placedItems(uid: string): Promise<PlacedItem[]> {
    const record = await readRecord(book, book.digests.recordId(uid))
    if (record === undefined) return []
    return record.items.map((item) => {
      const ref = `i:${record.recordId}:${item.index}:${item.sink}`
      return { ref, record, item }
    })
  }
  return {
    async sinkOf(uid) {
      const placed = await placedItems(uid)
      const last = placed.findLast(({ item }) => item.state !== 'diverted')?.item.sink
      return last !== undefined && destinationsOf(last).length > 0 ? last : undefined
    },
    async passOn(uid, { from, to }) {
      const targets = destinationsOf(to).map((destination) => {
        return { sink: to, destination, batchWaitMs: batchWaitMs(to) }
      })
      let moved = 0
      for (const placed of await placedItems(uid)) {
        const { sink, state } = placed.item
        const waits = (pendingStates as readonly string[]).includes(state)
        if (sink !== from || !waits) continue
        const by = `to ${to}, as ${from} takes nothing`
        if ((await moveItem(book, placed, targets, by)) === 'done') moved += 1
      }
      return moved
    },
  }
}
