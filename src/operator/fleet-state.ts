/**
 * Reads the state of all accounts, feeds and sinks for metrics, self-alerts, commands and the page.
 * One pass queries each account once, by one script, some accounts at a time; the cost depends on the
 * number of accounts, not of readers.
 */
import type { Trouble } from '../lib/trouble.ts'
import { pairsOf } from '../redis/scripts.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type Accounting, parseAccounting, sumPending } from '../store/accounts.ts'
import { countQuarantined, type FeedState, parseFeed } from '../store/feed-state.ts'

export interface FleetState {
  /** When its reading began, wall clock. */
  atMs: number
  /** In the order of the ledgers. */
  accounts: AccountState[]
  /** Those of the configuration, and others while they have pending items or dead letters. */
  sinks: ReadonlyMap<string, SinkState>
}

export interface AccountState {
  name: string
  /** False: it left the configuration and still has a ledger. */
  isConfigured: boolean
  accounting: Accounting
  /** Items that are not final. */
  pending: number
  deadLetters: number
  /** Of the configuration; feeds that were never polled are left out. */
  feeds: ReadonlyMap<string, FeedState>
  /** Open entries by feed. */
  quarantine: Record<string, number>
  /** Why the account's key is refused upstream; undefined: it is not. */
  trouble: Trouble | undefined
  /** Of its quota; undefined: no answer said so yet. */
  searchesRemaining: number | undefined
}

/** Over all accounts. */
export interface SinkState {
  /** By state. */
  pending: Record<string, number>
  replayed: number
  /** Items that ever went to a fallback or were moved. */
  diverted: number
  /** Items created and sent again, less ended and pending ones; must be 0. */
  unaccounted: number
  deadLetters: number
  /** When the longest-waiting work became or becomes due; undefined: none waits. */
  firstDueMs: number | undefined
  /** Since when it owes a critical event; undefined: it owes none. */
  criticalSinceMs: number | undefined
  /** One of the accounts ever had an item for it. */
  isUsed: boolean
}

export interface FleetSources {
  ledgers: readonly AccountLedger[]
  /** Of the configuration. */
  accounts: readonly string[]
  feeds: readonly { name: string; account: string }[]
  sinks: readonly string[]
  findTrouble: (account: string) => Promise<Trouble | undefined>
  searchesRemaining: (account: string) => Promise<number | undefined>
}

/** Accounts that are read at once: some milliseconds of Redis's and of this process's time. */
const accountsAtOnce = 25

/** Calls `onAccounts` with each batch as it is read. Throws what Redis throws. */
export async function readFleet(
  sources: FleetSources,
  nowMs: number,
  onAccounts: (accounts: readonly AccountState[]) => void = () => {},
): Promise<FleetState> {
  const ledgers = [...sources.ledgers] // accounts that left come and go
  const feeds = Map.groupBy(sources.feeds, ({ account }) => account)
  const configured = new Set(sources.accounts)
  const sinks = new Map(sources.sinks.map((name) => [name, emptySink()]))
  const accounts: AccountState[] = []
  for (let at = 0; at < ledgers.length; at += accountsAtOnce) {
    const some = await Promise.all(
      ledgers.slice(at, at + accountsAtOnce).map(async (ledger) => {
        const names = (feeds.get(ledger.account) ?? []).map(({ name }) => name)
        const isConfigured = configured.has(ledger.account)
        return readAccount(ledger, { sources, names, isConfigured })
      }),
    )
    for (const { state, work } of some) addToSinks(sinks, state, work)
    accounts.push(...some.map(({ state }) => state))
    onAccounts(some.map(({ state }) => state))
  }
  for (const [name, sink] of sinks) {
    if (!sources.sinks.includes(name) && isIdle(sink)) sinks.delete(name)
  }
  return { atMs: nowMs, accounts, sinks }
}

/** By sink, of one account. */
type SinkWork = Map<string, Pick<SinkState, 'deadLetters' | 'firstDueMs' | 'criticalSinceMs'>>

async function readAccount(
  ledger: AccountLedger,
  asked: { sources: FleetSources; names: readonly string[]; isConfigured: boolean },
): Promise<{ state: AccountState; work: SinkWork }> {
  const { sources, names, isConfigured } = asked
  const [answer, trouble, searchesRemaining] = await Promise.all([
    ledger.run('read-account', ledger.retention.history, ...names),
    isConfigured ? sources.findTrouble(ledger.account) : undefined,
    isConfigured ? sources.searchesRemaining(ledger.account) : undefined,
  ])
  const [redisMs, counters, feeds, sinks, hasQuarantine] = answer as AccountAnswer
  const accounting = parseAccounting(pairsOf(counters))
  const work = parseSinkWork(sinks)
  const state = {
    name: ledger.account,
    isConfigured,
    accounting,
    pending: Object.values(accounting.sinks).reduce((sum, sink) => sum + sumPending(sink), 0),
    deadLetters: [...work.values()].reduce((sum, { deadLetters }) => sum + deadLetters, 0),
    feeds: parseFeeds(names, feeds, redisMs),
    quarantine: hasQuarantine === 1 ? await countQuarantined(ledger) : {},
    trouble,
    searchesRemaining,
  }
  return { state, work }
}

/** As the script returns it. */
type AccountAnswer = [
  redisMs: number,
  counters: string[],
  feeds: string[][],
  sinks: (string | number)[],
  hasQuarantine: number,
]

function parseFeeds(
  names: readonly string[],
  answers: readonly string[][],
  nowMs: number,
): Map<string, FeedState> {
  const states = names.flatMap((name, index): [string, FeedState][] => {
    const state = parseFeed(Object.fromEntries(pairsOf(answers[index] ?? [])), nowMs)
    return state ? [[name, state]] : []
  })
  return new Map(states)
}

function parseSinkWork(answer: readonly (string | number)[]): SinkWork {
  const work: SinkWork = new Map()
  const parseMs = (text: string | number | undefined): number | undefined =>
    text === '' ? undefined : Number(text)
  for (let at = 0; at + 3 < answer.length; at += 4) {
    const [sink, dead, due, owed] = answer.slice(at, at + 4)
    work.set(String(sink), {
      deadLetters: Number(dead),
      firstDueMs: parseMs(due),
      criticalSinceMs: parseMs(owed),
    })
  }
  return work
}

function earliest(...timesMs: (number | undefined)[]): number | undefined {
  const first = Math.min(...timesMs.map((ms = Infinity) => ms))
  return first === Infinity ? undefined : first
}

function addToSinks(
  sinks: Map<string, SinkState>,
  { accounting }: AccountState,
  work: SinkWork,
): void {
  const ensureSink = (name: string): SinkState => {
    const sink = sinks.get(name) ?? emptySink()
    sinks.set(name, sink)
    return sink
  }
  for (const [name, counts] of Object.entries(accounting.sinks)) {
    const { pending, replayed, diverted, unaccounted } = counts
    const sink = ensureSink(name)
    sink.replayed += replayed
    sink.diverted += diverted
    sink.unaccounted += Math.abs(unaccounted)
    for (const [state, count] of Object.entries(pending)) {
      sink.pending[state] = (sink.pending[state] ?? 0) + count
    }
  }
  for (const [name, { deadLetters, firstDueMs, criticalSinceMs }] of work) {
    const sink = ensureSink(name)
    sink.isUsed = true
    sink.deadLetters += deadLetters
    sink.firstDueMs = earliest(sink.firstDueMs, firstDueMs)
    sink.criticalSinceMs = earliest(sink.criticalSinceMs, criticalSinceMs)
  }
}

function emptySink(): SinkState {
  return {
    pending: {},
    replayed: 0,
    diverted: 0,
    unaccounted: 0,
    deadLetters: 0,
    firstDueMs: undefined,
    criticalSinceMs: undefined,
    isUsed: false,
  }
}

function isIdle({ pending, deadLetters }: SinkState): boolean {
  return deadLetters === 0 && Object.values(pending).every((count) => count === 0)
}
