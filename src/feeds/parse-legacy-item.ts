import { firstOf, isMembers, membersIn, type FieldReader, type Members } from './field-reader.ts'
import { readItem, type ItemFields, type ParsedItem } from './parse-item.ts'

/**
 * One item of the legacy search, as understood. The description has no shape for it; the public
 * documentation of the event types shows `{data, header, metadata}`, sometimes within `activity`, with the
 * uid and the severity (a score of 1 to 5) in `header`. What carries the fields of today's search items is
 * read as one. Never throws; bounded as `parseItem`.
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
