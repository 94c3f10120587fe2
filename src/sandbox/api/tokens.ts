/** API keys and the tokens that they are exchanged for. */
import { randomBytes } from 'node:crypto'
import type { SandboxOrganization } from '../options.ts'

export interface TokenGrant {
  token: string
  key: string
  organizationId: number
  tenantId: number
  expiresAtMs: number
}

export interface TokenControl {
  /** Every token handed out so far is worth nothing from now on. */
  revokeAll(): void
  /** The key is refused from now on, and so are its tokens; `admitKey` takes it back. */
  refuseKey(key: string): void
  admitKey(key: string): void
  issued(): number
}

export interface Tokens extends TokenControl {
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
}

export function createTokens({ organizations, lifetimeMs, now }: TokenOptions): Tokens {
  const grants = new Map<string, TokenGrant>()
  const revoked = new Set<TokenGrant>()
  const refusedKeys = new Set<string>()

  function ownerOf(key: string): SandboxOrganization | null {
    const owner = organizations.find(({ keys }) => keys.some((own) => own.key === key))
    return owner && !refusedKeys.has(key) ? owner : null
  }

  function issue(key: string, tenantId: number | undefined): TokenGrant | 'forbidden' | 'unknown' {
    const owner = ownerOf(key)
    const tenants = owner?.keys.find((own) => own.key === key)?.tenants
    if (!owner || !tenants) return 'unknown'
    const tenant = tenantId ?? tenants[0]
    if (tenant === undefined || !tenants.includes(tenant)) return 'forbidden'
    const grant = {
      token: `sandbox-token-${randomBytes(24).toString('hex')}`,
      key,
      organizationId: owner.id,
      tenantId: tenant,
      expiresAtMs: now() + lifetimeMs,
    }
    grants.set(grant.token, grant)
    return grant
  }

  return {
    ownerOf,
    issue,
    find: (token) => grants.get(token) ?? null,
    isValid: (grant) =>
      now() < grant.expiresAtMs && !revoked.has(grant) && !refusedKeys.has(grant.key),
    revokeAll: () => grants.forEach((grant) => revoked.add(grant)),
    refuseKey: (key) => void refusedKeys.add(key),
    admitKey: (key) => void refusedKeys.delete(key),
    issued: () => grants.size,
  }
}
