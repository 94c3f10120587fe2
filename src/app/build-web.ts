import { createHttpServer, type HttpServer } from '../http/server.ts'
import { setSharedGauges } from '../http/shared-gauges.ts'
import type { DeliveryParts } from './build-delivery.ts'
import type { NamedLoop } from './build-loops.ts'
import type { Service } from './build-service.ts'
import type { Shared } from './shared.ts'

/** A loop that did not move for longer than this makes /healthz fail, ms. */
const livenessMs = 60_000

export function buildWeb(
  shared: Shared,
  { service, delivery, loops }: { service: Service; delivery: DeliveryParts; loops: NamedLoop[] },
): HttpServer {
  const { config, redis, clock, logger, metrics, books } = shared
  metrics.onScrape(() => {
    setBudgets(shared, service)
    return setSharedGauges({
      nowMs: clock.now(),
      redis,
      metrics,
      books,
      feeds: config.feeds,
      sinks: config.sinks.map(({ name }) => name),
      circuitOf: (sink) => delivery.circuit.read(sink, clock.now()),
      isAccountPaused: async (account) => (await service.client(account).pause()) !== null,
    })
  })
  return createHttpServer({
    ...config.http,
    metrics,
    logger,
    clock,
    health() {
      const isWaiting = redis.status !== 'ready' // waiting for Redis is no illness
      const states = loops.map(({ name, loop }) => {
        const lastProgressMs = loop.lastProgressMs()
        const ok = isWaiting || clock.now() - lastProgressMs < livenessMs
        return { name, lastProgressMs, ok }
      })
      return { ok: states.every(({ ok }) => ok), loops: states }
    },
    async ready() {
      if (shared.generation.number === 0) return { ok: false, reasons: ['waiting for Redis'] }
      await redis.ping()
      return { ok: true, reasons: [] }
    },
  })
}

function setBudgets({ config, metrics }: Shared, service: Service): void {
  for (const { name: account } of config.accounts) {
    for (const tier of ['search', 'basic'] as const) {
      const { utilization } = service.client(account).budget(tier)
      metrics.apiBudgetUtilizationRatio.set({ account, tier }, utilization)
    }
  }
}
