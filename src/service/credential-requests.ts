/** The client's requests for leaked credentials: an identifier's feed, and the global search. */
import type { Tier } from './config.ts'
import type { OrganizationLookup } from './organization-lookup.ts'
import type { TakeOptions } from './pacing/turn-queue.ts'
import type { Turn } from './pacing/pick-next.ts'
import { readAnswer } from './read-answer.ts'
import type { Session } from './session.ts'
import { searchesRemainingIn } from './transport/searches-remaining.ts'
import { wireSearchPage, type WireCredentialSearchBody, type WireSearchPage } from './wire.ts'

interface CredentialFeedRequest extends TakeOptions {
  identifier: number
  /** The cursor as it was received; null: the first page. */
  from: string | null
  /** No upper bound is published (facts.md 1, row 30); the service's default is 20. */
  size: number
  turn: Turn
  /** Default basic (facts.md 2.2). */
  tier?: Tier
}

interface CredentialSearchRequest extends TakeOptions {
  body: WireCredentialSearchBody
  turn: Turn
  /** Default search (service.md, Credential search). */
  tier?: Tier
}

interface CredentialPage {
  /** Items are unknown yet: each is parsed alone. */
  page: WireSearchPage
  /** This machine's wall clock, ms. */
  requestedAtMs: number
}

export interface CredentialRequests {
  /** One page of an identifier's credentials, in whatever order the service has them. */
  credentialFeed(request: CredentialFeedRequest): Promise<CredentialPage>
  /**
   * One page of a global search, which costs quota: `searchesRemaining` of the month, undefined where
   * the answer does not say.
   */
  searchCredentials(
    request: CredentialSearchRequest,
  ): Promise<CredentialPage & { searchesRemaining: number | undefined }>
}

export function createCredentialRequests({
  session,
  lookup,
}: {
  session: Session
  lookup: OrganizationLookup
}): CredentialRequests {
  return {
    async credentialFeed({ identifier, from, size, tier = 'basic', ...asked }) {
      await lookup.ensure(asked.signal)
      const query = new URLSearchParams({ size: String(size), ...(from !== null && { from }) })
      const path = `/firework/v3/identifiers/${identifier}/feed/credentials?${query.toString()}`
      const answer = await session.call({ method: 'GET', path, tier, ...asked })
      return { page: readAnswer(answer, wireSearchPage), requestedAtMs: answer.sentAtMs }
    },
    async searchCredentials({ body, tier = 'search', ...asked }) {
      await lookup.ensure(asked.signal)
      const path = '/firework/v4/credentials/global/_search'
      const secrets = body.query.type === 'secret' ? [body.query.secret] : []
      const answer = await session.call({ method: 'POST', path, body, tier, secrets, ...asked })
      return {
        page: readAnswer(answer, wireSearchPage),
        requestedAtMs: answer.sentAtMs,
        searchesRemaining: searchesRemainingIn(answer),
      }
    },
  }
}
