/**
 * Keeps the state of all accounts, feeds and sinks for metrics and self-alerts: read once for both,
 * and never during a scrape.
 */
import type { CircuitReading } from '../delivery/circuit.ts'
import { type DigestTimes, readDigestTimes } from '../grouping/digest-times.ts'
import type { Lanes } from '../feeds/lanes/lanes.ts'
import { reservedSearches } from '../feeds/types/polled-feed.ts'
import { readCanary } from '../operator/alerts/canary.ts'
import { readFleet, type FleetState } from '../operator/fleet-state.ts'
import { writeAccounts, writeFleet, type SharedNotes } from './state-gauges.ts'
import { inspectRedis, type RedisHealth } from '../redis/health.ts'
import type { StateMetrics } from '../lib/metrics/metrics.ts'
import { readQuota } from '../upstream/rate-limits.ts'
import { readAccountTrouble } from '../upstream/access/tokens.ts'
import { type LedgerLoss, readLoss } from '../store/account-ledger.ts'
import { readRetentionNote } from '../store/retention.ts'
import type { DeliveryParts } from './parts/delivery.ts'
import { describePolling } from './describe-config.ts'
import type { Upstream } from './parts/upstream.ts'
import type { EngineContext } from './context.ts'

/** The results of one pass. */
export interface State extends FleetState {
  redis: RedisHealth
  loss: LedgerLoss | undefined
  circuits: ReadonlyMap<string, CircuitReading>
  /** By sink with a digest. */
  digests: ReadonlyMap<string, DigestTimes>
}

export interface StateWatch {
  /**
   * Reads all and writes the metrics, then rests so long that passes take a twentieth of the time.
   */
  refreshOnce(signal: AbortSignal, alive: () => void): Promise<void>
  /** Resolves with the last pass; makes one if there was none. Throws what Redis throws. */
  current(): Promise<State>
}

type Parts = Pick<DeliveryParts, 'circuit' | 'grouping' | 'silences'>

/** A pass is followed by a rest of `restFactor` times its own length, at most `longestRestMs`. */
const restFactor = 19
const longestRestMs = 15_000

export function buildState(
  context: EngineContext,
  upstream: Upstream,
  parts: Parts & { lanes: Pick<Lanes, 'feedPlace'> },
): StateWatch {
  const { clock } = context
  let latest: State | undefined
  let running: Promise<State> | undefined

  function refresh(alive?: () => void): Promise<State> {
    running ??= readSystemState(context, upstream, { ...parts, alive }).finally(
      () => (running = undefined),
    )
    return running
  }

  return {
    async refreshOnce(signal, alive) {
      const beganMs = clock.monotonic()
      latest = await refresh(alive)
      alive()
      const tookMs = clock.monotonic() - beganMs
      await clock.sleep(Math.min(restFactor * tookMs, longestRestMs), signal)
    },
    async current() {
      latest ??= await refresh()
      return latest
    },
  }
}

async function readSystemState(
  context: EngineContext,
  upstream: Upstream,
  parts: Parts & { lanes: Pick<Lanes, 'feedPlace'>; alive: (() => void) | undefined },
): Promise<State> {
  const { config, redis, keys, clock, ledgers } = context
  const nowMs = clock.now()
  const metrics = context.metrics.beginState()
  setBudgets(context, upstream)
  describePolling(context, upstream.expectedPolling, parts.lanes)
  const feeds = Map.groupBy(
    config.feeds.map((feed) => ({
      ...feed,
      quotaReserve: reservedSearches(feed),
    })),
    ({ account }) => account,
  )
  const sources = {
    ledgers,
    accounts: config.accounts.map(({ name }) => name),
    feeds: config.feeds,
    sinks: config.sinks.map(({ name }) => name),
    findTrouble: (account: string) => readAccountTrouble(context, upstream.client(account).account),
    searchesRemaining: async (account: string) =>
      (await readQuota(redis, keys, account))?.remaining,
  }
  const fleet = await readFleet(sources, nowMs, (accounts) => {
    parts.alive?.()
    writeAccounts(metrics, accounts, feeds)
  })
  const state = { ...fleet, ...(await readSharedState(context, parts, nowMs)) }
  await publish(context, metrics, { state, parts })
  return state
}

/** Reads what is stored beside the accounts' ledgers. */
async function readSharedState(
  { config, redis, keys, ledgers }: EngineContext,
  { circuit, grouping }: Parts,
  nowMs: number,
): Promise<Omit<State, keyof FleetState>> {
  const [lead] = ledgers
  const circuits = new Map<string, CircuitReading>()
  const digests = new Map<string, DigestTimes>()
  for (let at = 0; at < config.sinks.length; at += sinksAtOnce) {
    const batch = config.sinks.slice(at, at + sinksAtOnce).map(async ({ name }) => {
      const sink = grouping.sinks.get(name)
      circuits.set(name, await circuit.read(name, nowMs, sink?.destinations))
      const times = sink && lead && (await readDigestTimes({ lead, redis, keys }, sink, nowMs))
      if (times) digests.set(name, times)
    })
    await Promise.all(batch)
  }
  const loss = await readLoss(redis, keys)
  return { redis: await inspectRedis(redis), loss, circuits, digests }
}

const sinksAtOnce = 100

async function publish(
  { config, redis, keys }: EngineContext,
  metrics: StateMetrics,
  { state, parts }: { state: State; parts: Parts },
): Promise<void> {
  const notes: SharedNotes = {
    ...state,
    canaries: await readCanary({ redis, keys }, config.canary?.sinks ?? []),
    retention: await readRetentionNote(redis, keys),
    silencesActive: parts.silences
      .current()
      .filter((silence) => silence.startsAtMs <= state.atMs && state.atMs < silence.endsAtMs)
      .length,
  }
  writeFleet(metrics, state, notes)
  metrics.publish(state.atMs)
}

function setBudgets({ config, metrics }: EngineContext, upstream: Upstream): void {
  for (const { name: account } of config.accounts) {
    for (const tier of ['search', 'basic'] as const) {
      const utilization = upstream.client(account).utilization(tier)
      metrics.apiBudgetUtilizationRatio.set({ account, tier }, utilization)
    }
  }
}
