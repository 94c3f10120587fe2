/** The active generation: which configuration of feeds, sinks and routes the replicas agree on. */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'

/** Registers `hash` as active unless it is; its number grows with every change. */
export async function activateGeneration(redis: Redis, keys: Keys, hash: string): Promise<number> {
  return Number(await runScript(redis, 'activate-generation', [keys.shared('generation')], [hash]))
}

/** Whether no other configuration was activated since. */
export async function isNewestGeneration(redis: Redis, keys: Keys, mine: number): Promise<boolean> {
  const number = await redis.hget(keys.shared('generation'), 'number')
  return number === null || Number(number) <= mine
}
