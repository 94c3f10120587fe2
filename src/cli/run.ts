/** The `run` command: starts the daemon, reloads it and stops it. */

import { Command, InvalidArgumentError, Option } from 'commander'
import { type Config, formatMistake, logLevel, type Mistake } from '../config/config.ts'
import { createFileWatch } from '../config/file-watch.ts'
import type { LoadedConfig } from '../config/load.ts'
import { type App, createApp } from '../daemon/daemon.ts'
import type { ReloadOutcome } from '../daemon/reload.ts'
import { systemClock } from '../lib/clock.ts'
import { duration } from '../lib/config-fields.ts'
import { createLogger, type Logger, prettyLines } from '../lib/logger.ts'
import { createLoop, type Loop } from '../lib/loop.ts'
import { defaultTokenFile } from '../ops/reload-access.ts'
import { ensureRedis } from '../redis/embedded-redis.ts'
import { describeRedis, toStoreError, refuseUnsafe, StoreError } from '../redis/health.ts'
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
  return addCommonOptions(new Command('run'))
    .option(
      '--dry',
      'for a while, on a ledger of its own: says what would be sent, and sends nothing',
    )
    .addOption(
      new Option('--for <duration>', 'with --dry: how long')
        .argParser(parseDuration)
        .default(dryRunMs, '2m'),
    )
    .option('--full', 'with --dry: whole messages, not their first lines')
    .action((options: RunOptions) => (options.dry ? rehearse : runDaemon)(context, options))
}

interface RunOptions extends CommonOptions {
  dry?: true
  for: number
  full?: true
}

const dryRunMs = 120_000

const dryRunField = duration('How long a dry run takes.', '1s')

function parseDuration(text: string): number {
  const parsed = dryRunField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write a number and its unit, such as 90s or 10m.')
}

async function rehearse(context: Context, options: RunOptions): Promise<void> {
  const { terminal } = context
  const loaded = loadConfigFile(context, options.config)
  for (const warning of loaded.warnings) terminal.printError(`warning ${formatMistake(warning)}`)
  const { output, full = false, for: forMs } = options
  const { runDry } = await import('./dry-run.ts')
  await runDry(context, loaded, { output, full, forMs })
}

async function runDaemon(context: Context, options: CommonOptions): Promise<void> {
  const reloads = collectReloads(context)
  const file = options.config ?? defaultConfigFile()
  const loaded = loadConfigFile(context, file)
  const { config, hash, warnings } = loaded
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
    const watch = watchFiles(loaded, () => reloads.request(), logger)
    const reload = (): Promise<ReloadOutcome> =>
      app.reload(() => watch.taken(reloadConfig(context, file, logger)))
    const tokenFile = config.http.tokenFile ?? defaultTokenFile(file)
    const remoteReload = { tokenFile, reload }
    const app = createApp({ config, hash, version: readVersion(), logger, remoteReload })
    watch.loop.start()
    const changed = reloads.serve(reload)
    try {
      await runApp(app, { context, logger, place: describeRedis(config.redis), changed })
    } finally {
      await watch.loop.stop()
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
}

/** Long enough for an editor to finish between two looks, ms. */
const watchMs = 1_000

/** Looks at the files of the configuration that was read last, while it says `watch`. */
function watchFiles(
  loaded: LoadedConfig,
  onChange: () => void,
  logger: Logger,
): { loop: Loop; taken: (next: LoadedConfig) => LoadedConfig } {
  let { files, config } = loaded
  const watch = createFileWatch(files)
  const tick = async (): Promise<void> => {
    if (!watch.lookOnce(files) || !config.watch) return
    logger.info('the configuration or a file of it has changed; reading it again')
    onChange()
  }
  return {
    loop: createLoop({ name: 'watched files', everyMs: watchMs, logger, tick }),
    taken(next) {
      ;({ files, config } = next)
      return next
    },
  }
}

interface ReloadRequests {
  request(): void
  /**
   * Calls `reload` for each request, past and future, one at a time; requests during a reload count
   * as one.
   */
  serve(reload: () => Promise<unknown>): Promise<never>
}

/** Records reload requests from now on, also before the first configuration is active. */
function collectReloads({ reloads }: Context): ReloadRequests {
  let request = Promise.withResolvers<void>()
  reloads.addEventListener('reload', (event) => {
    event.preventDefault()
    request.resolve()
  })
  return {
    request: () => request.resolve(),
    async serve(reload) {
      for (;;) {
        await request.promise
        request = Promise.withResolvers()
        await reload()
      }
    },
  }
}

/** Throws ConfigError. */
function reloadConfig(context: Context, file: string, logger: Logger): LoadedConfig {
  const loaded = loadConfigFile(context, file)
  logWarnings(loaded.warnings, logger)
  return loaded
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
