/** What every request to the pretend service passes: rate limit, token and permissions. */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Operation } from '../../upstream/resources/operation.ts'
import { systemClock } from '../../lib/clock.ts'
import {
  type Permission,
  permissions,
  type SandboxOrganization,
  type SandboxSettings,
  type Tier,
} from '../options.ts'
import { errorShapeOf, type RequestLog, sendError } from '../server.ts'
interface GuardOptions {
  settings: SandboxSettings
  tokens: Tokens
  rates: RateWindows
  log: RequestLog
}

/**
 * Guards every route of `app`. The rate limit is checked first, at the time of arrival, even for
 * requests that a fault or an expired token stops later; the token is checked after the faults.
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
    const grant = findGrant(request, tokens)
    if (!grant) await sendError(reply, { status: 401, message: 'bad token' })
    else await refuseUnpermitted(request, reply, grant)
  })
}

const openOperations = new Set(['tokens.generate', 'health.check'])

/** The row that the request's route was made from. */
function rowOf({ routeOptions }: FastifyRequest): Operation | undefined {
  return (routeOptions.config as { row?: Operation }).row
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
  const owner = tokens.findOwner(readApiKey(request.headers.authorization ?? ''))
  return owner?.id ?? tokens.find(readBearerToken(request))?.organizationId ?? null
}

/** A token issued for an API key. */
export interface TokenGrant extends KeyIdentity {
  token: string
  key: string
  tenantId: number
  expiresAtMs: number
}

/** The identity behind a key; each key has a user of its own. */
interface KeyIdentity {
  organizationId: number
  apiKeyId: number
  userId: number
  userEmail: string
  permissions: readonly Permission[]
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

interface TokenOptions {
  organizations: readonly SandboxOrganization[]
  lifetimeMs: number
  now: () => number
  /** The tenants that a key may use, its default first. */
  listTenants: (key: string) => readonly number[]
}

/** Returns the key, sent bare or, by older clients, as the password of HTTP Basic. */
export function readApiKey(authorization: string): string {
  const [, basic] = /^Basic (\S+)$/i.exec(authorization) ?? []
  if (basic === undefined) return authorization
  return Buffer.from(basic, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:/, '')
}

export function createTokens({
  organizations,
  lifetimeMs,
  now,
  listTenants,
}: TokenOptions): Tokens {
  const identities = numberIdentities(organizations)
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
      const identity = identities.get(key)
      if (!identity || refusedKeys.has(key)) return 'unknown'
      const tenants = listTenants(key)
      const tenant = tenantId ?? tenants[0]
      if (tenant === undefined || !tenants.includes(tenant)) return 'forbidden'
      const token = `sandbox-token-${randomBytes(24).toString('hex')}`
      const grant = { ...identity, token, key, tenantId: tenant, expiresAtMs: now() + lifetimeMs }
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

/** Returns the identities by key, numbered over all organizations. */
function numberIdentities(organizations: readonly SandboxOrganization[]): Map<string, KeyIdentity> {
  const owned = organizations.flatMap(({ id, keys }) => keys.map((key) => ({ id, key })))
  return new Map(
    owned.map(({ id, key }, index) => [
      key.key,
      {
        organizationId: id,
        apiKeyId: index + 1,
        userId: index + 1,
        userEmail: index === 0 ? 'sandbox@example.com' : `sandbox-${index + 1}@example.com`,
        permissions: key.permissions ?? permissions,
      },
    ]),
  )
}

/**
 * Permissions of a key's user (docs/api-notes.md, Tokens). Where that page does not say which
 * request needs which permission, it is inferred from the names.
 */
function neededPermission(row: Operation | undefined, { field }: { field?: unknown }): string {
  if (row?.costsQuota) return 'firework.global_search'
  if (row?.name === 'tenants.create') return 'organization_admin'
  if (row?.name === 'events.expand') {
    return field === 'cookies' ? 'astp_cookies_access' : 'astp_credentials_access'
  }
  return row?.permission ?? ''
}

/** Answers 403 if `grant` lacks the permission that the request needs. */
async function refuseUnpermitted(
  request: FastifyRequest,
  reply: FastifyReply,
  grant: TokenGrant,
): Promise<void> {
  const needed = neededPermission(rowOf(request), request.query as { field?: unknown })
  const isPermission = permissions.some((permission) => permission === needed)
  if (!isPermission || grant.permissions.some((own) => own === needed)) return
  const shape = errorShapeOf(request.url)
  await sendError(reply, { status: 403, shape, message: `needs ${needed}` })
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
