/** API keys and the tokens that they are exchanged for. */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { permissions, type Permission, type SandboxOrganization } from '../options.ts'
import type { Keepable } from '../state/keepable.ts'

export interface TokenGrant extends KeyIdentity {
  token: string
  key: string
  tenantId: number
  expiresAtMs: number
}

/** Who is behind a key: each has a user of its own. */
interface KeyIdentity {
  organizationId: number
  apiKeyId: number
  userId: number
  userEmail: string
  permissions: readonly Permission[]
}

export interface TokenControl {
  /** Every token handed out so far is worth nothing from now on. */
  revokeAll(): void
  /** The key is refused from now on, and so are its tokens; `admitKey` takes it back. */
  refuseKey(key: string): void
  admitKey(key: string): void
  issued(): number
}

export interface Tokens extends TokenControl, Keepable {
  /** null: a key that is unknown or refused. */
  ownerOf(key: string): SandboxOrganization | null
  /** 'forbidden': a tenant that this key may not use. Without a tenant: the key's first. */
  issue(key: string, tenantId: number | undefined): TokenGrant | 'forbidden' | 'unknown'
  /** The grant behind a token, valid or not; null: never handed out. */
  find(token: string): TokenGrant | null
  isValid(grant: TokenGrant): boolean
}

export interface TokenOptions {
  organizations: readonly SandboxOrganization[]
  lifetimeMs: number
  now: () => number
  /** The tenants that a key may use; the first one is its default. */
  tenantsOf: (key: string) => readonly number[]
}

/** The key by itself, or as the password of HTTP Basic, as older clients send it. */
export function keyIn(authorization: string): string {
  const [, basic] = /^Basic (\S+)$/i.exec(authorization) ?? []
  if (basic === undefined) return authorization
  return Buffer.from(basic, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:/, '')
}

export function createTokens({ organizations, lifetimeMs, now, tenantsOf }: TokenOptions): Tokens {
  const identities = identitiesOf(organizations)
  const owners = new Map(organizations.flatMap((one) => one.keys.map(({ key }) => [key, one])))
  const grants = new Map<string, TokenGrant>()
  const revoked = new Set<TokenGrant>()
  const refusedKeys = new Set<string>()
  let issued = 0

  const isValid = (grant: TokenGrant): boolean =>
    now() < grant.expiresAtMs && !revoked.has(grant) && !refusedKeys.has(grant.key)

  return {
    ownerOf(key) {
      const owner = owners.get(key)
      return owner && !refusedKeys.has(key) ? owner : null
    },
    issue(key, tenantId) {
      const identity = identities.get(key)
      if (!identity || refusedKeys.has(key)) return 'unknown'
      const tenants = tenantsOf(key)
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
    snapshot: () => ({
      issued,
      refusedKeys: [...refusedKeys],
      grants: [...grants.values()]
        .filter((grant) => now() < grant.expiresAtMs && !revoked.has(grant))
        .map(({ token, key, tenantId, expiresAtMs }) => ({ token, key, tenantId, expiresAtMs })),
    }),
    restore(kept) {
      const state = keptTokens.parse(kept)
      issued = state.issued
      for (const key of state.refusedKeys) refusedKeys.add(key)
      for (const grant of state.grants) {
        const identity = identities.get(grant.key)
        if (identity) grants.set(grant.token, { ...identity, ...grant })
      }
    },
  }
}

const keptTokens = z.object({
  issued: z.int(),
  refusedKeys: z.array(z.string()),
  grants: z.array(
    z.object({ token: z.string(), key: z.string(), tenantId: z.int(), expiresAtMs: z.number() }),
  ),
})

/** By key, numbered over all organizations. */
function identitiesOf(organizations: readonly SandboxOrganization[]): Map<string, KeyIdentity> {
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
