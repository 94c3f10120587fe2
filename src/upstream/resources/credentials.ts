/**
 * Leaked credentials: the feed of an identifier, the feed of the tenant, the searches, and stolen
 * cookies.
 */
import { z } from 'zod'
import { credentialIncludes, orders } from './enumerations.ts'
import {
  ask,
  type CallOptions,
  type TierCallOptions,
  checkRequest,
  type OperationParts,
  pathPart,
  read,
  type Request,
  type SearchPage,
  readSearchPage,
} from './operation.ts'
import { wireSearchPage, type WireSearchPage } from './page.ts'

interface CredentialFeedRequest extends TierCallOptions {
  identifier: number
  /** The cursor as it was received; null for the first page. */
  from: string | null
  /** The API's default is 20; no maximum is published (docs/api-notes.md, Page sizes). */
  size: number
}

interface TenantCredentialsRequest extends Omit<CredentialFeedRequest, 'identifier'> {
  /** The API's default is desc; only asc can be resumed. */
  order: (typeof orders)[number]
  /** Default GET. Both methods carry their parameters in the query string. */
  method?: 'GET' | 'POST'
}

export interface CredentialOperations {
  /**
   * Returns one page of an identifier's credentials, in the API's own order. `GET
   * /firework/v3/identifiers/{id}/feed/credentials`; basic tier (docs/api-notes.md, Rate limits).
   */
  credentialFeed(request: CredentialFeedRequest): Promise<SearchPage>
  /**
   * Returns one page of a global search, which costs quota. `POST
   * /firework/v4/credentials/global/_search`; search tier.
   */
  searchCredentials(
    request: { body: WireCredentialSearchBody } & TierCallOptions,
  ): Promise<SearchPage>
  /**
   * Returns one page of the credentials of all identifiers of the tenant. `GET|POST
   * /firework/v2/me/feed/credentials`; basic tier. Not every server has it.
   */
  tenantCredentials(request: TenantCredentialsRequest): Promise<SearchPage>
  /**
   * The same search without quota, for keys with the permission `astp_credentials_access`. `POST
   * /astp/v2/credentials/_search`; basic tier.
   */
  searchAstpCredentials(
    request: { body: WireCredentialSearchBody } & TierCallOptions,
  ): Promise<SearchPage>
  /**
   * Returns one page of the addresses at which a credential was used; 1 to 5,000. `POST
   * /astp/urls/by_credential_hash`; basic tier.
   */
  credentialUrls(
    request: { hash: string; from: string | null; size: number } & CallOptions,
  ): Promise<WireSearchPage>
  /**
   * Returns one page of stolen cookies, for keys with the permission `astp_cookies_access`. `POST
   * /astp/v2/cookies/_search`; basic tier.
   */
  searchCookies(request: { body: WireCookieSearchBody } & TierCallOptions): Promise<SearchPage>
}

export function createCredentialOperations(parts: OperationParts): CredentialOperations {
  async function search(
    where: Required<Pick<Request, 'path' | 'tier'>>,
    { body, ...asked }: { body: WireCredentialSearchBody } & TierCallOptions,
  ): Promise<SearchPage> {
    const checked = checkRequest(credentialSearchBody, body)
    const secrets = checked.query.type === 'secret' ? [checked.query.secret] : []
    const pageSize = checked.size
    const request = { method: 'POST', body: checked, secrets, pageSize, ...where } as const
    return readSearchPage(await ask(parts, request, asked))
  }

  return {
    async credentialFeed({ identifier, from, size, ...asked }) {
      const query = new URLSearchParams({ size: String(size), ...(from !== null && { from }) })
      const identity = pathPart(identifier)
      const path = `/firework/v3/identifiers/${identity}/feed/credentials?${query.toString()}`
      return readSearchPage(await ask(parts, { method: 'GET', path, pageSize: size }, asked))
    },
    searchCredentials: (asked) =>
      search({ path: '/firework/v4/credentials/global/_search', tier: 'search' }, asked),
    async tenantCredentials({ from, size, order, method = 'GET', ...asked }) {
      const query = new URLSearchParams({
        size: String(size),
        order_type: order,
        ...(from !== null && { from }),
      })
      const path = `/firework/v2/me/feed/credentials?${query.toString()}`
      return readSearchPage(await ask(parts, { method, path, pageSize: size }, asked))
    },
    searchAstpCredentials: (asked) =>
      search({ path: '/astp/v2/credentials/_search', tier: 'basic' }, asked),
    async searchCookies({ body: given, ...asked }) {
      const body = checkRequest(cookieSearchBody, given)
      const path = '/astp/v2/cookies/_search'
      const request = { method: 'POST', path, body, pageSize: body.size } as const
      const secrets = body.values ?? []
      return readSearchPage(await ask(parts, { ...request, secrets }, asked))
    },
    credentialUrls({ hash, from, size, ...asked }) {
      const body = { credential_hash: hash, size, ...(from !== null && { from }) }
      const path = '/astp/urls/by_credential_hash'
      return read(parts, wireSearchPage, { method: 'POST', path, body, pageSize: size }, asked)
    },
  }
}

const text = z.string()
/** A malformed field reads as null, so that the record survives. Feeds read the raw record. */
const optionalText = text.nullish().catch(null)
const optionalTexts = z.array(text).nullish().catch(null)
const optionalId = z.union([text, z.number()]).nullish().catch(null)

export const wireCredentialSource = z.looseObject({
  id: optionalId,
  name: optionalText,
  breached_at: optionalText,
  leaked_at: optionalText,
  pii_tags: optionalTexts,
})

/**
 * One record of the v3 feed or of the v4 search. Each leaves out fields that the other has, and
 * servers send null for more fields than the description says (docs/api-notes.md, Credentials).
 * `id` must be a safe integer: above 2^53 two ids could read as one.
 */
export const wireCredential = z.looseObject({
  id: z.int().min(0),
  source_id: optionalId,
  imported_at: optionalText,
  identity_name: optionalText,
  hash: optionalText,
  hash_type: optionalText,
  domain: optionalText,
  auth_domains: optionalTexts,
  urls: optionalTexts,
  known_password_id: z.number().nullish().catch(null),
  /** Identifies the pair of identity and secret without revealing it. */
  credential_hash: optionalText,
  /** Uid of the event that holds the credential, such as a stealer log. */
  event_uid: optionalText,
  source: wireCredentialSource.nullish().catch(null),
  remediated_at: optionalText,
  ignored_at: optionalText,
})
export type WireCredential = z.infer<typeof wireCredential>

/** An address at which a credential was used. */
export const wireCredentialUrl = z.looseObject({
  url: text,
  domain: optionalText,
  credential_hash: optionalText,
})
export type WireCredentialUrl = z.infer<typeof wireCredentialUrl>

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
  size: z.int().min(1).max(10_000),
  order: z.enum(orders),
  from: z.string().optional(),
  include: z.array(z.enum(credentialIncludes)).optional(),
  /** Servers before 2026-05-28 heed it only for `auth_domain` (docs/api-notes.md, Versions). */
  filters: z
    .strictObject({
      imported_at: z.strictObject({ gte: word.optional(), lte: word.optional() }).optional(),
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
  imported_after: word.optional(),
  expires_after: word.optional(),
  /** 1 to 2,000 (docs/api-notes.md, Page sizes). */
  size: z.int().min(1).max(2_000),
  order: z.enum(orders),
  from: z.string().optional(),
})
export type WireCookieSearchBody = z.input<typeof cookieSearchBody>

/** A cookie that a stealer log holds. */
export const wireCookie = z.looseObject({
  uuid: optionalText,
  domain: optionalText,
  name: optionalText,
  path: optionalText,
  value: optionalText,
  expires_at: optionalText,
  imported_at: optionalText,
  event_uid: optionalText,
})
export type WireCookie = z.infer<typeof wireCookie>
