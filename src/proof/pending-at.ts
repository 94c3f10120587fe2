/** How many items were pending at one moment, though records are read at many (pure). */
import { pendingStates, type Item } from '../ledger/records.ts'

/** By sink. What was created or ended within the very millisecond may count or not: it is in `most` alone. */
export type PendingTallies = Map<string, PendingTally>

export interface PendingTally {
  least: number
  most: number
  /** Of what was created or ended later, by what its record says; told apart when the scan has ended. */
  later: Span[]
}

/** ms; of what is pending without end. */
interface Span {
  createdAtMs: number
  endedAtMs: number
}

export function isPending({ state }: Pick<Item, 'state'>): boolean {
  return (pendingStates as readonly string[]).includes(state)
}

/** Adds an item as it is now, read after `atMs`. */
export function addPendingAt(tallies: PendingTallies, item: Item, atMs: number): void {
  const { createdAtMs } = item
  const endedAtMs = isPending(item) ? Infinity : (item.endedAtMs ?? 0)
  const tally = tallies.get(item.sink) ?? { least: 0, most: 0, later: [] }
  tallies.set(item.sink, tally)
  const isLater = createdAtMs > atMs || (!isPending(item) && endedAtMs > atMs)
  if (isLater) tally.later.push({ createdAtMs, endedAtMs })
  else addSpan(tally, { createdAtMs, endedAtMs }, atMs)
}

/** What bears a time after the end of the scan was written before Redis' clock went back: it is over long since. */
export function addLater(tallies: PendingTallies, atMs: number, endMs: number): void {
  const believed = (ms: number): number => (ms > endMs && ms !== Infinity ? 0 : ms)
  for (const tally of tallies.values()) {
    for (const { createdAtMs, endedAtMs } of tally.later) {
      const span = { createdAtMs: believed(createdAtMs), endedAtMs: believed(endedAtMs) }
      addSpan(tally, span, atMs)
    }
  }
}

function addSpan(tally: PendingTally, { createdAtMs, endedAtMs }: Span, atMs: number): void {
  if (createdAtMs > atMs || endedAtMs < atMs) return
  tally.least += createdAtMs < atMs && endedAtMs > atMs ? 1 : 0
  tally.most += 1
}

/** By how much the counter is off at least; 0: it may be right. */
export function offBy(
  counted: number,
  { least, most }: Pick<PendingTally, 'least' | 'most'>,
): number {
  if (counted < least) return counted - least
  return counted > most ? counted - most : 0
}
