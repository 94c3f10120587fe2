/** The daemon's engine for one command. */
import type { Config } from '../../config/config.ts'
import { findDigestSink, type OpenEngine, useEngine } from '../../daemon/for-commands/engine.ts'
import { CommandError, findNamed } from '../terminal.ts'
import { withStore } from './open-store.ts'

/** Throws StoreError, and whatever `use` throws. */
export function withEngine<Result>(
  config: Config,
  use: (parts: OpenEngine) => Promise<Result>,
): Promise<Result> {
  return withStore(config, (store) => useEngine(config, store, use))
}

/** The sink with its digest. Throws CommandError. */
export function requireDigestSink(
  engine: OpenEngine,
  { sinks }: Config,
  name: string,
): Exclude<ReturnType<typeof findDigestSink>, string[]> {
  findNamed(sinks, name, 'sink')
  const found = findDigestSink(engine, name)
  if (!Array.isArray(found)) return found
  const remedy =
    found.length === 0
      ? 'no sink has one; give it a digest in the configuration'
      : `those that have one: ${found.join(', ')}`
  throw new CommandError('mistake', `the sink "${name}" has no digest; ${remedy}`)
}
