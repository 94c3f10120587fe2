/**
 * The tenants of the organizations: those that the keys name from the start, and those created since.
 * A new one has an empty identifier group, and every administrator of its organization may use it.
 */
import { z } from 'zod'
import type { SandboxGroup, SandboxOrganization } from '../options.ts'
import type { Keepable } from '../state/keepable.ts'

export interface SandboxTenant {
  id: number
  name: string
  description: string
  industry: string
  organizationId: number
  feedId: number
  employees: number | null
}

export interface Tenants extends Keepable {
  all(): readonly SandboxTenant[]
  /** In the order in which the key names them; those created later follow. */
  ofKey(key: string): readonly SandboxTenant[]
  create(
    organizationId: number,
    given: { name: string; description?: string | undefined; industry?: string | undefined },
  ): SandboxTenant
}

interface Parts {
  organizations: readonly SandboxOrganization[]
  /** Gets the first group of each new tenant. */
  groups: SandboxGroup[]
}

export function createTenants({ organizations, groups }: Parts): Tenants {
  const standing = standingTenants(organizations)
  const standingById = new Map(standing.map((tenant) => [tenant.id, tenant]))
  const owners = new Map(
    organizations.flatMap((owner) => owner.keys.map((own) => [own.key, { owner, own }])),
  )
  const created: z.infer<typeof keptTenant>[] = []
  const all = (): SandboxTenant[] => [...standing, ...created.map(({ tenant }) => tenant)]

  function enter(made: z.infer<typeof keptTenant>): void {
    created.push(made)
    groups.push({ ...made.group, tenantId: made.tenant.id, identifiers: [] })
  }

  return {
    all,
    ofKey(key) {
      const { owner, own } = owners.get(key) ?? {}
      const isAdministrator = own?.permissions?.includes('organization_admin') ?? own !== undefined
      const later = created.map(({ tenant }) => tenant)
      const open = isAdministrator ? later.filter((one) => one.organizationId === owner?.id) : []
      const ids = new Set([...(own?.tenants ?? []), ...open.map(({ id }) => id)])
      return [...ids].flatMap(
        (id) => standingById.get(id) ?? later.find((tenant) => tenant.id === id) ?? [],
      )
    },
    create(organizationId, { name, description = '', industry = 'global' }) {
      const id = nextAfter([...all().map((tenant) => tenant.id), ...groups.map(tenantOf)])
      const tenant = { ...newTenant(id, organizationId), name, description, industry }
      enter({ tenant, group: { id: nextAfter(groups.map((group) => group.id)), name } })
      return tenant
    },
    snapshot: () => created,
    restore: (kept) => z.array(keptTenant).parse(kept).forEach(enter),
  }
}

const keptTenant = z.object({
  tenant: z.object({
    id: z.int(),
    name: z.string(),
    description: z.string(),
    industry: z.string(),
    organizationId: z.int(),
    feedId: z.int(),
    employees: z.int().nullable(),
  }),
  group: z.object({ id: z.int(), name: z.string() }),
})

function standingTenants(organizations: readonly SandboxOrganization[]): SandboxTenant[] {
  return organizations.flatMap(({ id, keys }) =>
    [...new Set(keys.flatMap(({ tenants }) => tenants))].map((tenant) => newTenant(tenant, id)),
  )
}

function newTenant(id: number, organizationId: number): SandboxTenant {
  return {
    id,
    name: `Tenant ${id}`,
    description: '',
    industry: 'global',
    organizationId,
    feedId: 700_000 + id,
    employees: id % 2 === 0 ? null : 250,
  }
}

function tenantOf({ tenantId }: SandboxGroup): number {
  return tenantId
}

function nextAfter(ids: readonly number[]): number {
  return Math.max(0, ...ids) + 1
}
