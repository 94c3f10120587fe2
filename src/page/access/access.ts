/** Finds out who asks: by token, by the trusted proxy, by session, or by sitting at this machine. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import type { HttpUser } from '../http/access-config.ts'
import type { HttpConfig } from '../http/config.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import type { Guesses } from './guesses.ts'
import type { PasswordCheck } from './password-check.ts'
import { findOrigin, isOwnMachine } from './peers.ts'
import { isApi, type RefusedData, type Refusal } from './refusals.ts'
import { type Session, sessionCookie, type Sessions } from './sessions.ts'
import { digestEntry, localUser, type User } from './user.ts'

/** What the form to sign in shows. */
export interface SignInData {
  /** Goes back with the form: the path to open afterwards. */
  next: string
  /** As it was typed. */
  name: string
  problem?: string
}

/** Returns a whole page of HTML. */
export interface Render {
  (view: 'sign-in', data: SignInData): string
  (view: 'refused', data: RefusedData, request: FastifyRequest): string
}

/** What every part of the access needs. */
export interface Door {
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  metrics: Pick<Metrics, 'httpRefusalsTotal'>
  /** The configuration that is in force now. */
  http: () => HttpConfig
  render: Render
  sessions: Sessions
  guesses: Guesses
  passwords: PasswordCheck
}

export interface Entry {
  user: User
  /** Of people; a token has none. */
  session?: Session
  /** The request itself carries the secret: no browser adds it unasked. */
  isByToken?: true
}

export async function authenticate(door: Door, request: FastifyRequest): Promise<Entry | Refusal> {
  const http = door.http()
  const { address, named } = findOrigin(request, http.proxy)
  if (http.users.length === 0) {
    return isOwnMachine(request, http) ? { user: localUser } : { reason: 'no_users', address }
  }
  const token = findToken(request)
  if (token !== undefined) return byToken(door, token, address)
  if (named === undefined) return bySession(door, await findSession(door, request), address)
  const entry = http.users.find(({ name }) => name === named)
  if (entry === undefined) return { reason: 'unknown_user', address }
  return { user: userOf(entry), session: await door.sessions.ofProxy(entry) }
}

/** Of the API alone. */
function findToken(request: FastifyRequest): string | undefined {
  if (!isApi(request)) return undefined
  return /^Bearer +(\S*)$/i.exec(request.headers.authorization ?? '')?.[1]
}

/** A right token passes whatever was guessed before. */
async function byToken(door: Door, token: string, address: string): Promise<Entry | Refusal> {
  const found = door
    .http()
    .users.filter((user) => isTokenOf(door, user, token))
    .at(0)
  if (found) return { user: userOf(found), isByToken: true }
  const waitMs = await door.guesses.take({ address })
  if (waitMs > 0) return { reason: 'rate_limited', address, waitMs }
  return { reason: 'wrong_token', address }
}

function isTokenOf({ logger }: Door, { name, token }: HttpUser, given: string): boolean {
  try {
    return token !== undefined && isSameToken(given, token.reveal())
  } catch (error) {
    const about = { cause: name, list: 'hosts', name } as const
    logger.repeated.warn({ user: name, err: error }, 'token of a user cannot be read', about)
    return false
  }
}

/** In constant time: digests have one length whatever was sent. */
function isSameToken(given: string, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(token))
}

async function bySession(
  door: Door,
  session: Session | undefined,
  address: string,
): Promise<Entry | Refusal> {
  if (session === undefined) return { reason: 'sign_in_required', address }
  const entry = door.http().users.find(({ name }) => name === session.name)
  if (entry && isCurrent(session, entry)) return { user: userOf(entry), session }
  await door.sessions.end(session)
  return { reason: 'sign_in_required', address, name: session.name }
}

/** Undefined if it has ended, or there was none. */
export async function findSession(
  door: Pick<Door, 'http' | 'sessions'>,
  request: FastifyRequest,
): Promise<Session | undefined> {
  const id = request.cookies[sessionCookie(door.http().publicUrl).name]
  return id === undefined ? undefined : door.sessions.find(id)
}

/** Of this user, too: the entry holds the name. */
function isCurrent(session: Session, entry: HttpUser): boolean {
  return session.entry === digestEntry(entry)
}

function userOf({ name, role, accounts }: HttpUser): User {
  return { name, role, accounts }
}
