/** What an operator does with items by hand: moved to another sink, given up, sent again. */
import { severityRank } from '../events/severity.ts'
import type { Book } from './book.ts'
import { storedGathering, type Gathering } from './collecting.ts'
import { pendingStates, scanRecords, type Item, type LedgerRecord } from './records.ts'

export interface PlacedItem {
  ref: string
  record: LedgerRecord
  item: Item
}

/** `busy`: on its way just now (or, to be resent, not settled yet); `other`: not in such a state any more. */
export type Redirected = 'done' | 'collect' | 'busy' | 'other' | 'no_payload'

/** Every item of a sink that is not final; a scan of the whole book. */
export async function* pendingItems(book: Book, sink: string): AsyncGenerator<PlacedItem> {
  for await (const record of scanRecords(book)) {
    yield* placedIn(record, sink).filter(({ item }) =>
      (pendingStates as readonly string[]).includes(item.state),
    )
  }
}

/** Every item of a sink that was delivered at `sinceMs` or later; a scan of the whole book. */
export async function* deliveredItems(
  book: Book,
  sink: string,
  sinceMs: number,
): AsyncGenerator<PlacedItem> {
  for await (const record of scanRecords(book)) yield* deliveredOf(record, sink, sinceMs)
}

/** Those of one record. */
export function deliveredOf(record: LedgerRecord, sink: string, sinceMs: number): PlacedItem[] {
  return placedIn(record, sink).filter(
    ({ item: { state, endedAtMs = 0 } }) => state === 'delivered' && endedAtMs >= sinceMs,
  )
}

function placedIn(record: LedgerRecord, sink: string): PlacedItem[] {
  return record.items
    .filter((item) => item.sink === sink)
    .map((item) => ({ ref: `i:${record.recordId}:${item.index}:${sink}`, record, item }))
}

export interface MoveTarget {
  sink: string
  destination: string
  /** How long its batch collects; undefined where it sends singly. */
  batchWaitMs: number | undefined
  /** Where it waits for company; undefined: it goes by itself, or into the batch. */
  place?: Gathering | undefined
}

/** What of an item has to be kept in memory to move it. */
export interface Movable {
  ref: string
  record: Pick<LedgerRecord, 'uid'>
  item: Pick<Item, 'severity'>
}

/** Ends the item as diverted; the targets get it unless they had the event already. */
export function moveItem(
  book: Book,
  { ref, record, item }: Movable,
  targets: readonly MoveTarget[],
  by: string,
): Promise<Redirected> {
  const stored = targets.map(({ sink, destination, batchWaitMs, place }) => ({
    d: destination,
    k: sink,
    ...book.digests.claimMark(record.uid, item.severity, destination),
    bw: batchWaitMs,
    place: place && storedGathering(place),
  }))
  return redirect(book, { ref, verb: 'move', by, targets: stored })
}

/** Gives the item up: counted as dead, its letter closed at once. */
export function discardItem(book: Book, ref: string, by: string): Promise<Redirected> {
  return redirect(book, { ref, verb: 'discard', by })
}

/** Sends a final item again under its id; counted as replayed, its first outcome stays counted. */
export function resendItem(
  book: Book,
  ref: string,
  { batchWaitMs, by }: { batchWaitMs: number | undefined; by: string },
): Promise<Redirected> {
  return redirect(book, { ref, verb: 'resend', by, bw: batchWaitMs })
}

async function redirect(book: Book, ask: Record<string, unknown>): Promise<Redirected> {
  const whole = { ...ask, horizon: book.horizonMs, retention: book.retention }
  return (await book.run('redirect-item', JSON.stringify(whole))) as Redirected
}

/** The worst first: what is moved arrives in this order. */
export function bySeverity(a: Movable, b: Movable): number {
  return severityRank(b.item.severity) - severityRank(a.item.severity)
}
