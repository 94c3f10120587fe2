/** Tenants over HTTP: creating one, and which the caller may use. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { tenantCreation, type WireTenant } from '../../service/wire/tenants.ts'
import { grantOf } from '../api/gate.ts'
import type { TokenGrant, Tokens } from '../api/tokens.ts'
import { sendError, validationEntry } from '../error-bodies.ts'
import type { Permission, SandboxSettings } from '../options.ts'
import type { RequestLog } from '../request-log.ts'
import type { SandboxTenant, Tenants } from './tenants.ts'

interface Parts {
  settings: Pick<SandboxSettings, 'organizations'>
  tenants: Tenants
  tokens: Tokens
  log: RequestLog
}

export function addTenants(app: FastifyInstance, parts: Parts): void {
  const { tenants, tokens, log } = parts
  app.get('/firework/v2/me/tenants', (request, reply) => {
    const grant = grantOf(request, tokens)
    const own = grant ? tenants.ofKey(grant.key) : []
    return reply.send({ tenants: own.map((one) => tenantItemOf(one, grant?.permissions ?? [])) })
  })
  app.post('/firework/v2/organizations/:id/tenants', (request, reply) => {
    const grant = grantOf(request, tokens)
    const refused = refuseOrganization(request, reply, { grant, ...parts })
    if (refused || !grant) return refused
    const asked = creation.safeParse(log.entryOf(request).body ?? {})
    if (!asked.success) {
      const [issue] = asked.error.issues
      const message = `${issue?.path.join('.') || 'body'}: ${issue?.message}`
      return sendError(reply, { status: 400, shape: 'message', message })
    }
    const tenant = tenants.create(grant.organizationId, asked.data)
    return reply.send(tenantItemOf(tenant, grant.permissions))
  })
}

/** Nothing is required there (OpenAPI v2, NewTenantInfo). */
const creation = tenantCreation.strip().extend({ name: z.string().default('New tenant') })

/** Whether the caller is of an organization that there is; whether it may, the gate has judged. */
function refuseOrganization(
  request: FastifyRequest,
  reply: FastifyReply,
  { grant, settings }: Pick<Parts, 'settings'> & { grant: TokenGrant | null },
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

function tenantItemOf(tenant: SandboxTenant, permissions: readonly Permission[]): WireTenant {
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
