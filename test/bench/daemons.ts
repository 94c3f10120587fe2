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
import { groupId, type SandboxChild } from './sandbox-child.ts'

export type Daemon = Pick<App, 'books' | 'stop'> & { start(): Promise<unknown> }

export const prefix = 'bench'
export const accountName = 'main'
export const sinkName = 'siem'

const logger = createLogger({ level: 'silent' })

export interface Setting {
  redisUrl: string
  sandbox: SandboxChild
  /** Several events in one request; one each unless given. */
  batch?: string | undefined
}

/** Limits are far above what can be reached: what is measured is the daemon. */
export function configOf({ redisUrl, sandbox, batch }: Setting): LoadedConfig {
  const { url, apiKey, webhookUrl, webhookSecret } = sandbox
  const yaml = `
redis: {url: '${redisUrl}', prefix: ${prefix}}
http: {port: 0}
accounts: {${accountName}: {base_url: '${url}', api_key: ${apiKey}, limits: {search: 10000, basic: 10000}}}
feeds: {all: {type: events, account: ${accountName}, identifier_group: ${groupId}, every: 5s}}
sinks: {${sinkName}: {type: webhook, url: '${webhookUrl}', secret: '${webhookSecret}', allow_private: true${batch ? `, batch: ${batch}` : ''}}}
route: {sinks: [${sinkName}]}
`
  return parseConfig(yaml, { file: 'bench.yaml', env: {} })
}

export function wholeDaemon({ config, hash }: LoadedConfig): Daemon {
  return createApp({ config, hash, version: 'bench', logger })
}

/** The same engine; only the sink's `send` is another: it accepts at once. */
export function daemonWithoutSending({ config, hash }: LoadedConfig): Daemon {
  const clock = systemClock
  const redis = connectRedis(config.redis, logger)
  const keys = createKeys(config.redis.prefix)
  const metrics = createMetrics({ clock, logger })
  const generation = { number: 1, hash, isActive: true }
  const shared: Shared = { config, redis, keys, clock, logger, metrics, books: [], generation }
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
