import { readAuditNotes } from '../audit/audit-log.ts'
import { readDigestState, type DigestState } from '../digest/digest-state.ts'
import { createCircuit } from '../delivery/circuit.ts'
import { createHttpServer, type HttpServer } from '../http/server.ts'
import { quotaReserveOf } from '../feeds/quota-reserve.ts'
import { readsAll } from '../feeds/walk.ts'
import { setSharedGauges } from '../http/shared-gauges.ts'
import type { HttpConfig } from '../http/config.ts'
import type { RedisWatch } from '../redis/watch.ts'
import { readRetentionNote } from '../store/retention.ts'
import { readProofNote } from '../proof/proof-log.ts'
import { readQuota } from '../service/quota.ts'
import { readCanary } from '../notices/canary.ts'
import { addressPrints } from './address-prints.ts'
import type { Engine } from './build-engine.ts'
import type { Setup } from './setup.ts'
import type { Shared } from './shared.ts'

/** A loop that did not move for longer than this makes /healthz fail, ms. */
const livenessMs = 60_000

/** The server stays when the configuration changes; `current`: what runs by now. */
export function buildWeb(
  config: HttpConfig,
  watch: Pick<RedisWatch, 'lastAwayMs'>,
  current: () => Setup,
): HttpServer {
  const { redis, keys, clock, logger, metrics } = current().shared
  metrics.onScrape(() => refresh(current()))
  return createHttpServer({
    ...config,
    metrics,
    logger,
    clock,
    health() {
      const loops = current().engine?.loops ?? []
      const states = loops.map(({ name, loop }) => {
        const lastProgressMs = loop.lastProgressMs()
        // waiting for Redis is no illness
        const movedMs = Math.max(lastProgressMs, watch.lastAwayMs())
        const ok = clock.now() - movedMs < livenessMs
        return { name, lastProgressMs, ok }
      })
      return { ok: states.every(({ ok }) => ok), loops: states }
    },
    async ready() {
      if (current().shared.generation.number === 0)
        return { ok: false, reasons: ['waiting for Redis'] }
      await redis.exists(keys.shared('schema')) // in a Cluster any node answers a ping
      return { ok: true, reasons: [] }
    },
  })
}

async function refresh({ shared, service, engine }: Setup): Promise<void> {
  const { config, redis, keys, clock, metrics, books } = shared
  setBudgets({ shared, service })
  const circuit = createCircuit(redis, keys, addressPrints(config, books))
  const nowMs = clock.now()
  await setSharedGauges({
    nowMs,
    redis,
    metrics,
    books,
    accounts: config.accounts.map(({ name }) => name),
    feeds: config.feeds.map((feed) => ({
      ...feed,
      reading: (state) => ({
        quotaReserve: quotaReserveOf(feed, state.walk),
        readsAll: readsAll(feed, state),
      }),
    })),
    sinks: config.sinks.map(({ name }) => name),
    circuitOf: (sink) => circuit.read(sink, nowMs),
    isAccountPaused: async (account) => (await service.client(account).pause()) !== null,
    digestOf: (sink) => digestOf(engine, shared, sink),
    searchesRemaining: async (account) => (await readQuota(redis, keys, account))?.remaining,
    silencesActive: silencesActive(engine, nowMs),
    audits: await readAuditNotes(redis, keys),
    proof: await readProofNote(redis, keys),
    keptBytes: (await readRetentionNote(redis, keys))?.bytes,
    canaries: config.canary === undefined ? {} : await readCanary(redis, keys),
  })
}

async function digestOf(
  engine: Engine | undefined,
  shared: Shared,
  name: string,
): Promise<DigestState | undefined> {
  const sink = engine?.delivery.collecting.sinks.get(name)
  return sink && readDigestState(shared, sink, shared.clock.now())
}

function silencesActive(engine: Engine | undefined, nowMs: number): number {
  const silences = engine?.delivery.silences.current() ?? []
  return silences.filter((one) => one.startsAtMs <= nowMs && nowMs < one.endsAtMs).length
}

function setBudgets({ shared, service }: Pick<Setup, 'shared' | 'service'>): void {
  const { config, metrics } = shared
  for (const { name: account } of config.accounts) {
    for (const tier of ['search', 'basic'] as const) {
      const { utilization } = service.client(account).budget(tier)
      metrics.apiBudgetUtilizationRatio.set({ account, tier }, utilization)
    }
  }
}
