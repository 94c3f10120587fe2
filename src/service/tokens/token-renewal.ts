/** Gets a new token by one of all replicas. The lock saves requests; two renewals would do no harm. */
import type { Clock } from '../../runtime/clock.ts'
import { fingerprintOf, type Credentials } from './credentials.ts'
import { ServiceError } from '../service-error.ts'
import type { Token, TokenStore } from './token-store.ts'

export interface TokenRenewal {
  /** Where there is none to go on with: waits for the replica that makes it, or makes it. */
  obtain(key: Credentials, isGood: IsGood, evenIfPaused: boolean): Promise<Token>
  /** A good one that another replica made, or one made here; undefined while another makes it. */
  shareOrMake(key: Credentials, isGood: IsGood): Promise<Token | undefined>
}

type IsGood = (token: Token) => boolean

export interface TokenRenewalOptions {
  store: TokenStore
  clock: Clock
  closing: AbortSignal
  random: () => number
  /** Asks the service for a token. */
  generate: (signal: AbortSignal) => Promise<string>
  /** Throws while the account is paused. */
  assertOpen: () => Promise<void>
  onRefresh?: ((result: 'renewed' | 'failed') => void) | undefined
}

/** Longer than the lock of a crashed replica holds. */
const patienceMs = 20_000

export function createTokenRenewal(options: TokenRenewalOptions): TokenRenewal {
  const { store, clock, closing, random } = options

  async function shareOrMake(key: Credentials, isGood: IsGood): Promise<Token | undefined> {
    const shared = await store.read(key)
    if (shared && isGood(shared)) return shared
    const lock = await store.lock(key)
    if (lock === undefined) return undefined
    const meanwhile = await store.read(key)
    if (!meanwhile || !isGood(meanwhile)) return make(key, lock)
    await store.unlock(key, lock)
    return meanwhile
  }

  async function make(key: Credentials, lock: string): Promise<Token> {
    const bornMs = clock.monotonic()
    try {
      const value = await options.generate(closing)
      const token = { value, fingerprint: fingerprintOf(value), bornMs }
      await store.keep(key, token, lock)
      options.onRefresh?.('renewed')
      return token
    } catch (error) {
      options.onRefresh?.('failed')
      await store.unlock(key, lock)
      throw error
    }
  }

  return {
    shareOrMake,
    async obtain(key, isGood, evenIfPaused) {
      const startedMs = clock.monotonic()
      while (!closing.aborted && clock.monotonic() - startedMs < patienceMs) {
        if (!evenIfPaused) await options.assertOpen()
        const token = await shareOrMake(key, isGood)
        if (token) return token
        await clock.sleep(100 + 200 * random(), closing)
      }
      throw new ServiceError('timeout', 'no token: the replica that renews it does not finish')
    },
  }
}
