/**
 * The global credential search, ascending over its import times. Servers before 2026-05-28 ignore the
 * time filter for most queries (facts.md 0): what is older than the floor is marked and not sent.
 */
import type { WireCredentialSearchBody } from '../service/wire/credentials.ts'
import type { CredentialSearchFeedConfig } from './config.ts'
import { credentialItem } from './credential-item.ts'
import { credentialShape } from './credential-shape.ts'
import type { FeedType } from './feed-type.ts'
import type { Polled } from './polled-feed.ts'
import { bodyWithCursor, timeFilter } from './walk-body.ts'

export const credentialSearchFeed: FeedType<Polled<CredentialSearchFeedConfig>> = {
  // latency grows with size until the gateway gives up after some 30 s (facts.md 2.3)
  pageSizes: [100, 50, 25, 10],
  asked: ({ query }) => [query],
  body({ query }, span, size) {
    const body: WireCredentialSearchBody = {
      query,
      filters: { imported_at: timeFilter(span) },
      size,
      order: 'asc',
      include: ['known_password_id', 'auth_domains'],
    }
    return { ...body }
  },
  async fetch(feed, { client, walk, turn, signal }) {
    return client.searchCredentials({
      body: bodyWithCursor<WireCredentialSearchBody>(walk),
      turn,
      tier: feed.tier,
      signal,
    })
  },
  parse: (raw, feed) => credentialItem(raw, feed),
  keptOfMalformed: credentialShape,
}
