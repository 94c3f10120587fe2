/** Where the replicas share an account's token: sealed, in Redis, gone when the token is. */
import { randomUUID } from 'node:crypto'
import type { Redis } from '../../redis/connection.ts'
import type { Keys } from '../../redis/keys.ts'
import { runScript } from '../../redis/scripts.ts'
import type { Clock } from '../../runtime/clock.ts'
import { fingerprintOf, type Credentials } from './credentials.ts'

export interface Token {
  value: string
  fingerprint: string
  /** Monotonic ms of this process at which it was generated, here or elsewhere. */
  bornMs: number
}

export interface TokenStore {
  read(key: Credentials): Promise<Token | undefined>
  /** Unless a newer one is there; opens our lock. */
  keep(key: Credentials, token: Token, lock: string): Promise<void>
  /** Unless another one has taken its place. */
  drop(key: Credentials, fingerprint: string): Promise<void>
  /** Our lock's id, or undefined while another replica renews. */
  lock(key: Credentials): Promise<string | undefined>
  unlock(key: Credentials, lock: string): Promise<void>
}

/** Longer than a token takes to come; a crashed holder's lock ends by itself. */
export const lockMs = 15_000

export interface TokenStoreOptions {
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
  const nameOf = ({ fingerprint }: Credentials): string => keys.shared('token', fingerprint)
  const lockOf = ({ fingerprint }: Credentials): string => keys.shared('token', fingerprint, 'lock')

  return {
    async read(key) {
      // Counted from the question: a slow answer must not make a token look younger than it is.
      const askedMs = clock.monotonic()
      const replies = await redis.multi().hget(nameOf(key), 'sealed').pttl(nameOf(key)).exec()
      const [sealed, leftMs] = (replies ?? []).map(([, reply]) => reply)
      const value = typeof sealed === 'string' ? key.open(sealed) : null
      if (value === null || typeof leftMs !== 'number' || leftMs <= 0) return undefined
      const bornMs = askedMs - (lifetimeMs - leftMs)
      return { value, fingerprint: fingerprintOf(value), bornMs }
    },
    async keep(key, { value, fingerprint, bornMs }, lock) {
      const leftMs = Math.max(1, Math.floor(lifetimeMs - (clock.monotonic() - bornMs)))
      const args = [key.seal(value), fingerprint, leftMs, lock]
      await runScript(redis, 'store-token', [nameOf(key), lockOf(key)], args)
    },
    async drop(key, fingerprint) {
      await runScript(redis, 'drop-token', [nameOf(key)], [fingerprint])
    },
    async lock(key) {
      const lock = randomUUID()
      const reply = await redis.set(lockOf(key), lock, 'PX', lockMs, 'NX')
      return reply === 'OK' ? lock : undefined
    },
    async unlock(key, lock) {
      await runScript(redis, 'open-lock', [lockOf(key)], [lock])
    },
  }
}
