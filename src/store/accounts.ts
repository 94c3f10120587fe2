/**
 * The registry of accounts: every account that ever had a book, whether a configuration still has it or
 * not. What was taken in is delivered, counted and shown, whoever took it in.
 */
import { ownFeed } from '../event.ts'
import type { Redis } from '../redis/connection.ts'
import { scanKeys } from '../redis/health.ts'
import type { Keys } from '../redis/keys.ts'
import { pairsOf, redisNow, runScript } from '../redis/scripts.ts'
import {
  type AccountLedger,
  type AccountLedgerOptions,
  openExistingLedger,
} from './account-ledger.ts'
import { countQuarantined } from './feed-state.ts'
import { countDeadLetters, readSinkNames } from './pending-items.ts'
import { pendingStates, scanPendingRecords } from './records.ts'

export interface AccountEntry {
  name: string
  /** When its book was first opened, or found by the look at what an older version left; ms. */
  sinceMs: number
  /** When a daemon last had it in its configuration, ms; undefined: none ever said so. */
  configuredMs: number | undefined
  /** What the configuration said of it then. */
  facts: AccountFacts | undefined
  /** An operator discards it: its book is opened by nobody else any more. */
  discarding: DiscardNote | undefined
}

interface DiscardNote {
  atMs: number
  by: string
  /** Some of its keys may be gone: there is no way back. */
  isRemoving?: true
}

/** By which a renamed account is recognised. */
export interface AccountFacts {
  baseUrl: string
  /** A fingerprint of API key, tenant and base URL; left out where the key could not be read. */
  key?: string
  feeds: string[]
}

interface Store {
  redis: Redis
  keys: Keys
}

/** Sorted by name. */
export async function readAccounts({ redis, keys }: Store): Promise<AccountEntry[]> {
  const fields = await redis.hgetall(keys.shared('accounts'))
  const names = new Set(Object.keys(fields).map((field) => field.split('|')[0] ?? ''))
  return [...names].toSorted().map((name) => {
    const text = (what: string): string | undefined => fields[`${name}|${what}`]
    const configured = text('configured')
    return {
      name,
      sinceMs: Number(text('since') ?? 0),
      configuredMs: configured === undefined ? undefined : Number(configured),
      get facts() {
        return (JSON.parse(text('facts') ?? 'null') ?? undefined) as AccountFacts | undefined
      },
      discarding: JSON.parse(text('discarding') ?? 'null') ?? undefined,
    }
  })
}

async function readDiscardNote(
  { redis, keys }: Store,
  account: string,
): Promise<DiscardNote | undefined> {
  const text = await redis.hget(keys.shared('accounts'), `${account}|discarding`)
  return text === null ? undefined : (JSON.parse(text) as DiscardNote)
}

/** What a daemon says of the accounts that its configuration has, at its start. */
export async function noteFacts(
  { redis, keys }: Store,
  accounts: ReadonlyMap<string, AccountFacts>,
): Promise<void> {
  const fields = [...accounts].map(([name, facts]) => [`${name}|facts`, JSON.stringify(facts)])
  await noteFields({ redis, keys }, fields)
}

/** And what it says again and again: that it has them. */
export async function noteConfigured(
  { redis, keys }: Store,
  accounts: readonly string[],
): Promise<void> {
  const nowMs = String(await redisNow({ redis }))
  await noteFields(
    { redis, keys },
    accounts.map((name) => [`${name}|configured`, nowMs]),
  )
  // one that came back while it was being discarded stays: the command looks before each step
  await redis.hdel(keys.shared('accounts'), ...accounts.map((name) => `${name}|discarding`))
}

/** A script takes so many fields: its stack holds 8,000 values. */
const fieldsAtOnce = 1_000

/** Also when memory is full: only a daemon that knows its accounts makes room. */
async function noteFields({ redis, keys }: Store, fields: readonly string[][]): Promise<void> {
  for (let at = 0; at < fields.length; at += fieldsAtOnce) {
    const batch = fields.slice(at, at + fieldsAtOnce).flat()
    await runScript(redis, 'note-fields', [keys.shared('accounts')], batch)
  }
}

/** From here on its book is closed to all but the command that discards it. */
export async function noteDiscarding(
  { redis, keys }: Store,
  account: string,
  by: string,
): Promise<void> {
  const note = JSON.stringify({ atMs: await redisNow({ redis }), by })
  await redis.hset(keys.shared('accounts'), `${account}|discarding`, note)
}

async function forgetAccount({ redis, keys }: Store, account: string): Promise<void> {
  const fields = ['since', 'configured', 'facts', 'discarding'].map((name) => `${account}|${name}`)
  await redis.hdel(keys.shared('accounts'), ...fields)
}

/** The books of registered accounts that are not `open`; none of an account that is being discarded. */
export async function openLeftLedgers(
  options: Omit<AccountLedgerOptions, 'account'>,
  open: readonly string[],
  entries?: readonly AccountEntry[],
): Promise<AccountLedger[]> {
  const isOpen = new Set(open)
  const known = entries ?? (await readAccounts(options))
  const left = known.filter(({ name, discarding }) => !isOpen.has(name) && !discarding)
  const ledgers = await Promise.all(
    left.map(({ name }) => openExistingLedger({ ...options, account: name })),
  )
  return ledgers.filter((ledger) => ledger !== undefined)
}

/** What an account has in the ledger. */
export interface Holdings {
  /** Items that are not final, by state; only states that occur. */
  pending: Record<string, number>
  pendingTotal: number
  deadLetters: number
  quarantined: number
  /** The feeds that it ever had, without Tocsin's own. */
  feeds: string[]
}

/** Items that are not final. */
export async function countPending(ledger: AccountLedger): Promise<number> {
  const { sinks } = await readAccounting(ledger)
  return Object.values(sinks).reduce((sum, sink) => sum + sumPending(sink), 0)
}

export async function readHoldings(ledger: AccountLedger): Promise<Holdings> {
  const { feeds, sinks } = await readAccounting(ledger)
  const pending: Record<string, number> = {}
  for (const account of Object.values(sinks)) {
    for (const [state, count] of Object.entries(account.pending)) {
      if (count !== 0) pending[state] = (pending[state] ?? 0) + count
    }
  }
  const letters = (await readSinkNames(ledger)).map((sink) => countDeadLetters(ledger, sink))
  return {
    pending,
    pendingTotal: Object.values(sinks).reduce((sum, sink) => sum + sumPending(sink), 0),
    deadLetters: (await Promise.all(letters)).reduce((sum, count) => sum + count, 0),
    quarantined: Object.values(await countQuarantined(ledger)).reduce(
      (sum, counts) => sum + counts.open,
      0,
    ),
    feeds: upstreamFeedNames(feeds),
  }
}

/** The feeds that an account ever had, without Tocsin's own. */
export function upstreamFeedNames(feeds: Accounting['feeds']): string[] {
  return Object.keys(feeds)
    .filter((feed) => feed !== ownFeed)
    .toSorted()
}

/** Why the new account looks like the one that left under another name; undefined: it does not. */
export function findRenameReason(
  fresh: AccountFacts,
  left: { facts: AccountFacts | undefined; feeds: readonly string[] },
): string | undefined {
  const { facts } = left
  if (facts?.key !== undefined && facts.key === fresh.key) return 'it has the same API key'
  if (facts !== undefined && facts.baseUrl !== fresh.baseUrl) return undefined
  const formerFeeds = new Set([...left.feeds, ...(facts?.feeds ?? [])])
  const shared = fresh.feeds.filter((feed) => formerFeeds.has(feed))
  if (shared.length === 0) return undefined
  return `it has the same ${shared.length === 1 ? 'feed' : 'feeds'}: ${shared.join(', ')}`
}

/** Between two steps of a removal, of some hundred keys each, ms. */
const removalPauseMs = 5

/** A pass may miss what was written while it went on; so many are enough for any book that is closed. */
const maxPasses = 5

/**
 * Removes all keys of an account that is being discarded, in steps; the account itself goes last, so that a
 * removal that was broken off is seen and can be done again. False: the mark went away, and what is left stays.
 */
export async function removeLedger(
  store: Store,
  account: string,
  pause: (ms: number) => Promise<void>,
): Promise<boolean> {
  const { redis, keys } = store
  const fingerprintKey = keys.account(account, 'mark-key')
  const discardNote = await readDiscardNote(store, account)
  if (!discardNote) return false
  const removing = JSON.stringify({ ...discardNote, isRemoving: true })
  await redis.hset(keys.shared('accounts'), `${account}|discarding`, removing)
  for (let pass = 0, removed = 1; pass < maxPasses && removed > 0; pass += 1) {
    removed = 0
    for await (const names of scanKeys(redis, keys.account(account, '*'))) {
      const ledgerKeys = names.filter((name) => name !== fingerprintKey)
      if (!(await readDiscardNote(store, account))) return false
      if (ledgerKeys.length > 0) removed += await redis.unlink(...ledgerKeys)
      await pause(removalPauseMs)
    }
  }
  if (!(await readDiscardNote(store, account))) return false // the last pass may have been a long one
  await redis.unlink(fingerprintKey)
  await redis.del(keys.shared('quota', account))
  await forgetAccount(store, account)
  return true
}

/**
 * The conservation laws: every event fetched and every item created is somewhere, and the counters
 * (which the scripts keep) agree with a scan of the records themselves.
 */

export interface FeedCounts {
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

export interface SinkCounts {
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
  feeds: Record<string, FeedCounts>
  sinks: Record<string, SinkCounts>
}

/** From the counters alone: one read, true at every instant. */
export async function readAccounting(ledger: AccountLedger): Promise<Accounting> {
  return parseAccounting(Object.entries(await ledger.redis.hgetall(ledger.key('counters'))))
}

export interface AccountingSnapshot {
  /** By Redis' clock. */
  atMs: number
  accounting: Accounting
  /** How many records the index has. */
  records: number
  /** How many it should have more: records that were made and not dropped since; 0, or there is a defect. */
  unfiled: number
}

/** The same, and the size of the index of records at the same instant. */
export async function readAccountingSnapshot(ledger: AccountLedger): Promise<AccountingSnapshot> {
  const [atMs, records, ...texts] = (await ledger.run('read-counters')) as [
    number,
    number,
    ...string[],
  ]
  const fields = pairsOf(texts)
  const expected = Number(new Map(fields).get('records') ?? 0)
  return { atMs, records, unfiled: expected - records, accounting: parseAccounting(fields) }
}

/** Of counters as they are stored. */
export function parseAccounting(counters: Iterable<[string, string]>): Accounting {
  const accounting: Accounting = { feeds: createNameMap(), sinks: createNameMap() }
  for (const [field, text] of counters) {
    const [kind, name = '', counter = '', state = ''] = field.split('|')
    if (kind === 'f')
      addFeedCount((accounting.feeds[name] ??= emptyFeedCounts()), counter, Number(text))
    if (kind === 's')
      addSinkCount((accounting.sinks[name] ??= emptySinkCounts()), [counter, state], Number(text))
  }
  for (const feed of Object.values(accounting.feeds)) {
    const ended = feed.new + feed.duplicate + feed.quarantined + feed.baseline
    feed.unaccounted = feed.fetched - ended
  }
  for (const sink of Object.values(accounting.sinks)) {
    const ended = sink.delivered + sink.dead + sink.suppressed + sink.diverted
    sink.unaccounted = sink.created + sink.replayed - ended - sumPending(sink)
  }
  return accounting
}

export function sumPending(sink: SinkCounts): number {
  return Object.values(sink.pending).reduce((sum, count) => sum + count, 0)
}

/**
 * Pending items as the records themselves show them, by sink: all pending records are read. What differs
 * from the counters is an item that a counter lost or invented.
 */
export async function scanPendingCounts(ledger: AccountLedger): Promise<Record<string, number>> {
  const counts = createNameMap<number>()
  for await (const record of scanPendingRecords(ledger)) {
    for (const item of record.items) {
      const isPending = (pendingStates as readonly string[]).includes(item.state)
      if (isPending) counts[item.sink] = (counts[item.sink] ?? 0) + 1
    }
  }
  return counts
}

/** Nothing inherited: `constructor` is a name like any other. */
function createNameMap<Value>(): Record<string, Value> {
  return Object.create(null) as Record<string, Value>
}

function emptyFeedCounts(): FeedCounts {
  const counts = { fetched: 0, new: 0, duplicate: 0, quarantined: 0, baseline: 0 }
  return { ...counts, late: 0, raised: 0, unaccounted: 0 }
}

function emptySinkCounts(): SinkCounts {
  const outcomes = { delivered: 0, dead: 0, suppressed: 0, diverted: 0 }
  return { created: 0, replayed: 0, ...outcomes, pending: {}, unaccounted: 0 }
}

const feedCounters = [
  'fetched',
  'new',
  'duplicate',
  'quarantined',
  'baseline',
  'late',
  'raised',
] as const

function addFeedCount(feed: FeedCounts, counter: string, count: number): void {
  const known = feedCounters.find((name) => name === counter)
  if (known) feed[known] += count
}

const sinkCounters = ['created', 'replayed', 'delivered', 'dead', 'suppressed', 'diverted'] as const

function addSinkCount(sink: SinkCounts, [counter, state]: [string, string], count: number): void {
  if (counter === 'pending') sink.pending[state] = (sink.pending[state] ?? 0) + count
  const known = sinkCounters.find((name) => name === counter)
  if (known) sink[known] += count
}
