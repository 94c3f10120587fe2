/**
 * Opens the account ledgers for one command: at once or not at all, without the daemon's safety
 * checks of Redis.
 */
import { userInfo } from 'node:os'
import type { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import { explainTlsMismatch } from '../../lib/config/web-address.ts'
import type { RedisConfig } from '../../redis/config.ts'
import { describeRedis, redisConfigKey } from '../../redis/place.ts'
import type * as RedisConnection from '../../redis/connection.ts'
import type { Redis } from '../../redis/client.ts'
import { ensureRedis } from '../../redis/embedded-redis.ts'
import { claimSchema, StoreError, toStoreError } from '../../redis/health.ts'
import { createKeys, type Keys } from '../../redis/keys.ts'
import { type AccountLedger, findLead, openLedgers } from '../../store/account-ledger.ts'
import { openLeftLedgers } from '../../store/accounts.ts'
import { type Context, silentLogger } from '../context.ts'
import { CommandError, findNamed, parseShortText } from '../terminal.ts'
import { recordAct } from '../../operator/acts/record-act.ts'

export interface OpenStore {
  redis: Redis
  keys: Keys
  /** One for each account: configured accounts first, then those that left. */
  ledgers: AccountLedger[]
}

/** How long a command waits for an unreachable Redis. */
const defaultPatienceMs = 3_000

/** Throws StoreError, and whatever `use` throws. */
export async function withStore<Result>(
  config: Config,
  use: (ledger: OpenStore) => Promise<Result>,
): Promise<Result> {
  return withRedis(config.redis, async (redis) => {
    const keys = createKeys(config.redis.prefix)
    await claimSchema(redis, keys)
    const configured = config.accounts.map(({ name }) => name)
    const ledgers = await openLedgers({ redis, keys, config: config.ledger }, configured)
    await findLead({ redis, keys }, ledgers)
    ledgers.push(...(await openLeftLedgers({ redis, keys, config: config.ledger }, configured)))
    return use({ redis, keys, ledgers })
  })
}

/** The ledger of a configured account. */
export function ledgerFor({ ledgers }: OpenStore, account: string): AccountLedger {
  const ledger = ledgers.find((one) => one.account === account)
  if (ledger === undefined) throw new Error(`the ledger of account ${account} is not open`)
  return ledger
}

/** The ledgers of all accounts, or of one. Throws CommandError for one that is not known. */
export function ledgersFor(
  store: OpenStore,
  { account }: { account?: string | undefined },
): readonly AccountLedger[] {
  return account === undefined ? store.ledgers : [requireLedger(store, account)]
}

/** The ledger of an account, configured or not. Throws CommandError. */
function requireLedger({ ledgers }: OpenStore, account: string): AccountLedger {
  const named = ledgers.map((ledger) => ({ name: ledger.account, ledger }))
  return findNamed(named, account, 'account').ledger
}

/**
 * Throws StoreError: `unreachable` after `patienceMs` without Redis, or with what Redis refuses.
 */
export async function withRedis<Result>(
  config: RedisConfig,
  use: (redis: Redis) => Promise<Result>,
  patienceMs = defaultPatienceMs,
): Promise<Result> {
  const server = await ensureRedis(config, silentLogger)
  try {
    return await connectAndUse(config, use, patienceMs)
  } finally {
    await server.release()
  }
}

async function connectAndUse<Result>(
  config: RedisConfig,
  use: (redis: Redis) => Promise<Result>,
  patienceMs: number,
): Promise<Result> {
  const redis = await connectToRunning(config, patienceMs)
  try {
    return await use(redis)
  } catch (error) {
    throw toStoreError(error, describeRedis(config)) ?? error
  } finally {
    redis.disconnect()
  }
}

/** Connects to a Redis that runs: starts no embedded one. Throws StoreError as `withRedis` does. */
async function connectToRunning(config: RedisConfig, patienceMs: number): Promise<Redis> {
  // Commands that do not use Redis load this module too, but must not load the Redis client.
  const connection = await import('../../redis/connection.ts')
  const redis = connection.connectRedis(config, silentLogger)
  try {
    await waitUntilReady(redis, config, { patienceMs, connection })
    return redis
  } catch (error) {
    redis.disconnect()
    throw error
  }
}

/** Waits for an unreachable Redis, but not for one that refuses the password. */
async function waitUntilReady(
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
  const place = describeRedis(config)
  const refusal = toStoreError(lastError, place)
  if (refusal) throw refusal
  throw new StoreError(
    'unreachable',
    `${place} is not reachable (${describeFailure(lastError, config)}); start it, or correct ${redisConfigKey(config)}`,
    { cause: lastError },
  )
}

function describeFailure(error: unknown, { url }: RedisConfig): string {
  if (error === undefined) {
    // a Redis without TLS waits for the end of what it takes for a command
    const hint = /^rediss:/i.test(url?.reveal() ?? '') ? ', as from a port without TLS' : ''
    return `no answer in time${hint}`
  }
  const mismatch = explainTlsMismatch(error, 'rediss')
  if (mismatch !== undefined) return mismatch
  if (error instanceof Error && 'code' in error) return String(error.code)
  return errorMessage(error).replaceAll(/\s+/g, ' ')
}

/** For commands whose operator the ledger records. */
export interface ByOption {
  by?: string
}

export function addByOption(command: Command): Command {
  const described = "who does it, noted in the history (default: $USER, else the system's user)"
  return command.option('--by <name>', described, parseShortText)
}

/**
 * The operator's name: `--by`, else USER (on Windows USERNAME), else the system's user; undefined
 * without any.
 */
export function operatorName(
  { env }: Pick<Context, 'env'>,
  { by }: ByOption = {},
  systemUser: () => string = () => userInfo().username,
): string | undefined {
  return by ?? cleanName(env['USER'] ?? env['USERNAME']) ?? cleanName(readSystemUser(systemUser))
}

/** Notes an act of a command with its operator. `isDone`: whether it changed anything. */
export function recordCommand<Result>(
  context: Pick<Context, 'env' | 'terminal'>,
  store: Pick<OpenStore, 'redis' | 'keys'>,
  {
    act,
    account = '',
    by,
    items = [],
    isDone = () => true,
  }: {
    act: string
    account?: string | undefined
    by?: string | undefined
    items?: readonly string[]
    isDone?: (result: Result) => boolean
  },
  perform: () => Promise<Result>,
): Promise<Result> {
  const named = operatorName(context, by === undefined ? {} : { by }) ?? 'an operator'
  const onUnnoted = (error: unknown): void =>
    context.terminal.printError(`what came of it is not recorded: ${errorMessage(error)}`)
  // what a command refuses has changed nothing; of all else nobody knows how far it came
  const outcomeOf = (error: unknown): 'refused' | 'unclear' =>
    error instanceof CommandError ? 'refused' : 'unclear'
  const note = { by: named, act, via: 'command', account, items, outcomeOf, onUnnoted } as const
  return recordAct(store, note, async () => {
    const result = await perform()
    return { result, isDone: isDone(result) }
  })
}

function cleanName(given: string | undefined): string | undefined {
  const name = (given ?? '').replaceAll(/\p{Cc}/gu, '').trim()
  return name === '' ? undefined : name.slice(0, 100)
}

/** A container may run under a uid that has no name. */
function readSystemUser(systemUser: () => string): string | undefined {
  try {
    return systemUser()
  } catch {
    return undefined
  }
}
