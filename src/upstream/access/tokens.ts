/**
 * One access token per key and tenant, kept in Redis alone. Each replica renews it early at a time of
 * its own, so that mostly one does; where several make one, the newest serves all. A refused token,
 * and only that token, is dropped.
 */
import { createHash, createHmac } from 'node:crypto'
import { type Clock, defaultTimings, type Timings } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import { createSecretBox } from '../../lib/sealed-secret.ts'
import { maxTroubleAnswer, type Trouble } from '../../lib/trouble.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import { redisNow, runScript } from '../../redis/scripts.ts'
import type { AccountConfig } from '../config.ts'
import { abandonedError, waitOrAbort, UpstreamError } from '../error.ts'

export interface TokenCache {
  /** Returns a usable token. Throws UpstreamError. */
  get(signal?: AbortSignal): Promise<Token>
  /** Called after a 401 for this token, or where it cannot be sent. */
  refuse(token: Token): Promise<void>
  close(): void
}

interface TokenCacheOptions {
  account: string
  /** Requests a token from the API. */
  generate: (signal: AbortSignal) => Promise<string>
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  accountKey: () => AccountKey
  random?: (() => number) | undefined
}

/** A token lives an hour (docs/api-notes.md, Tokens). */
const lifetimeMs = 3_600_000

/** Between two attempts to renew a token that still serves, ms. */
const retryMs = 15_000

export function createTokenCache(options: TokenCacheOptions): TokenCache {
  const { clock, logger, accountKey, generate, random = Math.random } = options
  const closing = new AbortController()
  const store = createTokenStore(options)
  // differs a little by replica
  const renewsBelowMs = lifetimeMs * (0.2 + 0.1 * random())
  const leastLeftMs = lifetimeMs / 60
  let flight: { owner: string; token: Promise<Token> } | undefined
  let nextRenewalMs = 0

  /** All callers in this process wait for the same token. */
  function makeToken(key: AccountKey): Promise<Token> {
    const owner = key.fingerprint
    if (flight?.owner === owner) return flight.token
    const token = generateToken(key).finally(
      () => (flight = flight?.token === token ? undefined : flight),
    )
    flight = { owner, token }
    return token
  }

  async function generateToken(key: AccountKey): Promise<Token> {
    const bornMs = clock.monotonic()
    const value = await generate(closing.signal)
    const token = { value, leftMs: lifetimeMs - (clock.monotonic() - bornMs) }
    await store.save(key, token)
    return token
  }

  function renewQuietly(key: AccountKey): void {
    if (clock.monotonic() < nextRenewalMs) return
    nextRenewalMs = clock.monotonic() + retryMs * (0.5 + random())
    makeToken(key).catch((error: unknown) => {
      logger.warn({ account: options.account, err: error }, 'token not renewed; the old one serves')
    })
  }

  return {
    async get(signal) {
      if (signal?.aborted) throw abandonedError()
      const key = accountKey()
      const token = await store.read(key)
      if (!token || token.leftMs <= leastLeftMs) return waitOrAbort(makeToken(key), signal)
      if (token.leftMs < renewsBelowMs) renewQuietly(key)
      return token
    },
    refuse: (token) => store.drop(accountKey(), token),
    close: () => closing.abort(),
  }
}

export interface Token {
  value: string
  /** How long it is still valid. */
  leftMs: number
}

export interface TokenStore {
  read(key: AccountKey): Promise<Token | undefined>
  /** Saves the token unless Redis holds a newer one. */
  save(key: AccountKey, token: Token): Promise<void>
  /** Drops the token unless another one has replaced it. */
  drop(key: AccountKey, token: Token): Promise<void>
}

export function createTokenStore({
  redis,
  keys,
}: Pick<TokenCacheOptions, 'redis' | 'keys'>): TokenStore {
  const tokenKey = ({ fingerprint }: AccountKey): string => keys.shared('token', fingerprint)

  return {
    async read(key) {
      const name = tokenKey(key)
      const [sealed, leftMs] = await Promise.all([redis.hget(name, 'sealed'), redis.pttl(name)])
      const value = sealed === null ? null : key.open(sealed)
      return value === null || leftMs <= 0 ? undefined : { value, leftMs }
    },
    async save(key, { value, leftMs }) {
      const args = [key.seal(value), tokenFingerprint(value), Math.max(1, Math.floor(leftMs))]
      await runScript(redis, 'store-token', [tokenKey(key)], args)
    },
    async drop(key, { value }) {
      await runScript(redis, 'drop-token', [tokenKey(key)], [tokenFingerprint(value)])
    },
  }
}

function tokenFingerprint(token: string): string {
  return createHash('sha256').update(token).digest('hex').slice(0, 16)
}

export interface AccountPause {
  /** Time left of the pause. 0: the next request tests whether the key works again. */
  leftMs: number
  /** Pauses since the last success. */
  times: number
  trouble: Trouble
}

export interface AccountAccess {
  /**
   * Throws UpstreamError `auth` with `retryAfterMs` while the account is paused, unless a test is to
   * be made all the same. Learns in any case whether a success ends a pause.
   */
  assertOpen(isTest?: boolean): Promise<void>
  /** Pauses the account; returns the error to throw. */
  pause(refusal: UpstreamError): Promise<UpstreamError>
  /** Called after an answer that shows that the API accepts key and token. */
  reportSuccess(): Promise<void>
  /** Null if the account is not paused. */
  current(): Promise<AccountPause | null>
}

interface AccountAccessOptions {
  account: string
  redis: Redis
  keys: Keys
  logger: Logger
  accountKey: () => AccountKey
  timings?: Timings | undefined
}

const maxPauseMs = 15 * 60_000

export function createAccountAccess(options: AccountAccessOptions): AccountAccess {
  const { account, redis, keys, logger, accountKey, timings = defaultTimings } = options
  let isPaused = false

  function key(): string {
    return pauseKey(keys, accountKey().fingerprint)
  }

  async function current(): Promise<AccountPause | null> {
    const pause = await readPause(redis, key())
    isPaused = pause !== null
    return pause
  }

  return {
    current,
    async assertOpen(isTest = false) {
      const { leftMs: retryAfterMs = 0 } = (await current()) ?? {}
      if (isTest || retryAfterMs === 0) return
      const message = 'the account is paused since its key was refused'
      throw new UpstreamError('auth', message, { retryAfterMs })
    },
    async pause(refusal) {
      const answer = refusal.message.slice(0, maxTroubleAnswer)
      const args = ['auth', timings.keyPauseMs, maxPauseMs, answer]
      const reply = await runScript(redis, 'pause-account', [key()], args)
      const [leftMs, times, made] = reply as [number, number, number]
      isPaused = true
      if (made === 1 && times === 1) {
        logger.error({ account, err: refusal }, 'account paused: the service refuses its key')
      }
      const { status, serviceCode, fault } = refusal
      const more = { status, serviceCode, fault, retryAfterMs: leftMs }
      return new UpstreamError('auth', refusal.message, more)
    },
    async reportSuccess() {
      if (!isPaused) return
      isPaused = false
      if ((await redis.del(key())) === 1) logger.info({ account }, 'account works again')
    },
  }
}

async function readPause(redis: Redis, name: string): Promise<AccountPause | null> {
  const [until, times, trouble] = await redis.hmget(name, 'until', 'times', 'trouble')
  if (!trouble) return null
  const leftMs = Number(until) - (await redisNow({ redis }))
  // An end further ahead than any pause was written before Redis' clock was set back.
  const isOver = leftMs <= 0 || leftMs > maxPauseMs
  const about = { times: Number(times), trouble: JSON.parse(trouble) as Trouble }
  return { leftMs: isOver ? 0 : leftMs, ...about }
}

/** Why an account's key is refused; a key that cannot be read counts as refused just now. */
export async function readAccountTrouble(
  { redis, keys }: Pick<AccountAccessOptions, 'redis' | 'keys'>,
  account: KeySource,
): Promise<Trouble | undefined> {
  try {
    const { fingerprint } = createAccountKey(account)()
    return (await readPause(redis, pauseKey(keys, fingerprint)))?.trouble
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const nowMs = await redisNow({ redis })
    return { reason: error.reason, answer: error.message, sinceMs: nowMs, lastMs: nowMs, count: 1 }
  }
}

function pauseKey(keys: Keys, fingerprint: string): string {
  return keys.shared('account-pause', fingerprint)
}

/**
 * What is derived from an API key. A fingerprint for key names in Redis reveals nothing. Only a
 * holder of the key can open the cipher. So no token is readable in Redis or its files.
 */
export interface AccountKey {
  apiKey: string
  /** 16 hex digits; changes with the key, the tenant and the base URL. */
  fingerprint: string
  seal(token: string): string
  /** Null if `sealed` was not sealed under this key. */
  open(sealed: string): string | null
}

type KeySource = Pick<AccountConfig, 'apiKey' | 'tenantId' | 'baseUrl'>

/**
 * Returns a function that reads the key at each use, since its file may change under a running
 * daemon. That function throws UpstreamError `auth` if the key cannot be read.
 */
export function createAccountKey(account: KeySource): () => AccountKey {
  let known: AccountKey | undefined
  return () => {
    const apiKey = readKey(account)
    if (known?.apiKey !== apiKey) known = deriveAccountKey(apiKey, account)
    return known
  }
}

function readKey({ apiKey }: KeySource): string {
  let key: string
  try {
    key = apiKey.reveal()
  } catch {
    throw new UpstreamError('auth', 'the API key cannot be read; see api_key_file of the account')
  }
  if (fitsHeader(key)) return key
  throw new UpstreamError('auth', 'the API key is empty or holds characters that no key has')
}

/** Whether a key or token can stand in a header. Servers take 8 to 16 KiB of headers. */
export function fitsHeader(text: string): boolean {
  return /^[\x21-\x7e]{1,16000}$/.test(text)
}

function deriveAccountKey(apiKey: string, { tenantId, baseUrl }: KeySource): AccountKey {
  const fingerprint = createHmac('sha256', 'tocsin api key fingerprint')
    .update(JSON.stringify([apiKey, tenantId ?? null, baseUrl]))
    .digest('hex')
    .slice(0, 16)
  const box = createSecretBox(() => apiKey)
  let last: { sealed: string; token: string | null } | undefined
  return {
    apiKey,
    fingerprint,
    seal: (token) => box.seal(token, fingerprint),
    open(sealed) {
      // every request reads it, and few find another
      if (last?.sealed !== sealed) last = { sealed, token: box.open(sealed, fingerprint) ?? null }
      return last.token
    },
  }
}
