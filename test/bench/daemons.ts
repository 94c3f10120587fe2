/** The daemon as the bench runs it: whole, or with sinks that accept everything at once. */
import { createApp, type App } from '../../src/app.ts'
import { buildEngine, startEngine, stopEngine } from '../../src/app/build-engine.ts'
import { buildService } from '../../src/app/build-service.ts'
import type { Shared } from '../../src/app/shared.ts'
import { parseConfig, type LoadedConfig } from '../../src/config/load.ts'
import { openBook } from '../../src/ledger/book.ts'
import { connectRedis } from '../../src/redis/connection.ts'
import { createKeys } from '../../src/redis/keys.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { createMetrics } from '../../src/runtime/metrics.ts'
import { defaultTimings } from '../../src/runtime/timings.ts'
import { groupId, type SandboxChild } from './sandbox-child.ts'

export type Daemon = Pick<App, 'books' | 'stop'> & { start(): Promise<unknown> }

export const prefix = 'bench'
export const accountName = 'main'
export const sinkName = 'siem'

const logger = createLogger({ level: 'silent' })

export interface Setting extends Wishes {
  redisUrl: string
  sandbox: SandboxChild
}

/** What a measurement wants otherwise, in the file's words. */
export interface Wishes {
  /** Several events in one request; one each unless given. */
  batch?: string | undefined
  /** The feeds; unless given, the one that reads the first identifier group. */
  feeds?: string | undefined
}

const oneFeed = `{all: {type: events, account: ${accountName}, identifier_group: ${groupId}, detail: [], every: 5s}}`

/** Limits are far above what can be reached: what is measured is the daemon. */
export function configOf({ redisUrl, sandbox, batch, feeds = oneFeed }: Setting): LoadedConfig {
  const { url, apiKey, webhookUrl, webhookSecret } = sandbox
  const yaml = `
redis: {url: '${redisUrl}', prefix: ${prefix}}
http: {port: 0}
accounts: {${accountName}: {base_url: '${url}', link_hosts: [app.example.com], api_key: ${apiKey}, limits: {search: 10000, basic: 10000}}}
feeds: ${feeds}
sinks: {${sinkName}: {type: webhook, url: '${webhookUrl}', secret: '${webhookSecret}', allow_private: true${batch ? `, batch: ${batch}` : ''}}}
route: {sinks: [${sinkName}]}
`
  return parseConfig(yaml, { file: 'bench.yaml', env: {} })
}

export function wholeDaemon({ config, hash }: LoadedConfig): Daemon {
  return createApp({ config, hash, version: 'bench', logger })
}

/** What the parts of a daemon are built from; whoever asks for it disconnects `redis`. */
export function sharedOf({ config, hash }: LoadedConfig): Shared {
  const clock = systemClock
  return {
    config,
    redis: connectRedis(config.redis, logger),
    keys: createKeys(config.redis.prefix),
    clock,
    logger,
    metrics: createMetrics({ clock }),
    books: [],
    newAccounts: [],
    generation: { number: 1, hash, isActive: true },
    timings: defaultTimings,
  }
}

/** The same engine; only the sink's `send` is another: it accepts at once. */
export function daemonWithoutSending(loaded: LoadedConfig): Daemon {
  const shared = sharedOf(loaded)
  const { config, redis, keys, clock } = shared
  const service = buildService(shared)
  const engine = buildEngine(shared, service)
  for (const sink of engine.delivery.sinks.values()) {
    Object.assign(sink, { send: () => Promise.resolve({ answer: 'accepted' }) })
  }
  return {
    books: shared.books,
    async start() {
      const ledger = { redis, keys, config: config.ledger }
      shared.books.push(await openBook({ ...ledger, account: accountName }))
      await startEngine(engine)
    },
    async stop() {
      await stopEngine(engine, clock, 5_000)
      await service.close()
      redis.disconnect()
    },
  }
}
