/** What the legacy search finds, ascending by creation time; deprecated by the service. */
import type { WalkSpan } from '../ledger/feed-state.ts'
import type { LegacySearchRequest } from '../service/operations/legacy-search.ts'
import { legacyTypeGroups, type LegacyType } from '../service/wire/enumerations.ts'
import type { LegacySearchFeedConfig } from './config.ts'
import { sorted } from './events-feed.ts'
import type { FeedType } from './feed-type.ts'
import { maskSecrets } from './masking.ts'
import { parseLegacyItem } from './parse-legacy-item.ts'
import type { Polled } from './polled-feed.ts'

export const legacySearchFeed: FeedType<Polled<LegacySearchFeedConfig>> = {
  pageSizes: [10], // the default; no upper bound is published (facts.md 1, row 31)
  asked: ({ query, filters }) => [query, sorted(filters)],
  body({ query, filters }, span, size) {
    const { types } = filters
    const parameters: LegacySearchRequest['parameters'] = {
      query,
      ...filters,
      ...(types && { types: withContained(types) }),
      size,
      order: 'asc',
      sort_by: 'created',
      time: timeOf(span),
    }
    return { ...parameters }
  },
  async fetch(feed, { client, walk, turn, signal }) {
    const parameters = walk.body as LegacySearchRequest['parameters']
    return client.legacySearch({ parameters, from: walk.cursor, turn, tier: feed.tier, signal })
  },
  parse: (raw) => parseLegacyItem(raw),
  keptOfMalformed: maskSecrets,
}

/** Types, and what they contain by the description: servers differ in what they put into a group. */
function withContained(types: readonly LegacyType[]): LegacyType[] {
  return [...new Set(types.flatMap((type) => [type, ...(legacyTypeGroups[type] ?? [])]))]
}

/** The span needs an end; a walk that goes on and on gets one that no event will see. */
const farAway = '2100-01-01T00:00:00.000Z'

function timeOf({ fromMs, toMs }: WalkSpan): string {
  const until = toMs === undefined ? farAway : new Date(toMs).toISOString()
  return `${new Date(fromMs).toISOString()}@${until}`
}
