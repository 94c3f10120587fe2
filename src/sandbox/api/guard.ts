/** What every request to the pretend service passes: rate limit and token. */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Operation } from '../../upstream/resources/operation.ts'
import { systemClock } from '../../lib/clock.ts'
import type { SandboxOrganization, SandboxSettings, Tier } from '../options.ts'
import { type RequestLog, sendError } from '../server.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation that a route serves. */
    row?: Operation
  }
}

interface GuardOptions {
  settings: SandboxSettings
  tokens: Tokens
  rates: RateWindows
  log: RequestLog
}

/**
 * Guards every route of `app`. The rate limit is checked first, at the time of arrival, even for
 * requests that a fault or an expired token stops later. The token is checked after the faults.
 * What a key may not do is a fault with the status 403.
 */
export function guard(app: FastifyInstance, { settings, tokens, rates, log }: GuardOptions): void {
  app.addHook('onRequest', async (request, reply) => {
    const entry = log.entryFor(request)
    entry.organization = findOrganization(request, tokens)
    entry.tier = rowOf(request)?.tier ?? 'basic'
    if (entry.organization === null) return
    const now = systemClock.monotonic()
    entry.isOverLimit = rates.isOverLimit(entry.organization, entry.tier, now)
    if (entry.isOverLimit && settings.enforceLimits) {
      await sendError(reply, { status: 429, message: 'too many requests' })
    }
  })
  app.addHook('preHandler', async (request, reply) => {
    if (openOperations.has(rowOf(request)?.name ?? '')) return
    if (!findGrant(request, tokens)) await sendError(reply, { status: 401, message: 'bad token' })
  })
}

const openOperations = new Set(['tokens.generate', 'health.check'])

/** The row that the request's route was made from. */
function rowOf({ routeOptions }: FastifyRequest): Operation | undefined {
  return routeOptions.config.row
}

/** Returns the valid grant of a request; null if there is none. */
export function findGrant(request: FastifyRequest, tokens: Tokens): TokenGrant | null {
  const grant = tokens.find(readBearerToken(request))
  return grant && tokens.isValid(grant) ? grant : null
}

function readBearerToken(request: FastifyRequest): string {
  const [scheme, token] = (request.headers.authorization ?? '').split(' ')
  return scheme === 'Bearer' ? (token ?? '') : ''
}

function findOrganization(request: FastifyRequest, tokens: Tokens): number | null {
  const owner = tokens.findOwner(request.headers.authorization ?? '')
  return owner?.id ?? tokens.find(readBearerToken(request))?.organizationId ?? null
}

/** A token issued for an API key. */
export interface TokenGrant {
  token: string
  key: string
  organizationId: number
  tenantId: number
  expiresAtMs: number
}

export interface TokenControl {
  /** Invalidates every token issued so far. */
  revokeAll(): void
  /** Refuses the key and its tokens until `admitKey`. */
  refuseKey(key: string): void
  admitKey(key: string): void
  issued(): number
}

export interface Tokens extends TokenControl {
  /** Returns null if the key is unknown or refused. */
  findOwner(key: string): SandboxOrganization | null
  /**
   * Issues a token; 'forbidden' if the key may not use the tenant. Default tenant: the key's first.
   */
  issue(key: string, tenantId: number | undefined): TokenGrant | 'forbidden' | 'unknown'
  /** Returns the grant of a token, valid or not; null if it was never issued. */
  find(token: string): TokenGrant | null
  isValid(grant: TokenGrant): boolean
}

/** An hour (docs/api-notes.md, Tokens). */
const tokenLifetimeMs = 3_600_000

interface TokenOptions {
  organizations: readonly SandboxOrganization[]
  now: () => number
  /** The tenants that a key may use, its default first. */
  listTenants: (key: string) => readonly number[]
}

export function createTokens({ organizations, now, listTenants }: TokenOptions): Tokens {
  const owners = new Map(organizations.flatMap((one) => one.keys.map(({ key }) => [key, one])))
  const grants = new Map<string, TokenGrant>()
  const revoked = new Set<TokenGrant>()
  const refusedKeys = new Set<string>()
  let issued = 0

  const isValid = (grant: TokenGrant): boolean =>
    now() < grant.expiresAtMs && !revoked.has(grant) && !refusedKeys.has(grant.key)

  return {
    findOwner(key) {
      const owner = owners.get(key)
      return owner && !refusedKeys.has(key) ? owner : null
    },
    issue(key, tenantId) {
      const owner = owners.get(key)
      if (!owner || refusedKeys.has(key)) return 'unknown'
      const tenants = listTenants(key)
      const tenant = tenantId ?? tenants[0]
      if (tenant === undefined || !tenants.includes(tenant)) return 'forbidden'
      const token = `sandbox-token-${randomBytes(24).toString('hex')}`
      const expiresAtMs = now() + tokenLifetimeMs
      const grant = { token, key, organizationId: owner.id, tenantId: tenant, expiresAtMs }
      grants.set(token, grant)
      issued += 1
      return grant
    },
    find: (token) => grants.get(token) ?? null,
    isValid,
    revokeAll: () => grants.forEach((grant) => revoked.add(grant)),
    refuseKey: (key) => void refusedKeys.add(key),
    admitKey: (key) => void refusedKeys.delete(key),
    issued: () => issued,
  }
}

/**
 * The rate limits, applied strictly: in any window of one second an organization gets at most its
 * number of requests per tier (docs/api-notes.md, Rate limits). Refused requests do not count.
 */
interface RateWindows {
  /** Whether a request that arrives at `atMs` (monotonic) is over the limit; counts it. */
  isOverLimit(organizationId: number, tier: Tier, atMs: number): boolean
  /** How many requests were over the limit. */
  violations(): number
}

const defaultLimits: Record<Tier, number> = { search: 1, basic: 4 }

/** How much shorter than its second a window may be before a request counts as over the limit. */
const toleranceMs = 100

export function createRateWindows(organizations: readonly SandboxOrganization[]): RateWindows {
  const limits = new Map(organizations.map(({ id, limits: own }) => [id, own ?? defaultLimits]))
  const granted = new Map<string, number[]>()
  let violations = 0

  return {
    violations: () => violations,
    isOverLimit(organizationId, tier, atMs) {
      const perSecond = (limits.get(organizationId) ?? defaultLimits)[tier]
      const atMost = Math.max(1, Math.floor(perSecond))
      const windowMs = (1000 * atMost) / perSecond - toleranceMs
      const key = `${organizationId} ${tier}`
      const recent = (granted.get(key) ?? []).filter((grantedAt) => atMs - grantedAt < windowMs)
      granted.set(key, recent)
      const isOver = recent.length >= atMost
      if (isOver) violations++
      else recent.push(atMs)
      return isOver
    },
  }
}
