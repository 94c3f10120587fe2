/** Tenants: creating one in an organization. */
import { z } from 'zod'
import { industries } from './enumerations.ts'
import {
  type CallOptions,
  checkRequest,
  type OperationParts,
  pathPart,
  readWritten,
  write,
} from './operation.ts'

export interface TenantOperations {
  /**
   * Creates a tenant in an organization that the key's user administers. `POST
   * /firework/v2/organizations/{id}/tenants`; basic tier.
   */
  createTenant(
    request: { organizationId: number; tenant: TenantCreation } & CallOptions,
  ): Promise<WireTenant>
}

export function createTenantOperations(parts: OperationParts): TenantOperations {
  return {
    async createTenant({ organizationId, tenant, ...asked }) {
      const path = `/firework/v2/organizations/${pathPart(organizationId)}/tenants`
      const body = checkRequest(tenantCreation, tenant)
      return readWritten(await write(parts, { method: 'POST', path, body }, asked), wireTenant)
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

/**
 * The API requires no field (docs/api-notes.md, Tenants); Tocsin requires a name to find the tenant
 * by.
 */
export const tenantCreation = z.strictObject({
  name: text.min(1),
  description: text.optional(),
  industry: z.enum(industries).optional(),
})
type TenantCreation = z.input<typeof tenantCreation>
