/**
 * The conservation laws: every event fetched and every item created is somewhere, and the counters
 * (which the scripts keep) agree with a scan of the records themselves.
 */
import type { Book } from './book.ts'
import { pendingStates, scanPendingRecords } from './records.ts'

export interface FeedAccount {
  fetched: number
  new: number
  duplicate: number
  quarantined: number
  /** Older than the feed's floor: marked, and nothing more. */
  baseline: number
  /** Of the new ones: created before the tail's position when the sweep that found them began. */
  late: number
  /** Of the duplicates: come back more severe, and routed again. */
  raised: number
  /** fetched − new − duplicate − quarantined − baseline; 0, or there is a defect. */
  unaccounted: number
}

export interface SinkAccount {
  created: number
  replayed: number
  delivered: number
  dead: number
  suppressed: number
  diverted: number
  /** By state. */
  pending: Record<string, number>
  /** created + replayed − every outcome − pending; 0, or there is a defect. */
  unaccounted: number
}

export interface Accounting {
  feeds: Record<string, FeedAccount>
  sinks: Record<string, SinkAccount>
}

/** From the counters alone: one read, true at every instant. */
export async function readAccounting(book: Book): Promise<Accounting> {
  return accountingOf(Object.entries(await book.redis.hgetall(book.key('counters'))))
}

export interface AccountingAt {
  /** By Redis' clock. */
  atMs: number
  accounting: Accounting
  /** How many records the index has. */
  records: number
  /** How many it should have more: records that were made and not dropped since; 0, or there is a defect. */
  unfiled: number
}

/** The same, and the size of the index of records at the same instant. */
export async function readAccountingAt(book: Book): Promise<AccountingAt> {
  const [atMs, records, ...texts] = (await book.run('read-counters')) as [
    number,
    number,
    ...string[],
  ]
  const fields = texts.flatMap((field, i): [string, string][] =>
    i % 2 === 0 ? [[field, texts[i + 1] ?? '0']] : [],
  )
  const made = Number(new Map(fields).get('records') ?? 0)
  return { atMs, records, unfiled: made - records, accounting: accountingOf(fields) }
}

/** Of counters as they are stored. */
export function accountingOf(counters: Iterable<[string, string]>): Accounting {
  const accounting: Accounting = { feeds: byName(), sinks: byName() }
  for (const [field, text] of counters) {
    const [kind, name = '', word = '', state = ''] = field.split('|')
    if (kind === 'f') addToFeed((accounting.feeds[name] ??= noFeed()), word, Number(text))
    if (kind === 's') addToSink((accounting.sinks[name] ??= noSink()), [word, state], Number(text))
  }
  for (const feed of Object.values(accounting.feeds)) {
    const ended = feed.new + feed.duplicate + feed.quarantined + feed.baseline
    feed.unaccounted = feed.fetched - ended
  }
  for (const sink of Object.values(accounting.sinks)) {
    const ended = sink.delivered + sink.dead + sink.suppressed + sink.diverted
    sink.unaccounted = sink.created + sink.replayed - ended - pendingOf(sink)
  }
  return accounting
}

export function pendingOf(sink: SinkAccount): number {
  return Object.values(sink.pending).reduce((sum, count) => sum + count, 0)
}

/**
 * Pending items as the records themselves show them, by sink: all pending records are read. What differs
 * from the counters is an item that a counter lost or invented.
 */
export async function scanPending(book: Book): Promise<Record<string, number>> {
  const found = byName<number>()
  for await (const record of scanPendingRecords(book)) {
    for (const item of record.items) {
      const isPending = (pendingStates as readonly string[]).includes(item.state)
      if (isPending) found[item.sink] = (found[item.sink] ?? 0) + 1
    }
  }
  return found
}

/** Nothing inherited: `constructor` is a name like any other. */
function byName<Value>(): Record<string, Value> {
  return Object.create(null) as Record<string, Value>
}

function noFeed(): FeedAccount {
  const counts = { fetched: 0, new: 0, duplicate: 0, quarantined: 0, baseline: 0 }
  return { ...counts, late: 0, raised: 0, unaccounted: 0 }
}

function noSink(): SinkAccount {
  const outcomes = { delivered: 0, dead: 0, suppressed: 0, diverted: 0 }
  return { created: 0, replayed: 0, ...outcomes, pending: {}, unaccounted: 0 }
}

const feedWords = [
  'fetched',
  'new',
  'duplicate',
  'quarantined',
  'baseline',
  'late',
  'raised',
] as const

function addToFeed(feed: FeedAccount, word: string, count: number): void {
  const known = feedWords.find((name) => name === word)
  if (known) feed[known] += count
}

const sinkWords = ['created', 'replayed', 'delivered', 'dead', 'suppressed', 'diverted'] as const

function addToSink(sink: SinkAccount, [word, state]: [string, string], count: number): void {
  if (word === 'pending') sink.pending[state] = (sink.pending[state] ?? 0) + count
  const known = sinkWords.find((name) => name === word)
  if (known) sink[known] += count
}
