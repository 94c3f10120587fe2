/**
 * The registry of accounts: every account that ever had a book, whether a configuration still has it or
 * not. What was taken in is delivered, counted and shown, whoever took it in.
 */
import { ownFeed } from '../event.ts'
import type { Redis } from '../redis/connection.ts'
import { scanKeys } from '../redis/health.ts'
import type { Keys } from '../redis/keys.ts'
import { pairsOf, redisNow, runScript } from '../redis/scripts.ts'
import { type Book, type BookOptions, reopenBook } from './account-ledger.ts'
import { countQuarantined } from './feed-state.ts'
import { countDeadLetters, sinksOf } from './pending-items.ts'
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
  discarding: Discarding | undefined
}

interface Discarding {
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

interface Place {
  redis: Redis
  keys: Keys
}

/** Sorted by name. */
export async function readAccounts({ redis, keys }: Place): Promise<AccountEntry[]> {
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

async function readDiscarding(
  { redis, keys }: Place,
  account: string,
): Promise<Discarding | undefined> {
  const text = await redis.hget(keys.shared('accounts'), `${account}|discarding`)
  return text === null ? undefined : (JSON.parse(text) as Discarding)
}

/** What a daemon says of the accounts that its configuration has, at its start. */
export async function noteFacts(
  { redis, keys }: Place,
  accounts: ReadonlyMap<string, AccountFacts>,
): Promise<void> {
  const fields = [...accounts].map(([name, facts]) => [`${name}|facts`, JSON.stringify(facts)])
  await noteFields({ redis, keys }, fields)
}

/** And what it says again and again: that it has them. */
export async function noteConfigured(
  { redis, keys }: Place,
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
async function noteFields({ redis, keys }: Place, fields: readonly string[][]): Promise<void> {
  for (let at = 0; at < fields.length; at += fieldsAtOnce) {
    const some = fields.slice(at, at + fieldsAtOnce).flat()
    await runScript(redis, 'note-fields', [keys.shared('accounts')], some)
  }
}

/** From here on its book is closed to all but the command that discards it. */
export async function noteDiscarding(
  { redis, keys }: Place,
  account: string,
  by: string,
): Promise<void> {
  const mark = JSON.stringify({ atMs: await redisNow({ redis }), by })
  await redis.hset(keys.shared('accounts'), `${account}|discarding`, mark)
}

async function forgetAccount({ redis, keys }: Place, account: string): Promise<void> {
  const fields = ['since', 'configured', 'facts', 'discarding'].map((what) => `${account}|${what}`)
  await redis.hdel(keys.shared('accounts'), ...fields)
}

/** The books of registered accounts that are not `open`; none of an account that is being discarded. */
export async function openLeftBooks(
  place: Omit<BookOptions, 'account'>,
  open: readonly string[],
  entries?: readonly AccountEntry[],
): Promise<Book[]> {
  const isOpen = new Set(open)
  const known = entries ?? (await readAccounts(place))
  const left = known.filter(({ name, discarding }) => !isOpen.has(name) && !discarding)
  const books = await Promise.all(left.map(({ name }) => reopenBook({ ...place, account: name })))
  return books.filter((book) => book !== undefined)
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
export async function countPending(book: Book): Promise<number> {
  const { sinks } = await readAccounting(book)
  return Object.values(sinks).reduce((sum, sink) => sum + pendingOf(sink), 0)
}

export async function readHoldings(book: Book): Promise<Holdings> {
  const { feeds, sinks } = await readAccounting(book)
  const pending: Record<string, number> = {}
  for (const account of Object.values(sinks)) {
    for (const [state, count] of Object.entries(account.pending)) {
      if (count !== 0) pending[state] = (pending[state] ?? 0) + count
    }
  }
  const letters = (await sinksOf(book)).map((sink) => countDeadLetters(book, sink))
  return {
    pending,
    pendingTotal: Object.values(sinks).reduce((sum, sink) => sum + pendingOf(sink), 0),
    deadLetters: (await Promise.all(letters)).reduce((sum, count) => sum + count, 0),
    quarantined: Object.values(await countQuarantined(book)).reduce(
      (sum, one) => sum + one.open,
      0,
    ),
    feeds: feedsIn(feeds),
  }
}

/** The feeds that an account ever had, without Tocsin's own. */
export function feedsIn(feeds: Accounting['feeds']): string[] {
  return Object.keys(feeds)
    .filter((feed) => feed !== ownFeed)
    .toSorted()
}

/** Why the new account looks like the one that left under another name; undefined: it does not. */
export function likeness(
  fresh: AccountFacts,
  left: { facts: AccountFacts | undefined; feeds: readonly string[] },
): string | undefined {
  const { facts } = left
  if (facts?.key !== undefined && facts.key === fresh.key) return 'it has the same API key'
  if (facts !== undefined && facts.baseUrl !== fresh.baseUrl) return undefined
  const had = new Set([...left.feeds, ...(facts?.feeds ?? [])])
  const shared = fresh.feeds.filter((feed) => had.has(feed))
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
  place: Place,
  account: string,
  pause: (ms: number) => Promise<void>,
): Promise<boolean> {
  const { redis, keys } = place
  const markKey = keys.account(account, 'mark-key')
  const mark = await readDiscarding(place, account)
  if (!mark) return false
  const removing = JSON.stringify({ ...mark, isRemoving: true })
  await redis.hset(keys.shared('accounts'), `${account}|discarding`, removing)
  for (let pass = 0, removed = 1; pass < maxPasses && removed > 0; pass += 1) {
    removed = 0
    for await (const names of scanKeys(redis, keys.account(account, '*'))) {
      const others = names.filter((name) => name !== markKey)
      if (!(await readDiscarding(place, account))) return false
      if (others.length > 0) removed += await redis.unlink(...others)
      await pause(removalPauseMs)
    }
  }
  if (!(await readDiscarding(place, account))) return false // the last pass may have been a long one
  await redis.unlink(markKey)
  await redis.del(keys.shared('quota', account))
  await forgetAccount(place, account)
  return true
}

/**
 * The conservation laws: every event fetched and every item created is somewhere, and the counters
 * (which the scripts keep) agree with a scan of the records themselves.
 */

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
  const fields = pairsOf(texts)
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
