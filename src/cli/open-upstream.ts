import type { Config } from '../config/config.ts'
import type { EngineContext } from '../daemon/context.ts'
import type { Upstream } from '../daemon/upstream.ts'
import { defaultTimings as timings, systemClock } from '../lib/clock.ts'
import { silentLogger } from './context.ts'
import type { OpenStore } from './open-store.ts'

/**
 * The service as a running daemon asks it, for one command: under the same limits, which Redis keeps.
 * Throws whatever `work` throws.
 */
export async function withUpstream<Result>(
  config: Config,
  store: OpenStore,
  use: (upstream: Upstream, engineContext: EngineContext) => Promise<Result>,
): Promise<Result> {
  // most commands ask only Redis: what speaks to the service is loaded here
  const { buildUpstream: buildService } = await import('../daemon/upstream.ts')
  const { createMetrics } = await import('../lib/metrics.ts')
  const parts = { clock: systemClock, logger: silentLogger }
  const metrics = createMetrics(parts)
  const generation = { number: 0, hash: '', isActive: false }
  const engineContext: EngineContext = {
    ...parts,
    ...store,
    config,
    metrics,
    generation,
    timings,
    newAccounts: [],
  }
  const upstream = buildService(engineContext)
  try {
    return await use(upstream, engineContext)
  } finally {
    await upstream.close()
  }
}
