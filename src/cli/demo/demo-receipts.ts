/**
 * What the ledger says was delivered against the messages that arrived. A message to a machine names its
 * items; of one about several events for people the ledger knows the members, and the message says how
 * many it stands for and shows some of them.
 */
import type { Item } from '../../ledger/records.ts'
import {
  deliveredItems,
  sumOf,
  type DemoSink,
  type Difference,
  type Evidence,
  type Receipt,
} from './demo-evidence.ts'

/** Of one sink, those of 0 too. */
export function amongMessages(evidence: Evidence, sink: DemoSink): Difference[] {
  const known = itemsOf(evidence, sink)
  const byId = new Map(known.map((one) => [one.item.id, one]))
  const bySeal = Map.groupBy(known, ({ item }) => `b${item.sealedIn}`)
  const arrived: Arrived[] = evidence.received
    .filter((receipt) => receipt.sink === sink)
    .map((receipt) => ({ receipt, members: membersOf(receipt, byId, bySeal) }))
  const once = [...new Map(arrived.map((one) => [one.receipt.id || one, one])).values()]
  const ids = new Set(arrived.flatMap(({ members }) => members.map(({ item }) => item.id)))
  const delivered = deliveredItems(evidence).filter((item) => item.sink === sink)
  const uids = new Set(known.map(({ uid }) => uid))
  return [
    {
      count: delivered.filter(({ id }) => !ids.has(id)).length,
      what: 'delivered items that never arrived',
    },
    {
      count: sumOf(once, ({ receipt, members }) => Math.abs(receipt.events - members.length)),
      what: 'items by which messages that arrived and the ledger differ',
    },
    { count: sumOf(ids, timesTooOften(arrived)), what: 'items that arrived twice unannounced' },
    {
      count: sumOf(once, (one) => foreignTo(one, uids)),
      what: 'events shown by a message that the ledger has not in it',
    },
    {
      count: sumOf(once, leftOut),
      what: 'events left out of a message that shows all',
    },
  ]
}

interface Known {
  item: Item
  uid: string
}

interface Arrived {
  receipt: Receipt
  /** What it stands for, by the ledger. */
  members: readonly Known[]
}

function itemsOf({ records }: Evidence, sink: DemoSink): Known[] {
  return records.flatMap(({ items, uid }) =>
    items.filter((item) => item.sink === sink).map((item) => ({ item, uid })),
  )
}

function membersOf(
  { id, items }: Receipt,
  byId: ReadonlyMap<string, Known>,
  bySeal: ReadonlyMap<string, readonly Known[]>,
): readonly Known[] {
  return items.length > 0 ? items.flatMap((one) => byId.get(one) ?? []) : (bySeal.get(id) ?? [])
}

/** How often an item arrived beyond once, not counting messages that say that they may be repeats. */
function timesTooOften(arrived: readonly Arrived[]): (id: string) => number {
  const times = new Map<string, number>()
  for (const { receipt, members } of arrived) {
    if (receipt.mayBeRepeat) continue
    for (const { item } of members) times.set(item.id, (times.get(item.id) ?? 0) + 1)
  }
  return (id) => Math.max(0, (times.get(id) ?? 0) - 1)
}

/** A digest also lists what went to its reader at once. */
function foreignTo({ receipt, members }: Arrived, known: ReadonlySet<string>): number {
  const own = receipt.form === 'digest' ? known : new Set(members.map(({ uid }) => uid))
  return receipt.uids.filter((uid) => !own.has(uid)).length
}

function leftOut({ receipt, members }: Arrived): number {
  const shown = new Set(receipt.uids)
  return receipt.isComplete ? members.filter(({ uid }) => !shown.has(uid)).length : 0
}
