import type { GlobalSearchBody } from '../service/wire/events.ts'
import type { EventSearchFeedConfig } from './config.ts'
import { sorted } from './events-feed.ts'
import type { FeedType } from './feed-type.ts'
import { maskSecrets } from './masking.ts'
import { parseItem } from './parse-item.ts'
import type { Polled } from './polled-feed.ts'
import { bodyWithCursor, timeFilter } from './walk-body.ts'

/** What a global search finds, ascending by creation time. */
export const eventSearchFeed: FeedType<Polled<EventSearchFeedConfig>> = {
  pageSizes: [10], // at most ten a page (service.md, Limits)
  asked: ({ query, filters }) => [sorted(query), sorted(filters)],
  body({ query, filters }, span, size) {
    const body: GlobalSearchBody = {
      query,
      size,
      order: 'asc',
      filters: { ...filters, estimated_created_at: timeFilter(span) },
    }
    return { ...body }
  },
  async fetch(feed, { client, walk, turn, signal }) {
    const body = bodyWithCursor<GlobalSearchBody>(walk)
    return client.searchEvents({ body, turn, tier: feed.tier, signal })
  },
  parse: (raw) => parseItem(raw),
  keptOfMalformed: maskSecrets,
}
