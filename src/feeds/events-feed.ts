import type { GroupSearchBody } from '../service/wire/events.ts'
import type { FeedType } from './feed-type.ts'
import { maskSecrets } from './mask-secrets.ts'
import { parseItem } from './parse-item.ts'
import type { Polled } from './polled-feed.ts'
import type { EventsFeedConfig } from './config.ts'
import { bodyWithCursor, timeFilter } from './walk-body.ts'

type EventsFeed = Polled<EventsFeedConfig>

/** Events of an identifier group, ascending by creation time. */
export const eventsFeed: FeedType<EventsFeed> = {
  pageSizes: [10], // at most ten a page (service.md, Limits)
  asked: ({ identifierGroup, filters }) => [identifierGroup, sorted(filters)],
  body({ filters }, span, size) {
    const body: GroupSearchBody = {
      size,
      order: 'asc',
      filters: { ...filters, estimated_created_at: timeFilter(span) },
    }
    return { ...body }
  },
  async fetch(feed, { client, walk, turn, signal }) {
    return client.searchGroupEvents({
      groupId: feed.identifierGroup,
      body: bodyWithCursor<GroupSearchBody>(walk),
      turn,
      tier: feed.tier,
      signal,
    })
  },
  parse: (raw) => parseItem(raw),
  keptOfMalformed: maskSecrets,
}

/** Members in an order of their own: how the file was written makes no other request. */
export function sorted(filters: object): [string, unknown][] {
  return Object.entries(filters).toSorted(([a], [b]) => (a < b ? -1 : 1))
}
