/** The active generation: which configuration the replicas agree on. */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'

/** A configuration that no replica confirmed for so long has none any more. */
const desertedAfterMs = 60_000

/** Registers `hash` as active unless it is; its number grows with every change. */
export function activateGeneration(redis: Redis, keys: Keys, hash: string): Promise<number> {
  return run(redis, keys, [hash, 'start', desertedAfterMs])
}

/**
 * The number of `hash` while it is the active generation, undefined while another one is: that one
 * was started later, and some replica confirmed it within `patienceMs`.
 */
export async function confirmGeneration(
  redis: Redis,
  keys: Keys,
  hash: string,
  patienceMs = desertedAfterMs,
): Promise<number | undefined> {
  const number = await run(redis, keys, [hash, 'confirm', patienceMs])
  return number === 0 ? undefined : number
}

/** Whether some replica runs, or did a minute ago. */
export async function hasReplicas(redis: Redis, keys: Keys): Promise<boolean> {
  const confirmedMs = Number(await redis.hget(keys.shared('generation'), 'confirmed'))
  const [seconds] = await redis.time()
  return Number(seconds) * 1000 - confirmedMs < desertedAfterMs
}

/** The hash that is active or was last; undefined: none ever was. */
export async function activeHash(redis: Redis, keys: Keys): Promise<string | undefined> {
  return (await redis.hget(keys.shared('generation'), 'hash')) ?? undefined
}

async function run(redis: Redis, keys: Keys, args: (string | number)[]): Promise<number> {
  return Number(await runScript(redis, 'activate-generation', [keys.shared('generation')], args))
}
