import { cookiesFeed } from './cookies.ts'
import { credentialSearchFeed } from './credential-search.ts'
import { credentialsFeed } from './credentials.ts'
import { eventSearchFeed, eventsFeed } from './events.ts'
import type { FeedType } from './feed-type.ts'
import type { PolledFeed } from './polled-feed.ts'

const feedTypes: { [Type in PolledFeed['type']]: FeedType<Extract<PolledFeed, { type: Type }>> } = {
  events: eventsFeed,
  credentials: credentialsFeed,
  credential_search: credentialSearchFeed,
  cookies: cookiesFeed,
  event_search: eventSearchFeed,
}

/** The implementation of a feed's type. */
export function findFeedType(feed: Pick<PolledFeed, 'type'>): FeedType<PolledFeed> {
  // each row takes the feeds of its own type, and no other is handed to it
  return feedTypes[feed.type] as unknown as FeedType<PolledFeed>
}
