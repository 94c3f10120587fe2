/**
 * Loads the Lua scripts of the folders beside this file and runs them by name and digest; a folder only
 * tells whose they are. A script may pull in shared functions with lines `-- @include lib/name.lua`; its `#!lua` line, if any, stays
 * first. What changes the ledger ends with `finish()` of lib/ledger.lua, whichever way it returns.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type Clock, systemClock } from '../lib/clock.ts'
import type { Redis } from './client.ts'

interface Script {
  name: string
  text: string
  sha: string
}

const scriptFolder = new URL('./scripts/', import.meta.url)

/** All read at the start: without free file descriptors every script can still run. */
const scriptTexts = new Map(
  readdirSync(scriptFolder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .map((file) => [basename(file), readFileSync(new URL(file, scriptFolder), 'utf8')]),
)

const loadedScripts = new Map<string, Script>()

export function loadScript(name: string): Script {
  const known = loadedScripts.get(name)
  if (known) return known
  const text = readWithIncludes(`${name}.lua`, endWithFinish)
  const script = { name, text, sha: createHash('sha1').update(text).digest('hex') }
  loadedScripts.set(name, script)
  return script
}

function readWithIncludes(file: string, prepare = (text: string) => text): string {
  // a path leads out of the folder: the bench has scripts of its own
  const text = scriptTexts.get(basename(file)) ?? readFileSync(new URL(file, scriptFolder), 'utf8')
  return prepare(text).replaceAll(/^-- @include (\S+)$/gm, (_line, path: string) =>
    readWithIncludes(path),
  )
}

/** Makes what follows the includes a function, after which `finish()` runs. */
function endWithFinish(text: string): string {
  if (!text.includes('-- @include lib/ledger.lua')) return text
  const end = text.indexOf('\n', text.lastIndexOf('\n-- @include ') + 1)
  const body = text.slice(end)
  return `${text.slice(0, end)}\nlocal function main()${body}end\nlocal reply = main()\nfinish()\nreturn reply\n`
}

/** Runs a script atomically; returns ioredis' reply: string, number, array or null. */
export async function runScript(
  redis: Redis,
  name: string,
  keys: string[],
  args: (string | number)[],
): Promise<unknown> {
  const script = loadScript(name)
  try {
    return await redis.evalsha(script.sha, keys.length, ...keys, ...args)
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return redis.eval(script.text, keys.length, ...keys, ...args)
  }
}

/** Pairs of a reply in which names and values alternate. */
export function pairsOf(answer: readonly string[]): [name: string, value: string][] {
  return answer.flatMap((name, at): [string, string][] =>
    at % 2 === 0 ? [[name, answer[at + 1] ?? '']] : [],
  )
}

/** Redis' clock, ms since 1970; the ledger uses it for all times. */
export async function redisNow({ redis }: { redis: Redis }): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

/**
 * Redis' clock as a Clock. What is decided by a time and stored or sent is the same on every
 * machine, whatever its own clock shows. It runs on with the clock that never jumps.
 */
export interface RedisClock extends Clock {
  /** Asks Redis for its time. Before the first answer it shows this machine's. */
  follow(redis: Redis): Promise<void>
}

export function createRedisClock(own: Clock = systemClock): RedisClock {
  let aheadMs = own.now() - own.monotonic()
  return {
    ...own,
    now: () => Math.floor(own.monotonic() + aheadMs),
    async follow(redis) {
      const askedMs = own.monotonic()
      const redisMs = await redisNow({ redis })
      // Redis read its clock between question and answer: what fits that is kept
      const [least, most] = [redisMs - own.monotonic(), redisMs + 1 - askedMs]
      aheadMs = Math.min(Math.max(aheadMs, least), most)
    },
  }
}

/**
 * Takes or extends the lease for `ms`; returns false if another process holds it. A lease only
 * saves work: what it guards is safe to do twice.
 */
export async function holdLease(
  redis: Redis,
  name: string,
  { holder, ms }: { holder: string; ms: number },
): Promise<boolean> {
  return (await runScript(redis, 'hold-lease', [name], [holder, ms])) === 1
}

/** Releases the lease if `holder` holds it. */
export async function releaseLease(redis: Redis, name: string, holder: string): Promise<void> {
  await runScript(redis, 'hold-lease', [name], [holder, 0])
}
