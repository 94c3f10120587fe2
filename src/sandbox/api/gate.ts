/** What every request to the service passes: who is it, is it within its rate, is it let in. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { systemClock } from '../../runtime/clock.ts'
import type { SandboxSettings, Tier } from '../options.ts'
import type { RequestLog } from '../request-log.ts'
import { sendError } from '../error-bodies.ts'
import { refuseUnpermitted } from './permissions.ts'
import type { RateWindows } from './rate-window.ts'
import { keyIn, type TokenGrant, type Tokens } from './tokens.ts'

export const credentialSearchPath = '/firework/v4/credentials/global/_search'
export const astpSearchPath = '/astp/v2/credentials/_search'
export const globalSearchPath = '/firework/v4/events/global/_search'
export const legacySearchPath = '/firework/v2/search/'

export interface GateOptions {
  settings: SandboxSettings
  tokens: Tokens
  rates: RateWindows
  log: RequestLog
}

/**
 * Guards every route of `app`. The rate is judged first and by the time of arrival, also for a request
 * that a fault or an expired token stops afterwards; the token after the faults.
 */
export function guard(app: FastifyInstance, { settings, tokens, rates, log }: GateOptions): void {
  app.addHook('onRequest', async (request, reply) => {
    const entry = log.entryOf(request)
    entry.organization = organizationOf(request, tokens)
    entry.tier = tierOf(entry.path, settings)
    if (entry.organization === null || entry.tier === null) return
    const now = systemClock.monotonic()
    entry.isOverLimit = rates.isOverLimit(entry.organization, entry.tier, now)
    if (entry.isOverLimit && settings.enforceLimits) await sendTooMany(reply, settings)
  })
  app.addHook('preHandler', async (request, reply) => {
    if (log.entryOf(request).path === '/tokens/generate') return
    const grant = grantOf(request, tokens)
    if (!grant) await sendError(reply, { status: 401, message: 'bad token' })
    else await refuseUnpermitted(request, reply, grant)
  })
}

/** The valid grant of a request; null: none. */
export function grantOf(request: FastifyRequest, tokens: Tokens): TokenGrant | null {
  const grant = tokens.find(bearerOf(request))
  return grant && tokens.isValid(grant) ? grant : null
}

function bearerOf(request: FastifyRequest): string {
  const [scheme, token] = (request.headers.authorization ?? '').split(' ')
  return scheme === 'Bearer' ? (token ?? '') : ''
}

function organizationOf(request: FastifyRequest, tokens: Tokens): number | null {
  const owner = tokens.ownerOf(keyIn(request.headers.authorization ?? ''))
  return owner?.id ?? tokens.find(bearerOf(request))?.organizationId ?? null
}

function tierOf(path: string, { tiers }: SandboxSettings): Tier | null {
  if (path.startsWith('/tokens/')) return tiers.tokens === undefined ? 'basic' : tiers.tokens
  if (path === credentialSearchPath) return tiers.credentialSearch ?? 'search'
  if (path.endsWith('/feed/credentials')) return tiers.credentialFeed ?? 'basic'
  if (path === globalSearchPath || path === legacySearchPath) return 'search'
  if (path === astpSearchPath) return 'basic'
  if (path.endsWith('/_search')) return tiers.groupSearch ?? 'search'
  return path === '/firework/v4/events/' ? (tiers.detail ?? 'basic') : 'basic'
}

async function sendTooMany(reply: FastifyReply, settings: SandboxSettings): Promise<void> {
  if (settings.retryAfterSeconds !== null) {
    void reply.header('retry-after', String(settings.retryAfterSeconds))
  }
  await sendError(reply, { status: 429, message: 'too many requests' })
}
