/** What a run of the demo left behind, read when nothing writes any more: the ledger, whole. */
import { readAccounting, scanPending, type Accounting } from '../../ledger/accounting.ts'
import type { Book } from '../../ledger/book.ts'
import type { Arrival } from './demo-arrival.ts'
import { scanRecords, type Item, type LedgerRecord } from '../../ledger/records.ts'

export const demoSinks = ['slack', 'email', 'webhook'] as const

export type DemoSink = (typeof demoSinks)[number]

/** What is compared of a message that arrived. */
export type Receipt = Pick<
  Arrival,
  'sink' | 'id' | 'form' | 'events' | 'items' | 'uids' | 'isComplete' | 'mayBeRepeat'
>

export interface Difference {
  count: number
  what: string
}

/** Where the ledger stood when the run began. */
export interface Baseline {
  accounting: Accounting
  /** By Redis' clock. */
  atMs: number
}

export interface Evidence {
  baseline: Baseline
  accounting: Accounting
  /** Pending items by sink, by a scan of the records. */
  pendingFound: Record<string, number>
  records: readonly LedgerRecord[]
  quarantinedUids: ReadonlySet<string>
  /** Every message that arrived in this run, in order. */
  received: readonly Receipt[]
  /** Uids of the events that the service showed to a poll. */
  shown: readonly string[]
}

export async function readBaseline(book: Book): Promise<Baseline> {
  const [seconds, micros] = await book.redis.time()
  const atMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
  return { accounting: await readAccounting(book), atMs }
}

export async function readEvidence(
  book: Book,
  given: Pick<Evidence, 'baseline' | 'received' | 'shown'>,
): Promise<Evidence> {
  const records: LedgerRecord[] = []
  for await (const record of scanRecords(book)) records.push(record)
  return {
    ...given,
    accounting: await readAccounting(book),
    pendingFound: await scanPending(book),
    records,
    quarantinedUids: new Set(await book.redis.hkeys(book.key('quarantine-uids'))),
  }
}

export function sumOf<Entry>(entries: Iterable<Entry>, count: (entry: Entry) => number): number {
  let sum = 0
  for (const entry of entries) sum += count(entry)
  return sum
}

/** Of this run, by the counters. */
export function deliveredBySink({ accounting, baseline }: Evidence): Record<DemoSink, number> {
  const delivered = (sink: DemoSink): number =>
    (accounting.sinks[sink]?.delivered ?? 0) - (baseline.accounting.sinks[sink]?.delivered ?? 0)
  return { slack: delivered('slack'), email: delivered('email'), webhook: delivered('webhook') }
}

/** Of this run, by the records. */
export function deliveredItems({ records, baseline }: Evidence): Item[] {
  return records
    .flatMap(({ items }) => items)
    .filter(({ state, endedAtMs = 0 }) => state === 'delivered' && endedAtMs >= baseline.atMs)
}
