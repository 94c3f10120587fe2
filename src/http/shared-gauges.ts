/** Sets the gauges that are read from Redis at each scrape: the same on every instance. */
import { pendingOf, readAccounting, type Accounting } from '../ledger/accounting.ts'
import type { Book } from '../ledger/book.ts'
import { countDeadLetters } from '../ledger/dead-letters.ts'
import { firstDueMs } from '../ledger/due.ts'
import { feedLagMs, peekFeed, type FeedState } from '../ledger/feed-state.ts'
import { countQuarantined, type QuarantineCount } from '../ledger/quarantine.ts'
import { pendingStates } from '../ledger/records.ts'
import type { Redis } from '../redis/connection.ts'
import { inspectSafety, usedMemoryBytes } from '../redis/safety.ts'
import type { Metrics } from '../runtime/metrics.ts'

export interface SharedGaugesOptions {
  nowMs: number
  redis: Redis
  metrics: Metrics
  books: readonly Book[]
  /** The accounts of the configuration; the other books are of those that left it. */
  accounts: readonly string[]
  feeds: readonly GaugedFeed[]
  sinks: readonly string[]
  circuitOf: (sink: string) => Promise<SinkReading>
  isAccountPaused: (account: string) => Promise<boolean>
  /** undefined for a sink without a digest; not asked before anything is delivered. */
  digestOf?: ((sink: string) => Promise<DigestReading | undefined>) | undefined
  /** When each sink last accepted a canary, ms. */
  canaries?: Record<string, number> | undefined
  /** What the last audit of each feed found. */
  audits?: Record<string, { missing: number; endedAtMs: number }> | undefined
  /** What the last look at the ledger itself found: by sink how many things are wrong. */
  proof?: { endedAtMs: number; discrepancies: Record<string, number> } | undefined
  /** What records and payloads take, by the last walk. */
  keptBytes?: number | undefined
  silencesActive?: number | undefined
  /** Searches left of an account's quota, and whether a feed keeps its reserve. */
  searchesRemaining?: ((account: string) => Promise<number | undefined>) | undefined
}

interface GaugedFeed {
  name: string
  account: string
  /** How it is read at present: with which reserve of the quota, and whether all there is, as a sweep would. */
  reading?: ((state: FeedState) => { quotaReserve: number; readsAll: boolean }) | undefined
}

interface SinkReading {
  state: 'closed' | 'open' | 'half_open' | 'disabled'
  lastSuccessMs: number | undefined
  paused?: object | undefined
}

interface DigestReading {
  items: number
  lastSentMs: number | undefined
  nextDueMs: number
}

export async function setSharedGauges(given: SharedGaugesOptions): Promise<void> {
  const books = [...given.books] // accounts that left come and go
  const options = { ...given, books }
  const accountings = await Promise.all(books.map(readAccounting))
  const quarantines = await Promise.all(books.map((book) => countQuarantined(book)))
  await Promise.all([
    setRedis(options),
    ...options.feeds.map((feed) => setFeed(options, feed, accountings)),
    ...options.sinks.map((sink) => setSink(options, sink, accountings)),
    ...removedSinks(options, accountings).map((sink) => setWaiting(options, sink, accountings)),
    ...options.accounts.map((account) => setAccount(options, account)),
    ...options.sinks.map((sink) => setDigest(options, sink)),
  ])
  setHoldings(options, accountings)
  setQuarantine(options, quarantines)
  setLedger(options)
  const { metrics, canaries = {}, silencesActive = 0 } = options
  metrics.silencesActive.set(silencesActive)
  for (const [sink, atMs] of Object.entries(canaries)) {
    metrics.canaryLastDeliveredTimestampSeconds.set({ sink }, atMs / 1000)
  }
}

function setHoldings(
  { books, accounts, feeds, metrics }: SharedGaugesOptions,
  accountings: readonly Accounting[],
): void {
  for (const [index, { account }] of books.entries()) {
    const { feeds: counted = {}, sinks = {} } = accountings[index] ?? {}
    metrics.accountConfigured.set({ account }, accounts.includes(account) ? 1 : 0)
    metrics.accountItemsPending.set({ account }, sumOf(Object.values(sinks).map(pendingOf)))
    for (const [feed, { unaccounted }] of Object.entries(counted)) {
      const isShown = feeds.some((one) => one.name === feed && one.account === account)
      if (unaccounted !== 0 && !isShown)
        metrics.auditUnaccounted.set({ feed }, Math.abs(unaccounted))
    }
  }
}

/** By the feed's name: accounts that left may have had one of the same name. */
function setQuarantine(
  { feeds, metrics }: SharedGaugesOptions,
  quarantines: readonly Record<string, QuarantineCount>[],
): void {
  const names = [...feeds.map(({ name }) => name), ...quarantines.flatMap(Object.keys)]
  for (const feed of new Set(names)) {
    metrics.quarantineEntries.set({ feed }, sumOf(quarantines.map((of) => of[feed]?.open ?? 0)))
  }
}

async function setDigest({ metrics, digestOf }: SharedGaugesOptions, sink: string): Promise<void> {
  const digest = await digestOf?.(sink)
  if (!digest) return
  metrics.digestItems.set({ sink }, digest.items)
  metrics.digestLastSentTimestampSeconds.set({ sink }, (digest.lastSentMs ?? 0) / 1000)
  metrics.digestNextDueTimestampSeconds.set({ sink }, digest.nextDueMs / 1000)
}

async function setRedis({ redis, metrics }: SharedGaugesOptions): Promise<void> {
  const safety = await inspectSafety(redis)
  metrics.redisDurable.set(safety.isDurable ? 1 : 0)
  metrics.redisEvictionSafe.set(safety.isEvictionSafe ? 1 : 0)
  metrics.ledgerBytes.set(await usedMemoryBytes(redis))
}

function setLedger({ metrics, sinks, proof, keptBytes }: SharedGaugesOptions): void {
  if (keptBytes !== undefined) metrics.retentionKeptBytes.set(keptBytes)
  if (!proof) return
  metrics.ledgerAuditLastCompletedTimestampSeconds.set(proof.endedAtMs / 1000)
  for (const sink of sinks) metrics.ledgerDiscrepancies.set({ sink }, 0)
  for (const [sink, count] of Object.entries(proof.discrepancies)) {
    metrics.ledgerDiscrepancies.set({ sink }, count)
  }
}

async function setFeed(
  { books, metrics, searchesRemaining, audits = {}, nowMs }: SharedGaugesOptions,
  { name, account, reading }: GaugedFeed,
  accountings: readonly Accounting[],
): Promise<void> {
  const index = books.findIndex((book) => book.account === account)
  const book = books[index]
  const state = book && (await peekFeed(book, name, 0))
  const feed = { feed: name }
  const { unaccounted = 0 } = accountings[index]?.feeds[name] ?? {}
  metrics.auditUnaccounted.set(feed, Math.abs(unaccounted))
  const audit = audits[name]
  if (audit) {
    metrics.auditMissing.set(feed, audit.missing)
    metrics.auditLastCompletedTimestampSeconds.set(feed, audit.endedAtMs / 1000)
  }
  if (!state) return
  metrics.feedLagSeconds.set(feed, feedLagMs(state, nowMs) / 1000)
  metrics.feedLastSuccessTimestampSeconds.set(feed, (state.lastSuccessMs ?? 0) / 1000)
  metrics.feedLastCaughtUpTimestampSeconds.set(feed, (state.lastCaughtUpMs ?? 0) / 1000)
  metrics.feedNewestEventTimestampSeconds.set(feed, (state.newestMs ?? 0) / 1000)
  metrics.feedUnreadable.set(feed, state.unreadable ? 1 : 0)
  metrics.feedBackfillInProgress.set(feed, state.isBackfilling ? 1 : 0)
  const { quotaReserve = 0, readsAll = false } = reading?.(state) ?? {}
  const sweptMs = readsAll ? state.lastCaughtUpMs : state.sweep.lastCompletedMs
  metrics.feedSweepLastCompletedTimestampSeconds.set(feed, (sweptMs ?? 0) / 1000)
  metrics.feedPaused.set({ ...feed, reason: 'operator' }, state.paused ? 1 : 0)
  metrics.feedPaused.set({ ...feed, reason: 'refused' }, state.refused ? 1 : 0)
  const remaining = (await searchesRemaining?.(account)) ?? Infinity
  metrics.feedPaused.set(
    { ...feed, reason: 'quota' },
    quotaReserve > 0 && remaining <= quotaReserve ? 1 : 0,
  )
}

/** Sinks that left the configuration while something waited for them. */
function removedSinks(
  { sinks: configured }: SharedGaugesOptions,
  accountings: Accounting[],
): string[] {
  const waiting = accountings.flatMap(({ sinks }) =>
    Object.entries(sinks).filter(([, account]) => pendingOf(account) > 0 || account.dead > 0),
  )
  return [...new Set(waiting.map(([sink]) => sink))].filter((sink) => !configured.includes(sink))
}

/** What waits for a sink, or for an operator: also told of a sink that was removed. */
async function setWaiting(
  { books, metrics }: SharedGaugesOptions,
  sink: string,
  accountings: Accounting[],
): Promise<void> {
  for (const state of pendingStates) {
    const counts = accountings.map(({ sinks }) => sinks[sink]?.pending[state] ?? 0)
    metrics.itemsPending.set({ sink, state }, sumOf(counts))
  }
  const dead = await Promise.all(books.map((book) => countDeadLetters(book, sink)))
  metrics.deadLetters.set({ sink }, sumOf(dead))
}

async function setSink(
  options: SharedGaugesOptions,
  sink: string,
  accountings: Accounting[],
): Promise<void> {
  const { books, metrics, circuitOf, nowMs } = options
  await setWaiting(options, sink, accountings)
  const replays = accountings.map(({ sinks }) => sinks[sink]?.replayed ?? 0)
  metrics.itemsReplayedTotal.inc({ sink }, sumOf(replays))
  const due = await Promise.all(books.map((book) => firstDueMs(book, sink)))
  const oldestMs = Math.min(...due.map((ms) => ms ?? Number.POSITIVE_INFINITY))
  const isDue = oldestMs <= nowMs
  metrics.deliveryOldestDueTimestampSeconds.set({ sink }, isDue ? oldestMs / 1000 : 0)
  const circuit = await circuitOf(sink)
  for (const state of ['closed', 'open', 'half_open', 'disabled'] as const) {
    metrics.sinkCircuitState.set({ sink, state }, circuit.state === state ? 1 : 0)
  }
  metrics.sinkLastSuccessTimestampSeconds.set({ sink }, (circuit.lastSuccessMs ?? 0) / 1000)
  metrics.sinkPaused.set({ sink }, circuit.paused ? 1 : 0)
}

async function setAccount(
  { metrics, isAccountPaused, searchesRemaining }: SharedGaugesOptions,
  account: string,
): Promise<void> {
  const remaining = await searchesRemaining?.(account)
  if (remaining !== undefined) metrics.apiSearchesRemaining.set({ account }, remaining)
  const isPaused = await isAccountPaused(account)
  metrics.accountPaused.set({ account, reason: 'auth' }, isPaused ? 1 : 0)
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}
