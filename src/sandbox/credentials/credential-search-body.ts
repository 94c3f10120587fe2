/** What the requests for credentials ask: refused is what the service refuses. */
import { z } from 'zod'
import { credentialIncludes, orders } from '../../service/wire/enumerations.ts'
import { instantOf } from '../api/search-body.ts'
import type { SandboxCredential } from './sandbox-credential.ts'

const time = z.string().refine((text) => !Number.isNaN(instantOf(text)), 'not a date-time')
const include = z.enum(credentialIncludes)
const word = z.string().min(1)

export type CredentialInclude = z.infer<typeof include>

/** Body of the v4 search: sizes as service.md has them, defaults as facts.md 1, row 13, and 2.3. */
export const credentialSearchBody = z.object({
  query: z.discriminatedUnion('type', [
    z.object({ type: z.literal('domain'), fqdn: word }),
    z.object({ type: z.literal('auth_domain'), fqdn: word }),
    z.object({ type: z.literal('secret'), secret: word }),
    z.object({ type: z.literal('email'), email: word }),
    z.object({ type: z.literal('keyword'), keyword: word }),
  ]),
  filters: z
    .object({
      imported_at: z.object({ gte: time.nullish(), lte: time.nullish() }).optional(),
    })
    .default({}),
  from: z.string().nullish(),
  size: z.int().min(1).max(10_000).default(10),
  include: z.array(include).default([]),
  order: z.enum(['asc', 'desc']).default('desc'),
})

export type CredentialSearchBody = z.infer<typeof credentialSearchBody>

/** Query of the v3 feed. No upper bound of its size is published (facts.md 1, row 30). */
export const credentialFeedQuery = z.object({
  size: z.coerce.number().int().min(1).default(20),
  from: z.string().optional(),
})

/** Query of the tenant's feed (OpenAPI v2, me/feed/credentials). */
export const tenantCredentialsQuery = credentialFeedQuery.extend({
  order_type: z.enum(orders).default('desc'),
})

export function credentialMatcher(
  { query, filters }: CredentialSearchBody,
  filtersImportedAt: boolean,
): (credential: SandboxCredential) => boolean {
  const isFiltered = filtersImportedAt || query.type === 'auth_domain'
  const { gte, lte } = (isFiltered ? filters.imported_at : null) ?? {}
  const since = gte ? instantOf(gte) : -Infinity
  const until = lte ? instantOf(lte) : Infinity
  const isAsked = queryMatcher(query)
  return (credential) =>
    credential.importedAtMs >= since && credential.importedAtMs <= until && isAsked(credential)
}

/** What each kind matches: facts.md 1, row 12. */
function queryMatcher(
  query: CredentialSearchBody['query'],
): (credential: SandboxCredential) => boolean {
  switch (query.type) {
    case 'domain':
      return ({ domain }) => domain === query.fqdn
    case 'auth_domain':
      return ({ authDomains }) => authDomains.includes(query.fqdn)
    case 'secret':
      return ({ hash }) => hash === query.secret
    case 'email':
      return ({ identityName }) => identityName?.toLowerCase() === query.email.toLowerCase()
    case 'keyword':
      return ({ identityName }) => identityName?.split('@')[0]?.includes(query.keyword) === true
  }
}
