/**
 * The composition root: builds every part from the configuration, starts them, and stops them in
 * reverse. Only this file knows them all, so that tests run the real thing.
 */
import type { LoadedConfig } from '../config/load.ts'
import { type Clock, defaultTimings, type Timings, waitAtMost } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { createLoop, type Loop } from '../lib/loop.ts'
import { createMetrics } from '../lib/metrics/metrics.ts'
import type { HttpConfig } from '../page/http/config.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../page/http/server.ts'
import { connectRedis } from '../redis/connection.ts'
import { claimSchema, createRedisWatch, type RedisWatch, refuseUnsafe } from '../redis/health.ts'
import { createKeys } from '../redis/keys.ts'
import { createRedisClock, type RedisClock } from '../redis/scripts.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { openAccountLedgers } from './accounts.ts'
import type { EngineContext, ProcessContext } from './context.ts'
import { describeConfig } from './describe-config.ts'
import {
  activateConfig,
  assembleEngine,
  createEngine,
  type Engine,
  startEngineParts,
  stopEngine,
} from './engine.ts'
import { type ConfigReader, type EngineHost, reload, type ReloadOutcome } from './reload.ts'
import type { PageEngine } from '../page/asker.ts'
import { createPage } from '../page/page.ts'
import { buildPageEngine } from './parts/page.ts'

export type { ReloadOutcome } from './reload.ts'

export interface App {
  /**
   * Serves /metrics at once, waits for Redis, then polls and delivers. Throws StoreError,
   * HttpError.
   */
  start(): Promise<{ url: string }>
  /**
   * Reads the configuration again and takes it over, or keeps the old one and logs why. Reloads run
   * one after the other; `read` is called when the reload's turn comes. Never rejects.
   */
  reload(read: ConfigReader): Promise<ReloadOutcome>
  /** Takes no new work, finishes what it can in 8 s, gives the rest back; within 10 s. */
  stop(): Promise<void>
  /**
   * One per account, once started: those of the configuration first, then those of accounts that
   * left.
   */
  readonly ledgers: readonly AccountLedger[]
}

interface AppOptions extends Pick<LoadedConfig, 'config' | 'files' | 'hash'> {
  version: string
  logger: Logger
  /** Reads the configuration again for a user of the page; left out: nobody can ask for it there. */
  readAgain?: (by: string) => ReturnType<ConfigReader>
  /** The page lets its address sign in. */
  isDemo?: boolean
  /** Left out: Redis' clock. */
  clock?: Clock
  /** Tests use shorter ones. */
  timings?: Timings
}

interface RunningApp extends EngineHost {
  http: HttpServer
  watch: RedisWatch
  redisClock: RedisClock
  loops: readonly Loop[]
  stop: AbortController
  /** Runs one task at a time: starting and reloading never overlap. */
  runExclusive<Result>(work: () => Promise<Result>): Promise<Result>
}

export function createApp(options: AppOptions): App {
  const running = createRunningApp(options)
  return {
    get ledgers() {
      return running.current.context.ledgers
    },
    start: () => start(running),
    reload: (read) => running.runExclusive(() => reload(running, read)),
    stop: () => stop(running),
  }
}

/** Builds what runs before Redis is reached. Writes nothing to Redis. */
function createRunningApp(options: AppOptions): RunningApp {
  const redisClock = createRedisClock()
  const { config, version, logger, clock = redisClock, timings = defaultTimings } = options
  const processContext: ProcessContext = {
    logger,
    clock,
    redis: connectRedis(config.redis, logger),
    keys: createKeys(config.redis.prefix),
    metrics: createMetrics({ clock }),
    timings,
  }
  const stopController = new AbortController()
  const host: EngineHost = {
    processContext,
    version,
    current: createEngine(processContext, options),
    leaving: Promise.resolve(),
    stopping: stopController.signal,
  }
  const watch = watchRedis(processContext, () => host.current.context.ledgers)
  const runExclusive = createExclusiveRunner()
  const { readAgain } = options
  const reloadFor =
    readAgain && ((by: string) => runExclusive(() => reload(host, () => readAgain(by))))
  return Object.assign(host, {
    http: buildHttpServer(
      { ...config.http, page: buildPage(host, { ...options, reloadFor }) },
      watch,
      () => host.current,
    ),
    watch,
    redisClock,
    loops: createLoops(processContext, redisClock),
    stop: stopController,
    runExclusive,
  })
}

/** The page follows each reload: it asks for the configuration and the engine of now. */
function buildPage(
  host: EngineHost,
  {
    version,
    isDemo,
    reloadFor,
  }: Pick<AppOptions, 'version' | 'isDemo'> & {
    reloadFor: ((by: string) => Promise<ReloadOutcome>) | undefined
  },
): NonNullable<HttpServerOptions['page']> {
  const http = (): HttpConfig => host.current.context.config.http
  const engine = (): PageEngine | undefined => buildPageEngine(host.current, reloadFor)
  const page = createPage({ ...host.processContext, version, isDemo, http, engine })
  return { ...page, publicUrl: () => http().publicUrl }
}

/** Logs the counts of repeated lines, and follows Redis' clock: a failover may change it. */
function createLoops(context: ProcessContext, redisClock: RedisClock): Loop[] {
  const { redis, logger, timings } = context
  const write = { name: 'repeated lines', everyMs: 5_000 }
  const follow = { name: 'redis clock', everyMs: timings.redisWatchMs }
  return [
    createLoop({
      ...context,
      ...write,
      tick: () => Promise.resolve(logger.repeated.writeDue()),
    }),
    createLoop({
      ...context,
      ...follow,
      async tick() {
        if (redis.status === 'ready') await redisClock.follow(redis).catch(() => undefined)
      },
    }),
  ]
}

function watchRedis(
  processContext: ProcessContext,
  ledgers: () => readonly AccountLedger[],
): RedisWatch {
  const schemaKey = processContext.keys.shared('schema')
  const ledgerKeys = (): string[] => ledgers().map((ledger) => ledger.key('mark-key'))
  // A single server that answers for one key answers for all.
  const keys = (): string[] => [schemaKey, ...(processContext.redis.isCluster ? ledgerKeys() : [])]
  return createRedisWatch({ ...processContext, keys })
}

function createExclusiveRunner(): RunningApp['runExclusive'] {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const ended = last.then(task)
    last = ended.catch(() => undefined)
    return ended
  }
}

async function start(running: RunningApp): Promise<{ url: string }> {
  describeConfig(running.current, running.version)
  const web = await running.http.start()
  running.watch.start()
  for (const loop of running.loops) loop.start()
  await prepareRedis(running.current.context)
  await running.redisClock.follow(running.processContext.redis)
  await running.runExclusive(() => begin(running))
  return web
}

async function prepareRedis({ config, redis, keys, logger }: EngineContext): Promise<void> {
  await refuseUnsafe(redis, config.redis, logger)
  await claimSchema(redis, keys)
}

/**
 * Uses the configuration that was read last: a reload may have happened while Redis was
 * unreachable.
 */
async function begin({ current, version, stopping, processContext }: RunningApp): Promise<void> {
  const { config, generation } = current.context
  await openAccountLedgers(current.context)
  await activateConfig(current.context)
  if (stopping.aborted) return
  const engine = await assembleEngine(current)
  if (!stopping.aborted) await startEngineParts(engine)
  processContext.logger.info(
    {
      version,
      generation: generation.number,
      feeds: config.feeds.length,
      sinks: config.sinks.length,
    },
    'tocsin runs',
  )
}

/** How long a loop's last tick may take once Redis is left, ms. */
const lastTickMs = 1_000

async function stop(running: RunningApp): Promise<void> {
  running.stop.abort()
  await Promise.all([running.leaving, stopEngine(running.current)])
  running.processContext.redis.disconnect()
  const loops = [running.watch.stop(), ...running.loops.map((loop) => loop.stop())]
  // a command that Redis had not answered when it died is never settled
  await Promise.all([
    running.http.stop(),
    waitAtMost(lastTickMs, Promise.all(loops), running.processContext.clock),
  ])
  running.processContext.logger.repeated.writeAll()
}

/** /healthz fails if a loop makes no progress for longer than this, ms. */
const maxStallMs = 60_000

/** Builds the server, which outlives reloads; `current` returns the engine that runs now. */
export function buildHttpServer(
  config: HttpConfig & Pick<HttpServerOptions, 'page'>,
  watch: Pick<RedisWatch, 'lastUnreachableMs' | 'isUnreachable'>,
  current: () => Engine,
): HttpServer {
  const { redis, keys, clock, logger, metrics, timings } = current().context
  return createHttpServer({
    ...config,
    metrics: { render: () => metrics.render(redis.status === 'ready' && !watch.isUnreachable()) },
    logger,
    clock,
    timings,
    health() {
      const loops = current().parts?.loops ?? []
      const states = loops.map(({ name, loop }) => {
        const lastProgressMs = loop.lastProgressMs()
        // waiting for Redis does not count as a stall
        const movedMs = Math.max(lastProgressMs, watch.lastUnreachableMs())
        const ok = clock.now() - movedMs < maxStallMs
        return { name, lastProgressMs, ok }
      })
      return { ok: states.every(({ ok }) => ok), loops: states }
    },
    async ready() {
      if (current().context.generation.number === 0)
        return { ok: false, reasons: ['waiting for Redis'] }
      await redis.exists(keys.shared('schema')) // in a Cluster any node answers a ping
      return { ok: true, reasons: [] }
    },
  })
}
