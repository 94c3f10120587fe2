/**
 * One access token per key and tenant for all replicas: renewed early by one of them, while the others
 * go on with the old one. A refused token is forgotten everywhere, and only that one.
 */
import type { Redis } from '../../redis/connection.ts'
import type { Keys } from '../../redis/keys.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Credentials } from './credentials.ts'
import { createTokenRenewal, type TokenRenewalOptions } from './token-renewal.ts'
import { createTokenStore, lockMs, type Token } from './token-store.ts'
import { givenUp, orGiveUp } from '../service-error.ts'

export interface TokenCache {
  /** `evenIfPaused`: for the operator's own test, which may find that all is well again. */
  get(options: GetOptions): Promise<Token>
  /** After a 401 to this token. */
  refuse(token: Token): Promise<void>
  close(): void
}

interface GetOptions {
  signal?: AbortSignal | undefined
  evenIfPaused?: boolean | undefined
}

export interface TokenCacheOptions extends Pick<
  TokenRenewalOptions,
  'generate' | 'assertOpen' | 'onRefresh'
> {
  account: string
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  credentials: () => Credentials
  random?: (() => number) | undefined
  /** An hour: service description, Limits. */
  lifetimeMs?: number | undefined
}

export function createTokenCache(options: TokenCacheOptions): TokenCache {
  const { clock, logger, credentials, random = Math.random, lifetimeMs = 3_600_000 } = options
  const closing = new AbortController()
  const store = createTokenStore({ ...options, lifetimeMs })
  const renewal = createTokenRenewal({ ...options, store, closing: closing.signal, random })
  const { isUsable, isYoung, refuse } = createTokenRules(clock, lifetimeMs, random)
  let held: { owner: string; token: Token } | undefined
  let flight: { owner: string; token: Promise<Token> } | undefined
  let nextRenewalMs = 0

  async function renewQuietly(key: Credentials, old: Token): Promise<Token> {
    // After a failure, or while another replica renews, the next try is not at once.
    nextRenewalMs = clock.monotonic() + Math.min(lockMs, lifetimeMs / 100) * (0.5 + random())
    try {
      return (await renewal.shareOrMake(key, isYoung)) ?? old
    } catch (error) {
      logger.warn({ account: options.account, err: error }, 'token not renewed; the old one serves')
      return old
    }
  }

  /** What all callers of this process wait for together. */
  function share(owner: string, work: Promise<Token>): Promise<Token> {
    const token = work
      .then((made) => (held = { owner, token: made }).token)
      .finally(() => (flight = flight?.token === token ? undefined : flight))
    flight = { owner, token }
    return token
  }

  async function get({ signal, evenIfPaused = false }: GetOptions): Promise<Token> {
    if (signal?.aborted) throw givenUp()
    const key = credentials()
    const owner = key.fingerprint
    const old = held?.owner === owner ? held.token : undefined
    if (old && isUsable(old)) {
      const isDue = !isYoung(old) && clock.monotonic() >= nextRenewalMs
      if (isDue && !flight) void share(owner, renewQuietly(key, old))
      return old
    }
    const underWay = flight?.owner === owner ? flight.token : undefined
    const coming = underWay ?? share(owner, renewal.obtain(key, isUsable, evenIfPaused))
    const token = await orGiveUp(coming, signal)
    // A renewal under way may come back with the old token, refused meanwhile.
    return isUsable(token) ? token : get({ signal, evenIfPaused })
  }

  return {
    get,
    async refuse({ fingerprint }) {
      refuse(fingerprint)
      if (held?.token.fingerprint === fingerprint) held = undefined
      await store.drop(credentials(), fingerprint)
    },
    close: () => closing.abort(),
  }
}

interface TokenRules {
  isUsable: (token: Token) => boolean
  isYoung: (token: Token) => boolean
  refuse: (fingerprint: string) => void
}

/** Young: for three quarters of its life, in each replica a little different. Usable: but for its last sixtieth. */
function createTokenRules(clock: Clock, lifetimeMs: number, random: () => number): TokenRules {
  const renewAfterMs = lifetimeMs * 0.75 * (0.95 + 0.1 * random())
  const ageOf = ({ bornMs }: Token): number => clock.monotonic() - bornMs
  let refused: { fingerprint: string; atMs: number } | undefined

  /** A service may issue again what it refused before; then the next 401 speaks for itself. */
  function isUsable(token: Token): boolean {
    const isRefused = token.fingerprint === refused?.fingerprint && token.bornMs < refused.atMs
    return ageOf(token) < (lifetimeMs * 59) / 60 && !isRefused
  }

  return {
    isUsable,
    isYoung: (token) => isUsable(token) && ageOf(token) < renewAfterMs,
    refuse: (fingerprint) => (refused = { fingerprint, atMs: clock.monotonic() }),
  }
}
