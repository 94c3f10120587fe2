/** Tenants; and what is asked of the service itself: tokens, and whether it is well. */
import { z } from 'zod'
import { operation } from './operation.ts'
import { wireItems, wireTokenGrant, wireTokenTest } from './page.ts'

const text = z.string()

export const wireTenant = z.looseObject({
  id: z.int(),
  name: text,
  type: text.nullish(),
  organization_id: z.number().nullish(),
  industry: text.nullish(),
  is_disabled: z.boolean().nullish(),
  permissions: z.array(text).nullish(),
})
export type WireTenant = z.infer<typeof wireTenant>

const tenantsAnswer = z
  .looseObject({ tenants: wireItems.nullish() })
  .transform(({ tenants }) => tenants ?? [])

/** The API requires no field (docs/api-notes.md, Tenants); Tocsin finds the tenant by its name. */
export const tenantCreation = z.strictObject({
  name: text.min(1),
  description: text.optional(),
  industry: text.optional(),
})

export const tenantOperations = {
  list: operation({
    name: 'tenants.list',
    summary: "list the tenants that the key's user may use",
    request: 'GET /firework/v2/me/tenants',
    answer: tenantsAnswer,
    item: wireTenant,
    permission: "to see its user's tenants",
  }),
  create: operation({
    name: 'tenants.create',
    summary: "create a tenant in an organization that the key's user administers",
    request: 'POST /firework/v2/organizations/{organization_id}/tenants',
    body: tenantCreation,
    answer: wireTenant,
    changes: true,
  }),
} as const

export const serviceOperations = {
  generateToken: operation({
    name: 'tokens.generate',
    summary: 'exchange the API key for a token',
    request: 'POST /tokens/generate',
    body: z.strictObject({ tenant_id: z.int().optional() }),
    answer: wireTokenGrant,
    onlyBy: 'doctor',
  }),
  testToken: operation({
    name: 'tokens.test',
    summary: 'read whom a token belongs to',
    request: 'GET /tokens/test',
    answer: wireTokenTest,
  }),
  health: operation({
    name: 'health.check',
    summary: 'ask whether the service is well',
    request: 'GET /firework/v4/healthz/',
    answer: z.unknown(),
    permission: 'to ask',
  }),
} as const
