/** What Redis must be before Tocsin trusts it with the ledger: it may neither evict nor forget. */
import type { Redis } from './connection.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Keys } from './keys.ts'
import type { RedisConfig } from './config.ts'
import { infoOfMasters, infoOfReplicas, type NodeInfo } from './nodes.ts'
import { keyOf, StoreError } from './store-error.ts'

export interface RedisSafety {
  isDurable: boolean
  isEvictionSafe: boolean
  /** What is wrong and what to set, one sentence each. */
  problems: string[]
}

export interface RedisHealth extends RedisSafety {
  /**
   * All of it, not Tocsin's share: what an operator compares with `maxmemory`. Of several masters the
   * one that uses most.
   */
  usedMemoryBytes: number
  /** Nothing more is taken in: see `hasRoom`. */
  isFull: boolean
}

/** Of all masters the worst. Reads INFO, not CONFIG: managed services refuse the latter. */
export async function inspectRedis(redis: Redis): Promise<RedisHealth> {
  const masters = await infoOfMasters(redis)
  return {
    ...worstOf(masters),
    usedMemoryBytes: Math.max(...masters.map(({ field }) => Number(field('used_memory') ?? 0))),
    isFull: !masters.every(roomIn),
  }
}

function worstOf(infos: readonly NodeInfo[]): RedisSafety {
  const nodes = infos.map(inspectNode)
  return {
    isDurable: nodes.every(({ isDurable }) => isDurable),
    isEvictionSafe: nodes.every(({ isEvictionSafe }) => isEvictionSafe),
    problems: nodes.flatMap(({ problems }) => problems),
  }
}

function inspectNode({ node, field }: NodeInfo): RedisSafety {
  const policy = field('maxmemory_policy') ?? 'noeviction'
  const isEvictionSafe = policy === 'noeviction'
  const isDurable = field('aof_enabled') === '1'
  const who = node ?? 'it'
  const problems: string[] = []
  if (!isDurable) {
    problems.push(`${who} keeps no append-only file and forgets on a restart; set "appendonly yes"`)
  }
  if (!isEvictionSafe) {
    problems.push(`${who} may evict keys ("${policy}"); set "maxmemory-policy noeviction"`)
  }
  return { isDurable, isEvictionSafe, problems }
}

/**
 * Throws StoreError `unsafe` unless the configuration accepts it; then says so, loudly. Replicas count:
 * one of them is master after a failover.
 */
export async function refuseUnsafe(
  redis: Redis,
  config: RedisConfig,
  logger: Logger,
): Promise<void> {
  const infos = [...(await infoOfMasters(redis)), ...(await infoOfReplicas(redis))]
  const { problems } = worstOf(infos)
  if (problems.length === 0) return
  if (!config.allowUnsafe) {
    const remedy = 'change its configuration, or accept the risk with redis.allow_unsafe: true'
    throw new StoreError(
      'unsafe',
      `${keyOf(config)}: this Redis may lose events: ${problems.join('; ')} (${remedy})`,
    )
  }
  logger.warn({ problems }, 'unsafe redis accepted by redis.allow_unsafe: events may be lost')
}

/** Beyond this share of its memory nothing more is taken in: the rest is for what has yet to leave. */
const mostShare = 0.7

/** Whether Redis has room for more events, on each master; always where it has no limit of its own. */
export async function hasRoom(redis: Redis): Promise<boolean> {
  return (await infoOfMasters(redis)).every(roomIn)
}

function roomIn({ field }: NodeInfo): boolean {
  const limit = Number(field('maxmemory') ?? 0)
  return limit === 0 || Number(field('used_memory') ?? 0) < limit * mostShare
}

/** How long an answer about room holds, ms: INFO takes Redis longer than a page that shows nothing new. */
const roomKnownMs = 1_000

/** The same for who asks before each page: Redis is asked once a second at most. */
export function createRoomWatch(redis: Redis, clock: Clock): () => Promise<boolean> {
  let known: { has: Promise<boolean>; atMs: number } | undefined
  return () => {
    const nowMs = clock.monotonic()
    if (known && nowMs - known.atMs < roomKnownMs) return known.has
    const asked = { has: hasRoom(redis), atMs: nowMs }
    known = asked
    asked.has.catch(() => {
      if (known === asked) known = undefined // nobody knows
    })
    return asked.has
  }
}

/** Of what is stored: 1 up to version 0.4, with a BullMQ job for each delivery; 2 with claims. */
export const layout = 2

/** undefined: nothing is stored yet. */
export async function readSchema(redis: Redis, keys: Keys): Promise<number | undefined> {
  const stored = await redis.get(keys.shared('schema'))
  return stored === null ? undefined : Number(stored)
}

/**
 * Claims the key space for this version's layout; throws StoreError `too_new` on a newer one. An older one stays what
 * it is for a command; a daemon that has upgraded it says so.
 */
export async function claimSchema(
  redis: Redis,
  keys: Keys,
  { isUpgrade = false } = {},
): Promise<void> {
  const name = keys.shared('schema')
  // a full Redis refuses even a write that would change nothing
  if ((await readSchema(redis, keys)) === undefined) await redis.set(name, layout, 'NX')
  const stored = (await readSchema(redis, keys)) ?? layout
  if (stored > layout) {
    throw new StoreError(
      'too_new',
      `Redis holds a ledger of layout ${stored}, this version writes ${layout}: run the newer version, or give this one a prefix of its own (redis.prefix)`,
    )
  }
  if (stored < layout && isUpgrade) await redis.set(name, layout)
}
