/** The `run` command: starts the daemon, reloads it and stops it. */

import { Command } from 'commander'
import { type Config, logLevel, type Mistake } from '../config/config.ts'
import { loadConfig, type LoadedConfig } from '../config/load.ts'
import { type App, createApp } from '../daemon/daemon.ts'
import { systemClock } from '../lib/clock.ts'
import { createLogger, type Logger, prettyLines } from '../lib/logger.ts'
import { ensureRedis } from '../redis/embedded-redis.ts'
import { describeRedis } from '../redis/place.ts'
import { toStoreError, refuseUnsafe, StoreError } from '../redis/health.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  silentLogger,
  defaultConfigFile,
} from './context.ts'
import { withRedis } from './open/open-store.ts'
import { readVersion } from './version.ts'

export function runCommand(context: Context): Command {
  return addCommonOptions(new Command('run')).action((options: CommonOptions) =>
    runDaemon(context, options),
  )
}

async function runDaemon(context: Context, options: CommonOptions): Promise<void> {
  const reloads = collectReloads(context)
  const file = options.config ?? defaultConfigFile()
  const loaded = loadConfigFile(context, options.config)
  const { config, warnings } = loaded
  const isForPeople = context.terminal.isInteractive && options.output === 'text'
  const isColored = (context.env['NO_COLOR'] ?? '') === ''
  const logger = createLogger({
    level: logLevel(context.env),
    pretty: isForPeople ? await prettyLines(isColored) : undefined,
  })
  context.ending?.addEventListener('abort', () => logger.flush(), { once: true })
  logWarnings(warnings, logger)
  const server = await ensureRedis(config.redis, logger)
  try {
    await refuseUnsafeEarly(config)
    if (context.stop.aborted) return
    const readAgain = async (by: string): Promise<LoadedConfig & { by: string }> => {
      logger.info({ by }, 'asked to read the configuration again')
      const read = loadConfig({ path: file, env: context.env })
      logWarnings(read.warnings, logger)
      return { ...read, by }
    }
    const app = createApp({ ...loaded, version: readVersion(), logger, readAgain })
    const changed = reloads.serve((by) => app.reload(() => readAgain(by)))
    await runApp(app, { context, logger, place: describeRedis(config.redis), changed })
  } finally {
    await server.release()
  }
}

async function runApp(
  app: App,
  parts: { context: Context; logger: Logger; place: string; changed: Promise<never> },
): Promise<void> {
  const { context, logger, place, changed: reloading } = parts
  const whenStopped = whenAborted(context.stop)
  try {
    await Promise.race([app.start().then(() => whenStopped), reloading, whenStopped])
  } catch (error) {
    throw toStoreError(error, place) ?? error
  } finally {
    await stopApp(app, logger)
  }
}

/** `app.stop` has its own deadlines; whatever hangs in spite of them ends with the process. */
export const stopDeadlineMs = 9_700

async function stopApp(app: App, logger: Logger): Promise<void> {
  logger.info('stopping')
  const over = systemClock.sleep(stopDeadlineMs).then(() => true)
  const isOver = await Promise.race([app.stop().then(() => false), over])
  if (isOver) logger.error('stopping took too long; left as it stands')
  else logger.info('stopped')
  // what is still being written when the process exits would come after its last words
  await Promise.race([new Promise((resolve) => logger.flush(resolve)), over])
}

interface ReloadRequests {
  /**
   * Calls `reload` for each signal, past and future, one at a time; signals during a reload count as
   * one.
   */
  serve(reload: (by: string) => Promise<unknown>): Promise<never>
}

/** Records reload requests from now on, also before the first configuration is active. */
function collectReloads({ reloads }: Context): ReloadRequests {
  let asked = Promise.withResolvers<void>()
  reloads.addEventListener('reload', (event) => {
    event.preventDefault()
    asked.resolve()
  })
  return {
    async serve(reload) {
      for (;;) {
        await asked.promise
        asked = Promise.withResolvers()
        await reload('SIGHUP')
      }
    },
  }
}

function logWarnings(warnings: readonly Mistake[], logger: Logger): void {
  for (const warning of warnings) logger.warn(warning, 'configuration warning')
}

/** /metrics must answer soon, with Redis or without. */
const firstCheckMs = 1_000

/**
 * Refuses an unsafe Redis before a port is opened or a key is written. If Redis is unreachable the
 * daemon waits for it and checks then.
 */
async function refuseUnsafeEarly({ redis: config }: Config): Promise<void> {
  try {
    await withRedis(config, (redis) => refuseUnsafe(redis, config, silentLogger), firstCheckMs)
  } catch (error) {
    if (!(error instanceof StoreError) || error.reason !== 'unreachable') throw error
  }
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
  })
}
