import { Redis as IORedis } from 'ioredis'
import type { Logger } from '../runtime/logger.ts'
import type { RedisConfig } from './config.ts'

export type Redis = IORedis

/**
 * One connection for commands and BullMQ. Waits for a Redis that is away (at most 1 s between tries)
 * instead of failing; `maxRetriesPerRequest: null` is what BullMQ's workers demand.
 */
export function connectRedis(config: RedisConfig, logger: Logger): Redis {
  const redis = new IORedis(urlOf(config), {
    maxRetriesPerRequest: null,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 5), 1000),
    enableReadyCheck: true,
  })
  let saidDown = false
  redis.on('error', (error) => {
    if (!saidDown) logger.warn({ err: error }, 'redis is not reachable; waiting')
    saidDown = true
  })
  redis.on('ready', () => {
    if (saidDown) logger.info('redis is reachable again')
    saidDown = false
  })
  return redis
}

/** ioredis takes a unix socket as a bare path. */
function urlOf(config: RedisConfig): string {
  const url = config.url.reveal()
  return url.startsWith('unix://') ? url.slice('unix://'.length) : url
}
