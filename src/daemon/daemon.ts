/**
 * The composition root: builds every part from the configuration, starts them, stops them in reverse.
 * The only file that knows them all, so that tests run the real thing.
 */
import type { Config } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import { emptyAgain, upgradeStore } from '../delivery/upgrade.ts'
import { type Clock, defaultTimings, systemClock, type Timings } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { createLoop, type Loop } from '../lib/loop.ts'
import { createMetrics } from '../lib/metrics.ts'
import type { HttpConfig } from '../ops/config.ts'
import { createHttpServer, type HttpServer } from '../ops/server.ts'
import { connectRedis } from '../redis/connection.ts'
import { claimSchema, createRedisWatch, type RedisWatch, refuseUnsafe } from '../redis/health.ts'
import { createKeys } from '../redis/keys.ts'
import type { Book } from '../store/account-ledger.ts'
import { openBooks } from './accounts.ts'
import type { Lasting, Shared } from './context.ts'
import { describeConfig } from './describe-config.ts'
import { activate, assemble, createSetup, leave, type Setup, startEngine } from './engine.ts'
import { type Host, reload, type ReloadOutcome } from './reload.ts'

export interface App {
  /** Serves /metrics at once, waits for Redis, then polls and delivers. Throws StoreError, HttpError. */
  start(): Promise<{ url: string }>
  /**
   * Reads the configuration again and takes it over, or keeps the old one and logs why. One after the
   * other; `read` is called when its turn has come and throws ConfigError. Never rejects.
   */
  reload(read: () => LoadedConfig): Promise<ReloadOutcome>
  /** Takes no new work, finishes what it can in 8 s, gives the rest back; within 10 s. */
  stop(): Promise<void>
  /** One for each account, once started: those of the configuration first, then those that left it. */
  readonly books: readonly Book[]
}

interface AppOptions {
  config: Config
  /** Of accounts, feeds, sinks and routes: names the generation. */
  hash: string
  version: string
  logger: Logger
  clock?: Clock
  /** Shorter ones for tests. */
  timings?: Timings
}

interface Running extends Host {
  http: HttpServer
  watch: RedisWatch
  /** Writes what was counted of lines that repeat. */
  repeatedLines: Loop
  stop: AbortController
  /** Starting and reloading never overlap. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result>
}

export function createApp(options: AppOptions): App {
  const running = layFoundation(options)
  return {
    get books() {
      return running.current.shared.books
    },
    start: () => start(running),
    reload: (read) => running.inTurn(() => reload(running, read)),
    stop: () => stop(running),
  }
}

/** What stands before Redis was reached. Nothing here writes to it. */
function layFoundation(options: AppOptions): Running {
  const { config, version, logger, clock = systemClock, timings = defaultTimings } = options
  const lasting: Lasting = {
    logger,
    clock,
    redis: connectRedis(config.redis, logger),
    keys: createKeys(config.redis.prefix),
    metrics: createMetrics({ clock, isDetailed: config.http.metrics === 'detailed' }),
    timings,
  }
  const stopController = new AbortController()
  const host: Host = {
    lasting,
    version,
    current: createSetup(lasting, options),
    leaving: Promise.resolve(),
    stopping: stopController.signal,
  }
  const watch = watchRedis(lasting, () => host.current.shared.books)
  return Object.assign(host, {
    http: buildWeb(config.http, watch, () => host.current),
    watch,
    repeatedLines: createLoop({
      name: 'repeated lines',
      everyMs: 5_000,
      logger,
      clock,
      tick: () => Promise.resolve(logger.repeated.writeDue()),
    }),
    stop: stopController,
    inTurn: oneAfterTheOther(),
  })
}

function watchRedis(lasting: Lasting, books: () => readonly Book[]): RedisWatch {
  const shared = lasting.keys.shared('schema')
  const ofBooks = (): string[] => books().map((book) => book.key('mark-key'))
  // one server that answers for one key answers for all
  const keys = (): string[] => [shared, ...(lasting.redis.isCluster ? ofBooks() : [])]
  return createRedisWatch({ ...lasting, keys })
}

function oneAfterTheOther(): Running['inTurn'] {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const ended = last.then(work)
    last = ended.catch(() => undefined)
    return ended
  }
}

async function start(running: Running): Promise<{ url: string }> {
  describeConfig(running.current, running.version)
  const web = await running.http.start()
  running.watch.start()
  running.repeatedLines.start()
  await openLedger(running.current.shared)
  await running.inTurn(() => begin(running))
  return web
}

async function openLedger({ config, redis, keys, logger }: Shared): Promise<void> {
  await refuseUnsafe(redis, config.redis, logger)
  await claimSchema(redis, keys)
}

/** With the configuration that was read last: another may have come while Redis was away. */
async function begin({ current, version, stopping, lasting }: Running): Promise<void> {
  const { config, generation } = current.shared
  await openBooks(current.shared)
  await upgrade(current.shared)
  void emptyAgain({ ...lasting, afterMs: lasting.timings.upgradeLookMs }, stopping)
  await activate(current.shared)
  if (stopping.aborted) return
  const engine = await assemble(current)
  if (!stopping.aborted) await startEngine(engine, lasting)
  lasting.logger.info(
    {
      version,
      generation: generation.number,
      feeds: config.feeds.length,
      sinks: config.sinks.length,
    },
    'tocsin runs',
  )
}

function upgrade({ config, timings, ...shared }: Shared): Promise<void> {
  const sinks = config.sinks.map(({ name }) => name)
  return upgradeStore({ ...shared, sinks, waitMs: timings.upgradeMs })
}

async function stop(running: Running): Promise<void> {
  running.stop.abort()
  await Promise.all([running.leaving, leave(running.current)])
  running.lasting.redis.disconnect()
  await Promise.all([running.http.stop(), running.watch.stop(), running.repeatedLines.stop()])
  running.lasting.logger.repeated.writeAll()
}

/** A loop that did not move for longer than this makes /healthz fail, ms. */
const livenessMs = 60_000

/** The server stays when the configuration changes; `current`: what runs by now. */
export function buildWeb(
  config: HttpConfig,
  watch: Pick<RedisWatch, 'lastAwayMs' | 'isAway'>,
  current: () => Setup,
): HttpServer {
  const { redis, keys, clock, logger, metrics } = current().shared
  return createHttpServer({
    ...config,
    metrics: { render: () => metrics.render(redis.status === 'ready' && !watch.isAway()) },
    logger,
    clock,
    health() {
      const loops = current().engine?.loops ?? []
      const states = loops.map(({ name, loop }) => {
        const lastProgressMs = loop.lastProgressMs()
        // waiting for Redis is no illness
        const movedMs = Math.max(lastProgressMs, watch.lastAwayMs())
        const ok = clock.now() - movedMs < livenessMs
        return { name, lastProgressMs, ok }
      })
      return { ok: states.every(({ ok }) => ok), loops: states }
    },
    async ready() {
      if (current().shared.generation.number === 0)
        return { ok: false, reasons: ['waiting for Redis'] }
      await redis.exists(keys.shared('schema')) // in a Cluster any node answers a ping
      return { ok: true, reasons: [] }
    },
  })
}
