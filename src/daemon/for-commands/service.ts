import type { Config } from '../../config/config.ts'
import { defaultTimings as timings, systemClock } from '../../lib/clock.ts'
import { createLogger } from '../../lib/logger.ts'
import { type EngineContext, unregistered } from '../context.ts'
import type { Upstream } from '../parts/upstream.ts'
import type { OpenLedgers } from '../../operator/open-ledgers.ts'

/**
 * Opens the API clients as a running daemon uses them, for one command, under the rate limits that
 * Redis shares. Throws whatever `use` throws.
 */
export async function withUpstream<Result>(
  config: Config,
  store: OpenLedgers,
  use: (upstream: Upstream, engineContext: EngineContext) => Promise<Result>,
): Promise<Result> {
  // Most commands use only Redis, so the API client is loaded here.
  const { buildUpstream: buildService } = await import('../parts/upstream.ts')
  const { createMetrics } = await import('../../lib/metrics/metrics.ts')
  const parts = { clock: systemClock, logger: createLogger({ level: 'silent' }) }
  const metrics = createMetrics(parts)
  const generation = unregistered()
  const engineContext: EngineContext = {
    ...parts,
    ...store,
    config,
    metrics,
    generation,
    timings,
    foreignAccounts: new Map(),
  }
  const upstream = buildService(engineContext)
  try {
    return await use(upstream, engineContext)
  } finally {
    await upstream.close()
  }
}
