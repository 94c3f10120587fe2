/**
 * The feed type `legacy_search`: a search in ascending creation time, which the API has deprecated.
 */
import { maskSecrets } from '../masking/masking.ts'
import type { ScanSpan } from '../store/feed-state.ts'
import { type LegacyType, legacyTypeGroups } from '../upstream/resources/enumerations.ts'
import {
  legacySearchOperations,
  type LegacySearchParameters,
} from '../upstream/resources/legacy-search.ts'
import type { LegacySearchFeedConfig } from './config.ts'
import { type ItemFields, type ParsedItem, readItem, sortedEntries } from './events.ts'
import type { FeedType, Polled } from './feed-type.ts'
import {
  type FieldReader,
  firstPresent,
  isJsonObject,
  type JsonObject,
  toJsonObject,
} from './field-reader.ts'

export const legacySearchFeed: FeedType<Polled<LegacySearchFeedConfig>> = {
  pageSizes: [10], // the API's default; no maximum is published (docs/api-notes.md, Page sizes)
  fingerprintParts: ({ query, filters }) => [query, sortedEntries(filters)],
  body({ query, filters }, span, size) {
    const { types } = filters
    const parameters: LegacySearchParameters = {
      query,
      ...filters,
      ...(types && { types: expandTypeGroups(types) }),
      size,
      order: 'asc',
      sort_by: 'created',
      time: formatTimeRange(span),
    }
    return { ...parameters }
  },
  async fetch(feed, { client, scan, slot, signal }) {
    const request = { ...(scan.body as LegacySearchParameters), from: scan.cursor }
    return client.call(legacySearchOperations.post, request, { slot, tier: feed.tier, signal })
  },
  parse: (raw) => parseLegacyItem(raw),
  maskMalformed: maskSecrets,
}

/**
 * Adds the types that each group contains by the API description: servers differ in their groups.
 */
function expandTypeGroups(types: readonly LegacyType[]): LegacyType[] {
  return [...new Set(types.flatMap((type) => [type, ...(legacyTypeGroups[type] ?? [])]))]
}

/** The span needs an end; an open-ended scan gets one that no event will reach. */
const openEnd = '2100-01-01T00:00:00.000Z'

function formatTimeRange({ fromMs, toMs }: ScanSpan): string {
  const until = toMs === undefined ? openEnd : new Date(toMs).toISOString()
  return `${new Date(fromMs).toISOString()}@${until}`
}

/**
 * Parses one item of the legacy search, bare or within `activity` (docs/api-notes.md, The older
 * shape); also reads the fields of current search items. Never throws; bounded like `parseItem`.
 */
export function parseLegacyItem(raw: unknown): ParsedItem {
  const activity = toJsonObject(raw)['activity']
  return readItem(isJsonObject(activity) ? activity : raw, locateLegacyFields)
}

function locateLegacyFields(item: JsonObject, reader: FieldReader): ItemFields {
  const metadata = toJsonObject(item['metadata'])
  const data = toJsonObject(item['data'])
  const header = reader.object('header', item['header'])
  const tenant = reader.object('tenant_metadata', item['tenant_metadata'])
  const risk = header['risk']
  return {
    uid: [header['uid'], metadata['uid'], item['uid'], data['uid']],
    type: firstPresent(metadata['type'], item['type'], header['type']),
    severity: {
      own: firstPresent(metadata['severity'], isJsonObject(risk) ? risk['score'] : risk),
      tenant: firstPresent(tenant['severity'], header['user_risk_score']),
    },
    createdAt: firstPresent(metadata['estimated_created_at'], header['timestamp']),
    matchedAt: metadata['matched_at'],
    ignoredAt: firstPresent(tenant['ignored_at'], header['ignored_at']),
    remediatedAt: firstPresent(tenant['remediated_at'], header['remediated_at']),
    url: firstPresent(metadata['flare_url'], toJsonObject(data['metadata'])['flare_url']),
    tags: firstPresent(tenant['tags'], header['tags']),
    notes: firstPresent(tenant['notes'], header['user_notes'], header['notes']),
    identifiers: item['identifiers'],
    highlights:
      firstPresent(...[item, header, data].map(({ highlights }) => unlessEmpty(highlights))) ??
      readExtracts(header),
  }
}

/** The API documents an empty object for an item without highlights. */
function unlessEmpty(highlights: unknown): unknown {
  return isJsonObject(highlights) && Object.keys(highlights).length === 0 ? undefined : highlights
}

/** The fields that people read first, used if the item does not say which words matched. */
function readExtracts(header: JsonObject): JsonObject {
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
