/**
 * Replaces the running configuration. Everything that can fail comes first, and on any failure the
 * old configuration stays. Then the old engine stops, which cannot be undone, and the new one
 * begins, waiting for Redis as a start does. Cursors, waiting items and timers are all in Redis:
 * nothing is handed over.
 */
import { fixedKeyFindings, listChanges } from '../config/config-diff.ts'
import { ConfigError, formatMistake, type Mistake } from '../config/config.ts'
import { changedFiles } from '../config/file-contents.ts'
import type { LoadedConfig } from '../config/load.ts'
import { openAccountLedgers } from './accounts.ts'
import type { ProcessContext } from './context.ts'
import { describeConfig } from './describe-config.ts'
import {
  activateConfig,
  assembleEngine,
  createEngine,
  type EngineParts,
  stopEngine,
  type Engine,
  startEngineParts,
} from './engine.ts'

export type ReloadOutcome =
  /** `generation`: 0 while Redis is away. */
  | { status: 'changed' | 'unchanged'; generation: number }
  /** The old one stays. Without mistakes if something else failed, which is logged. */
  | { status: 'refused'; mistakes: readonly Mistake[] }
  /** The process was asked to stop meanwhile. */
  | { status: 'stopped' }

/** Holds the engine that runs. */
export interface EngineHost {
  readonly processContext: ProcessContext
  readonly version: string
  current: Engine
  /** Settles when the previous engine has stopped. */
  leaving: Promise<void>
  readonly stopping: AbortSignal
}

/** `by`: what asked for it. Throws ConfigError. The old configuration goes on meanwhile. */
export type ConfigReader = () => Promise<LoadedConfig & { by?: string }>

/** Never rejects. Not reentrant. */
export async function reload(host: EngineHost, read: ConfigReader): Promise<ReloadOutcome> {
  const { logger, metrics } = host.processContext
  try {
    return await replace(host, read)
  } catch (error) {
    if (host.stopping.aborted) return { status: 'stopped' }
    metrics.configLastReloadSuccessful.set(0)
    const message = 'configuration not reloaded; the old one stays'
    if (!(error instanceof ConfigError)) {
      logger.error({ err: error }, message)
      return { status: 'refused', mistakes: [] }
    }
    logger.error({ mistakes: error.mistakes.map(formatMistake) }, message)
    return { status: 'refused', mistakes: error.mistakes }
  }
}

async function replace(host: EngineHost, read: ConfigReader): Promise<ReloadOutcome> {
  const { logger } = host.processContext
  const loaded = await read()
  host.stopping.throwIfAborted()
  const before = host.current.context
  const fixed = fixedKeyFindings(before.config, loaded.config)
  if (fixed.length > 0) throw new ConfigError(loaded.place(fixed))
  const files = changedFiles(host.current.files, loaded.files)
  const changes = [...listChanges(before.config, loaded.config), ...files]
  if (changes.length === 0) {
    describeConfig(host.current, host.version)
    logger.info('configuration read again; nothing in it has changed')
    return { status: 'unchanged', generation: before.generation.number }
  }
  const next = createEngine(host.processContext, loaded)
  if (host.current.parts) await replaceRunning(host, next)
  else makeCurrent(host, next) // the new engine waits for Redis in the old one's place
  if (host.stopping.aborted) return { status: 'stopped' }
  const generation = next.context.generation.number
  logger.info({ ...(generation > 0 ? { generation } : {}), changes }, 'configuration reloaded')
  return { status: 'changed', generation }
}

async function replaceRunning(host: EngineHost, next: Engine): Promise<void> {
  warnWaiting(host.processContext, 'the new configuration waits for Redis')
  const engine = await prepareParts(host, next)
  // stays ready all the while, and notices what Redis loses meanwhile
  const { number, previous, loss } = host.current.context.generation
  Object.assign(next.context.generation, { number, previous, loss })
  makeCurrent(host, next)
  host.processContext.logger.info(takeoverMessage)
  await host.leaving
  if (host.stopping.aborted) return
  describeConfig(next, host.version)
  await begin(host, next, engine)
}

const takeoverMessage = 'configuration read again; it takes over when what is being sent has ended'

/** The last step that can fail. */
async function prepareParts(host: EngineHost, next: Engine): Promise<EngineParts> {
  try {
    await openAccountLedgers(next.context)
    host.stopping.throwIfAborted()
    return await assembleEngine(next)
  } catch (error) {
    await stopEngine(next)
    throw error
  }
}

function makeCurrent(host: EngineHost, next: Engine): void {
  const old = host.current
  host.current = next
  host.leaving = stopEngine(old)
  if (!old.parts) describeConfig(next, host.version)
}

/** Between tries while Redis refuses, ms. */
const retryMs = 1_000

async function begin(host: EngineHost, next: Engine, engine: EngineParts): Promise<void> {
  const { logger, clock } = host.processContext
  warnWaiting(host.processContext, waitingMessage)
  let hasFailed = false
  while (!host.stopping.aborted) {
    try {
      await activateConfig(next.context)
      if (!host.stopping.aborted) await startEngineParts(engine)
      return
    } catch (error) {
      if (!hasFailed && !host.stopping.aborted) logger.warn({ err: error }, waitingMessage)
      hasFailed = true
    }
    await clock.sleep(retryMs, host.stopping)
  }
}

const waitingMessage = 'the old configuration has stopped; the new one waits for Redis'

function warnWaiting({ redis, logger }: ProcessContext, message: string): void {
  if (redis.status !== 'ready') logger.warn(message)
}
