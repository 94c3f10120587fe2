/** Scripts at an instant that a test chooses: what happens in the very millisecond in which a time is over. */
import type { Redis } from '../../src/redis/connection.ts'
import { loadScript } from '../../src/redis/scripts.ts'

/** The text of a script that reads such a time of Redis' clock, ms. */
export function scriptAt(text: string, nowMs: number): string {
  const micros = Math.round(nowMs * 1000)
  const time = `{ '${Math.floor(micros / 1_000_000)}', '${micros % 1_000_000}' }`
  return text.replaceAll(`redis.call('TIME')`, () => time)
}

/** Runs a script as if Redis' clock showed this time, ms. */
export function runScriptAt(
  { redis, nowMs }: { redis: Redis; nowMs: number },
  name: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  return redis.eval(scriptAt(loadScript(name).text, nowMs), keys.length, ...keys, ...args)
}
