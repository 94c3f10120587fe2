/** How many items were pending at one moment, though records are read at many (pure). */
import { pendingStates, type Item } from '../ledger/records.ts'

/** By sink. What was created or ended within the very millisecond may count or not: it is in `most` alone. */
export type PendingTallies = Map<string, PendingTally>

export interface PendingTally {
  least: number
  most: number
}

export function isPending({ state }: Pick<Item, 'state'>): boolean {
  return (pendingStates as readonly string[]).includes(state)
}

/** Adds an item as it is now, read after `atMs`. */
export function addPendingAt(tallies: PendingTallies, item: Item, atMs: number): void {
  const endedAtMs = isPending(item) ? Infinity : (item.endedAtMs ?? 0)
  if (item.createdAtMs > atMs || endedAtMs < atMs) return
  const tally = tallies.get(item.sink) ?? { least: 0, most: 0 }
  const isSure = item.createdAtMs < atMs && endedAtMs > atMs
  tallies.set(item.sink, { least: tally.least + (isSure ? 1 : 0), most: tally.most + 1 })
}

/** By how much the counter is off at least; 0: it may be right. */
export function offBy(counted: number, { least, most }: PendingTally): number {
  if (counted < least) return counted - least
  return counted > most ? counted - most : 0
}
