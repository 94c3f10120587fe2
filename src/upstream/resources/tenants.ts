/** Tenants: those of the key's user, and creating one in an organization. */
import { z } from 'zod'
import { industries } from './enumerations.ts'
import {
  type CallOptions,
  checkRequest,
  type OperationParts,
  pathPart,
  read,
  readWritten,
  write,
} from './operation.ts'
import { wireItems } from './page.ts'

export interface TenantOperations {
  /**
   * Creates a tenant in an organization that the key's user administers. `POST
   * /firework/v2/organizations/{id}/tenants`; basic tier.
   */
  createTenant(
    request: { organizationId: number; tenant: TenantCreation } & CallOptions,
  ): Promise<WireTenant>
  /**
   * Returns the tenants that the key's user may use; each is parsed alone. `GET
   * /firework/v2/me/tenants`; basic tier. Not every server has it.
   */
  listTenants(asked: CallOptions): Promise<unknown[]>
}

export function createTenantOperations(parts: OperationParts): TenantOperations {
  return {
    async createTenant({ organizationId, tenant, ...asked }) {
      const path = `/firework/v2/organizations/${pathPart(organizationId)}/tenants`
      const body = checkRequest(tenantCreation, tenant)
      return readWritten(await write(parts, { method: 'POST', path, body }, asked), wireTenant)
    },
    async listTenants(asked) {
      const request = { method: 'GET', path: '/firework/v2/me/tenants' } as const
      return (await read(parts, wireTenantsAnswer, request, asked)).tenants ?? []
    },
  }
}

const text = z.string()

export const wireTenant = z.looseObject({
  id: z.int(),
  name: text,
  type: text.nullish(),
  description: text.nullish(),
  organization_id: z.number().nullish(),
  urn: text.nullish(),
  number_of_employees: z.number().nullish(),
  industry: text.nullish(),
  is_disabled: z.boolean().nullish(),
  is_archived: z.boolean().nullish(),
  feed_id: z.number().nullish(),
  permissions: z.array(text).nullish(),
  prevent_global_search: z.boolean().nullish(),
})
export type WireTenant = z.infer<typeof wireTenant>

const wireTenantsAnswer = z.looseObject({ tenants: wireItems.nullish() })

/** The API requires no field (docs/api-notes.md, Tenants); Tocsin finds the tenant by its name. */
export const tenantCreation = z.strictObject({
  name: text.min(1),
  description: text.optional(),
  industry: z.enum(industries).optional(),
})
type TenantCreation = z.input<typeof tenantCreation>
