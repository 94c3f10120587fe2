/**
 * The wire format, shared by the client and the sandbox: lenient where the service may grow (unknown
 * fields, types and severities pass), exact in what Tocsin reads. Shapes: service.md; gaps: facts.md.
 */
import { z } from 'zod'

const text = z.string()
const nullableText = z.string().nullish()

export const wireTokenGrant = z.looseObject({ token: z.string().min(1) })
export type WireTokenGrant = z.infer<typeof wireTokenGrant>

export const wireTokenTest = z.looseObject({
  tenant_id: z.number().nullish(),
  api_key_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  user_id: z.number().nullish(),
  user_email: nullableText,
  scopes: z.array(text).nullish(),
})
export type WireTokenTest = z.infer<typeof wireTokenTest>

/** One page of a search. Items stay unknown: each is parsed alone, so that one bad item blocks none. */
export const wireSearchPage = z.looseObject({
  items: z.array(z.unknown()),
  next: nullableText,
})
export type WireSearchPage = z.infer<typeof wireSearchPage>

export const wireSearchItem = z.looseObject({
  metadata: z.looseObject({
    uid: z.string().min(1),
    type: nullableText,
    severity: nullableText,
    estimated_created_at: nullableText,
    matched_at: nullableText,
    flare_url: nullableText,
  }),
  tenant_metadata: z
    .looseObject({
      severity: z.looseObject({ original: nullableText, override: nullableText }).nullish(),
      tags: z.array(text).nullish(),
      notes: nullableText,
      ignored_at: nullableText,
      remediated_at: nullableText,
    })
    .nullish(),
  // an ornament: an odd one must not keep the event back
  highlights: z.record(z.string(), z.array(text)).nullish().catch(null),
  identifiers: z.array(z.looseObject({ id: z.number(), name: text })).nullish(),
})
export type WireSearchItem = z.infer<typeof wireSearchItem>

/** The full event: bare, or wrapped as `activity` by older servers (facts.md 3, event detail). */
export const wireFullEvent = z.looseObject({
  event_type: nullableText,
  metadata: z.looseObject({ uid: nullableText }).nullish(),
  data: z.record(z.string(), z.unknown()).nullish(),
})
export type WireFullEvent = z.infer<typeof wireFullEvent>

const wireCredentialSource = z.looseObject({
  id: z.union([text, z.number()]).nullish(),
  name: nullableText.catch(null),
  breached_at: nullableText.catch(null),
  leaked_at: nullableText.catch(null),
  pii_tags: z.array(text).nullish().catch(null),
})

/**
 * One record of the v3 feed or of the v4 search; the two differ in what they leave out. Today's
 * servers give null for more than the description says (facts.md 3, credential search). An id is a
 * whole number below 2^53: above that two ids would read as one.
 */
export const wireCredential = z.looseObject({
  id: z.int().min(0),
  source_id: z.union([text, z.number()]).nullish(),
  imported_at: nullableText,
  identity_name: nullableText,
  hash: nullableText,
  hash_type: nullableText,
  domain: nullableText,
  // ornaments: an odd one must not keep the credential back
  auth_domains: z.array(text).nullish().catch(null),
  known_password_id: z.number().nullish().catch(null),
  source: wireCredentialSource.nullish(),
  remediated_at: nullableText,
  ignored_at: nullableText,
})
export type WireCredential = z.infer<typeof wireCredential>

/** What a global credential search looks for: an address' domain, the site of the login, and so on. */
export type WireCredentialQuery =
  | { type: 'domain' | 'auth_domain'; fqdn: string }
  | { type: 'secret'; secret: string }
  | { type: 'email'; email: string }
  | { type: 'keyword'; keyword: string }

/** The body of the v4 credential search. As with events, of a walk only `from` moves. */
export interface WireCredentialSearchBody {
  query: WireCredentialQuery
  /** 1 to 10,000 (service.md, Credential search); a large one may end in a 504. */
  size: number
  order: 'asc' | 'desc'
  from?: string
  include?: ('known_password_id' | 'auth_domains')[]
  /** Servers before 2026-05-28 ignore it for all kinds but `auth_domain` (facts.md 0). */
  filters?: { imported_at?: { gte?: string; lte?: string } }
}

/** The body of both v4 event searches. `from` moves; everything else of a walk never changes. */
export interface WireSearchBody {
  query?: Record<string, unknown>
  size: number
  order: 'asc' | 'desc'
  from?: string
  filters: {
    severity?: string | string[]
    type?: string[]
    tags?: string[]
    is_ignored?: boolean
    is_remediated?: boolean
    estimated_created_at?: { gt?: string; gte?: string; lt?: string; lte?: string }
  }
}
