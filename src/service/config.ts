import type { Secret } from '../runtime/secret.ts'

export type Tier = 'search' | 'basic'

export interface AccountConfig {
  name: string
  /** No trailing slash. */
  baseUrl: string
  apiKey: Secret
  tenantId: number | undefined
  /** Overrides the organization that the token test tells. */
  organizationId: number | undefined
  /** Requests per second and organization. */
  limits: Record<Tier, number>
  /** URL of an HTTP proxy; may hold a password. */
  proxy: Secret | undefined
  /** PEM file of further certificate authorities. */
  caFile: string | undefined
}
