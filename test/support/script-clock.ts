/** Scripts at an instant that a test chooses: what happens in the very millisecond in which a time is over. */
import type { Redis } from '../../src/redis/connection.ts'
import { loadScript } from '../../src/redis/scripts.ts'

/** Runs a script as if Redis' clock showed this time, ms. */
export function runScriptAt(
  { redis, nowMs }: { redis: Redis; nowMs: number },
  name: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  const time = `{ '${Math.floor(nowMs / 1000)}', '${(nowMs % 1000) * 1000}' }`
  const text = loadScript(name).text.replaceAll(`redis.call('TIME')`, () => time)
  return redis.eval(text, keys.length, ...keys, ...args)
}
