/**
 * The registry of accounts: every account that ever had a ledger, whether the configuration still
 * has it or not. So what it took in is still delivered, counted and shown. Also the removal of an
 * account's ledger, and the counters of feeds and sinks (accounting).
 */
import { ownFeed } from '../event.ts'
import type { Redis } from '../redis/client.ts'
import { scanKeys } from '../redis/health.ts'
import type { Keys } from '../redis/keys.ts'
import { pairsOf, redisNow, runScript } from '../redis/scripts.ts'
import {
  type AccountLedger,
  type AccountLedgerOptions,
  openExistingLedger,
} from './account-ledger.ts'
import { countQuarantined } from './feed-state.ts'
import { readSinkNames } from './pending-items.ts'

export interface AccountEntry {
  name: string
  /** When its ledger was first opened, ms. */
  sinceMs: number
  /** When a daemon last had it in its configuration, ms; undefined if none ever noted that. */
  configuredMs: number | undefined
  /** Set while an operator discards it: nobody else opens its ledger. */
  discarding: DiscardNote | undefined
}

interface DiscardNote {
  atMs: number
  by: string
  /** Keys are being removed: the account cannot be restored. */
  isRemoving?: true
}

interface Store {
  redis: Redis
  keys: Keys
}

/** All registered accounts, sorted by name. */
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

/** Notes, at regular intervals, that a daemon's configuration has these accounts. */
export async function noteConfigured(
  { redis, keys }: Store,
  accounts: readonly string[],
): Promise<void> {
  const nowMs = String(await redisNow({ redis }))
  await noteFields(
    { redis, keys },
    accounts.map((name) => [`${name}|configured`, nowMs]),
  )
  // an account that came back while it is discarded stays: the command checks this before each step
  await redis.hdel(keys.shared('accounts'), ...accounts.map((name) => `${name}|discarding`))
}

/** Fields per script call: `unpack` fails beyond Lua's stack of 8,000 values. */
const fieldsAtOnce = 1_000

/** Writes fields even when memory is full: only a daemon that knows its accounts makes room. */
async function noteFields({ redis, keys }: Store, fields: readonly string[][]): Promise<void> {
  for (let at = 0; at < fields.length; at += fieldsAtOnce) {
    const batch = fields.slice(at, at + fieldsAtOnce).flat()
    await runScript(redis, 'note-fields', [keys.shared('accounts')], batch)
  }
}

/** From here on only the command that discards the account opens its ledger. */
export async function noteDiscarding(
  { redis, keys }: Store,
  account: string,
  by: string,
): Promise<void> {
  const note = JSON.stringify({ atMs: await redisNow({ redis }), by })
  await redis.hset(keys.shared('accounts'), `${account}|discarding`, note)
}

/** Takes the note back: others open its ledger again. */
export async function keepAccount({ redis, keys }: Store, account: string): Promise<void> {
  await redis.hdel(keys.shared('accounts'), `${account}|discarding`)
}

async function forgetAccount({ redis, keys }: Store, account: string): Promise<void> {
  const fields = ['since', 'configured', 'discarding'].map((name) => `${account}|${name}`)
  await redis.hdel(keys.shared('accounts'), ...fields)
}

/**
 * Opens the ledgers of registered accounts that are not `open`, except of those being discarded.
 */
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
  /** Pending items by state; only states that occur. */
  pending: Record<string, number>
  pendingTotal: number
  deadLetters: number
  quarantined: number
  /** Feeds that it ever had, without Tocsin's own feed. */
  feeds: string[]
}

export async function readHoldings(ledger: AccountLedger): Promise<Holdings> {
  const { feeds, sinks } = await readAccounting(ledger)
  const pending: Record<string, number> = {}
  for (const account of Object.values(sinks)) {
    for (const [state, count] of Object.entries(account.pending)) {
      if (count !== 0) pending[state] = (pending[state] ?? 0) + count
    }
  }
  return {
    pending,
    pendingTotal: sumPending({ pending }),
    deadLetters: await countDeadLetters(ledger),
    quarantined: Object.values(await countQuarantined(ledger)).reduce((sum, open) => sum + open, 0),
    feeds: upstreamFeedNames(feeds),
  }
}

/** Without those that are older than the history: retention drops them. */
async function countDeadLetters(ledger: AccountLedger): Promise<number> {
  const oldestMs = (await redisNow(ledger)) - ledger.retention.history
  const sinks = await readSinkNames(ledger)
  const counts = await Promise.all(
    sinks.map((sink) => ledger.redis.zcount(ledger.key('dead', sink), `(${oldestMs}`, '+inf')),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Feeds that an account ever had, sorted, without Tocsin's own feed. */
export function upstreamFeedNames(feeds: Accounting['feeds']): string[] {
  return Object.keys(feeds)
    .filter((feed) => feed !== ownFeed)
    .toSorted()
}

/** Between two steps of a removal, each of some hundred keys. */
const removalPauseMs = 5

/**
 * A pass may miss keys that are written meanwhile; so many passes suffice for a ledger nobody
 * opens.
 */
const maxPasses = 5

/**
 * Removes all keys of an account that is being discarded, in steps. The registry entry goes last,
 * so that an interrupted removal is seen and can be repeated. Returns false if the account came
 * back meanwhile; what is left of it stays.
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
  if (!(await readDiscardNote(store, account))) return false // the last pass may have taken long
  await redis.unlink(fingerprintKey)
  await redis.del(keys.shared('quota', account))
  await forgetAccount(store, account)
  return true
}

/** What became of the items that a feed fetched. The scripts count. */
export interface FeedCounts {
  fetched: number
  new: number
  duplicate: number
  quarantined: number
  /** Created before the feed's start bound: its fingerprint is kept, and nothing more. */
  baseline: number
  /** Of the new ones: created before the tail's position when the rescan that found them began. */
  late: number
  /** Of the new ones: dated ahead of now. */
  ahead: number
  /** Of the duplicates: came back more severe and were routed again. */
  raised: number
  /** fetched − new − duplicate − quarantined − baseline; other than 0 is a defect. */
  unaccounted: number
}

/** What became of the items that were created for a sink. */
export interface SinkCounts {
  created: number
  replayed: number
  delivered: number
  dead: number
  suppressed: number
  diverted: number
  /** Pending items by state. */
  pending: Record<string, number>
  /** created + replayed − every outcome − pending; other than 0 is a defect. */
  unaccounted: number
}

export interface Accounting {
  feeds: Record<string, FeedCounts>
  sinks: Record<string, SinkCounts>
}

/** Reads the counters in one command, so that they are consistent. */
export async function readAccounting(ledger: AccountLedger): Promise<Accounting> {
  return parseAccounting(Object.entries(await ledger.redis.hgetall(ledger.key('counters'))))
}

/** Reads how many items of a sink ended by a rule, or went another way. */
export async function readSettledCounts(
  ledger: AccountLedger,
  sink: string,
): Promise<Pick<SinkCounts, 'suppressed' | 'diverted'>> {
  const [suppressed, diverted] = await ledger.redis.hmget(
    ledger.key('counters'),
    ...['suppressed', 'diverted'].map((counter) => `s|${sink}|${counter}`),
  )
  return { suppressed: Number(suppressed ?? 0), diverted: Number(diverted ?? 0) }
}

export interface AccountingSnapshot {
  /** By Redis' clock. */
  atMs: number
  accounting: Accounting
  /** How many records the index has. */
  records: number
  /** Records created and not dropped, minus those in the index; other than 0 is a defect. */
  unfiled: number
}

/** The accounting and the size of the index of records at the same instant. */
export async function readAccountingSnapshot(ledger: AccountLedger): Promise<AccountingSnapshot> {
  const answer = (await ledger.run('read-counters')) as [number, number, string[]]
  const [atMs, records, texts] = answer
  const fields = pairsOf(texts)
  const expected = Number(new Map(fields).get('records') ?? 0)
  return {
    atMs,
    records,
    unfiled: expected - records,
    accounting: parseAccounting(fields),
  }
}

/** Parses counters as they are stored. */
export function parseAccounting(counters: Iterable<[string, string]>): Accounting {
  const accounting: Accounting = { feeds: createNameMap(), sinks: createNameMap() }
  for (const [field, text] of counters) {
    const [kind, name = '', counter = '', state = ''] = field.split('|')
    const count = Number(text)
    if (kind === 'f') addCount((accounting.feeds[name] ??= emptyFeedCounts()), counter, count)
    if (kind !== 's') continue
    const sink = (accounting.sinks[name] ??= emptySinkCounts())
    if (counter === 'pending') sink.pending[state] = (sink.pending[state] ?? 0) + count
    else addCount(sink, counter, count)
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

export function sumPending({ pending }: Pick<SinkCounts, 'pending'>): number {
  return Object.values(pending).reduce((sum, count) => sum + count, 0)
}

/** Without a prototype: a feed or sink may be called `constructor`. */
function createNameMap<Value>(): Record<string, Value> {
  return Object.create(null) as Record<string, Value>
}

function emptyFeedCounts(): FeedCounts {
  const counts = { fetched: 0, new: 0, duplicate: 0, quarantined: 0, baseline: 0 }
  return { ...counts, late: 0, ahead: 0, raised: 0, unaccounted: 0 }
}

function emptySinkCounts(): SinkCounts {
  const outcomes = { delivered: 0, dead: 0, suppressed: 0, diverted: 0 }
  return { created: 0, replayed: 0, ...outcomes, pending: {}, unaccounted: 0 }
}

function addCount(counts: FeedCounts | SinkCounts, counter: string, count: number): void {
  const known = counts as unknown as Record<string, number>
  if (Object.hasOwn(known, counter)) known[counter] = (known[counter] ?? 0) + count
}
