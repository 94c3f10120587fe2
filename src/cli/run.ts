import { Command } from 'commander'
import { type Config, logLevel, type Mistake } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import { type App, createApp } from '../daemon/daemon.ts'
import { systemClock } from '../lib/clock.ts'
import { createLogger, type Logger, prettyLines } from '../lib/logger.ts'
import { holdRedis } from '../redis/embedded-redis.ts'
import { placeOf, refusalOf, refuseUnsafe, StoreError } from '../redis/health.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  quiet,
  usualConfigFile,
} from './context.ts'
import { withRedis } from './open-ledger.ts'
import { readVersion } from './version.ts'

export function runCommand(context: Context): Command {
  return addCommonOptions(new Command('run')).action((options: CommonOptions) =>
    run(context, options),
  )
}

async function run(context: Context, options: CommonOptions): Promise<void> {
  const requests = reloadRequests(context)
  const file = options.config ?? usualConfigFile()
  const { config, hash, warnings } = loadConfigFile(context, file)
  const isForPeople = context.terminal.isWatched && options.output === 'text'
  const isColored = (context.env['NO_COLOR'] ?? '') === ''
  const logger = createLogger({
    level: logLevel(context.env),
    pretty: isForPeople ? await prettyLines(isColored) : undefined,
  })
  sayWarnings(warnings, logger)
  const held = await holdRedis(config.redis, logger)
  try {
    await refuseUnsafeEarly(config)
    if (context.stop.aborted) return
    const app = createApp({ config, hash, version: readVersion(), logger })
    const reload = (): Promise<unknown> => app.reload(() => loadAgain(context, file, logger))
    await runApp(app, {
      context,
      logger,
      place: placeOf(config.redis),
      changed: requests.heed(reload),
    })
  } finally {
    await held.release()
  }
}

async function runApp(
  app: App,
  asked: { context: Context; logger: Logger; place: string; changed: Promise<never> },
): Promise<void> {
  const { context, logger, place, changed } = asked
  const stopped = aborted(context.stop)
  try {
    await Promise.race([app.start().then(() => stopped), changed, stopped])
  } catch (error) {
    throw refusalOf(error, place) ?? error
  } finally {
    await stop(app, logger)
  }
}

/** `app.stop` bounds itself; whatever hangs nevertheless is left to the end of the process. */
const deadlineMs = 9_700

async function stop(app: App, logger: Logger): Promise<void> {
  logger.info('stopping')
  const over = systemClock.sleep(deadlineMs).then(() => true)
  const isOver = await Promise.race([app.stop().then(() => false), over])
  if (isOver) logger.error('stopping took too long; left as it stands')
  else logger.info('stopped')
}

interface ReloadRequests {
  /** Calls `reload` for what was asked and will be, one after the other; what comes meanwhile is one more. */
  heed(reload: () => Promise<unknown>): Promise<never>
}

/** Notes what is asked from now on: also before the first configuration is in force. */
function reloadRequests({ reloads }: Context): ReloadRequests {
  let asked = Promise.withResolvers<void>()
  reloads.addEventListener('reload', (event) => {
    event.preventDefault()
    asked.resolve()
  })
  return {
    async heed(reload) {
      for (;;) {
        await asked.promise
        asked = Promise.withResolvers()
        await reload()
      }
    },
  }
}

/** Throws ConfigError. */
function loadAgain(context: Context, file: string, logger: Logger): LoadedConfig {
  const loaded = loadConfigFile(context, file)
  sayWarnings(loaded.warnings, logger)
  return loaded
}

function sayWarnings(warnings: readonly Mistake[], logger: Logger): void {
  for (const warning of warnings) logger.warn(warning, 'configuration warning')
}

/** /metrics is to answer soon, with Redis or without. */
const firstLookMs = 1_000

/**
 * A Redis that is there and unsafe is refused before a port is open or a key is written. For one that
 * is away the daemon waits, and looks then.
 */
async function refuseUnsafeEarly({ redis: config }: Config): Promise<void> {
  try {
    await withRedis(config, (redis) => refuseUnsafe(redis, config, quiet), firstLookMs)
  } catch (error) {
    if (!(error instanceof StoreError) || error.reason !== 'unreachable') throw error
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
  })
}
