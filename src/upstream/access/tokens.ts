/**
 * One access token per key and tenant, shared by all replicas. Each renews it early at a time of its
 * own, so that mostly one does; where several make one, the newest serves all. A refused token, and
 * only that token, is dropped in all replicas.
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
  onRefresh?: ((result: 'renewed' | 'failed') => void) | undefined
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  accountKey: () => AccountKey
  random?: (() => number) | undefined
  /** Lifetime of a token; default one hour (docs/api-notes.md, Tokens). */
  lifetimeMs?: number | undefined
}

/** Between two attempts to renew a token that still serves, ms. */
const retryMs = 15_000

export function createTokenCache(options: TokenCacheOptions): TokenCache {
  const { clock, logger, accountKey, random = Math.random, lifetimeMs = 3_600_000 } = options
  const closing = new AbortController()
  const store = createTokenStore({ ...options, lifetimeMs })
  const obtain = createTokenSource(options, store, closing.signal)
  const { isUsable, isYoung, refuse } = createTokenRules(clock, lifetimeMs, random)
  let held: { owner: string; token: Token } | undefined
  let flight: { owner: string; token: Promise<Token> } | undefined
  let nextRenewalMs = 0

  async function renewQuietly(key: AccountKey, old: Token): Promise<Token> {
    nextRenewalMs = clock.monotonic() + Math.min(retryMs, lifetimeMs / 100) * (0.5 + random())
    try {
      return await obtain(key, isYoung)
    } catch (error) {
      logger.warn({ account: options.account, err: error }, 'token not renewed; the old one serves')
      return old
    }
  }

  /** Lets all callers in this process wait for the same token. */
  function shareFlight(owner: string, work: Promise<Token>): Promise<Token> {
    const token = work
      .then((made) => (held = { owner, token: made }).token)
      .finally(() => (flight = flight?.token === token ? undefined : flight))
    flight = { owner, token }
    return token
  }

  async function get(signal?: AbortSignal): Promise<Token> {
    if (signal?.aborted) throw abandonedError()
    const key = accountKey()
    const owner = key.fingerprint
    const old = held?.owner === owner ? held.token : undefined
    if (old && isUsable(old)) {
      const isDue = !isYoung(old) && clock.monotonic() >= nextRenewalMs
      if (isDue && !flight) void shareFlight(owner, renewQuietly(key, old))
      return old
    }
    const underWay = flight?.owner === owner ? flight.token : undefined
    const coming = underWay ?? shareFlight(owner, obtain(key, isUsable))
    const token = await waitOrAbort(coming, signal)
    // A renewal in progress may return the old token, which may have been refused meanwhile.
    return isUsable(token) ? token : get(signal)
  }

  return {
    get,
    async refuse({ fingerprint }) {
      refuse(fingerprint)
      if (held?.token.fingerprint === fingerprint) held = undefined
      await store.drop(accountKey(), fingerprint)
    },
    close: () => closing.abort(),
  }
}

/** Returns the token of all replicas if it is good, else a new one. Throws UpstreamError. */
type TokenSource = (key: AccountKey, isGood: (token: Token) => boolean) => Promise<Token>

function createTokenSource(
  { clock, generate, onRefresh }: TokenCacheOptions,
  store: TokenStore,
  closing: AbortSignal,
): TokenSource {
  return async (key, isGood) => {
    const shared = await store.read(key)
    if (shared && isGood(shared)) return shared
    const bornMs = clock.monotonic()
    try {
      const value = await generate(closing)
      const token = { value, fingerprint: tokenFingerprint(value), bornMs }
      await store.save(key, token)
      onRefresh?.('renewed')
      return token
    } catch (error) {
      onRefresh?.('failed')
      throw error
    }
  }
}

interface TokenRules {
  isUsable: (token: Token) => boolean
  isYoung: (token: Token) => boolean
  refuse: (fingerprint: string) => void
}

/**
 * A token is young, and not renewed, for three quarters of its life, give or take a few percent per
 * replica. It is usable until the last sixtieth of its life.
 */
function createTokenRules(clock: Clock, lifetimeMs: number, random: () => number): TokenRules {
  const renewAfterMs = lifetimeMs * 0.75 * (0.95 + 0.1 * random())
  const ageMs = ({ bornMs }: Token): number => clock.monotonic() - bornMs
  let refused: { fingerprint: string; atMs: number } | undefined

  /**
   * The API may issue a token again that it refused before. Such a token counts as usable; the next
   * 401 refuses it again.
   */
  function isUsable(token: Token): boolean {
    const isRefused = token.fingerprint === refused?.fingerprint && token.bornMs < refused.atMs
    return ageMs(token) < (lifetimeMs * 59) / 60 && !isRefused
  }

  return {
    isUsable,
    isYoung: (token) => isUsable(token) && ageMs(token) < renewAfterMs,
    refuse: (fingerprint) => (refused = { fingerprint, atMs: clock.monotonic() }),
  }
}

export interface Token {
  value: string
  fingerprint: string
  /** Monotonic ms of this process at which it was generated, here or elsewhere. */
  bornMs: number
}

export interface TokenStore {
  read(key: AccountKey): Promise<Token | undefined>
  /** Saves the token unless Redis holds a newer one. */
  save(key: AccountKey, token: Token): Promise<void>
  /** Drops the token unless another one has replaced it. */
  drop(key: AccountKey, fingerprint: string): Promise<void>
}

interface TokenStoreOptions {
  redis: Redis
  keys: Keys
  clock: Clock
  lifetimeMs: number
}

export function createTokenStore({
  redis,
  keys,
  clock,
  lifetimeMs,
}: TokenStoreOptions): TokenStore {
  const tokenKey = ({ fingerprint }: AccountKey): string => keys.shared('token', fingerprint)

  return {
    async read(key) {
      // Age counts from before the read: a slow reply must not make a token look younger than it
      // is.
      const askedMs = clock.monotonic()
      const replies = await redis.multi().hget(tokenKey(key), 'sealed').pttl(tokenKey(key)).exec()
      const [sealed, leftMs] = (replies ?? []).map(([, reply]) => reply)
      const value = typeof sealed === 'string' ? key.open(sealed) : null
      if (value === null || typeof leftMs !== 'number' || leftMs <= 0) return undefined
      const bornMs = askedMs - (lifetimeMs - leftMs)
      return { value, fingerprint: tokenFingerprint(value), bornMs }
    },
    async save(key, { value, fingerprint, bornMs }) {
      const leftMs = Math.max(1, Math.floor(lifetimeMs - (clock.monotonic() - bornMs)))
      const args = [key.seal(value), fingerprint, leftMs]
      await runScript(redis, 'store-token', [tokenKey(key)], args)
    },
    async drop(key, fingerprint) {
      await runScript(redis, 'drop-token', [tokenKey(key)], [fingerprint])
    },
  }
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
 * What is derived from an API key: a fingerprint for key names in Redis that reveals nothing, and a
 * cipher that only a holder of the key can open, so that no token is readable in Redis or its
 * files.
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

export function tokenFingerprint(token: string): string {
  return createHash('sha256').update(token).digest('hex').slice(0, 16)
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
  return {
    apiKey,
    fingerprint,
    seal: (token) => box.seal(token, fingerprint),
    open: (sealed) => box.open(sealed, fingerprint) ?? null,
  }
}
