/**
 * Who is signed in, in Redis, so that every replica knows. Redis holds a digest of the session's id:
 * whoever reads Redis or a backup of it cannot come in by it.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { CookieSerializeOptions } from '@fastify/cookie'
import type { HttpUser } from '../../ops/access-config.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Redis } from '../../redis/connection.ts'
import type { Keys } from '../../redis/keys.ts'
import { digestEntry } from './user.ts'

export interface Session {
  /** SHA-256 of its id (hex). */
  readonly digest: string
  /** The user. */
  readonly name: string
  /** See `digestEntry`, at the time of the sign-in. */
  readonly entry: string
  /** Begun by the trusted proxy, which must name the same user at each request. */
  readonly byProxy: boolean
  /** Of its form tokens, base64url. */
  readonly key: string
  readonly endsAtMs: number
}

export interface Sessions {
  /** Returns the id for the cookie, too. */
  begin(user: HttpUser, byProxy: boolean): Promise<{ id: string; session: Session }>
  find(id: string): Promise<Session | undefined>
  end(session: Session): Promise<void>
}

export const sessionMs = 12 * 3_600_000

interface Store {
  redis: Redis
  keys: Keys
  clock: Clock
}

export function createSessions({ redis, keys, clock }: Store): Sessions {
  const keyOf = (digest: string): string => keys.shared('session', digest)
  return {
    async begin(user, byProxy) {
      const id = randomBytes(32).toString('base64url')
      const kept = {
        name: user.name,
        entry: digestEntry(user),
        byProxy,
        key: randomBytes(32).toString('base64url'),
        endsAtMs: clock.now() + sessionMs,
      }
      const digest = digestId(id)
      await redis.set(keyOf(digest), JSON.stringify(kept), 'PX', sessionMs)
      return { id, session: { digest, ...kept } }
    },
    async find(id) {
      const digest = digestId(id)
      const text = await redis.get(keyOf(digest))
      return text === null
        ? undefined
        : { digest, ...(JSON.parse(text) as Omit<Session, 'digest'>) }
    },
    async end({ digest }) {
      await redis.del(keyOf(digest))
    },
  }
}

function digestId(id: string): string {
  return createHash('sha256').update(id).digest('hex')
}

/** `__Host-`: no other host, no clear-text answer and no narrower path can set it. */
export function sessionCookie(publicUrl: string | undefined): {
  name: string
  options: CookieSerializeOptions
} {
  const secure = publicUrl?.startsWith('https:') ?? false
  const options = { httpOnly: true, sameSite: 'strict', path: '/', secure } as const
  return { name: `${secure ? '__Host-' : ''}tocsin_session`, options }
}
