import type { GroupSearchBody } from '../service/wire/events.ts'
import type { FeedType } from './feed-type.ts'
import { maskSecrets } from './masking.ts'
import { parseItem } from './parse-item.ts'
import type { Polled } from './polled-feed.ts'
import type {
  EventsFeedConfig,
  IdentifierEventsFeedConfig,
  TenantEventsFeedConfig,
} from './config.ts'
import type { Need } from './refused-operation.ts'
import { bodyWithCursor, timeFilter } from './walk-body.ts'

type WatchedEvents = Polled<EventsFeedConfig | TenantEventsFeedConfig | IdentifierEventsFeedConfig>

/** Events that the tenant watches for, all of them or a part, ascending by creation time. */
export const eventsFeed: FeedType<WatchedEvents> = {
  pageSizes: [10], // at most ten a page (service.md, Limits)
  asked: (feed) => [...whose(feed), sorted(feed.filters)],
  body({ filters }, span, size) {
    const body: GroupSearchBody = {
      size,
      order: 'asc',
      filters: { ...filters, estimated_created_at: timeFilter(span) },
    }
    return { ...body }
  },
  matchBody({ filters }, span) {
    const body: GroupSearchBody = {
      size: 10,
      order: 'asc',
      filters: { ...filters, materialized_at: timeFilter(span) },
    }
    return { ...body }
  },
  needs(feed) {
    switch (feed.type) {
      case 'events':
        return undefined
      case 'tenant_events':
        return needed('tenant', 'the events of the tenant')
      case 'identifier_events':
        return needed(`identifiers/${feed.identifier}`, `identifier ${feed.identifier}`)
    }
  },
  async fetch(feed, { client, walk, turn, signal }) {
    const { tier } = feed
    const search = { body: bodyWithCursor<GroupSearchBody>(walk), turn, tier, signal }
    switch (feed.type) {
      case 'events':
        return client.searchGroupEvents({ groupId: feed.identifierGroup, ...search })
      case 'tenant_events':
        return client.searchTenantEvents(search)
      case 'identifier_events':
        return client.searchIdentifierEvents({ identifier: feed.identifier, ...search })
    }
  },
  parse: (raw) => parseItem(raw),
  keptOfMalformed: maskSecrets,
}

function needed(where: string, what: string): Need {
  const operation = `POST /firework/v4/events/${where}/_search`
  return { capability: `events/${where}`, operation, what }
}

function whose(feed: WatchedEvents): number[] {
  if (feed.type === 'tenant_events') return []
  return [feed.type === 'events' ? feed.identifierGroup : feed.identifier]
}

/** Members in an order of their own: how the file was written makes no other request. */
export function sorted(filters: object): [string, unknown][] {
  const members: Record<string, unknown> = { ...filters }
  return Object.keys(members)
    .toSorted()
    .map((name) => [name, members[name]])
}
