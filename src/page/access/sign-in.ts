/** Sign-in by name and password, and sign-out. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { HttpUser } from '../http/access-config.ts'
import { type Door, findSession } from './access.ts'
import { inTime } from './in-time.ts'
import { findOrigin } from './peers.ts'
import { note, type Refusal, sendPage } from './refusals.ts'
import { sessionCookie } from './sessions.ts'

const signInPath = '/sign-in'

/** Where a person is sent who is not signed in, and comes back from. */
export function signInAddress({ method, url }: FastifyRequest): string {
  const next = method === 'POST' ? '/' : localPath(url)
  return next === '/' ? signInPath : `${signInPath}?next=${encodeURIComponent(next)}`
}

/**
 * Returns a path of this server, '/' for whatever else. Browsers read `//host`, `/\host` and what
 * is left without its control characters as the address of another.
 */
export function localPath(next: string): string {
  const isLocal = /^\/(?!\/)[\x21-\x5b\x5d-\x7e]{0,2000}$/.test(next) && URL.canParse(next, base)
  return isLocal && !next.startsWith(signInPath) ? next : '/'
}

const base = 'http://localhost'

export function addSignIn(page: FastifyInstance, door: Door): void {
  const isOpen = { config: { access: 'public' } } as const
  page.get(signInPath, isOpen, async (request, reply) => {
    const next = localPath(textOf(request.query, 'next'))
    return sendPage(reply, door.render('sign-in', { next, name: '' }))
  })
  page.post(signInPath, isOpen, async (request, reply) => {
    const [next, name] = [localPath(textOf(request.body, 'next')), textOf(request.body, 'name')]
    const judged = await judge(door, request)
    if ('reason' in judged) {
      const { detail: problem } = note(door, reply, judged)
      return sendPage(reply, door.render('sign-in', { next, name, problem }))
    }
    await inTime(door.clock, replaceSession(door, judged, request, reply))
    return reply.redirect(next, 303)
  })
  page.post('/sign-out', { config: { access: 'user' } }, async ({ session }, reply) => {
    if (session) await inTime(door.clock, door.sessions.end(session))
    const { name, options } = sessionCookie(door.http().publicUrl)
    return reply.clearCookie(name, options).redirect(signInPath, 303)
  })
}

/** A field that comes twice is none. */
function textOf(fields: unknown, key: string): string {
  const value: unknown = (fields as Readonly<Record<string, unknown>> | undefined)?.[key]
  return typeof value === 'string' ? value : ''
}

/** Whoever has guessed too often takes no place from others. */
async function judge(
  { guesses, passwords, clock, http }: Door,
  request: FastifyRequest,
): Promise<HttpUser | Refusal> {
  const { users, proxy } = http()
  const who = { name: textOf(request.body, 'name'), address: findOrigin(request, proxy).address }
  const user = users.find(({ name }) => name === who.name)
  const refused = (reason: Refusal['reason'], waitMs?: number): Refusal => ({
    reason,
    address: who.address,
    name: user?.name,
    ...(waitMs !== undefined && { waitMs }),
  })
  const waitMs = await inTime(clock, guesses.look(who))
  if (waitMs > 0) return refused('rate_limited', waitMs)
  const judged = await passwords.inTurn(async () => {
    const stillMs = await inTime(clock, guesses.take(who))
    if (stillMs > 0) return refused('rate_limited', stillMs)
    const isRight = await passwords.judge(user, textOf(request.body, 'password'))
    if (!isRight || user === undefined) return refused('wrong_password')
    await inTime(clock, guesses.giveBack(who))
    return user
  })
  return judged ?? refused('busy')
}

/** No id lives on from before the sign-in. */
async function replaceSession(
  door: Door,
  user: HttpUser,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const old = await findSession(door, request)
  if (old) await door.sessions.end(old)
  const { name, options } = sessionCookie(door.http().publicUrl)
  reply.setCookie(name, await door.sessions.begin(user), options)
}
