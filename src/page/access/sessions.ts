/**
 * Who is signed in, in Redis, so that every replica knows. Redis holds a digest of the session's id:
 * whoever reads Redis or a backup of it cannot come in by it.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { CookieSerializeOptions } from '@fastify/cookie'
import type { HttpUser } from '../http/access-config.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import { digestEntry } from './user.ts'

export interface Session {
  /** SHA-256 of its id (hex). */
  readonly digest: string
  /** The user. */
  readonly name: string
  /** See `digestEntry`, at the time of the sign-in. */
  readonly entry: string
  /** The trusted proxy names the user at each request: there is nothing to sign out of. */
  readonly isByProxy?: true
  /** Of its form tokens, base64url. */
  readonly key: string
  readonly endsAtMs: number
}

export interface Sessions {
  /** Returns the id for the cookie. */
  begin(user: HttpUser): Promise<string>
  /** Of whom the trusted proxy names. However many requests come, one key is kept for all of them. */
  ofProxy(user: HttpUser): Promise<Session>
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
  const formKey = keys.shared('form-key')
  /** Made once, by whichever replica needs it first. */
  async function readFormKey(): Promise<string> {
    const known = await redis.get(formKey)
    if (known !== null) return known
    const made = randomBytes(32).toString('base64url')
    return (await redis.set(formKey, made, 'NX', 'GET')) ?? made
  }
  return {
    async begin(user) {
      const id = randomBytes(32).toString('base64url')
      const kept = {
        name: user.name,
        entry: digestEntry(user),
        key: randomBytes(32).toString('base64url'),
        endsAtMs: clock.now() + sessionMs,
      }
      await redis.set(keyOf(digestId(id)), JSON.stringify(kept), 'PX', sessionMs)
      return id
    },
    async ofProxy(user) {
      const { name } = user
      const entry = digestEntry(user)
      const key = createHmac('sha256', await readFormKey())
        .update(entry)
        .digest('base64url')
      const endsAtMs = clock.now() + sessionMs
      return { digest: digestId(`proxy ${name}`), name, entry, isByProxy: true, key, endsAtMs }
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
