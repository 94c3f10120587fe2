/** Items that take another way: moved to another sink, given up or sent again by hand; diverted to a fallback. */
import { severityRank } from '../events/severity.ts'
import type { Book } from './book.ts'
import { storedGathering, type Gathering, type MadeWork } from './collecting.ts'
import {
  pendingStates,
  scanPendingRecords,
  scanRecords,
  type Item,
  type LedgerRecord,
} from './records.ts'

export interface PlacedItem {
  ref: string
  record: LedgerRecord
  item: Item
}

/** `busy`: on its way just now (or, to be resent, not settled yet); `other`: not in such a state any more. */
export type Redirected = 'done' | 'collect' | 'busy' | 'other' | 'no_payload'

/** Every item of a sink, or of all, that is not final. */
export async function* pendingItems(book: Book, sink?: string): AsyncGenerator<PlacedItem> {
  for await (const record of scanPendingRecords(book)) {
    yield* placedIn(record, sink).filter(({ item }) =>
      (pendingStates as readonly string[]).includes(item.state),
    )
  }
}

/** Every item of a sink that ended at `sinceMs` or later and can be sent to it again. */
export async function* endedItems(
  book: Book,
  sink: string,
  sinceMs: number,
): AsyncGenerator<PlacedItem> {
  for await (const record of scanRecords(book, sinceMs)) yield* endedOf(record, sink, sinceMs)
}

/** Those of one record: what the sink accepted, or what its fallback got instead of it. */
export function endedOf(record: LedgerRecord, sink: string, sinceMs: number): PlacedItem[] {
  return placedIn(record, sink).filter(
    ({ item }) =>
      (item.state === 'delivered' || wentToFallback(item)) && (item.endedAtMs ?? 0) >= sinceMs,
  )
}

const fallbackWord = 'fallback to '

/** Diverted by itself; what an operator moved went away for good. */
function wentToFallback({ state, rule = '' }: Pick<Item, 'state' | 'rule'>): boolean {
  return state === 'diverted' && rule.startsWith(fallbackWord)
}

function placedIn(record: LedgerRecord, sink: string | undefined): PlacedItem[] {
  return record.items
    .filter((item) => sink === undefined || item.sink === sink)
    .map((item) => ({ ref: `i:${record.recordId}:${item.index}:${item.sink}`, record, item }))
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
  const stored = targets.map((target) => storedTarget(book, { record, item }, target))
  return redirect(book, { ref, verb: 'move', by, targets: stored })
}

export interface Diversion {
  /** The fallback, and its destinations. */
  to: string
  targets: readonly MoveTarget[]
  /** An attempt that began so many ms ago has died with its process. */
  staleMs: number
}

export interface Diverted {
  status: Redirected
  /** What the fallback got: nothing where it had the event already. */
  made: MadeWork[]
}

/** Ends an item whose sink cannot be reached as diverted; the fallback gets it unless it had the event already. */
export async function divertItem(
  book: Book,
  { ref, record, item }: Movable,
  { to, targets, staleMs }: Diversion,
): Promise<Diverted> {
  const stored = targets.map((target) => storedTarget(book, { record, item }, target))
  const ask = { ref, verb: 'divert', by: `${fallbackWord}${to}`, targets: stored, stale: staleMs }
  const text = await run(book, ask)
  return { made: [], ...(JSON.parse(text) as Omit<Diverted, 'made'>) }
}

function storedTarget(
  book: Book,
  { record, item }: Omit<Movable, 'ref'>,
  { sink, destination, batchWaitMs, place }: MoveTarget,
): Record<string, unknown> {
  return {
    d: destination,
    k: sink,
    ...book.digests.claimMark(record.uid, item.severity, destination),
    bw: batchWaitMs,
    place: place && storedGathering(place),
  }
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
  return (await run(book, ask)) as Redirected
}

async function run(book: Book, ask: Record<string, unknown>): Promise<string> {
  const whole = { ...ask, horizon: book.horizonMs, retention: book.retention }
  return String(await book.run('redirect-item', JSON.stringify(whole)))
}

/** The worst first: what is moved arrives in this order. */
export function bySeverity(a: Movable, b: Movable): number {
  return severityRank(b.item.severity) - severityRank(a.item.severity)
}
