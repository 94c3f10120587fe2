/**
 * The composition root: builds every part from the configuration, starts them, stops them in reverse.
 * The only file that knows them all, so that tests run the real thing.
 */
import { buildEngine, startEngine, stopEngine, type Engine } from './app/build-engine.ts'
import { buildService, type Service } from './app/build-service.ts'
import { buildWeb } from './app/build-web.ts'
import { describeConfig } from './app/describe-config.ts'
import type { Shared } from './app/shared.ts'
import type { Config } from './config/config.ts'
import type { HttpServer } from './http/server.ts'
import { openBook, type Book } from './ledger/book.ts'
import { activateGeneration } from './ledger/generation.ts'
import { connectRedis } from './redis/connection.ts'
import { createKeys } from './redis/keys.ts'
import { claimSchema, refuseUnsafe } from './redis/safety.ts'
import { systemClock, within, type Clock } from './runtime/clock.ts'
import type { Logger } from './runtime/logger.ts'
import { createMetrics } from './runtime/metrics.ts'

export interface App {
  /** Serves /metrics at once, waits for Redis, then polls and delivers. Throws StoreError, HttpError. */
  start(): Promise<{ url: string }>
  /** Takes no new work, finishes what it can in 8 s, gives the rest back; within 10 s. */
  stop(): Promise<void>
  /** One for each account, once started. */
  readonly books: readonly Book[]
}

export interface AppOptions {
  config: Config
  /** Of accounts, feeds, sinks and routes: names the generation. */
  hash: string
  version: string
  logger: Logger
  clock?: Clock
}

/** How long running work may take on a stop, ms: the process is gone within ten seconds. */
const finishMs = 8_000

/** How long closing connections may take after that, ms. */
const closeMs = 300

/** What stands before Redis was reached. Nothing here writes to it. */
interface Foundation extends Shared {
  version: string
  service: Service
  http: HttpServer
  /** What polls and delivers; only once Redis was found to be safe. */
  engine: Engine | undefined
  isStopping: boolean
}

export function createApp(options: AppOptions): App {
  const foundation = layFoundation({ ...options, clock: options.clock ?? systemClock })
  return {
    books: foundation.books,
    start: () => start(foundation),
    stop: () => stop(foundation),
  }
}

function layFoundation(options: AppOptions & { clock: Clock }): Foundation {
  const { config, logger, clock } = options
  const shared: Shared = {
    config,
    logger,
    clock,
    redis: connectRedis(config.redis, logger),
    keys: createKeys(config.redis.prefix),
    metrics: createMetrics({ clock, logger }),
    books: [],
    generation: { number: 0, hash: options.hash, isActive: true },
  }
  const service = buildService(shared)
  const http = buildWeb(shared, service, () => foundation.engine?.loops ?? [])
  const foundation: Foundation = {
    ...shared,
    version: options.version,
    service,
    http,
    engine: undefined,
    isStopping: false,
  }
  return foundation
}

async function start(foundation: Foundation): Promise<{ url: string }> {
  const { config, logger, service } = foundation
  describeConfig(foundation, foundation.version)
  const web = await foundation.http.start()
  await openLedger(foundation)
  if (foundation.isStopping) return web
  foundation.engine = buildEngine(foundation, service)
  await startEngine(foundation.engine)
  logger.info(
    {
      version: foundation.version,
      generation: foundation.generation.number,
      feeds: config.feeds.length,
      sinks: config.sinks.length,
    },
    'tocsin runs',
  )
  return web
}

async function openLedger(foundation: Foundation): Promise<void> {
  const { config, redis, keys, logger, metrics, books, generation } = foundation
  await refuseUnsafe(redis, { isAllowed: config.redis.allowUnsafe, logger })
  await claimSchema(redis, keys)
  for (const { name } of config.accounts) {
    books.push(await openBook({ redis, keys, account: name, config: config.ledger }))
  }
  generation.number = await activateGeneration(redis, keys, generation.hash)
  metrics.configGeneration.set(generation.number)
}

async function stop(foundation: Foundation): Promise<void> {
  const { engine, service, redis, http, clock } = foundation
  foundation.isStopping = true
  if (engine) await stopEngine(engine, clock, finishMs)
  await within(closeMs, service.close(), clock)
  redis.disconnect()
  await http.stop()
}
