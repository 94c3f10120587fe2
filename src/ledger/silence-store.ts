/** Silences made by command, for all replicas: texts as the routing writes and reads them. */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'

export async function readSilenceTexts(redis: Redis, keys: Keys): Promise<Map<string, string>> {
  return new Map(Object.entries(await redis.hgetall(keys.shared('silences'))))
}

/** Adds one, or writes another text for the same id. */
export async function writeSilence(
  redis: Redis,
  keys: Keys,
  { id, text }: { id: string; text: string },
): Promise<void> {
  await redis.hset(keys.shared('silences'), id, text)
}

export async function removeSilence(redis: Redis, keys: Keys, id: string): Promise<void> {
  await redis.hdel(keys.shared('silences'), id)
}
