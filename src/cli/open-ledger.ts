/** Opens the ledger for one command: at once or not at all, and whatever Redis' safety. */
import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { readSilences } from '../daemon/grouping.ts'
import { createWorkHints } from '../delivery/due-accounts.ts'
import { systemClock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { RedisConfig } from '../redis/config.ts'
import type * as RedisConnection from '../redis/connection.ts'
import type { Redis } from '../redis/connection.ts'
import { holdRedis } from '../redis/embedded-redis.ts'
import { claimSchema, keyOf, placeOf, refusalOf, StoreError } from '../redis/health.ts'
import { createKeys, type Keys } from '../redis/keys.ts'
import type { Silence } from '../routing/silences.ts'
import { destinationsOf } from '../sinks/destinations.ts'
import type { Destination } from '../sinks/sink.ts'
import { type Book, findLead, openBooks } from '../store/account-ledger.ts'
import { openLeftBooks } from '../store/accounts.ts'
import { sinksOf } from '../store/pending-items.ts'
import { isIndexed, isLookDone, lookOnce, lookPauseMs } from '../store/record-index.ts'
import { type Context, quiet } from './context.ts'
import { CommandError, findNamed, shortText } from './terminal.ts'

export interface OpenLedger {
  redis: Redis
  keys: Keys
  /** One for each account: those of the configuration first, then those that left it. */
  books: Book[]
}

/** How long a command waits for a Redis that is away. */
const usualPatienceMs = 3_000

/** Throws StoreError, and whatever `work` throws. */
export async function withLedger<Result>(
  config: Config,
  work: (ledger: OpenLedger) => Promise<Result>,
): Promise<Result> {
  return withRedis(config.redis, async (redis) => {
    const keys = createKeys(config.redis.prefix)
    await claimSchema(redis, keys)
    const configured = config.accounts.map(({ name }) => name)
    const books = await openBooks({ redis, keys, config: config.ledger }, configured)
    await findLead({ redis, keys }, books)
    books.push(...(await openLeftBooks({ redis, keys, config: config.ledger }, configured)))
    return work({ redis, keys, books })
  })
}

/**
 * What an older version left, accounts and records without an index, is found by a running daemon, or here
 * if there was none yet. Resolves with whether it is: not while a daemon looks.
 */
export async function lookFirst(
  { terminal, clock, stop }: Context,
  ledger: OpenLedger,
): Promise<boolean> {
  if (await isLookDone(ledger)) return true
  terminal.progress('looking through what an older version left')
  const isDone = await lookOnce(ledger, {
    holder: randomUUID(),
    async mayGoOn() {
      await clock.sleep(lookPauseMs, stop)
      return !stop.aborted
    },
  })
  terminal.progress('')
  stop.throwIfAborted()
  return isDone
}

/** For what reads the books through their index of records. Throws CommandError while it is not whole. */
export async function needIndex(context: Context, ledger: OpenLedger): Promise<void> {
  const indexed = await Promise.all(ledger.books.map(isIndexed))
  if (indexed.every(Boolean) || (await lookFirst(context, ledger))) return
  throw new CommandError(
    'refused',
    'a running daemon still looks through what an older version left, and not all events are found yet; ask again in a few minutes',
  )
}

/** Of an account that the configuration has. */
export function bookOf({ books }: OpenLedger, account: string): Book {
  const book = books.find((one) => one.account === account)
  if (book === undefined) throw new Error(`no book is open for account ${account}`)
  return book
}

/** Its book, also of an account that the configuration no longer has. Throws CommandError. */
export function findBook({ books }: OpenLedger, account: string): Book {
  const named = books.map((book) => ({ name: book.account, book }))
  return findNamed(named, account, 'account').book
}

/** So that a running daemon looks at once at what a command made due, whichever sink has it. */
export async function tellDaemon(
  { redis, keys, books }: OpenLedger,
  accounts: Iterable<string>,
): Promise<void> {
  for (const account of accounts) {
    const book = books.find((one) => one.account === account)
    const sinks = book ? await sinksOf(book) : []
    await createWorkHints(redis, keys).tell(sinks.map((sink) => ({ account, sink, inMs: 0 })))
  }
}

/** Throws StoreError: `unreachable` after `patienceMs` without Redis, or what Redis refuses. */
export async function withRedis<Result>(
  config: RedisConfig,
  work: (redis: Redis) => Promise<Result>,
  patienceMs = usualPatienceMs,
): Promise<Result> {
  const held = await holdRedis(config, quiet)
  try {
    return await onceReady(config, work, patienceMs)
  } finally {
    await held.release()
  }
}

async function onceReady<Result>(
  config: RedisConfig,
  work: (redis: Redis) => Promise<Result>,
  patienceMs: number,
): Promise<Result> {
  // what is loaded with a command that asks no Redis must not load its client
  const connection = await import('../redis/connection.ts')
  const redis = connection.connectRedis(config, quiet)
  try {
    await ready(redis, config, { patienceMs, connection })
    return await work(redis)
  } catch (error) {
    throw refusalOf(error, placeOf(config)) ?? error
  } finally {
    redis.disconnect()
  }
}

/** Waits a moment for a Redis that is away, and not at all for one that refuses the password. */
async function ready(
  redis: Redis,
  config: RedisConfig,
  { patienceMs, connection }: { patienceMs: number; connection: typeof RedisConnection },
): Promise<void> {
  const { isSignInRefused, onTrouble } = connection
  let lastError: unknown
  const decided = new AbortController()
  redis.once('ready', () => decided.abort())
  onTrouble(redis, (reason) => {
    lastError = reason
    if (isSignInRefused(reason)) decided.abort()
  })
  await systemClock.sleep(patienceMs, decided.signal)
  if (redis.status === 'ready') return
  const place = placeOf(config)
  const refusal = refusalOf(lastError, place)
  if (refusal) throw refusal
  throw new StoreError(
    'unreachable',
    `${place} is not reachable (${whatHappened(lastError)}); start it, or correct ${keyOf(config)}`,
    { cause: lastError },
  )
}

function whatHappened(error: unknown): string {
  if (error === undefined) return 'no answer in time'
  if (error instanceof Error && 'code' in error) return String(error.code)
  return messageOf(error).replaceAll(/\s+/g, ' ')
}

/** Of commands whose operator the ledger keeps. */
export interface ByOption {
  by?: string
}

export function addByOption(command: Command): Command {
  const described = "who does it, as stories tell it (default: $USER, else the system's user)"
  return command.option('--by <name>', described, shortText)
}

/** Who asks: `--by`, else USER (on Windows USERNAME), else the system's user; undefined where it has none. */
export function operatorName(
  { env }: Pick<Context, 'env'>,
  { by }: ByOption = {},
  systemUser: () => string = () => userInfo().username,
): string | undefined {
  return by ?? readable(env['USER'] ?? env['USERNAME']) ?? readable(nameOf(systemUser))
}

function readable(given: string | undefined): string | undefined {
  const name = (given ?? '').replaceAll(/\p{Cc}/gu, '').trim()
  return name === '' ? undefined : name.slice(0, 100)
}

/** A container may run under a number that has no name. */
function nameOf(systemUser: () => string): string | undefined {
  try {
    return systemUser()
  } catch {
    return undefined
  }
}

/** What an operator reads instead of a destination's id, e.g. the recipient's address. */
export type DestinationLabels = ReadonlyMap<string, string>

/** Of every destination that the configuration has. */
export function destinationLabels(config: Config): DestinationLabels {
  const destinations = [...destinationsBySink(config).values()].flat()
  return new Map(destinations.map(({ id, label }) => [id, label]))
}

/** Every sink's destinations, by the sink's name. Loads no sink: most commands name them and send nothing. */
export function destinationsBySink({
  sinks,
}: Pick<Config, 'sinks'>): ReadonlyMap<string, readonly Destination[]> {
  return new Map(sinks.map((sink) => [sink.name, destinationsOf(sink)]))
}

/** Silences as a command knows them: those of the file, and those made by command while Redis answers. */

export interface KnownSilences {
  silences: readonly Silence[]
  /** Why those made by command are not among them; undefined: they are. */
  missing: string | undefined
}

/** A command that can do without Redis does not wait long for it. */
const patienceMs = 1_000

/** Never throws because of Redis. */
export async function knownSilences(config: Config): Promise<KnownSilences> {
  try {
    const keys = createKeys(config.redis.prefix)
    const { silences } = await withRedis(
      config.redis,
      (redis) => readSilences(redis, keys),
      patienceMs,
    )
    return { silences: [...config.silences, ...silences], missing: undefined }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { silences: config.silences, missing: error.message }
  }
}

/** What is said where some may be missing. */
export function missingLines({ missing }: KnownSilences): string[] {
  return missing === undefined ? [] : [`  silences made by command are not known: ${missing}`]
}
