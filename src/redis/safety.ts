/** What Redis must be before Tocsin trusts it with the ledger: it may neither evict nor forget. */
import type { Redis } from './connection.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Keys } from './keys.ts'
import { StoreError } from './store-error.ts'

export interface RedisSafety {
  isDurable: boolean
  isEvictionSafe: boolean
  /** What is wrong and what to set, one sentence each. */
  problems: string[]
}

/** Reads INFO, not CONFIG: managed services refuse the latter. */
export async function inspectSafety(redis: Redis): Promise<RedisSafety> {
  const field = await readInfo(redis)
  const policy = field('maxmemory_policy') ?? 'noeviction'
  const isEvictionSafe = policy === 'noeviction'
  const isDurable = field('aof_enabled') === '1'
  const problems: string[] = []
  if (!isDurable) {
    problems.push('it keeps no append-only file and forgets on a restart; set "appendonly yes"')
  }
  if (!isEvictionSafe) {
    problems.push(`it may evict keys ("${policy}"); set "maxmemory-policy noeviction"`)
  }
  return { isDurable, isEvictionSafe, problems }
}

/** Throws StoreError `unsafe` unless `isAllowed`; then says so, loudly. */
export async function refuseUnsafe(
  redis: Redis,
  { isAllowed, logger }: { isAllowed: boolean; logger: Logger },
): Promise<void> {
  const { problems } = await inspectSafety(redis)
  if (problems.length === 0) return
  if (!isAllowed) {
    const remedy = 'change its configuration, or accept the risk with redis.allow_unsafe: true'
    throw new StoreError(
      'unsafe',
      `redis.url: this Redis may lose events: ${problems.join('; ')} (${remedy})`,
    )
  }
  logger.warn({ problems }, 'unsafe redis accepted by redis.allow_unsafe: events may be lost')
}

/** Beyond this share of its memory nothing more is taken in: the rest is for what has yet to leave. */
const mostShare = 0.7

/** Whether Redis has room for more events; always where it has no limit of its own. */
export async function hasRoom(redis: Redis): Promise<boolean> {
  const field = await readInfo(redis, 'memory')
  const limit = Number(field('maxmemory') ?? 0)
  return limit === 0 || Number(field('used_memory') ?? 0) < limit * mostShare
}

/** All of it, not Tocsin's share: what an operator compares with `maxmemory`. */
export async function usedMemoryBytes(redis: Redis): Promise<number> {
  const field = await readInfo(redis, 'memory')
  return Number(field('used_memory') ?? 0)
}

type InfoField = (name: string) => string | undefined

async function readInfo(redis: Redis, section = 'default'): Promise<InfoField> {
  const info = await redis.info(section)
  return (name) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1]
}

const schemaVersion = 1

/** Claims the key space for this version's layout; throws StoreError `too_new` on a newer one. */
export async function claimSchema(redis: Redis, keys: Keys): Promise<void> {
  const name = keys.shared('schema')
  await redis.set(name, schemaVersion, 'NX')
  const stored = Number(await redis.get(name))
  if (stored > schemaVersion) {
    throw new StoreError(
      'too_new',
      `Redis holds a ledger of layout ${stored}, this version writes ${schemaVersion}: run the newer version, or give this one a prefix of its own (redis.prefix)`,
    )
  }
}
