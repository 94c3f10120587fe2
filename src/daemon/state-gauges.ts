/**
 * Writes the state of all accounts, feeds and sinks into the shared metrics, the same on every
 * instance.
 */
import { feedLagMs } from '../store/feed-state.ts'
import { pendingStates } from '../store/records.ts'
import type { StateMetrics } from '../lib/metrics/metrics.ts'
import type { RedisHealth } from '../redis/health.ts'
import type { AccountState, FleetState, SinkState } from '../operator/fleet-state.ts'

/** A feed of the configuration. */
export interface GaugedFeed {
  name: string
  account: string
  /** The searches that it leaves to others, as it is read at present. */
  quotaReserve: number
}

/** What is stored beside the accounts' ledgers. */
export interface SharedNotes {
  redis: Omit<RedisHealth, 'problems' | 'isFull'>
  /** By sink of the configuration. */
  circuits: ReadonlyMap<string, CircuitState>
  /** By sink with a digest. */
  digests: ReadonlyMap<string, { lastSentMs: number | undefined; nextDueMs: number }>
  /** When each sink last accepted a canary, ms. */
  canaries: Record<string, number>
  loss: { atMs: number } | undefined
  /** Bytes of records and payloads, and their oldest settled one, by the last pass of retention. */
  retention: { bytes: number; oldestMs?: number | undefined } | undefined
  silencesActive: number
}

interface CircuitState {
  state: 'closed' | 'open' | 'half_open' | 'disabled'
  lastSuccessMs: number | undefined
  paused?: object | undefined
}

/** Writes a batch of accounts as they are read; `feeds`: those of the configuration, by account. */
export function writeAccounts(
  metrics: StateMetrics,
  accounts: readonly AccountState[],
  feeds: ReadonlyMap<string, readonly GaugedFeed[]>,
): void {
  for (const account of accounts) {
    const { name, searchesRemaining } = account
    const configured = account.isConfigured ? (feeds.get(name) ?? []) : []
    metrics.accountConfigured.set({ account: name }, account.isConfigured ? 1 : 0)
    metrics.accountItemsPending.set({ account: name }, account.pending)
    if (account.isConfigured)
      metrics.accountPaused.set({ account: name, reason: 'auth' }, account.trouble ? 1 : 0)
    if (searchesRemaining !== undefined)
      metrics.apiSearchesRemaining.set({ account: name }, searchesRemaining)
    for (const feed of configured) writeFeed(metrics, account, feed)
    writeUnaccounted(metrics, account, configured)
  }
}

function writeFeed(
  metrics: StateMetrics,
  { feeds, trouble, searchesRemaining = Infinity }: AccountState,
  { name, quotaReserve }: GaugedFeed,
): void {
  const feed = { feed: name }
  metrics.feedPaused.set({ ...feed, reason: 'auth' }, trouble ? 1 : 0)
  const state = feeds.get(name)
  if (!state) return
  metrics.feedLagSeconds.set(feed, feedLagMs(state) / 1000)
  metrics.feedLastSuccessTimestampSeconds.set(feed, (state.lastSuccessMs ?? 0) / 1000)
  metrics.feedNewestEventTimestampSeconds.set(feed, (state.newestMs ?? 0) / 1000)
  metrics.feedUnreadable.set(feed, state.unreadable ? 1 : 0)
  metrics.feedBackfillInProgress.set(feed, state.isBackfilling ? 1 : 0)
  const { lastCompletedMs = 0 } = state.whole
  metrics.feedRescanLastCompletedTimestampSeconds.set(feed, lastCompletedMs / 1000)
  const isSpent = quotaReserve > 0 && searchesRemaining <= quotaReserve
  metrics.feedPaused.set({ ...feed, reason: 'operator' }, state.paused ? 1 : 0)
  metrics.feedPaused.set({ ...feed, reason: 'quota' }, isSpent ? 1 : 0)
}

/** A feed that is not in the configuration is written only if something is wrong. */
function writeUnaccounted(
  metrics: StateMetrics,
  { accounting }: AccountState,
  configured: readonly GaugedFeed[],
): void {
  for (const [feed, { unaccounted }] of Object.entries(accounting.feeds)) {
    if (unaccounted !== 0 || configured.some(({ name }) => name === feed))
      metrics.feedItemsUnaccounted.set({ feed }, Math.abs(unaccounted))
  }
}

/** Writes what concerns all accounts together or none. */
export function writeFleet(metrics: StateMetrics, fleet: FleetState, notes: SharedNotes): void {
  const { redis, retention } = notes
  writeQuarantine(metrics, fleet.accounts)
  for (const [name, sink] of fleet.sinks)
    writeSink(metrics, name, { sink, notes, nowMs: fleet.atMs })
  metrics.redisDurable.set(redis.isDurable ? 1 : 0)
  metrics.redisEvictionSafe.set(redis.isEvictionSafe ? 1 : 0)
  metrics.redisMemoryUsedBytes.set(redis.usedMemoryBytes)
  if (redis.memoryLimitBytes !== undefined) metrics.redisMemoryMaxBytes.set(redis.memoryLimitBytes)
  metrics.silencesActive.set(notes.silencesActive)
  for (const [sink, atMs] of Object.entries(notes.canaries)) {
    metrics.canaryLastDeliveredTimestampSeconds.set({ sink }, atMs / 1000)
  }
  metrics.ledgerLostTimestampSeconds.set((notes.loss?.atMs ?? 0) / 1000)
  if (retention !== undefined) {
    metrics.retentionKeptBytes.set(retention.bytes)
    metrics.retentionOldestTimestampSeconds.set((retention.oldestMs ?? 0) / 1000)
  }
}

/** By the feed's name: accounts that left may have had a feed of the same name. */
function writeQuarantine(metrics: StateMetrics, accounts: readonly AccountState[]): void {
  const entries = new Map<string, number>()
  for (const { quarantine } of accounts) {
    for (const [feed, open] of Object.entries(quarantine)) {
      entries.set(feed, (entries.get(feed) ?? 0) + open)
    }
  }
  for (const [feed, count] of entries) metrics.quarantineEntries.set({ feed }, count)
}

/** Pending items and dead letters are written for removed sinks too. */
function writeSink(
  metrics: StateMetrics,
  name: string,
  { sink, notes, nowMs }: { sink: SinkState; notes: SharedNotes; nowMs: number },
): void {
  const of = { sink: name }
  for (const state of pendingStates) {
    metrics.itemsPending.set({ ...of, state }, sink.pending[state] ?? 0)
  }
  metrics.deadLetters.set(of, sink.deadLetters)
  metrics.sinkItemsUnaccounted.set(of, sink.unaccounted)
  const circuit = notes.circuits.get(name)
  if (!circuit) return
  metrics.itemsReplayedTotal.inc(of, sink.replayed)
  const { firstDueMs = Infinity } = sink
  metrics.deliveryOldestDueTimestampSeconds.set(of, firstDueMs <= nowMs ? firstDueMs / 1000 : 0)
  metrics.deliveryOldestCriticalTimestampSeconds.set(of, (sink.criticalSinceMs ?? 0) / 1000)
  for (const state of ['closed', 'open', 'half_open', 'disabled'] as const) {
    metrics.sinkCircuitState.set({ ...of, state }, circuit.state === state ? 1 : 0)
  }
  metrics.sinkLastSuccessTimestampSeconds.set(of, (circuit.lastSuccessMs ?? 0) / 1000)
  metrics.sinkPaused.set(of, circuit.paused ? 1 : 0)
  const digest = notes.digests.get(name)
  if (!digest) return
  metrics.digestItems.set(of, sink.pending['digest'] ?? 0)
  metrics.digestLastSentTimestampSeconds.set(of, (digest.lastSentMs ?? 0) / 1000)
  metrics.digestNextDueTimestampSeconds.set(of, digest.nextDueMs / 1000)
}
