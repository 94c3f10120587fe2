/**
 * Leaked credentials: the feeds of an identifier and of the tenant, the searches, where they were
 * used, triage; and stolen cookies.
 */
import { z } from 'zod'
import { orders } from './enumerations.ts'
import { triageAction } from './events.ts'
import { cursor, moment, nothing, operation, pagedOperation } from './operation.ts'
import { lenient } from './page.ts'

export const wireCredentialSource = z.looseObject({
  id: lenient.id,
  name: lenient.text,
  description_en: lenient.text,
  description_fr: lenient.text,
  breached_at: lenient.text,
  leaked_at: lenient.text,
  is_alert_enabled: lenient.flag,
  pii_tags: lenient.texts,
})

/**
 * One record of the v3 feed or of the v4 search. Each leaves out fields that the other has, and
 * servers send null for more fields than the description says (docs/api-notes.md, Credentials).
 * `id` must be a safe integer: above 2^53 two ids could read as one.
 */
export const wireCredential = z.looseObject({
  id: z.int().min(0),
  source_id: lenient.id,
  imported_at: lenient.text,
  identity_name: lenient.text,
  hash: lenient.text,
  hash_type: lenient.text,
  domain: lenient.text,
  auth_domains: lenient.texts,
  urls: lenient.texts,
  known_password_id: lenient.number,
  /** Identifies the pair of identity and secret without revealing it. */
  credential_hash: lenient.text,
  /** Uid of the event that holds the credential, such as a stealer log. */
  event_uid: lenient.text,
  source: wireCredentialSource.nullish().catch(null),
  remediated_at: lenient.text,
  ignored_at: lenient.text,
})
export type WireCredential = z.infer<typeof wireCredential>

/** An address at which a credential was used. */
const wireCredentialUrl = z.looseObject({
  url: z.string(),
  domain: lenient.text,
  credential_hash: lenient.text,
})

const word = z.string().min(1)

/** The kinds of credential queries. docs/api-notes.md, Credentials, says what each matches. */
const wireCredentialQuery = z.discriminatedUnion('type', [
  z.strictObject({ type: z.enum(['domain', 'auth_domain']), fqdn: word }),
  z.strictObject({ type: z.literal('secret'), secret: word }),
  z.strictObject({ type: z.literal('email'), email: word }),
  z.strictObject({ type: z.literal('keyword'), keyword: word }),
])
export type WireCredentialQuery = z.input<typeof wireCredentialQuery>

/** The body of the v4 credential search. During a scan only `from` changes, as with events. */
export const credentialSearchBody = z.strictObject({
  query: wireCredentialQuery,
  /** 1 to 10,000; a large page may end in a 504 (docs/api-notes.md, Page sizes). */
  size: z.int().min(1).max(10_000).optional(),
  order: z.enum(orders).optional(),
  from: cursor,
  /** `urls` is refused by older servers (docs/api-notes.md, Credentials). */
  include: z.array(word).optional(),
  /** Servers before 2026-05-28 heed it only for `auth_domain` (docs/api-notes.md, Versions). */
  filters: z
    .strictObject({
      imported_at: z.strictObject({ gte: moment.optional(), lte: moment.optional() }).optional(),
    })
    .optional(),
})
export type WireCredentialSearchBody = z.input<typeof credentialSearchBody>

/** The body of the cookie search. `domain` is exact: subdomains are others. */
export const cookieSearchBody = z.strictObject({
  domain: word.optional(),
  values: z.array(word).length(1).optional(),
  names: z.array(word).max(10).optional(),
  paths: z.array(word).max(10).optional(),
  imported_after: moment.optional(),
  expires_after: moment.optional(),
  /** 1 to 2,000 (docs/api-notes.md, Page sizes). */
  size: z.int().min(1).max(2_000).optional(),
  order: z.enum(orders).optional(),
  from: cursor,
})
export type WireCookieSearchBody = z.input<typeof cookieSearchBody>

/** A cookie that a stealer log holds. */
export const wireCookie = z.looseObject({
  uuid: lenient.text,
  domain: lenient.text,
  name: lenient.text,
  path: lenient.text,
  value: lenient.text,
  expires_at: lenient.text,
  imported_at: lenient.text,
  event_uid: lenient.text,
})
export type WireCookie = z.infer<typeof wireCookie>

/** At most 100 targets in one request. */
const credentialAction = z.strictObject({
  targets: z
    .array(z.strictObject({ credential_hash: word }))
    .min(1)
    .max(100),
  action: triageAction,
})

/** The API's default is 20; no maximum is published (docs/api-notes.md, Page sizes). */
const feedQuery = z.strictObject({ size: z.int().min(1).optional(), from: cursor })
/** The API's default is desc; only asc can be resumed. */
const tenantFeedQuery = feedQuery.extend({ order_type: z.enum(orders).optional() })

const tenantFeed = {
  query: tenantFeedQuery,
  item: wireCredential,
  permission: 'to read its credentials',
} as const

export const credentialOperations = {
  search: pagedOperation({
    name: 'credentials.search',
    summary: 'search all leaked credentials (costs quota)',
    request: 'POST /firework/v4/credentials/global/_search',
    body: credentialSearchBody,
    item: wireCredential,
    tier: 'search',
    costsQuota: true,
  }),
  searchAstp: pagedOperation({
    name: 'credentials.search-astp',
    summary: 'search all leaked credentials without quota',
    request: 'POST /astp/v2/credentials/_search',
    body: credentialSearchBody,
    item: wireCredential,
    permission: 'astp_credentials_access',
  }),
  feed: pagedOperation({
    name: 'credentials.feed',
    summary: 'list the leaked credentials of an identifier',
    request: 'GET /firework/v3/identifiers/{identifier_id}/feed/credentials',
    query: feedQuery,
    item: wireCredential,
  }),
  tenantFeed: pagedOperation({
    ...tenantFeed,
    name: 'credentials.tenant-feed',
    summary: 'list the leaked credentials of all identifiers of the tenant',
    request: 'GET /firework/v2/me/feed/credentials',
  }),
  tenantFeedByPost: pagedOperation({
    ...tenantFeed,
    name: 'credentials.tenant-feed-post',
    summary: 'the same by POST, parameters in the query string',
    request: 'POST /firework/v2/me/feed/credentials',
  }),
  urls: pagedOperation({
    name: 'credentials.urls',
    summary: 'list the addresses at which a credential was used',
    request: 'POST /astp/urls/by_credential_hash',
    body: z.strictObject({
      credential_hash: word,
      size: z.int().min(1).max(5_000).optional(),
      from: cursor,
    }),
    item: wireCredentialUrl,
    permission: 'astp_credentials_access',
  }),
  act: operation({
    name: 'credentials.act',
    summary: 'ignore or remediate credentials, or undo that',
    request: 'POST /firework/v4/credentials/actions',
    body: credentialAction,
    answer: nothing,
    changes: true,
    permission: 'to change credentials',
  }),
  cookies: pagedOperation({
    name: 'cookies.search',
    summary: 'search stolen cookies',
    request: 'POST /astp/v2/cookies/_search',
    body: cookieSearchBody,
    item: wireCookie,
    secretFields: ['values'],
    permission: 'astp_cookies_access',
  }),
} as const
