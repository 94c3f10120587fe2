/** The `run` command: starts the daemon, reloads it and stops it. */

import { Command } from 'commander'
import { type Config, ConfigError, logLevel, type Mistake } from '../config/config.ts'
import { createFileWatch } from '../config/file-watch.ts'
import { type LoadedConfig, loadConfigInTurns } from '../config/load.ts'
import { type App, createApp, type ReloadOutcome } from '../daemon/daemon.ts'
import { systemClock } from '../lib/clock.ts'
import { createLogger, type Logger, prettyLines } from '../lib/logger.ts'
import { createLoop, type Loop } from '../lib/loop.ts'
import { defaultTokenFile } from '../ops/reload-access.ts'
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
  logWarnings(warnings, logger)
  const server = await ensureRedis(config.redis, logger)
  try {
    await refuseUnsafeEarly(config)
    if (context.stop.aborted) return
    const reloader = createReloader(context, { file, loaded, logger })
    const reload = (by: string): Promise<ReloadOutcome> => reloader.reload(app, by)
    const remoteReload = {
      tokenFile: config.http.tokenFile ?? defaultTokenFile(file, context.env),
      reload: (address: string) => reload(`POST /-/reload from ${address}`),
    }
    const app = createApp({ ...loaded, version: readVersion(), logger, remoteReload })
    const watching = reloader.watch(() => reloads.request('watch'))
    const changed = reloads.serve(reload)
    try {
      await runApp(app, { context, logger, place: describeRedis(config.redis), changed })
    } finally {
      void watching.stop() // not waited for: a network mount may hang
    }
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
const stopDeadlineMs = 9_700

async function stopApp(app: App, logger: Logger): Promise<void> {
  logger.info('stopping')
  const over = systemClock.sleep(stopDeadlineMs).then(() => true)
  const isOver = await Promise.race([app.stop().then(() => false), over])
  if (isOver) logger.error('stopping took too long; left as it stands')
  else logger.info('stopped')
  // what is still being written when the process exits would come after its last words
  await Promise.race([new Promise((resolve) => logger.flush(resolve)), over])
}

/** Long enough for an editor to finish between two looks, ms. */
const watchMs = 1_000

interface Reloader {
  /** `by` says in the log who asked. Never rejects. */
  reload(app: App, by: string): Promise<ReloadOutcome>
  /** Looks at the files while the configuration that runs says `watch`. */
  watch(onChange: () => void): Loop
}

interface Reloaded {
  file: string
  /** What runs at first. */
  loaded: LoadedConfig
  logger: Logger
}

function createReloader(context: Context, { file, loaded, logger }: Reloaded): Reloader {
  const fileWatch = createFileWatch(loaded.contents)
  const retry = createRetry(logger)
  let isWatched = loaded.config.watch
  return {
    async reload(app, by) {
      const level = retry.isFailing && by === 'watch' ? 'debug' : 'info'
      logger[level]({ by }, 'asked to read the configuration again')
      let read: LoadedConfig | ConfigError | undefined
      const outcome = await app.reload(async () => {
        read = await readAgain(context, file)
        if (read instanceof ConfigError) throw read
        logWarnings(read.warnings, logger)
        return read
      })
      retry.note(outcome, isWatched)
      if (read === undefined) return outcome
      if (read instanceof ConfigError || outcome.status === 'refused') {
        fileWatch.refused(read.contents)
      } else {
        fileWatch.taken(read.contents)
        isWatched = read.config.watch
      }
      return outcome
    },
    watch(onChange) {
      const tick = async (): Promise<void> => {
        if (!isWatched) return
        if ((await fileWatch.lookOnce()) || retry.takeDue()) onChange()
      }
      const loop = createLoop({ name: 'watched files', everyMs: watchMs, logger, tick })
      loop.start()
      return loop
    },
  }
}

/** How long a refusal that no mistake of the file explains waits to be tried again, ms. */
const retryMs = 5_000

interface Retry {
  note(outcome: ReloadOutcome, isWatched: boolean): void
  /** Once for each refusal. */
  takeDue(): boolean
  readonly isFailing: boolean
}

/** Nobody will change the file for what Redis refused, say. */
function createRetry(logger: Logger): Retry {
  let [isFailing, atMs] = [false, Infinity]
  return {
    note(outcome, isWatched) {
      const isUnexplained = outcome.status === 'refused' && outcome.mistakes.length === 0
      const wasFailing = isFailing
      isFailing = isWatched && isUnexplained
      atMs = isFailing ? systemClock.monotonic() + retryMs : Infinity
      if (isFailing && !wasFailing)
        logger.warn('the configuration is tried again until it is taken or its files change')
    },
    takeDue() {
      const isDue = systemClock.monotonic() >= atMs
      if (isDue) atMs = Infinity
      return isDue
    },
    get isFailing() {
      return isFailing
    },
  }
}

async function readAgain({ env }: Context, path: string): Promise<LoadedConfig | ConfigError> {
  try {
    return await loadConfigInTurns({ path, env })
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}

interface ReloadRequests {
  request(by: string): void
  /**
   * Calls `reload` for each request, past and future, one at a time; requests during a reload count
   * as one.
   */
  serve(reload: (by: string) => Promise<unknown>): Promise<never>
}

/** Records reload requests from now on, also before the first configuration is active. */
function collectReloads({ reloads }: Context): ReloadRequests {
  let asked = Promise.withResolvers<void>()
  const askers = new Set<string>()
  const request = (by: string): void => {
    askers.add(by)
    asked.resolve()
  }
  reloads.addEventListener('reload', (event) => {
    event.preventDefault()
    request('SIGHUP')
  })
  return {
    request,
    async serve(reload) {
      for (;;) {
        await asked.promise
        asked = Promise.withResolvers()
        const by = [...askers].join(', ')
        askers.clear()
        await reload(by)
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
