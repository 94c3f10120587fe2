/**
 * The tenants of the organizations: those that the keys name, and those created later. A new tenant
 * has an empty identifier group, and every key of its organization may use it. Tokens are for one
 * tenant.
 */
import {
  serviceOperations,
  tenantOperations,
  type WireTenant,
} from '../../upstream/resources/tenants.ts'
import type { SandboxGroup, SandboxOrganization, SandboxSettings } from '../options.ts'
import type { Tokens } from './guard.ts'
import { on, Refusal, type Route } from './routes.ts'

interface SandboxTenant {
  id: number
  name: string
  description: string
  industry: string
  organizationId: number
}

export interface Tenants {
  /** The key's tenants in its own order, followed by those created later. */
  ofKey(key: string): readonly SandboxTenant[]
  create(given: Omit<SandboxTenant, 'id'>): SandboxTenant
}

interface Parts {
  organizations: readonly SandboxOrganization[]
  /** Each new tenant adds its first group here. */
  groups: SandboxGroup[]
}

export function createTenants({ organizations, groups }: Parts): Tenants {
  const owned = organizations.flatMap((owner) => owner.keys.map((own) => ({ owner, own })))
  const initial = owned.flatMap(({ owner, own }) =>
    own.tenants.map((id) => newTenant(id, owner.id)),
  )
  const byId = new Map(initial.map((tenant) => [tenant.id, tenant]))
  const created: SandboxTenant[] = []

  return {
    ofKey(key) {
      const { owner, own } = owned.find((one) => one.own.key === key) ?? {}
      const open = created.filter((one) => one.organizationId === owner?.id)
      return [...(own?.tenants ?? []).flatMap((id) => byId.get(id) ?? []), ...open]
    },
    create(given) {
      const known = [...byId.keys(), ...groups.map(({ tenantId }) => tenantId)]
      const tenant = { ...given, id: Math.max(0, ...known) + 1 }
      byId.set(tenant.id, tenant)
      created.push(tenant)
      const groupId = Math.max(0, ...groups.map(({ id }) => id)) + 1
      groups.push({ id: groupId, name: tenant.name, tenantId: tenant.id, identifiers: [] })
      return tenant
    },
  }
}

function newTenant(id: number, organizationId: number): SandboxTenant {
  return { id, name: `Tenant ${id}`, description: '', industry: 'global', organizationId }
}

export function tenantRoutes(parts: {
  settings: Pick<SandboxSettings, 'organizations'>
  tenants: Tenants
  tokens: Tokens
}): Route[] {
  const { settings, tenants, tokens } = parts
  return [
    on(serviceOperations.generateToken, ({ tenant_id: tenantId }, { authorization }) => {
      const grant = tokens.issue(authorization, tenantId)
      if (grant === 'unknown') throw new Refusal(401, 'bad API key')
      if (grant === 'forbidden') throw new Refusal(403, 'not your tenant')
      // The expiry of a refresh cookie, not of the token, as in the real answer: a trap for clients.
      const refreshTokenExp = Math.floor(grant.expiresAtMs / 1000) + 2_592_000
      return { token: grant.token, refresh_token_exp: refreshTokenExp }
    }),
    on(serviceOperations.testToken, (_, { grant, tenantId }) => ({
      tenant_id: tenantId,
      api_key_id: 1,
      organization_id: grant?.organizationId,
      user_id: 1,
      user_email: 'sandbox@example.com',
      scopes: ['authenticated', 'apikey', 'firework', ...permissions],
    })),
    on(serviceOperations.health, () => 'ok'),
    on(tenantOperations.list, (_, { grant }) => ({
      tenants: tenants.ofKey(grant?.key ?? '').map(toTenantItem),
    })),
    on(tenantOperations.create, ({ organization_id: id, ...given }, { grant }) => {
      const organizationId = Number(id)
      if (!settings.organizations.some((known) => known.id === organizationId)) {
        throw new Refusal(404, 'no such organization')
      }
      if (grant?.organizationId !== organizationId) throw new Refusal(403, 'another organization')
      const { name, description = '', industry = 'global' } = given
      return toTenantItem(tenants.create({ name, description, industry, organizationId }))
    }),
  ]
}

/** The API's names of permissions (docs/api-notes.md, Tokens): every key has all of them. */
const permissions = [
  'firework.global_search',
  'leaksdb.show-passwords',
  'alert_channels',
  'astp_credentials_access',
  'astp_cookies_access',
]

function toTenantItem(tenant: SandboxTenant): WireTenant {
  const { id, organizationId, ...words } = tenant
  return {
    ...words,
    id,
    type: 'standard',
    organization_id: organizationId,
    is_disabled: false,
    permissions,
  }
}
