/**
 * The demo's accounting of one run: events fetched, items delivered, and everything that does not
 * agree.
 */
import type { Config } from '../../config/config.ts'
import { expectPolling } from '../../config/warnings.ts'
import type { FeedConfig } from '../../feed-types/config.ts'
import { systemClock } from '../../lib/clock.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import {
  type Accounting,
  type FeedCounts,
  sumPending,
  readAccounting,
  type SinkCounts,
} from '../../store/accounts.ts'
import { type FeedState, peekFeed } from '../../store/feed-state.ts'
import type { Item } from '../../store/records.ts'
import {
  type Baseline,
  deliveredBySink,
  deliveredItems,
  type DemoReading,
  type DemoSink,
  demoSinks,
  type Difference,
  type Evidence,
  type FeedReading,
  type MessageForm,
  type Receipt,
  type SinkReading,
  sumBy,
} from './evidence.ts'
import type { DemoSandbox } from './sandbox.ts'

/** Counts of this run, except `held` and `pending`: items in those states now. */
export interface DemoFigures {
  fetched: number
  new: number
  /** New events that a rescan found because they arrived late. */
  late: number
  duplicate: number
  quarantined: number
  delivered: Record<DemoSink, number>
  held: number
  suppressed: number
  dead: number
  pending: number
  unaccounted: number
  /** One phrase for each kind of unaccounted event or item. */
  differences: string[]
  /** Messages that arrived, by sink and form. */
  messages: Record<DemoSink, Partial<Record<MessageForm, number>>>
}

export function computeFigures(evidence: Evidence): DemoFigures {
  const { accounting, baseline } = evidence
  const countEvents = (count: (feed: FeedCounts) => number): number =>
    sumBy(Object.values(accounting.feeds), count) -
    sumBy(Object.values(baseline.accounting.feeds), count)
  const countItems = (count: (sink: SinkCounts) => number): number =>
    sumBy(Object.values(accounting.sinks), count)
  const countEndedItems = (count: (sink: SinkCounts) => number): number =>
    countItems(count) - sumBy(Object.values(baseline.accounting.sinks), count)
  const held = countItems(({ pending }) => pending['held'] ?? 0)
  const differences = findDifferences(evidence)
  return {
    fetched: countEvents((feed) => feed.fetched),
    new: countEvents((feed) => feed.new),
    late: countEvents((feed) => feed.late),
    duplicate: countEvents((feed) => feed.duplicate),
    quarantined: countEvents((feed) => feed.quarantined),
    delivered: deliveredBySink(evidence),
    held,
    suppressed: countEndedItems((sink) => sink.suppressed),
    dead: countEndedItems((sink) => sink.dead),
    pending: countItems(sumPending) - held,
    unaccounted: sumBy(differences, ({ count }) => count),
    differences: differences.map(({ count, what }) => `${count} ${what}`),
    messages: messagesBySink(evidence),
  }
}

export function accountingLine(figures: DemoFigures): string {
  const word = (
    name: Exclude<keyof DemoFigures, 'delivered' | 'differences' | 'messages'>,
  ): string => `${name} ${figures[name]}`
  const delivered = demoSinks.map((sink) => `${sink} ${figures.delivered[sink]}`).join(' ')
  return [
    word('fetched'),
    `${word('new')} (${word('late')})`,
    ...(['duplicate', 'quarantined'] as const).map(word),
    `delivered ${delivered}`,
    ...(['held', 'suppressed', 'dead', 'pending', 'unaccounted'] as const).map(word),
  ].join(', ')
}

export function messagesLine({ messages }: DemoFigures): string {
  const sinks = demoSinks.map((sink) => {
    const counts = messages[sink]
    const sentForms = forms.flatMap(([form, [one, several]]) => {
      const { [form]: count = 0 } = counts
      return count === 0 ? [] : [`${count} ${count === 1 ? one : several}`]
    })
    const total = sumBy(Object.values(counts), (count) => count)
    return `${sink} ${total}${sentForms.length > 0 ? ` (${sentForms.join(', ')})` : ''}`
  })
  return `messages ${sinks.join(', ')}`
}

/** Names of messages about several events, in the order in which the line lists them. */
const formNames: Record<Exclude<MessageForm, 'single'>, [one: string, several: string]> = {
  batch: ['batch', 'batches'],
  group: ['group', 'groups'],
  backlog: ['first poll', 'first polls'],
  storm: ['storm', 'storms'],
  held: ['held', 'held'],
  digest: ['digest', 'digests'],
}

const forms = Object.entries(formNames) as [keyof typeof formNames, [string, string]][]

function messagesBySink({ received }: Evidence): DemoFigures['messages'] {
  const messages: DemoFigures['messages'] = { slack: {}, email: {}, webhook: {} }
  for (const { sink, form } of received) messages[sink][form] = (messages[sink][form] ?? 0) + 1
  return messages
}

/**
 * Finds where the ledger's counters, its records, the messages at the mock receivers and the events
 * that the sandbox showed disagree. Each difference is an event or item that is unaccounted for.
 */

function findDifferences(evidence: Evidence): Difference[] {
  return [
    ...compareCounters(evidence),
    ...compareItems(evidence),
    ...compareEvents(evidence),
    ...demoSinks.flatMap((sink) => compareMessages(evidence, sink)),
  ].filter(({ count }) => count !== 0)
}

function compareCounters({ accounting: { feeds, sinks } }: Evidence): Difference[] {
  const unaccounted = (entry: { unaccounted: number }): number => Math.abs(entry.unaccounted)
  return [
    {
      count: sumBy(Object.values(feeds), unaccounted),
      what: 'fetched, but by the counters neither new nor duplicate nor quarantined',
    },
    {
      count: sumBy(Object.values(sinks), unaccounted),
      what: 'items that by the counters are neither pending nor ended',
    },
  ]
}

/** Compares the item counters with the records. */
function compareItems(evidence: Evidence): Difference[] {
  const { accounting, pendingFound } = evidence
  const pendingCounted = (sink: string): number => {
    const account = accounting.sinks[sink]
    return account ? sumPending(account) : 0
  }
  const delivered = deliveredBySink(evidence)
  const items = deliveredItems(evidence)
  const countFound = (sink: string): number => items.filter((item) => item.sink === sink).length
  return [
    {
      count: sumBy(demoSinks, (sink) => Math.abs(pendingCounted(sink) - (pendingFound[sink] ?? 0))),
      what: 'pending items on which counters and records differ',
    },
    {
      count: sumBy(demoSinks, (sink) => Math.abs(delivered[sink] - countFound(sink))),
      what: 'delivered items on which counters and records differ',
    },
  ]
}

/** Compares the event counters with the records, and the records with what the sandbox showed. */
function compareEvents(evidence: Evidence): Difference[] {
  const { accounting, baseline, records, shown, quarantinedUids } = evidence
  const countNew = ({ feeds }: typeof accounting): number =>
    sumBy(Object.values(feeds), (f) => f.new)
  const sightings = records.flatMap((record) =>
    record.sightings.map(({ feed, atMs }) => ({ place: `${feed} ${record.recordId}`, atMs })),
  )
  const seen = sightings.filter(({ atMs }) => atMs >= baseline.atMs).length
  const takenUids = new Set(records.map(({ uid }) => uid))
  const isMissing = (uid: string): boolean => !takenUids.has(uid) && !quarantinedUids.has(uid)
  return [
    {
      count: Math.abs(countNew(accounting) - countNew(baseline.accounting) - seen),
      what: 'new events on which counters and records differ',
    },
    {
      count: sightings.length - new Set(sightings.map(({ place }) => place)).size,
      what: 'events that one feed took in as new twice',
    },
    {
      count: shown.filter(isMissing).length,
      what: 'events that the service showed and the ledger does not have',
    },
  ]
}

/**
 * Compares what the ledger says was delivered to one sink with the messages that arrived; includes
 * differences of 0. A message to a machine names its items. For a message about several events to
 * people, the ledger knows the members, and the message says how many events it stands for and
 * shows some of them.
 */
export function compareMessages(evidence: Evidence, sink: DemoSink): Difference[] {
  const known = findItems(evidence, sink)
  const byId = new Map(known.map((one) => [one.item.id, one]))
  const byMessageId = Map.groupBy(known, ({ item }) => `b${item.messageId}`)
  const arrived: ArrivedMessage[] = evidence.received
    .filter((receipt) => receipt.sink === sink)
    .map((receipt) => ({ receipt, members: findMembers(receipt, byId, byMessageId) }))
  const distinct = [...new Map(arrived.map((one) => [one.receipt.id || one, one])).values()]
  const ids = new Set(arrived.flatMap(({ members }) => members.map(({ item }) => item.id)))
  const delivered = deliveredItems(evidence).filter((item) => item.sink === sink)
  const uids = new Set(known.map(({ uid }) => uid))
  return [
    {
      count: delivered.filter(({ id }) => !ids.has(id)).length,
      what: 'delivered items that never arrived',
    },
    {
      count: sumBy(distinct, ({ receipt, members }) => Math.abs(receipt.events - members.length)),
      what: 'items by which messages that arrived and the ledger differ',
    },
    { count: sumBy(ids, repeatCounter(arrived)), what: 'items that arrived twice unannounced' },
    {
      count: sumBy(distinct, (one) => countForeign(one, uids)),
      what: 'events shown by a message that the ledger has not in it',
    },
    {
      count: sumBy(distinct, countLeftOut),
      what: 'events left out of a message that shows all',
    },
  ]
}

interface KnownItem {
  item: Item
  uid: string
}

interface ArrivedMessage {
  receipt: Receipt
  /** The items that the message stands for, according to the ledger. */
  members: readonly KnownItem[]
}

function findItems({ records }: Evidence, sink: DemoSink): KnownItem[] {
  return records.flatMap(({ items, uid }) =>
    items.filter((item) => item.sink === sink).map((item) => ({ item, uid })),
  )
}

function findMembers(
  { id, items }: Receipt,
  byId: ReadonlyMap<string, KnownItem>,
  byMessageId: ReadonlyMap<string, readonly KnownItem[]>,
): readonly KnownItem[] {
  return items.length > 0
    ? items.flatMap((one) => byId.get(one) ?? [])
    : (byMessageId.get(id) ?? [])
}

/** Counts arrivals of an item beyond the first, without messages marked as possible repeats. */
function repeatCounter(arrived: readonly ArrivedMessage[]): (id: string) => number {
  const times = new Map<string, number>()
  for (const { receipt, members } of arrived) {
    if (receipt.mayBeRepeat) continue
    for (const { item } of members) times.set(item.id, (times.get(item.id) ?? 0) + 1)
  }
  return (id) => Math.max(0, (times.get(id) ?? 0) - 1)
}

/**
 * Counts events that do not belong to the message. A digest also lists what its reader got at once.
 */
function countForeign({ receipt, members }: ArrivedMessage, known: ReadonlySet<string>): number {
  const own = receipt.form === 'digest' ? known : new Set(members.map(({ uid }) => uid))
  return receipt.uids.filter((uid) => !own.has(uid)).length
}

function countLeftOut({ receipt, members }: ArrivedMessage): number {
  const shown = new Set(receipt.uids)
  return receipt.isComplete ? members.filter(({ uid }) => !shown.has(uid)).length : 0
}

/** A run of the demo: what its current counters, messages and feed positions are read from. */

export interface DemoRun {
  config: Config
  ledger: AccountLedger
  baseline: Baseline
  sandbox: Pick<DemoSandbox, 'shownAt' | 'credentialsShownAt'>
  received: readonly Receipt[]
  /** By feed, when the last finished rescan of this run began; every reading updates it. */
  rescannedAtMs: Map<string, number>
}

export async function readRun(run: DemoRun): Promise<Omit<DemoReading, 'stage'>> {
  const now = await readAccounting(run.ledger)
  const feeds = await Promise.all(run.config.feeds.map((feed) => readFeed(run, feed)))
  return {
    caughtUpMs: Math.min(...feeds.map(({ state }) => state?.lastCaughtUpMs ?? 0)),
    feeds: feeds.map((feed) => feedReading(run, now, feed)),
    sinks: sinkReadings(run, now),
  }
}

/**
 * Uids of what the sandbox showed to every feed: up to the end of its last poll, and in its last
 * full rescan.
 */
export async function readShownUids(run: DemoRun): Promise<string[]> {
  const shown = run.config.feeds.map(async (feed) => {
    const { state } = await readFeed(run, feed)
    const atMs = state?.lastCaughtUpMs ?? 0
    if (feed.type === 'credentials') return run.sandbox.credentialsShownAt(atMs)
    if (feed.type !== 'events') return []
    return run.sandbox.shownAt(feed.identifierGroup, atMs, run.rescannedAtMs.get(feed.name))
  })
  return (await Promise.all(shown)).flat()
}

interface FeedSnapshot {
  feed: FeedConfig
  nowMs: number
  /** undefined: the feed has never polled. */
  state: FeedState | undefined
}

async function readFeed(
  { ledger, rescannedAtMs }: DemoRun,
  feed: FeedConfig,
): Promise<FeedSnapshot> {
  const nowMs = systemClock.now()
  const state = await peekFeed(ledger, feed.name, nowMs)
  const { isDone = false, scan } = state?.sweep ?? {}
  if (isDone && scan) rescannedAtMs.set(feed.name, scan.startedAtMs)
  return { feed, nowMs, state }
}

function feedReading(
  { baseline, config }: DemoRun,
  now: Accounting,
  { feed: { name, labels }, nowMs, state }: FeedSnapshot,
): FeedReading {
  const caughtUpMs = state?.lastCaughtUpMs
  const since = (word: 'fetched' | 'new' | 'late' | 'duplicate'): number =>
    (now.feeds[name]?.[word] ?? 0) - (baseline.accounting.feeds[name]?.[word] ?? 0)
  return {
    name,
    labels: Object.entries(labels)
      .map(([label, value]) => `${label}=${value}`)
      .join(' '),
    fetched: since('fetched'),
    new: since('new'),
    late: since('late'),
    duplicate: since('duplicate'),
    lagMs: caughtUpMs === undefined ? undefined : Math.max(0, nowMs - caughtUpMs),
    lagObjectiveMs: expectPolling(config).get(name)?.lagObjectiveMs ?? Infinity,
  }
}

function sinkReadings({ received }: DemoRun, now: Accounting): SinkReading[] {
  return demoSinks.map((name) => {
    const account = now.sinks[name]
    const messages = received.filter(({ sink }) => sink === name)
    const grouped = (account?.pending['group'] ?? 0) + (account?.pending['digest'] ?? 0)
    return {
      name,
      arrived: sumBy(messages, ({ events }) => events),
      messages: messages.length,
      collected: grouped,
      pending: account ? sumPending(account) - grouped : 0,
    }
  })
}
