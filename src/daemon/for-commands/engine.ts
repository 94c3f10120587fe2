/**
 * The daemon's engine for one command: makes digests as the daemon does; a running daemon sends
 * them.
 */
import type { Config } from '../../config/config.ts'
import { expectPolling } from '../../config/warnings.ts'
import { readSilences } from '../../delivery/silences.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import type { FlushContext } from '../../grouping/flush-context.ts'
import { defaultTimings } from '../../lib/clock.ts'
import { createLogger } from '../../lib/logger.ts'
import { createMetrics } from '../../lib/metrics/metrics.ts'
import { createRedisClock } from '../../redis/scripts.ts'
import { createRouter } from '../../routing/router.ts'
import type { Sink } from '../../sinks/sink.ts'
import { unregistered } from '../context.ts'
import { buildFlushContext, buildSuppressionRules, type FlusherParts } from '../parts/grouping.ts'
import { buildSinks } from '../parts/sinks.ts'
import { readKnownOrganizations } from '../../operator/reports/feed-report.ts'
import type { OpenLedgers } from '../../operator/open-ledgers.ts'

export interface OpenEngine {
  sinks: ReadonlyMap<string, Sink>
  flushContext: FlushContext
}

/** Throws whatever `use` throws. */
export async function useEngine<Result>(
  config: Config,
  store: OpenLedgers,
  use: (parts: OpenEngine) => Promise<Result>,
): Promise<Result> {
  const environment = { clock: createRedisClock(), logger: createLogger({ level: 'silent' }) }
  const sinks = await buildSinks(config.sinks, environment)
  try {
    await environment.clock.follow(store.redis)
    const router = createRouter(config.route)
    const { silences } = await readSilences(store.redis, store.keys)
    const all = [...config.silences, ...silences]
    const rules = buildSuppressionRules({ config, ...environment }, router, () => all)
    const circuit = openCircuit(store, config)
    const engineContext = {
      ...environment,
      ...store,
      config,
      foreignAccounts: new Map<string, number>(),
      metrics: createMetrics(environment),
      timings: defaultTimings,
      generation: unregistered(),
    }
    const drains: FlusherParts['drains'] = { announce: () => undefined }
    const retryNow = { ensureProbe: () => Promise.resolve(false) }
    const polling = expectPolling(config, await readKnownOrganizations(store, config.accounts))
    const expectedPolling: FlusherParts['expectedPolling'] = (feed) =>
      polling.get(feed) ?? { lagObjectiveMs: Infinity }
    const parts = { sinks, router, rules, circuit, retryNow, drains, expectedPolling }
    const flushContext = buildFlushContext(engineContext, parts)
    return await use({ sinks, flushContext })
  } finally {
    await Promise.all([...sinks.values()].map((sink) => sink.close()))
  }
}
