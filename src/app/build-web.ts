import { createCircuit } from '../delivery/circuit.ts'
import { createHttpServer, type HttpServer } from '../http/server.ts'
import { setSharedGauges } from '../http/shared-gauges.ts'
import type { NamedLoop } from './build-loops.ts'
import type { Service } from './build-service.ts'
import type { Shared } from './shared.ts'

/** A loop that did not move for longer than this makes /healthz fail, ms. */
const livenessMs = 60_000

/** `loops`: those that run by now. */
export function buildWeb(shared: Shared, service: Service, loops: () => NamedLoop[]): HttpServer {
  const { config, redis, clock, logger, metrics } = shared
  metrics.onScrape(() => refresh(shared, service))
  return createHttpServer({
    ...config.http,
    metrics,
    logger,
    clock,
    health() {
      const isWaiting = redis.status !== 'ready' // waiting for Redis is no illness
      const states = loops().map(({ name, loop }) => {
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

async function refresh(shared: Shared, service: Service): Promise<void> {
  const { config, redis, keys, clock, metrics, books } = shared
  setBudgets(shared, service)
  const circuit = createCircuit(redis, keys)
  const nowMs = clock.now()
  await setSharedGauges({
    nowMs,
    redis,
    metrics,
    books,
    feeds: config.feeds,
    sinks: config.sinks.map(({ name }) => name),
    circuitOf: (sink) => circuit.read(sink, nowMs),
    isAccountPaused: async (account) => (await service.client(account).pause()) !== null,
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
