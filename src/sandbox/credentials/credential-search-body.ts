/** What the two requests for credentials ask, strictly: what the service does not know is refused. */
import { z } from 'zod'
import { instantOf } from '../api/search-body.ts'
import type { SandboxCredential } from './sandbox-credential.ts'

const time = z.string().refine((text) => !Number.isNaN(instantOf(text)), 'not a date-time')
const include = z.enum(['known_password_id', 'auth_domains'])
const word = z.string().min(1)

export type CredentialInclude = z.infer<typeof include>

/** Body of the v4 search: sizes as service.md has them, defaults as facts.md 1, row 13, and 2.3. */
export const credentialSearchBody = z.strictObject({
  query: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('domain'), fqdn: word }),
    z.strictObject({ type: z.literal('auth_domain'), fqdn: word }),
    z.strictObject({ type: z.literal('secret'), secret: word }),
    z.strictObject({ type: z.literal('email'), email: word }),
    z.strictObject({ type: z.literal('keyword'), keyword: word }),
  ]),
  filters: z
    .strictObject({
      imported_at: z.strictObject({ gte: time.optional(), lte: time.optional() }).nullish(),
    })
    .default({}),
  from: z.string().nullish(),
  size: z.int().min(1).max(10_000).default(10),
  include: z.array(include).default([]),
  order: z.enum(['asc', 'desc']).default('desc'),
})

export type CredentialSearchBody = z.infer<typeof credentialSearchBody>

/** Query of the v3 feed. No upper bound of its size is published (facts.md 1, row 30). */
export const credentialFeedQuery = z.strictObject({
  size: z.coerce.number().int().min(1).default(20),
  from: z.string().optional(),
})

export function credentialMatcher(
  { query, filters }: CredentialSearchBody,
  filtersImportedAt: boolean,
): (credential: SandboxCredential) => boolean {
  const isFiltered = filtersImportedAt || query.type === 'auth_domain'
  const { gte, lte } = (isFiltered ? filters.imported_at : null) ?? {}
  const since = gte === undefined ? -Infinity : instantOf(gte)
  const until = lte === undefined ? Infinity : instantOf(lte)
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
