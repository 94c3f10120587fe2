/** Keeps the state of all accounts, feeds and sinks for metrics and self-alerts: off the scrape, and once for both. */
import { readAuditNotes } from '../audit/audit-schedule.ts'
import type { CircuitReading } from '../delivery/circuit.ts'
import { readDigestTimes, type DigestState } from '../grouping/flusher.ts'
import type { Lanes } from '../feeds/lanes.ts'
import { quotaReserveOf } from '../feed-types/feed-type.ts'
import { readsAll } from '../feeds/scan.ts'
import { readCanary } from '../self-alerts/canary.ts'
import { readFleet, type FleetState } from '../ops/fleet-state.ts'
import { writeAccounts, writeFleet, type SharedNotes } from '../ops/state-gauges.ts'
import { readProofNote } from '../audit/ledger-check-schedule.ts'
import { inspectRedis, type RedisHealth } from '../redis/health.ts'
import type { StateMetrics } from '../lib/metrics.ts'
import { readQuota } from '../upstream/rate-limits.ts'
import { ServiceError } from '../upstream/error.ts'
import { readRetentionNote } from '../store/retention.ts'
import type { DeliveryParts } from './delivery.ts'
import { describePolling } from './describe-config.ts'
import type { Service } from './upstream.ts'
import type { Shared } from './context.ts'

/** All of one pass. */
export interface State extends FleetState {
  redis: RedisHealth
  circuits: ReadonlyMap<string, CircuitReading>
  /** By sink with a digest. */
  digests: ReadonlyMap<string, Pick<DigestState, 'lastSentMs' | 'nextDueMs'>>
}

export interface StateWatch {
  /** Reads all and shows it in the metrics, then rests so long that passes take a twentieth of the time. */
  passOnce(signal: AbortSignal, alive: () => void): Promise<void>
  /** By the last pass; makes one where there was none. Throws what Redis throws. */
  current(): Promise<State>
}

type Parts = Pick<DeliveryParts, 'circuit' | 'collecting' | 'silences'>

/** A pass is followed by a rest of so many times its own length, at most so long, ms. */
const restFactor = 19
const longestRestMs = 15_000

export function buildState(
  shared: Shared,
  service: Service,
  parts: Parts & { lanes: Pick<Lanes, 'known'> },
): StateWatch {
  const { clock } = shared
  let last: State | undefined
  let running: Promise<State> | undefined

  function pass(alive?: () => void): Promise<State> {
    running ??= makePass(shared, service, { ...parts, alive }).finally(() => (running = undefined))
    return running
  }

  return {
    async passOnce(signal, alive) {
      const beganMs = clock.monotonic()
      last = await pass(alive)
      alive()
      const tookMs = clock.monotonic() - beganMs
      await clock.sleep(Math.min(restFactor * tookMs, longestRestMs), signal)
    },
    async current() {
      last ??= await pass()
      return last
    },
  }
}

async function makePass(
  shared: Shared,
  service: Service,
  parts: Parts & { lanes: Pick<Lanes, 'known'>; alive: (() => void) | undefined },
): Promise<State> {
  const { config, redis, keys, clock, books } = shared
  const nowMs = clock.now()
  const metrics = shared.metrics.beginState()
  setBudgets(shared, service)
  describePolling(shared, service.expected, parts.lanes)
  const feeds = Map.groupBy(
    config.feeds.map((feed) => ({
      ...feed,
      reading: (state: Parameters<typeof readsAll>[1]) => ({
        quotaReserve: quotaReserveOf(feed, state.walk),
        readsAll: readsAll(feed, state),
      }),
    })),
    ({ account }) => account,
  )
  const sources = {
    books,
    accounts: config.accounts.map(({ name }) => name),
    feeds: config.feeds,
    sinks: config.sinks.map(({ name }) => name),
    isRefused: (account: string) => isRefused(service, account),
    searchesRemaining: async (account: string) =>
      (await readQuota(redis, keys, account))?.remaining,
  }
  const fleet = await readFleet(sources, nowMs, (accounts) => {
    parts.alive?.()
    writeAccounts(metrics, accounts, { feeds, nowMs })
  })
  const state = { ...fleet, ...(await readBeside(shared, parts, nowMs)) }
  await publish(shared, metrics, { state, parts })
  return state
}

/** What is kept beside the accounts' ledgers. */
async function readBeside(
  { config, redis, keys, books }: Shared,
  { circuit, collecting }: Parts,
  nowMs: number,
): Promise<Pick<State, 'redis' | 'circuits' | 'digests'>> {
  const [lead] = books
  const circuits = new Map<string, CircuitReading>()
  const digests = new Map<string, Pick<DigestState, 'lastSentMs' | 'nextDueMs'>>()
  for (let at = 0; at < config.sinks.length; at += sinksAtOnce) {
    const some = config.sinks.slice(at, at + sinksAtOnce).map(async ({ name }) => {
      circuits.set(name, await circuit.read(name, nowMs))
      const sink = collecting.sinks.get(name)
      const times = sink && lead && (await readDigestTimes({ lead, redis, keys }, sink, nowMs))
      if (times) digests.set(name, times)
    })
    await Promise.all(some)
  }
  return { redis: await inspectRedis(redis), circuits, digests }
}

const sinksAtOnce = 100

async function publish(
  { config, redis, keys }: Shared,
  metrics: StateMetrics,
  { state, parts }: { state: State; parts: Parts },
): Promise<void> {
  const notes: SharedNotes = {
    ...state,
    canaries: config.canary === undefined ? {} : await readCanary(redis, keys),
    audits: await readAuditNotes(redis, keys),
    proof: await readProofNote(redis, keys),
    keptBytes: (await readRetentionNote(redis, keys))?.bytes,
    silencesActive: parts.silences
      .current()
      .filter((one) => one.startsAtMs <= state.atMs && state.atMs < one.endsAtMs).length,
  }
  writeFleet(metrics, state, notes)
  metrics.publish(state.atMs)
}

/** A key that cannot be read is as good as a refused one. */
async function isRefused(service: Service, account: string): Promise<boolean> {
  try {
    return (await service.client(account).pause()) !== null
  } catch (error) {
    if (error instanceof ServiceError) return true
    throw error
  }
}

function setBudgets({ config, metrics }: Shared, service: Service): void {
  for (const { name: account } of config.accounts) {
    for (const tier of ['search', 'basic'] as const) {
      const { utilization } = service.client(account).budget(tier)
      metrics.apiBudgetUtilizationRatio.set({ account, tier }, utilization)
    }
  }
}
