/** The demo's account of one run: events fetched, items delivered, and whatever does not agree. */
import type { Config } from '../../config/config.ts'
import { expectPolling } from '../../config/warnings.ts'
import type { FeedConfig } from '../../feed-types/config.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Book } from '../../store/account-ledger.ts'
import {
  type Accounting,
  type FeedAccount,
  pendingOf,
  readAccounting,
  type SinkAccount,
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
  sumOf,
} from './evidence.ts'
import type { DemoSandbox } from './sandbox.ts'

/** Of this run, except for `held` and `pending`: items that stand now. */
export interface DemoFigures {
  fetched: number
  new: number
  /** Of the new ones: found by a sweep, because they arrived late. */
  late: number
  duplicate: number
  quarantined: number
  delivered: Record<DemoSink, number>
  held: number
  suppressed: number
  dead: number
  pending: number
  unaccounted: number
  /** What is unaccounted for, one phrase each. */
  differences: string[]
  /** By sink and form, those that arrived. */
  messages: Record<DemoSink, Partial<Record<MessageForm, number>>>
}

export function drawAccount(evidence: Evidence): DemoFigures {
  const { accounting, baseline } = evidence
  const feeds = (count: (feed: FeedAccount) => number): number =>
    sumOf(Object.values(accounting.feeds), count) -
    sumOf(Object.values(baseline.accounting.feeds), count)
  const standing = (count: (sink: SinkAccount) => number): number =>
    sumOf(Object.values(accounting.sinks), count)
  const ended = (count: (sink: SinkAccount) => number): number =>
    standing(count) - sumOf(Object.values(baseline.accounting.sinks), count)
  const held = standing(({ pending }) => pending['held'] ?? 0)
  const differences = findDifferences(evidence)
  return {
    fetched: feeds((feed) => feed.fetched),
    new: feeds((feed) => feed.new),
    late: feeds((feed) => feed.late),
    duplicate: feeds((feed) => feed.duplicate),
    quarantined: feeds((feed) => feed.quarantined),
    delivered: deliveredBySink(evidence),
    held,
    suppressed: ended((sink) => sink.suppressed),
    dead: ended((sink) => sink.dead),
    pending: standing(pendingOf) - held,
    unaccounted: sumOf(differences, ({ count }) => count),
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

/** "messages slack 19 (4 groups, 3 first polls), email 3 (1 digest), webhook 25 (20 batches)". */
export function messagesLine({ messages }: DemoFigures): string {
  const sinks = demoSinks.map((sink) => {
    const counts = messages[sink]
    const told = forms.flatMap(([form, [one, several]]) => {
      const { [form]: count = 0 } = counts
      return count === 0 ? [] : [`${count} ${count === 1 ? one : several}`]
    })
    const total = sumOf(Object.values(counts), (count) => count)
    return `${sink} ${total}${told.length > 0 ? ` (${told.join(', ')})` : ''}`
  })
  return `messages ${sinks.join(', ')}`
}

/** How messages with several events are called, in the order in which the line says them. */
const formWords: Record<Exclude<MessageForm, 'single'>, [one: string, several: string]> = {
  batch: ['batch', 'batches'],
  group: ['group', 'groups'],
  backlog: ['first poll', 'first polls'],
  storm: ['storm', 'storms'],
  held: ['held', 'held'],
  digest: ['digest', 'digests'],
}

const forms = Object.entries(formWords) as [keyof typeof formWords, [string, string]][]

function messagesBySink({ received }: Evidence): DemoFigures['messages'] {
  const messages: DemoFigures['messages'] = { slack: {}, email: {}, webhook: {} }
  for (const { sink, form } of received) messages[sink][form] = (messages[sink][form] ?? 0) + 1
  return messages
}

/**
 * Where the counters of the ledger, its records, what the catchers received and what the service showed
 * do not agree: each difference is an event or an item that is unaccounted for.
 */

/** Those that there are; none where all is accounted for. */
function findDifferences(evidence: Evidence): Difference[] {
  return [
    ...amongCounters(evidence),
    ...amongItems(evidence),
    ...amongEvents(evidence),
    ...demoSinks.flatMap((sink) => amongMessages(evidence, sink)),
  ].filter(({ count }) => count !== 0)
}

function amongCounters({ accounting: { feeds, sinks } }: Evidence): Difference[] {
  const unaccounted = (entry: { unaccounted: number }): number => Math.abs(entry.unaccounted)
  return [
    {
      count: sumOf(Object.values(feeds), unaccounted),
      what: 'fetched, but by the counters neither new nor duplicate nor quarantined',
    },
    {
      count: sumOf(Object.values(sinks), unaccounted),
      what: 'items that by the counters are neither pending nor ended',
    },
  ]
}

/** Counters of items against the records themselves. */
function amongItems(evidence: Evidence): Difference[] {
  const { accounting, pendingFound } = evidence
  const pendingCounted = (sink: string): number => {
    const account = accounting.sinks[sink]
    return account ? pendingOf(account) : 0
  }
  const counted = deliveredBySink(evidence)
  const items = deliveredItems(evidence)
  const found = (sink: string): number => items.filter((item) => item.sink === sink).length
  return [
    {
      count: sumOf(demoSinks, (sink) => Math.abs(pendingCounted(sink) - (pendingFound[sink] ?? 0))),
      what: 'pending items on which counters and records differ',
    },
    {
      count: sumOf(demoSinks, (sink) => Math.abs(counted[sink] - found(sink))),
      what: 'delivered items on which counters and records differ',
    },
  ]
}

/** Counters of events against the records, and these against what the service showed. */
function amongEvents(evidence: Evidence): Difference[] {
  const { accounting, baseline, records, shown, quarantinedUids } = evidence
  const newOf = ({ feeds }: typeof accounting): number => sumOf(Object.values(feeds), (f) => f.new)
  const sightings = records.flatMap((record) =>
    record.sightings.map(({ feed, atMs }) => ({ place: `${feed} ${record.recordId}`, atMs })),
  )
  const seen = sightings.filter(({ atMs }) => atMs >= baseline.atMs).length
  const taken = new Set(records.map(({ uid }) => uid))
  const isMissing = (uid: string): boolean => !taken.has(uid) && !quarantinedUids.has(uid)
  return [
    {
      count: Math.abs(newOf(accounting) - newOf(baseline.accounting) - seen),
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
 * What the ledger says was delivered against the messages that arrived. A message to a machine names its
 * items; of one about several events for people the ledger knows the members, and the message says how
 * many it stands for and shows some of them.
 */

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

/** A run of the demo as it stands: counters of the ledger, messages that arrived, what the feeds have read. */

export interface Run {
  config: Config
  book: Book
  baseline: Baseline
  sandbox: Pick<DemoSandbox, 'shownAt' | 'credentialsShownAt'>
  received: readonly Receipt[]
  /** By feed: when the last sweep of this run that ended had begun; kept by every reading. */
  sweptAtMs: Map<string, number>
}

export async function readRun(run: Run): Promise<Omit<DemoReading, 'stage'>> {
  const now = await readAccounting(run.book)
  const feeds = await Promise.all(run.config.feeds.map((feed) => readFeed(run, feed)))
  return {
    caughtUpMs: Math.min(...feeds.map(({ state }) => state?.lastCaughtUpMs ?? 0)),
    feeds: feeds.map((feed) => feedReading(run, now, feed)),
    sinks: sinkReadings(run, now),
  }
}

/** Uids of what the service showed to every feed: its tail up to its end, and its last whole sweep. */
export async function shownTo(run: Run): Promise<string[]> {
  const shown = run.config.feeds.map(async (feed) => {
    const { state } = await readFeed(run, feed)
    const atMs = state?.lastCaughtUpMs ?? 0
    if (feed.type === 'credentials') return run.sandbox.credentialsShownAt(atMs)
    if (feed.type !== 'events') return []
    return run.sandbox.shownAt(feed.identifierGroup, atMs, run.sweptAtMs.get(feed.name))
  })
  return (await Promise.all(shown)).flat()
}

interface FeedNow {
  feed: FeedConfig
  nowMs: number
  /** undefined: it never polled. */
  state: FeedState | undefined
}

async function readFeed({ book, sweptAtMs }: Run, feed: FeedConfig): Promise<FeedNow> {
  const nowMs = systemClock.now()
  const state = await peekFeed(book, feed.name, nowMs)
  const { isDone = false, walk } = state?.sweep ?? {}
  if (isDone && walk) sweptAtMs.set(feed.name, walk.startedAtMs)
  return { feed, nowMs, state }
}

function feedReading(
  { baseline, config }: Run,
  now: Accounting,
  { feed: { name, labels }, nowMs, state }: FeedNow,
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

function sinkReadings({ received }: Run, now: Accounting): SinkReading[] {
  return demoSinks.map((name) => {
    const account = now.sinks[name]
    const messages = received.filter(({ sink }) => sink === name)
    const collected = (account?.pending['group'] ?? 0) + (account?.pending['digest'] ?? 0)
    return {
      name,
      arrived: sumOf(messages, ({ events }) => events),
      messages: messages.length,
      collected,
      pending: account ? pendingOf(account) - collected : 0,
    }
  })
}
