import { credentialSearchFeed } from './credential-search-feed.ts'
import { credentialsFeed, tenantCredentialsFeed } from './credentials-feed.ts'
import { eventSearchFeed } from './event-search-feed.ts'
import { eventsFeed } from './events-feed.ts'
import type { FeedType } from './feed-type.ts'
import { legacySearchFeed } from './legacy-search-feed.ts'
import type { PolledFeed } from './polled-feed.ts'
import { reportsFeed } from './reports-feed.ts'

const types: { [Type in PolledFeed['type']]: FeedType<Extract<PolledFeed, { type: Type }>> } = {
  events: eventsFeed,
  tenant_events: eventsFeed,
  identifier_events: eventsFeed,
  credentials: credentialsFeed,
  tenant_credentials: tenantCredentialsFeed,
  credential_search: credentialSearchFeed,
  event_search: eventSearchFeed,
  legacy_search: legacySearchFeed,
  reports: reportsFeed,
}

/** The way in which this feed is read. */
export function typeOf(feed: Pick<PolledFeed, 'type'>): FeedType<PolledFeed> {
  // each row takes the feeds of its own type, and no other is handed to it
  return types[feed.type] as unknown as FeedType<PolledFeed>
}
