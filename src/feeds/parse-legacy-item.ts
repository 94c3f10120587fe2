import { severities } from '../events/severity.ts'
import { wireSearchItem } from '../service/wire/events.ts'
import { parseItem, type ParsedItem } from './parse-item.ts'

type Members = Readonly<Record<string, unknown>>

/**
 * One item of the legacy search, as understood. Its shape is not described; public material shows
 * `{metadata, header, data}` with the severity as a score of 1 to 5 (facts.md 4, older shape). What
 * carries the fields of today's search items is read as one. Never throws; bounded as `parseItem`.
 */
export function parseLegacyItem(raw: unknown): ParsedItem {
  return parseItem(isMembers(raw) ? asSearchItem(raw) : raw)
}

function asSearchItem(item: Members): unknown {
  const metadata = membersOf(item, 'metadata')
  const header = membersOf(item, 'header')
  const uid = metadata['uid'] ?? item['uid']
  if (uid === undefined) return item
  return {
    metadata: {
      uid,
      type: textOf(metadata['type'], item['type'], header['type']),
      severity: textOf(metadata['severity'], severityOf(membersOf(header, 'risk')['score'])),
      estimated_created_at: textOf(metadata['estimated_created_at'], header['timestamp']),
      matched_at: textOf(metadata['matched_at']),
      flare_url: textOf(metadata['flare_url'], header['external_url']),
    },
    tenant_metadata: tenantMetadataOf(item, header),
    highlights: isMembers(item['highlights']) ? item['highlights'] : extractsOf(header),
    identifiers: identifiersIn(item['identifiers']),
  }
}

function tenantMetadataOf(item: Members, header: Members): unknown {
  const tenant = wireSearchItem.shape.tenant_metadata.safeParse(item['tenant_metadata'])
  if (tenant.success && tenant.data) return tenant.data
  const override = severityOf(header['user_risk_score'])
  return {
    severity: override === undefined ? null : { override },
    tags: Array.isArray(header['tags'])
      ? header['tags'].filter((tag) => typeof tag === 'string')
      : null,
    notes: textOf(header['notes']),
    ignored_at: textOf(header['ignored_at']),
    remediated_at: textOf(header['remediated_at']),
  }
}

/** Ornaments of a shape that nobody describes: an odd one must not keep the event back. */
function identifiersIn(value: unknown): unknown[] {
  const isIdentifier = (one: unknown): boolean =>
    isMembers(one) && typeof one['id'] === 'number' && typeof one['name'] === 'string'
  return Array.isArray(value) ? value.filter(isIdentifier) : []
}

/** What a reader sees first, where nothing says which words matched. */
function extractsOf(header: Members): Record<string, string[]> {
  const shown = ['title', 'content_preview', 'actor', 'category_name', 'victim_name']
  return Object.fromEntries(
    shown.flatMap((name): [string, string[]][] => {
      const text = textOf(header[name])
      return text === null || text === '' ? [] : [[name, [text]]]
    }),
  )
}

/** 1 (info) to 5 (critical): facts.md 1, row 5. */
function severityOf(score: unknown): string | undefined {
  return typeof score === 'number' ? severities[score - 1] : undefined
}

function textOf(...values: unknown[]): string | null {
  return values.find((value) => typeof value === 'string') ?? null
}

function membersOf(value: Members, key: string): Members {
  const member = value[key]
  return isMembers(member) ? member : {}
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
