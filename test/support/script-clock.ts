/** Scripts at an instant that a test chooses: what happens in the very millisecond in which a time is over. */
import { createHash } from 'node:crypto'
import type { Redis } from '../../src/redis/client.ts'
import { loadScript } from '../../src/redis/scripts.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'

/** The text of a script that reads such a time of Redis' clock, ms. */
function scriptAt(text: string, nowMs: number): string {
  const micros = Math.round(nowMs * 1000)
  const time = `{ '${Math.floor(micros / 1_000_000)}', '${micros % 1_000_000}' }`
  return text.replaceAll(`redis.call('TIME')`, () => time)
}

/** Runs texts of scripts in which `prepare` changed something: Redis gets each text once. */
export function createTextRunner(
  redis: Redis,
  prepare: (text: string) => string,
): (text: string, ...args: (string | number)[]) => Promise<unknown> {
  const known = new Map<string, { text: string; sha: string }>()
  return async (original, ...args) => {
    const rest = args as [number]
    const found = known.get(original)
    if (found) {
      try {
        return await redis.evalsha(found.sha, ...rest)
      } catch (error) {
        if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      }
    }
    const text = found?.text ?? prepare(original)
    known.set(original, { text, sha: createHash('sha1').update(text).digest('hex') })
    return redis.eval(text, ...rest)
  }
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

/** A ledger in simulated time: its scripts run as if Redis' clock showed `nowMs()`. */
export function ledgerInTime(ledger: AccountLedger, nowMs: () => number): AccountLedger {
  const { redis } = ledger
  const keys = [ledger.key(), ledger.key('moved')]
  const clock = ledger.key('simulated-time')
  const time = `(function() local ms = tonumber(redis.call('GET', '${clock}'))
    return { math.floor(ms / 1000), (ms % 1000) * 1000 } end)()`
  const runText = createTextRunner(redis, (text) =>
    text.replaceAll(`redis.call('TIME')`, () => time),
  )
  async function run(name: string, ...args: (string | number)[]): Promise<unknown> {
    const text = loadScript(name).text
    // sent together: one way to Redis and back
    const [, answer] = await Promise.all([
      redis.set(clock, Math.floor(nowMs())),
      runText(text, keys.length, ...keys, ...args),
    ])
    return answer
  }
  return {
    ...ledger,
    run,
    runJson: async <T>(name: string, ...args: (string | number)[]) =>
      JSON.parse(String(await run(name, ...args))) as T,
  }
}
