/** Leaked credentials: an identifier's feed, the tenant's, and the searches. */
import { credentialSearchBody, type WireCredentialSearchBody } from '../wire/credentials.ts'
import { checkRequest } from './check-request.ts'
import type { orders } from '../wire/enumerations.ts'
import { ask, pathPart, type AskedOfTier, type OperationParts, type Request } from './operation.ts'
import { searchPageOf, type SearchPage } from './search-page.ts'

interface CredentialFeedRequest extends AskedOfTier {
  identifier: number
  /** The cursor as it was received; null: the first page. */
  from: string | null
  /** No upper bound is published (facts.md 1, row 30); the service's default is 20. */
  size: number
}

interface TenantCredentialsRequest extends Omit<CredentialFeedRequest, 'identifier'> {
  /** The service's default is desc; only asc can be resumed. */
  order: (typeof orders)[number]
  /** Default GET. Both carry their parameters in the query string. */
  method?: 'GET' | 'POST'
}

export interface CredentialOperations {
  /**
   * One page of an identifier's credentials, in whatever order the service has them.
   * `GET /firework/v3/identifiers/{id}/feed/credentials`; basic tier (facts.md 2.2).
   */
  credentialFeed(request: CredentialFeedRequest): Promise<SearchPage>
  /** One page of a global search, which costs quota. `POST /firework/v4/credentials/global/_search`; search tier. */
  searchCredentials(request: { body: WireCredentialSearchBody } & AskedOfTier): Promise<SearchPage>
  /**
   * One page of the credentials of all identifiers of the tenant.
   * `GET|POST /firework/v2/me/feed/credentials`; basic tier. Not every server has it.
   */
  tenantCredentials(request: TenantCredentialsRequest): Promise<SearchPage>
  /**
   * The same search without a quota, where the key has the permission `astp_credentials_access`.
   * `POST /astp/v2/credentials/_search`; basic tier.
   */
  searchAstpCredentials(
    request: { body: WireCredentialSearchBody } & AskedOfTier,
  ): Promise<SearchPage>
}

export function createCredentialOperations(parts: OperationParts): CredentialOperations {
  async function search(
    where: Required<Pick<Request, 'path' | 'tier'>>,
    { body, ...asked }: { body: WireCredentialSearchBody } & AskedOfTier,
  ): Promise<SearchPage> {
    const checked = checkRequest(credentialSearchBody, body)
    const secrets = checked.query.type === 'secret' ? [checked.query.secret] : []
    const pageSize = checked.size
    const request = { method: 'POST', body: checked, secrets, pageSize, ...where } as const
    return searchPageOf(await ask(parts, request, asked))
  }

  return {
    async credentialFeed({ identifier, from, size, ...asked }) {
      const query = new URLSearchParams({ size: String(size), ...(from !== null && { from }) })
      const identity = pathPart(identifier)
      const path = `/firework/v3/identifiers/${identity}/feed/credentials?${query.toString()}`
      return searchPageOf(await ask(parts, { method: 'GET', path, pageSize: size }, asked))
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
      return searchPageOf(await ask(parts, { method, path, pageSize: size }, asked))
    },
    searchAstpCredentials: (asked) =>
      search({ path: '/astp/v2/credentials/_search', tier: 'basic' }, asked),
  }
}
