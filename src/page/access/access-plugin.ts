/**
 * The door of the page and its API. Nothing behind it answers but to a user. Routes that are
 * registered after it need one. Those that change anything need one who may act, with a form token.
 */
import cookie from '@fastify/cookie'
import formbody from '@fastify/formbody'
import type {
  FastifyError,
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
} from 'fastify'
import { isPassword as isScryptPassword } from '../../lib/password-hash.ts'
import { authenticate, type Door, type Entry } from './access.ts'
import { isCrossSite, takeFormToken } from './form-token.ts'
import { createGuesses } from './guesses.ts'
import { inTime, Unanswered } from './in-time.ts'
import { createPasswordCheck, type IsPassword } from './password-check.ts'
import { findOrigin } from './peers.ts'
import { isApi, note, type Reason, type Refusal, sendPage, sendProblem } from './refusals.ts'
import { createSessions, type Session } from './sessions.ts'
import { addSignIn, signInAddress } from './sign-in.ts'
import { mayAct, nobody, type User } from './user.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a public route `nobody`. */
    user: User
    session: Session | undefined
  }
  interface FastifyContextConfig {
    /** Who may use the route. Left out: `user` for GET and HEAD, `act` for the rest. */
    access?: 'public' | 'user' | 'act'
  }
}

type AccessOptions = Omit<Door, 'sessions' | 'guesses' | 'passwords'> & { isPassword?: IsPassword }

/** Of a form, and of what the API is sent. */
const bodyLimit = 64 * 1024

/** Register it before the routes, in a scope of theirs alone. */
export function accessPlugin({
  isPassword = isScryptPassword,
  ...options
}: AccessOptions): FastifyPluginAsync {
  const door: Door = {
    ...options,
    sessions: createSessions(options),
    guesses: createGuesses(options),
    passwords: createPasswordCheck(isPassword),
  }
  const plugin: FastifyPluginAsync = async (page) => {
    page.decorateRequest('user')
    page.decorateRequest('session', undefined)
    await page.register(cookie)
    await addParsers(page)
    addErrors(page, door)
    addChecks(page, door)
    addSignIn(page, door)
  }
  // what it adds is for the scope that registers it, as fastify-plugin has it
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true })
}

async function addParsers(page: FastifyInstance): Promise<void> {
  page.removeAllContentTypeParsers()
  await page.register(formbody, { bodyLimit })
  const parser = page.getDefaultJsonParser('error', 'error')
  page.addContentTypeParser('application/json', { parseAs: 'string', bodyLimit }, parser)
}

function addChecks(page: FastifyInstance, door: Door): void {
  const entries = new WeakMap<FastifyRequest, Entry>()
  page.addHook('onRequest', async (request, reply) => {
    request.user = nobody
    const reason = findMistake(door, request)
    if (reason) return refuse(door, request, reply, { reason })
    if (accessOf(request) === 'public' && door.http().users.length > 0) return undefined
    const entry = await inTime(door.clock, authenticate(door, request))
    if ('reason' in entry) return refuse(door, request, reply, entry)
    Object.assign(request, { user: entry.user, session: entry.session })
    entries.set(request, entry)
    if (accessOf(request) !== 'act' || mayAct(entry.user)) return undefined
    return refuse(door, request, reply, { reason: 'role' })
  })
  page.addHook('preHandler', async (request, reply) => {
    if (accessOf(request) !== 'act' || entries.get(request)?.isByToken) return undefined
    const given = { session: request.session, path: pathOf(request), token: formTokenOf(request) }
    const reason = await inTime(door.clock, takeFormToken(door, given))
    return reason && refuse(door, request, reply, { reason })
  })
}

function accessOf({ method, routeOptions }: FastifyRequest): 'public' | 'user' | 'act' {
  return routeOptions.config.access ?? (isReading(method) ? 'user' : 'act')
}

function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** What is wrong with a request, whoever sends it. */
function findMistake(door: Door, request: FastifyRequest): Reason | undefined {
  if (isReading(request.method)) return undefined
  const { 'content-type': type, host } = request.headers
  const wanted = isApi(request) ? /^application\/json\b/i : /^application\/x-www-form-urlencoded\b/i
  if (type !== undefined && !wanted.test(type)) return 'media_type'
  const ownOrigins = [door.http().publicUrl, `http://${host}`]
  return isCrossSite(request.headers, ownOrigins) ? 'cross_site' : undefined
}

function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0] ?? ''
}

function formTokenOf({ headers, body }: FastifyRequest): unknown {
  return headers['x-form-token'] ?? (body as { form_token?: unknown } | undefined)?.form_token
}

function refuse(
  door: Door,
  request: FastifyRequest,
  reply: FastifyReply,
  refusal: Omit<Refusal, 'address'>,
): FastifyReply {
  const isPage = !isApi(request)
  if (isPage && refusal.reason === 'sign_in_required') {
    return reply.redirect(signInAddress(request), 303)
  }
  const { address } = findOrigin(request, door.http().proxy)
  const name = refusal.name ?? (request.user === nobody ? undefined : request.user.name)
  const said = note(door, reply, { ...refusal, address, name })
  if (isPage) return sendPage(reply, door.render('refused', said, request))
  return sendProblem(reply, { ...said, reason: refusal.reason })
}

/** Never repeats the error's own text, which may come from anywhere. */
function addErrors(page: FastifyInstance, door: Door): void {
  page.setErrorHandler((error: FastifyError, request, reply) => {
    if (error instanceof Unanswered) return refuse(door, request, reply, { reason: 'unavailable' })
    const status = error.statusCode ?? 500
    if (status >= 500) {
      door.logger.error({ err: error, path: request.routeOptions.url }, 'http answer failed')
    }
    const said = { status, detail: status >= 500 ? 'Internal error; see the log.' : 'Bad request.' }
    if (isApi(request)) return sendProblem(reply, said)
    return sendPage(reply.code(status), door.render('refused', said, request))
  })
}
