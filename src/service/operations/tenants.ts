import {
  tenantCreation,
  wireTenant,
  type TenantCreation,
  type WireTenant,
} from '../wire/tenants.ts'
import { checkRequest } from './check-request.ts'
import { pathPart, readWritten, write, type Asked, type OperationParts } from './operation.ts'

export interface TenantOperations {
  /**
   * Creates a tenant inside an organization; the key's user must administer it.
   * `POST /firework/v2/organizations/{id}/tenants`; basic tier.
   */
  createTenant(
    request: { organizationId: number; tenant: TenantCreation } & Asked,
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
