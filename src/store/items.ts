/** Finds items of the ledger: by what they are, or by the ids that messages and lists show. */
import { noSeverity, type Severity, severityRank } from '../event.ts'
import type { AccountLedger } from './account-ledger.ts'
import { findDeliveryItems } from './deliveries.ts'
import { listQuarantined, type QuarantineEntry, readQuarantined } from './feed-state.ts'
import { pendingWords, reasonOf, type State, stateOf } from './item-states.ts'
import { readSinkNames, scanDeadRecords } from './pending-items.ts'
import {
  deliveryIdPattern,
  type Item,
  type LedgerRecord,
  readRecord,
  scanPendingRecords,
  scanRecords,
} from './records.ts'

/** An item as lists show it and acts change it, small because there may be a hundred thousand. */
export interface LedgerItem {
  ledger: AccountLedger
  /** Of an item its reference, of a quarantined one its id. */
  ref: string
  uid: string | null
  type: string | undefined
  /** The title of its messages; undefined: it is quarantined. */
  title: string | undefined
  severity: string
  state: State
  /** Since when it is final, or waits; ms. */
  sinceMs: number
  /** The feeds that showed it. */
  feeds: readonly string[]
  reason: string | undefined
  /** undefined: it is quarantined. */
  item: Item | undefined
  /** undefined: it is not quarantined. */
  entry: QuarantineEntry | undefined
}

/** What is left out does not narrow. Times are inclusive, ms, and those of `sinceMs`. */
export interface ItemFilter {
  states?: ReadonlySet<State> | undefined
  sink?: string | undefined
  feed?: string | undefined
  /** This or higher; what is not known counts as critical. */
  severity?: Severity | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

/** What needs somebody: nothing that Tocsin does by itself ends it. */
export const needyStates: ReadonlySet<State> = new Set(['dead', 'quarantined'])

export function fits(item: LedgerItem, filter: ItemFilter): boolean {
  const { states, sink, feed, severity, fromMs = 0, toMs = Infinity } = filter
  return (
    (states?.has(item.state) ?? true) &&
    (sink === undefined || item.item?.sink === sink) &&
    (feed === undefined || item.feeds.includes(feed)) &&
    (severity === undefined || severityRank(item.severity) >= severityRank(severity)) &&
    item.sinceMs >= fromMs &&
    item.sinceMs <= toMs
  )
}

/** Scans the items that fit, each once; of what is final those that are so since `leastMs` or later. */
export async function* scanItems(
  ledger: AccountLedger,
  filter: ItemFilter,
  leastMs: () => number = () => 0,
): AsyncGenerator<LedgerItem> {
  const { states, sink } = filter
  if ((states?.has('quarantined') ?? true) && sink === undefined) {
    for (const item of await readQuarantine(ledger)) if (fits(item, filter)) yield item
  }
  const seen = new Set<string>()
  for (const records of scansFor(ledger, filter, leastMs)) {
    for await (const record of records) {
      const found = recordItems(ledger, record).filter((item) => fits(item, filter))
      const unseen = found.filter(({ ref }) => !seen.has(ref))
      for (const { ref } of unseen) seen.add(ref)
      yield* unseen
    }
  }
}

/** The scans that meet every item of these states and read the least. */
function scansFor(
  ledger: AccountLedger,
  { states, sink, fromMs = 0 }: ItemFilter,
  leastMs: () => number,
): AsyncIterable<LedgerRecord>[] {
  const stored = [...(states ?? [])].filter((state) => state !== 'quarantined')
  if (states !== undefined && stored.length === 0) return []
  if (
    states !== undefined &&
    stored.every((state) => state === 'dead' || pendingWords.has(state))
  ) {
    return [
      ...(stored.some((state) => state !== 'dead') ? [scanPendingRecords(ledger)] : []),
      ...(states.has('dead') ? [scanDead(ledger, sink)] : []),
    ]
  }
  return [scanRecords(ledger, () => Math.max(fromMs, leastMs()))]
}

async function* scanDead(
  ledger: AccountLedger,
  sink: string | undefined,
): AsyncGenerator<LedgerRecord> {
  for (const name of sink === undefined ? await readSinkNames(ledger) : [sink])
    yield* scanDeadRecords(ledger, name)
}

/** All items of a record. */
export function recordItems(ledger: AccountLedger, record: LedgerRecord): LedgerItem[] {
  const { recordId, uid, type, title, sightings } = record
  const feeds = [...new Set(sightings.map(({ feed }) => feed))]
  return record.items.map((item) => ({
    ledger,
    ref: `i:${recordId}:${item.index}:${item.sink}`,
    uid,
    type,
    title,
    severity: item.severity,
    state: stateOf(item),
    sinceMs: item.endedAtMs ?? item.createdAtMs,
    feeds,
    reason: reasonOf(item),
    item,
    entry: undefined,
  }))
}

function quarantinedItem(ledger: AccountLedger, entry: QuarantineEntry): LedgerItem {
  return {
    ledger,
    ref: entry.id,
    uid: entry.uid,
    type: undefined,
    title: undefined,
    severity: noSeverity, // it counts as critical until it reads
    state: 'quarantined',
    sinceMs: entry.atMs,
    feeds: [entry.feed],
    reason: 'malformed',
    item: undefined,
    entry,
  }
}

const quarantineIdPattern = /^[0-9a-f]{24}$/u

/** Finds what goes by a uid, or the id of an item, a message or a quarantined item. */
export async function findItems(
  ledgers: readonly AccountLedger[],
  given: string,
): Promise<LedgerItem[]> {
  if (deliveryIdPattern.test(given)) return findDelivered(ledgers, given)
  const found = await Promise.all(
    ledgers.map(async (ledger) => {
      const id = ledger.fingerprints.recordId(given)
      const record = await readRecord(ledger, id)
      const entry = await readQuarantined(ledger, quarantineIdPattern.test(given) ? given : id)
      return [
        ...(record ? recordItems(ledger, record) : []),
        ...(entry ? [quarantinedItem(ledger, entry)] : []),
      ]
    }),
  )
  return found.flat()
}

async function findDelivered(ledgers: readonly AccountLedger[], id: string): Promise<LedgerItem[]> {
  const found: LedgerItem[] = []
  for await (const { record, item } of findDeliveryItems(ledgers, id)) {
    const ledger = ledgers.find(({ account }) => account === record.account)
    if (ledger) found.push(...recordItems(ledger, record).filter((one) => one.item?.id === item.id))
  }
  return found
}

/** The most severe first: items arrive in the order in which they are moved. Then the newest. */
export function worstFirst(one: LedgerItem, other: LedgerItem): number {
  return severityRank(other.severity) - severityRank(one.severity) || newestFirst(one, other)
}

function newestFirst(one: LedgerItem, other: LedgerItem): number {
  return other.sinceMs - one.sinceMs || byName(`${one.uid} ${one.ref}`, `${other.uid} ${other.ref}`)
}

/** Of one time, such as those of one message. */
function byName(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

/** What needs somebody: the worst first; what waits: the longest first; all else the newest first. */
type Order = 'worst' | 'oldest' | 'newest'

export function orderOf({ states }: ItemFilter, isNeedy: boolean): Order {
  if (isNeedy) return 'worst'
  return states !== undefined && [...states].every((state) => pendingWords.has(state))
    ? 'oldest'
    : 'newest'
}

const comparers = {
  worst: worstFirst,
  newest: newestFirst,
  oldest: (one: LedgerItem, other: LedgerItem): number => newestFirst(other, one),
}

/** The first items of all ledgers in their order, and whether there are more. */
export async function listItems(
  ledgers: readonly AccountLedger[],
  filter: ItemFilter,
  { limit, order }: { limit: number; order: Order },
): Promise<{ items: LedgerItem[]; hasMore: boolean }> {
  let items: LedgerItem[] = []
  let leastMs = filter.fromMs ?? 0
  const trim = (): void => {
    items = items.toSorted(comparers[order]).slice(0, limit + 1)
    if (order === 'newest' && items.length > limit) leastMs = items.at(-1)?.sinceMs ?? leastMs
  }
  for (const ledger of ledgers) {
    for await (const item of scanItems(ledger, filter, () => leastMs)) {
      if (order === 'worst' && !needyStates.has(item.state)) continue
      items.push(item)
      if (items.length > 2 * (limit + 1)) trim()
    }
  }
  trim()
  return { items: items.slice(0, limit), hasMore: items.length > limit }
}

/** The item of a reference, or the quarantined one of an id; undefined: it is gone. */
export async function readItemAt(
  ledger: AccountLedger,
  ref: string,
): Promise<LedgerItem | undefined> {
  if (!ref.startsWith('i:')) {
    const entry = await readQuarantined(ledger, ref)
    return entry && quarantinedItem(ledger, entry)
  }
  const record = await readRecord(ledger, ref.split(':')[1] ?? '')
  return record && recordItems(ledger, record).find((item) => item.ref === ref)
}

export async function readQuarantine(ledger: AccountLedger): Promise<LedgerItem[]> {
  return (await listQuarantined(ledger)).map((entry) => quarantinedItem(ledger, entry))
}
