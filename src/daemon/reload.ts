/**
 * Puts another configuration in the place of the running one. Everything that can fail comes first, and
 * on any failure the old one stays. Then the old engine stops, which has no way back, and the new one
 * begins, waiting for Redis as a start does. Feeds' cursors, waiting items and timers are all in Redis:
 * nothing is handed over.
 */
import { changesOf, diffConfigs, fixedKeyFindings } from '../config/config-diff.ts'
import { ConfigError, formatMistake, type Mistake } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import { openBooks } from './accounts.ts'
import type { Lasting } from './context.ts'
import { describeConfig } from './describe-config.ts'
import {
  activate,
  assemble,
  createSetup,
  type Engine,
  leave,
  type Setup,
  startEngine,
} from './engine.ts'

export type ReloadOutcome =
  | { status: 'changed'; changes: Record<string, unknown> }
  | { status: 'unchanged' }
  /** The old one stays. Without mistakes where something else failed, which the log tells. */
  | { status: 'refused'; mistakes: readonly Mistake[] }
  /** The process was asked to stop meanwhile. */
  | { status: 'stopped' }

/** The place in which one setup runs. */
export interface Host {
  readonly lasting: Lasting
  readonly version: string
  current: Setup
  /** The end of the setup that ran before. */
  leaving: Promise<void>
  readonly stopping: AbortSignal
}

/** Never rejects. `read` throws ConfigError. Not twice at once. */
export async function reload(host: Host, read: () => LoadedConfig): Promise<ReloadOutcome> {
  const { logger, metrics } = host.lasting
  try {
    return await replace(host, read)
  } catch (error) {
    if (host.stopping.aborted) return { status: 'stopped' }
    metrics.configLastReloadSuccessful.set(0)
    const said = 'configuration not reloaded; the old one stays'
    if (!(error instanceof ConfigError)) {
      logger.error({ err: error }, said)
      return { status: 'refused', mistakes: [] }
    }
    logger.error({ mistakes: error.mistakes.map(formatMistake) }, said)
    return { status: 'refused', mistakes: error.mistakes }
  }
}

async function replace(host: Host, read: () => LoadedConfig): Promise<ReloadOutcome> {
  const { logger } = host.lasting
  const loaded = read()
  const before = host.current.shared
  const fixed = fixedKeyFindings(before.config, loaded.config)
  if (fixed.length > 0) throw new ConfigError(loaded.place(fixed))
  const changes = changesOf(diffConfigs(before.config, loaded.config))
  if (changes === undefined) {
    describeConfig(host.current, host.version)
    logger.info('configuration read again; nothing in it has changed')
    return { status: 'unchanged' }
  }
  const next = createSetup(host.lasting, loaded)
  if (host.current.engine) await swap(host, next)
  else takePlace(host, next) // what waits for Redis begins with it
  if (host.stopping.aborted) return { status: 'stopped' }
  const generation = next.shared.generation.number
  logger.info({ ...(generation > 0 ? { generation } : {}), ...changes }, 'configuration reloaded')
  return { status: 'changed', changes }
}

async function swap(host: Host, next: Setup): Promise<void> {
  sayWaiting(host.lasting, 'the new configuration waits for Redis')
  const engine = await build(host, next)
  next.shared.generation.number = host.current.shared.generation.number // ready all the while
  takePlace(host, next)
  host.lasting.logger.info(takesOver)
  await host.leaving
  if (host.stopping.aborted) return
  describeConfig(next, host.version)
  await begin(host, next, engine)
}

const takesOver = 'configuration read again; it takes over when what is being sent has ended'

/** The last step that can fail. */
async function build(host: Host, next: Setup): Promise<Engine> {
  try {
    await openBooks(next.shared)
    host.stopping.throwIfAborted()
    return await assemble(next)
  } catch (error) {
    await leave(next)
    throw error
  }
}

function takePlace(host: Host, next: Setup): void {
  const old = host.current
  host.current = next
  host.leaving = leave(old)
  if (!old.engine) describeConfig(next, host.version)
}

/** Between tries at a Redis that refuses, ms. */
const retryMs = 1_000

async function begin(host: Host, next: Setup, engine: Engine): Promise<void> {
  const { logger, clock } = host.lasting
  sayWaiting(host.lasting, afterLeaving)
  let hasFailed = false
  while (!host.stopping.aborted) {
    try {
      await activate(next.shared)
      if (!host.stopping.aborted) await startEngine(engine, host.lasting)
      return
    } catch (error) {
      if (!hasFailed && !host.stopping.aborted) logger.warn({ err: error }, afterLeaving)
      hasFailed = true
    }
    await clock.sleep(retryMs, host.stopping)
  }
}

const afterLeaving = 'the old configuration has stopped; the new one waits for Redis'

function sayWaiting({ redis, logger }: Lasting, words: string): void {
  if (redis.status !== 'ready') logger.warn(words)
}
