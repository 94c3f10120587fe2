/**
 * One account's book in the ledger: where its keys hang, under which digests, how long it keeps.
 * Everything else in this folder works on a book. It holds no state of its own; Redis does.
 */
import { randomBytes } from 'node:crypto'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'
import { defaultTimings } from '../runtime/timings.ts'
import type { LedgerConfig } from './config.ts'
import { createDigests, type Digests } from './digests.ts'

export interface Book {
  readonly account: string
  readonly redis: Redis
  readonly digests: Digests
  readonly horizonMs: number
  /** As the scripts take it. */
  readonly retention: { story: number; payload: number }
  /** How long an item waits for its full event before the message goes without. */
  readonly detailWaitMs: number
  key(...parts: string[]): string
  /** Runs a ledger script on this account's keys. */
  run: (script: string, ...args: (string | number)[]) => Promise<unknown>
  /** Runs one whose reply is JSON of the shape T. */
  ask: <T>(script: string, ...args: (string | number)[]) => Promise<T>
  /** Whether an account has a ledger in this Redis; none: an operator discarded it. */
  hasLedger: (account: string) => Promise<boolean>
}

export interface BookOptions {
  redis: Redis
  keys: Keys
  account: string
  config: LedgerConfig
  detailWaitMs?: number
}

/** Makes the book of an account where there is none; the account is registered first. */
export async function openBook(options: BookOptions): Promise<Book> {
  const { redis, keys, account } = options
  await registerAccount(options)
  const base = keys.account(account)
  await runScript(redis, 'open-book', [base], [randomBytes(32).toString('hex')])
  const book = await reopenBook(options)
  if (!book) throw new Error('the ledger key vanished while it was being read')
  return book
}

/** Accounts that are opened at once. */
const openedAtOnce = 50

/** The same of several accounts, in their order. */
export async function openBooks(
  options: Omit<BookOptions, 'account'>,
  accounts: readonly string[],
): Promise<Book[]> {
  const books: Book[] = []
  for (let at = 0; at < accounts.length; at += openedAtOnce) {
    const some = accounts.slice(at, at + openedAtOnce)
    books.push(...(await Promise.all(some.map((account) => openBook({ ...options, account })))))
  }
  return books
}

/** For ever (see `accounts.ts`), so that what it takes in stays in sight when it leaves the configuration. */
async function registerAccount({ redis, keys, account }: BookOptions): Promise<void> {
  const [name, field] = [keys.shared('accounts'), `${account}|since`]
  if ((await redis.hexists(name, field)) === 1) return // a full Redis refuses even what would change nothing
  const [seconds] = await redis.time()
  await redis.hsetnx(name, field, Number(seconds) * 1000)
}

/** Makes nothing: undefined for an account that has no book. */
export async function reopenBook({
  redis,
  keys,
  account,
  config,
  detailWaitMs = defaultTimings.detailWaitMs,
}: BookOptions): Promise<Book | undefined> {
  const key = (...parts: string[]): string => keys.account(account, ...parts)
  const markKey = await redis.get(key('mark-key'))
  if (markKey === null) return undefined
  // the account's digest key, made once; every replica reads the same
  const digests = createDigests(Buffer.from(markKey, 'hex'))
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
    detailWaitMs,
    key,
    run,
    ask: async <T>(script: string, ...args: (string | number)[]) =>
      JSON.parse(String(await run(script, ...args))) as T,
    hasLedger: async (other) => (await redis.exists(keys.account(other, 'mark-key'))) === 1,
  }
}
