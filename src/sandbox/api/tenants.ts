/**
 * The tenants of the organizations: those that the keys name, and those created later. A new tenant
 * has an empty identifier group, and every administrator of its organization may use it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { tenantCreation, type WireTenant } from '../../upstream/resources/tenants.ts'
import type { Permission, SandboxGroup, SandboxOrganization, SandboxSettings } from '../options.ts'
import { type RequestLog, sendError, validationEntry } from '../server.ts'
import type { Persistent } from '../state/data-folder.ts'
import { findGrant, type TokenGrant, type Tokens } from './guard.ts'

interface SandboxTenant {
  id: number
  name: string
  description: string
  industry: string
  organizationId: number
  feedId: number
  employees: number | null
}

export interface Tenants extends Persistent {
  all(): readonly SandboxTenant[]
  /** The key's tenants in its own order, followed by those created later. */
  ofKey(key: string): readonly SandboxTenant[]
  create(
    organizationId: number,
    given: { name: string; description?: string | undefined; industry?: string | undefined },
  ): SandboxTenant
}

interface Parts {
  organizations: readonly SandboxOrganization[]
  /** Each new tenant adds its first group here. */
  groups: SandboxGroup[]
}

export function createTenants({ organizations, groups }: Parts): Tenants {
  const initial = initialTenants(organizations)
  const initialById = new Map(initial.map((tenant) => [tenant.id, tenant]))
  const owners = new Map(
    organizations.flatMap((owner) => owner.keys.map((own) => [own.key, { owner, own }])),
  )
  const created: z.infer<typeof tenantSnapshot>[] = []
  const all = (): SandboxTenant[] => [...initial, ...created.map(({ tenant }) => tenant)]

  function addTenant(entry: z.infer<typeof tenantSnapshot>): void {
    created.push(entry)
    groups.push({ ...entry.group, tenantId: entry.tenant.id, identifiers: [] })
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
        (id) => initialById.get(id) ?? later.find((tenant) => tenant.id === id) ?? [],
      )
    },
    create(organizationId, { name, description = '', industry = 'global' }) {
      const id = nextFreeId([...all().map((tenant) => tenant.id), ...groups.map(tenantIdOf)])
      const tenant = { ...newTenant(id, organizationId), name, description, industry }
      addTenant({ tenant, group: { id: nextFreeId(groups.map((group) => group.id)), name } })
      return tenant
    },
    snapshot: () => created,
    restore: (snapshot) => z.array(tenantSnapshot).parse(snapshot).forEach(addTenant),
  }
}

const tenantSnapshot = z.object({
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

function initialTenants(organizations: readonly SandboxOrganization[]): SandboxTenant[] {
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

function tenantIdOf({ tenantId }: SandboxGroup): number {
  return tenantId
}

function nextFreeId(ids: readonly number[]): number {
  return Math.max(0, ...ids) + 1
}

interface RequestParts {
  settings: Pick<SandboxSettings, 'organizations'>
  tenants: Tenants
  tokens: Tokens
  log: RequestLog
}

export function addTenants(app: FastifyInstance, parts: RequestParts): void {
  const { tenants, tokens, log } = parts
  app.get('/firework/v2/me/tenants', (request, reply) => {
    const grant = findGrant(request, tokens)
    const own = grant ? tenants.ofKey(grant.key) : []
    return reply.send({ tenants: own.map((one) => toTenantItem(one, grant?.permissions ?? [])) })
  })
  app.post('/firework/v2/organizations/:id/tenants', (request, reply) => {
    const grant = findGrant(request, tokens)
    const refused = refuseOrganization(request, reply, { grant, ...parts })
    if (refused || !grant) return refused
    const parsed = creation.safeParse(log.entryFor(request).body ?? {})
    if (!parsed.success) {
      const [issue] = parsed.error.issues
      const message = `${issue?.path.join('.') || 'body'}: ${issue?.message}`
      return sendError(reply, { status: 400, shape: 'message', message })
    }
    const tenant = tenants.create(grant.organizationId, parsed.data)
    return reply.send(toTenantItem(tenant, grant.permissions))
  })
}

/** The API requires no field (docs/api-notes.md, Tenants). */
const creation = tenantCreation.strip().extend({ name: z.string().default('New tenant') })

/**
 * Sends a refusal unless the organization exists and is the caller's. `guard` has already checked
 * the permission.
 */
function refuseOrganization(
  request: FastifyRequest,
  reply: FastifyReply,
  { grant, settings }: Pick<RequestParts, 'settings'> & { grant: TokenGrant | null },
): FastifyReply | null {
  const { id } = request.params as { id: string }
  if (!/^\d+$/.test(id)) {
    const detail = [validationEntry(['path', 'organization_id'], 'not an integer', id)]
    return reply.code(422).send({ detail })
  }
  if (!settings.organizations.some((known) => String(known.id) === id)) {
    return sendError(reply, { status: 404, shape: 'message', message: 'no such organization' })
  }
  if (String(grant?.organizationId) === id) return null
  return sendError(reply, { status: 403, shape: 'message', message: 'another organization' })
}

function toTenantItem(tenant: SandboxTenant, permissions: readonly Permission[]): WireTenant {
  return {
    id: tenant.id,
    name: tenant.name,
    type: 'standard',
    description: tenant.description,
    organization_id: tenant.organizationId,
    urn: `urn:sandbox:tenant:${tenant.id}`,
    number_of_employees: tenant.employees,
    industry: tenant.industry,
    is_disabled: false,
    is_archived: false,
    feed_id: tenant.feedId,
    permissions: [...permissions],
    prevent_global_search: !permissions.includes('firework.global_search'),
  }
}
