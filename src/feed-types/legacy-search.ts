/** What the legacy search finds, ascending by creation time; deprecated by the service. */
import { maskSecrets } from '../masking/masking.ts'
import type { WalkSpan } from '../store/feed-state.ts'
import { type LegacyType, legacyTypeGroups } from '../upstream/resources/enumerations.ts'
import type { LegacySearchRequest } from '../upstream/resources/legacy-search.ts'
import type { LegacySearchFeedConfig } from './config.ts'
import { type ItemFields, type ParsedItem, readItem, sorted } from './events.ts'
import type { FeedType, Polled } from './feed-type.ts'
import { type FieldReader, firstOf, isMembers, type Members, membersIn } from './field-reader.ts'

export const legacySearchFeed: FeedType<Polled<LegacySearchFeedConfig>> = {
  pageSizes: [10], // the service's default; no maximum is published (docs/api-notes.md, Page sizes)
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

/**
 * Reads one item of the legacy search, bare or within `activity` (docs/api-notes.md, The older shape). Fields of
 * today's search items are read too. Never throws; bounded as `parseItem`.
 */
export function parseLegacyItem(raw: unknown): ParsedItem {
  const activity = membersIn(raw)['activity']
  return readItem(isMembers(activity) ? activity : raw, fieldsOfLegacyItem)
}

function fieldsOfLegacyItem(item: Members, reader: FieldReader): ItemFields {
  const metadata = membersIn(item['metadata'])
  const data = membersIn(item['data'])
  const header = reader.members('header', item['header'])
  const tenant = reader.members('tenant_metadata', item['tenant_metadata'])
  const risk = header['risk']
  return {
    uid: [header['uid'], metadata['uid'], item['uid'], data['uid']],
    type: firstOf(metadata['type'], item['type'], header['type']),
    severity: {
      own: firstOf(metadata['severity'], isMembers(risk) ? risk['score'] : risk),
      tenant: firstOf(tenant['severity'], header['user_risk_score']),
    },
    createdAt: firstOf(metadata['estimated_created_at'], header['timestamp']),
    matchedAt: metadata['matched_at'],
    ignoredAt: firstOf(tenant['ignored_at'], header['ignored_at']),
    remediatedAt: firstOf(tenant['remediated_at'], header['remediated_at']),
    url: firstOf(metadata['flare_url'], membersIn(data['metadata'])['flare_url']),
    tags: firstOf(tenant['tags'], header['tags']),
    notes: firstOf(tenant['notes'], header['user_notes'], header['notes']),
    identifiers: item['identifiers'],
    highlights:
      firstOf(...[item, header, data].map(({ highlights }) => withMembers(highlights))) ??
      extractsOf(header),
  }
}

/** The documented items have an empty object where nothing was matched. */
function withMembers(highlights: unknown): unknown {
  return isMembers(highlights) && Object.keys(highlights).length === 0 ? undefined : highlights
}

/** What a reader sees first, where nothing says which words matched. */
function extractsOf(header: Members): Members {
  const shown = [
    'title',
    'content_preview',
    'identity_name',
    'actor',
    'category_name',
    'victim_name',
  ]
  return Object.fromEntries(
    shown.flatMap((name): [string, unknown][] => {
      const text = header[name]
      return typeof text === 'string' && text !== '' ? [[name, text]] : []
    }),
  )
}
