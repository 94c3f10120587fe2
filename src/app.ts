/**
 * The composition root: builds every part from the configuration, starts them, stops them in reverse.
 * The only file that knows them all, so that tests run the real thing.
 */
import type { Config } from './config/config.ts'
import { buildDelivery } from './app/build-delivery.ts'
import { buildLoops } from './app/build-loops.ts'
import { buildPoller } from './app/build-poller.ts'
import { buildService } from './app/build-service.ts'
import { buildWeb } from './app/build-web.ts'
import type { Shared } from './app/shared.ts'
import { createFeedJobs } from './feeds/feed-jobs.ts'
import { openBook, type Book } from './ledger/book.ts'
import { activateGeneration } from './ledger/generation.ts'
import { connectRedis } from './redis/connection.ts'
import { createKeys } from './redis/keys.ts'
import { claimSchema, refuseUnsafe } from './redis/safety.ts'
import type { RouteConfig } from './routing/config.ts'
import { systemClock, type Clock } from './runtime/clock.ts'
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
  /** Of feeds, sinks and routes: names the generation. */
  hash: string
  version: string
  logger: Logger
  clock?: Clock
}

/** How long running work may take on a stop, ms: the process is gone within ten seconds. */
const finishMs = 8_000

export function createApp(options: AppOptions): App {
  const parts = createParts({ ...options, clock: options.clock ?? systemClock })
  return {
    books: parts.books,
    start: () => startParts(parts),
    stop: () => stopParts(parts),
  }
}

type Parts = ReturnType<typeof createParts>

type FullOptions = AppOptions & { clock: Clock }

function createParts(options: FullOptions) {
  const { config, logger, clock } = options
  const redis = connectRedis(config.redis, logger)
  const keys = createKeys(config.redis.prefix)
  const metrics = createMetrics({ clock, logger })
  const books: Book[] = []
  const shared: Shared & FullOptions = {
    ...options,
    redis,
    keys,
    metrics,
    books,
    generation: { number: 0 },
  }
  const service = buildService(shared)
  const delivery = buildDelivery(shared, service)
  const feedJobs = createFeedJobs({
    feeds: config.feeds,
    poller: buildPoller(shared, service, delivery),
    redis,
    keys,
    clock,
    logger,
  })
  const loops = buildLoops(shared, delivery, feedJobs)
  const http = buildWeb(shared, { service, delivery, loops })
  return { ...shared, service, delivery, feedJobs, loops, http }
}

async function startParts(parts: Parts): Promise<{ url: string }> {
  const { config, metrics, redis, keys, logger, clock } = parts
  sayConfig(parts)
  const web = await parts.http.start()
  await refuseUnsafe(redis, { isAllowed: config.redis.allowUnsafe, logger })
  await claimSchema(redis, keys)
  for (const { name } of config.accounts) {
    parts.books.push(await openBook({ redis, keys, account: name, config: config.ledger }))
  }
  parts.generation.number = await activateGeneration(redis, keys, parts.hash)
  metrics.configGeneration.set(parts.generation.number)
  await parts.feedJobs.ensure()
  parts.feedJobs.start()
  parts.delivery.detailJobs.start()
  parts.delivery.workers.start()
  for (const { loop } of parts.loops) loop.start()
  logger.info(
    { feeds: config.feeds.length, sinks: config.sinks.length, atMs: clock.now() },
    'tocsin runs',
  )
  return web
}

function sayConfig({ config, metrics, version, clock }: Parts): void {
  metrics.startAtZero({
    feeds: config.feeds.map(({ name }) => name),
    sinks: config.sinks.map(({ name }) => name),
    accounts: config.accounts.map(({ name }) => name),
    routes: routeNames(config.route),
  })
  metrics.buildInfo.set({ version }, 1)
  metrics.configLastReloadSuccessful.set(1)
  metrics.configLastReloadSuccessTimestampSeconds.set(clock.now() / 1000)
  for (const { name, everyMs, lagObjectiveMs } of config.feeds) {
    metrics.feedPollIntervalSeconds.set({ feed: name }, everyMs / 1000)
    metrics.feedLagObjectiveSeconds.set({ feed: name }, lagObjectiveMs / 1000)
  }
}

function routeNames(route: RouteConfig): string[] {
  return [route.name, ...route.routes.flatMap(routeNames)]
}

async function stopParts(parts: Parts): Promise<void> {
  const { delivery, feedJobs, service, redis } = parts
  await Promise.all([
    ...parts.loops.map(({ loop }) => within(parts, finishMs, loop.stop())),
    feedJobs.stop(finishMs),
    delivery.detailJobs.stop(finishMs),
    delivery.workers.stop(finishMs),
  ])
  await within(parts, 1_000, Promise.all([...delivery.sinks.values()].map((sink) => sink.close())))
  await within(parts, 500, Promise.all([service.close(), delivery.queue.close()]))
  redis.disconnect()
  await parts.http.stop()
}

async function within({ clock }: Parts, ms: number, work: Promise<unknown>): Promise<void> {
  await Promise.race([work, clock.sleep(ms)])
}
