/** Leaked credentials: an identifier's feed, and the global search. */
import { credentialSearchBody, type WireCredentialSearchBody } from '../wire/credentials.ts'
import { checkRequest } from './check-request.ts'
import { ask, pathPart, type AskedOfTier, type OperationParts } from './operation.ts'
import { searchPageOf, type SearchPage } from './search-page.ts'

interface CredentialFeedRequest extends AskedOfTier {
  identifier: number
  /** The cursor as it was received; null: the first page. */
  from: string | null
  /** No upper bound is published (facts.md 1, row 30); the service's default is 20. */
  size: number
}

export interface CredentialOperations {
  /**
   * One page of an identifier's credentials, in whatever order the service has them.
   * `GET /firework/v3/identifiers/{id}/feed/credentials`; basic tier (facts.md 2.2).
   */
  credentialFeed(request: CredentialFeedRequest): Promise<SearchPage>
  /** One page of a global search, which costs quota. `POST /firework/v4/credentials/global/_search`; search tier. */
  searchCredentials(request: { body: WireCredentialSearchBody } & AskedOfTier): Promise<SearchPage>
}

export function createCredentialOperations(parts: OperationParts): CredentialOperations {
  return {
    async credentialFeed({ identifier, from, size, ...asked }) {
      const query = new URLSearchParams({ size: String(size), ...(from !== null && { from }) })
      const identity = pathPart(identifier)
      const path = `/firework/v3/identifiers/${identity}/feed/credentials?${query.toString()}`
      return searchPageOf(await ask(parts, { method: 'GET', path }, asked))
    },
    async searchCredentials({ body, ...asked }) {
      const path = '/firework/v4/credentials/global/_search'
      const checked = checkRequest(credentialSearchBody, body)
      const secrets = checked.query.type === 'secret' ? [checked.query.secret] : []
      const request = { method: 'POST', path, body: checked, secrets, tier: 'search' } as const
      return searchPageOf(await ask(parts, request, asked))
    },
  }
}
