/**
 * Form tokens: an act is done once, by the session for which the form was made, at the path for which
 * it was made. No other site can make one, and none is used twice.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../lib/clock.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import type { Session } from './sessions.ts'

export type TokenProblem = 'missing' | 'forged' | 'expired' | 'replayed'

/** `<end of the session, ms>.<nonce>.<HMAC>`; `path`: of the act, as it is requested. */
export function issueFormToken(session: Session, path: string): string {
  const stated = `${session.endsAtMs}.${randomBytes(16).toString('base64url')}`
  return `${stated}.${sign(session, path, stated)}`
}

function sign({ key }: Session, path: string, stated: string): string {
  return createHmac('sha256', Buffer.from(key, 'base64url'))
    .update(`${stated} ${path}`)
    .digest('base64url')
}

interface Store {
  redis: Redis
  keys: Keys
  clock: Clock
}

interface GivenToken {
  session: Session | undefined
  path: string
  token: unknown
}

/** Returns why the act must not begin; undefined: it may, once. */
export async function takeFormToken(
  { redis, keys, clock }: Store,
  { session, path, token }: GivenToken,
): Promise<TokenProblem | undefined> {
  if (session === undefined || typeof token !== 'string' || token === '') return 'missing'
  const [endsAt = '', nonce = '', mac = ''] = token.split('.')
  if (!isSame(mac, sign(session, path, `${endsAt}.${nonce}`))) return 'forged'
  const leftMs = Number(endsAt) - clock.now()
  if (leftMs <= 0) return 'expired'
  const used = keys.shared('form', session.digest, nonce)
  const isFirst = await redis.set(used, '', 'PX', Math.ceil(leftMs), 'NX')
  return isFirst === null ? 'replayed' : undefined
}

function isSame(given: string, wanted: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(wanted)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/**
 * Whether a browser says that another site sent the request. Under `Referrer-Policy: no-referrer`
 * browsers send `Origin: null` from our own forms, too: that says nothing.
 */
export function isCrossSite(
  headers: IncomingHttpHeaders,
  ownOrigins: readonly (string | undefined)[],
): boolean {
  const { origin = 'null', 'sec-fetch-site': site = 'same-origin' } = headers
  return site !== 'same-origin' || (origin !== 'null' && !ownOrigins.includes(origin))
}
