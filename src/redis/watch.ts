/**
 * Tells waiting for Redis from a process that hangs: /healthz must not end a replica because Redis is
 * away, answers nothing, or a Cluster has no master for one of our slots.
 */
import { setImmediate } from 'node:timers/promises'
import { createLoop, type Loop } from '../runtime/loop.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { defaultTimings, type Timings } from '../runtime/timings.ts'
import type { Redis } from './connection.ts'

export interface RedisWatch extends Pick<Loop, 'start' | 'stop'> {
  /** When Redis last owed an answer, wall clock ms; 0: never. */
  lastAwayMs(): number
  /** Whether it owed one when it was last asked. */
  isAway(): boolean
}

export interface RedisWatchOptions {
  redis: Redis
  /** One key for each slot that the process needs. */
  keys: () => readonly string[]
  clock: Clock
  logger: Logger
  timings?: Timings
}

export function createRedisWatch(options: RedisWatchOptions): RedisWatch {
  const { redis, keys, clock, logger, timings = defaultTimings } = options
  let awayMs = 0
  let isAway = true
  let owed: Promise<void> | undefined

  /** What is owed already is not asked for again: it would pile up. */
  function ask(): Promise<void> {
    // of a slot that moves a Cluster answers for two keys only when it has moved, as scripts need it
    owed ??= Promise.all(keys().map((key) => redis.exists(key, `${key}:moved`)))
      .then(() => undefined)
      .finally(() => (owed = undefined))
    return owed
  }

  async function isThere(signal: AbortSignal): Promise<boolean> {
    if (redis.status !== 'ready') return false
    // an answer that came while this process was busy is heard first
    const late = clock
      .sleep(timings.redisWatchMs, signal)
      .then(() => setImmediate())
      .then(() => false)
    const answered = ask().then(
      () => true,
      () => false,
    )
    return Promise.race([answered, late])
  }

  const loop = createLoop({
    name: 'redis watch',
    everyMs: timings.redisWatchMs,
    clock,
    logger,
    async tick(signal) {
      isAway = !(await isThere(signal))
      if (isAway) awayMs = clock.now()
    },
  })
  return {
    start: () => loop.start(),
    stop: () => loop.stop(),
    lastAwayMs: () => awayMs,
    isAway: () => isAway,
  }
}
