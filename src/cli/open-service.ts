import type { Config } from '../config/config.ts'
import type { Shared } from '../daemon/context.ts'
import type { Service } from '../daemon/upstream.ts'
import { defaultTimings as timings, systemClock } from '../lib/clock.ts'
import { quiet } from './context.ts'
import type { OpenLedger } from './open-ledger.ts'

/**
 * The service as a running daemon asks it, for one command: under the same limits, which Redis keeps.
 * Throws whatever `work` throws.
 */
export async function withService<Result>(
  config: Config,
  ledger: OpenLedger,
  work: (service: Service, shared: Shared) => Promise<Result>,
): Promise<Result> {
  // most commands ask only Redis: what speaks to the service is loaded here
  const { buildService } = await import('../daemon/upstream.ts')
  const { createMetrics } = await import('../lib/metrics.ts')
  const parts = { clock: systemClock, logger: quiet }
  const metrics = createMetrics(parts)
  const generation = { number: 0, hash: '', isActive: false }
  const shared: Shared = {
    ...parts,
    ...ledger,
    config,
    metrics,
    generation,
    timings,
    newAccounts: [],
  }
  const service = buildService(shared)
  try {
    return await work(service, shared)
  } finally {
    await service.close()
  }
}
