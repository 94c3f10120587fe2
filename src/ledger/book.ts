/**
 * One account's book in the ledger: where its keys hang, under which digests, how long it keeps.
 * Everything else in this folder works on a book. It holds no state of its own; Redis does.
 */
import { randomBytes } from 'node:crypto'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'
import type { LedgerConfig } from './config.ts'
import { createDigests, type Digests } from './digests.ts'

export interface Book {
  readonly account: string
  readonly redis: Redis
  readonly digests: Digests
  readonly horizonMs: number
  /** As the scripts take it. */
  readonly retention: { story: number; payload: number }
  key(...parts: string[]): string
  /** Runs a ledger script on this account's keys. */
  run: (script: string, ...args: (string | number)[]) => Promise<unknown>
  /** Runs one whose reply is JSON of the shape T. */
  ask: <T>(script: string, ...args: (string | number)[]) => Promise<T>
}

export interface BookOptions {
  redis: Redis
  keys: Keys
  account: string
  config: LedgerConfig
}

export async function openBook({ redis, keys, account, config }: BookOptions): Promise<Book> {
  const key = (...parts: string[]): string => keys.account(account, ...parts)
  const digests = createDigests(await markKey(redis, key('mark-key')))
  // scripts use the first; the second, which never exists, makes a Cluster whose slot moves say "try
  // again" until it has: a script that names one key would run where half of the ledger is
  const names = [key(), key('moved')]
  const run = (script: string, ...args: (string | number)[]): Promise<unknown> =>
    runScript(redis, script, names, args)
  return {
    account,
    redis,
    digests,
    horizonMs: config.dedupeHorizonMs,
    retention: { story: config.storyRetentionMs, payload: config.payloadRetentionMs },
    key,
    run,
    ask: async <T>(script: string, ...args: (string | number)[]) =>
      JSON.parse(String(await run(script, ...args))) as T,
  }
}

/** The account's digest key, made once; every replica reads the same. */
async function markKey(redis: Redis, name: string): Promise<Buffer> {
  await redis.set(name, randomBytes(32).toString('hex'), 'NX')
  const text = await redis.get(name)
  if (text === null) throw new Error('the ledger key vanished while it was being read')
  return Buffer.from(text, 'hex')
}
