/** For each operation requests that the service takes: the first is usual, all together say what there is to say. */
import type { Fields } from '../../src/upstream/resources/operation.ts'

export interface KnownThings {
  uid: string
  policy: string
  reportRequest: string
  report: number
  credentialHash: string
  /** Assets that may be changed, and that may be deleted. */
  asset: number
  doomed: number
}

const eventQueries = [
  { type: 'domain', fqdn: 'example.com' },
  { type: 'email', email: 'ann@example.com' },
  { type: 'keyword', keyword: 'acme' },
  { type: 'query_string', query_string: 'acme' },
  { type: 'username', username: 'ann' },
  { type: 'github_repository', repo_owner: 'acme', repo_name: 'site' },
  { type: 'brand', name: 'Acme' },
  { type: 'name', first_name: 'Ann', last_name: 'Lee', is_strict: false },
  { type: 'bin', bin: '424242' },
  { type: 'ip', ip: '192.0.2.1' },
  { type: 'credentials', username: 'ann', password: 'pa55' },
  { type: 'secret', secret: 'pa55' },
  { type: 'azure_tenant', tenant_id: 'acme' },
] as const

const moment = '2026-07-01T00:00:00Z'
const range = { gt: moment, gte: moment, lt: moment, lte: moment }

const filtered = {
  size: 1,
  order: 'desc',
  filters: {
    severity: 'high',
    type: ['illicit_networks', 'leaked_credential'],
    estimated_created_at: range,
    materialized_at: range,
    tags: ['vip'],
    is_ignored: true,
    is_remediated: false,
  },
}
const searches: Fields[] = [
  { size: 10, order: 'asc' },
  {},
  ...eventQueries.map((query) => ({ query, size: 10, order: 'asc' })),
  filtered,
  { size: 10, order: 'asc', filters: { severity: ['low', 'critical'] } },
]
const credentialSearches: Fields[] = [
  {
    query: { type: 'domain', fqdn: 'example.com' },
    size: 100,
    order: 'asc',
    include: ['known_password_id', 'auth_domains', 'urls'],
    filters: { imported_at: { gte: moment, lte: moment } },
  },
  { query: { type: 'auth_domain', fqdn: 'example.com' } },
  { query: { type: 'email', email: 'ann@example.com' } },
  { query: { type: 'keyword', keyword: 'ann' } },
  { query: { type: 'secret', secret: 'pa55' } },
]
const legacySearches: Fields[] = [
  {
    time: '2026-01-01T00:00:00Z@2026-02-01T00:00:00Z',
    size: 10,
    tags: ['vip'],
    types: ['leak', 'valid_credential'],
    event_action: 'default',
    risks: [4, 5],
    order: 'asc',
    sort_by: 'created',
    query: 'acme',
  },
]
const asset = {
  name: 'a.example',
  type: 'domain',
  search_types: ['leak', 'valid_credential'],
  data: { fqdn: 'a.example' },
  risks: [4, 5],
}
const identifier = {
  name: 'a.example',
  data: { type: 'domain', fqdn: 'a.example' },
  categories: ['leak'],
  emerging_categories: [],
  severities: ['high', 'critical'],
}
const value = { keywords: ['acme'] }
const listed = { types: ['domain'], is_disabled: false, order_by: 'name', size: 100 }

/** Requests that delete come last, so that each operation can be asked in turn. */
export function requestsOf(known: KnownThings): Record<string, readonly Fields[]> {
  const { uid, policy: policy_uuid, credentialHash: credential_hash } = known
  const assigned = { policy_uuid, identifier_ids: [known.asset] }
  return {
    'events.search': eventQueries.map((query) => ({ ...filtered, query })),
    'events.search-group': searches.map((one) => ({ identifier_group_id: 1042, ...one })),
    'events.search-identifier': searches.map((one) => ({ identifier_id: known.asset, ...one })),
    'events.search-tenant': searches,
    'events.get': [{ uid }],
    'events.activity': [{ uid }],
    'events.expand': [
      { uid, field: 'credentials', size: 20 },
      { uid, field: 'cookies' },
    ],
    'events.types': [{}],
    'events.severities': [{}],
    'events.act': [{ targets: [{ uid }], action: { type: 'ignore' } }],
    'events.note': [{ uid, tags: ['vip'], notes: 'ours', severity: 'high' }],
    'events.legacy-search': legacySearches,
    'events.legacy-search-get': legacySearches,
    'credentials.search': credentialSearches,
    'credentials.search-astp': credentialSearches,
    'credentials.feed': [{ identifier_id: known.asset, size: 20 }, { identifier_id: known.asset }],
    'credentials.tenant-feed': [{ order_type: 'asc', size: 20 }, {}],
    'credentials.tenant-feed-post': [{ order_type: 'asc', size: 20 }, {}],
    'credentials.urls': [{ credential_hash, size: 5_000 }, { credential_hash }],
    'credentials.act': [{ targets: [{ credential_hash }], action: { type: 'remediate' } }],
    'cookies.search': [
      {
        domain: 'a.example',
        imported_after: moment,
        expires_after: moment,
        names: ['sid'],
        paths: ['/'],
        values: ['v'],
        size: 100,
        order: 'asc',
      },
      { domain: 'a.example' },
    ],
    'identifiers.list': [{ group_id: 1042, ...listed }, {}],
    'identifiers.list-v3': [{ parent_group_id: 1042, ...listed }, {}],
    'identifiers.create': [{ ...identifier, group_id: 1042 }],
    'identifiers.get': [{ identifier_id: known.asset }],
    'identifiers.replace': [{ identifier_id: known.asset, ...identifier }],
    'groups.list': [{ size: 20 }, {}],
    'groups.list-v2': [{}],
    'assets.create': [{ ...asset, assets_group_id: 1042 }],
    'assets.get': [{ asset_id: known.asset }],
    'assets.replace': [{ asset_id: known.asset, ...asset }],
    'assets.toggle': [{ asset_id: known.asset, is_disabled: false }],
    'alerts.of-group': [{ assets_group_id: 1042 }],
    'alerts.list': [{ size: 10 }, {}],
    'policies.create': [{ name: 'x', type: 'INCLUDED_KEYWORDS', value }],
    'policies.get': [{ policy_uuid }],
    'policies.update': [{ policy_uuid, name: 'x', value }],
    'policies.list': [{ size: 25 }, {}],
    'policies.assign': [{ ...assigned, clean_past_events: false }],
    'policies.assignments': [{ policy_uuid }],
    'policies.of-identifier': [{ identifier_id: known.asset }],
    'policies.unassign': [assigned],
    'reports.request': [
      {
        report_title: 'x',
        question: 'who',
        time_range_type: 'range',
        time_range_from: moment,
        time_range_to: moment,
        included_keywords: ['acme'],
        excluded_keywords: ['test'],
      },
    ],
    'reports.get-by-request': [{ request_info_id: known.reportRequest }],
    'reports.get': [{ report_id: known.report }],
    'reports.list': [{ order: 'desc', report_types: ['custom'], size: 10 }, {}],
    'tenants.list': [{}],
    'tenants.create': [
      { organization_id: 7, name: 'Acme', description: 'Rockets', industry: 'energy' },
    ],
    'tokens.test': [{}],
    'health.check': [{}],
    'policies.delete': [{ policy_uuid }],
    'assets.delete': [{ asset_id: known.doomed }],
    'identifiers.delete': [{ identifier_id: known.asset }],
  }
}
