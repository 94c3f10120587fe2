/** One configuration and all that is built from it: what a start builds once and a reload replaces. */
import type { LoadedConfig } from '../config/load.ts'
import { activateGeneration } from '../ledger/generation.ts'
import { within } from '../runtime/clock.ts'
import { buildEngine, stopEngine, type Engine } from './build-engine.ts'
import { buildService, type Service } from './build-service.ts'
import type { Lasting, Shared } from './shared.ts'

export interface Setup {
  readonly shared: Shared
  readonly service: Service
  /** What polls and delivers; only once Redis was reached. */
  engine: Engine | undefined
}

/** How long running work may take to finish, ms: after a stop the process is gone within ten seconds. */
const finishMs = 8_000

/** How long closing connections may take after that, ms. */
const closeMs = 300

/** Writes nothing to Redis. */
export function createSetup(
  lasting: Lasting,
  { config, hash }: Pick<LoadedConfig, 'config' | 'hash'>,
): Setup {
  const generation = { number: 0, hash, isActive: true }
  const shared: Shared = { ...lasting, config, books: [], newAccounts: [], generation }
  return { shared, service: buildService(shared), engine: undefined }
}

/** Once its books are open. */
export async function assemble(setup: Setup): Promise<Engine> {
  setup.engine = await buildEngine(setup.shared, setup.service)
  return setup.engine
}

/** Makes it the configuration that polls. Waits for a Redis that is away. */
export async function activate({ redis, keys, generation, metrics }: Shared): Promise<void> {
  generation.number = await activateGeneration(redis, keys, generation.hash)
  metrics.configGeneration.set(generation.number)
}

/** Takes no new work, finishes what it can in 8 s, gives the rest back. Never rejects. */
export async function leave({ engine, service, shared }: Setup): Promise<void> {
  if (engine) await stopEngine(engine, shared.clock, finishMs)
  await within(closeMs, service.close(), shared.clock)
}
