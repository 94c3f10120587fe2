/** The closed lists of the API description, for what is written; what is read may hold others. */

/** The types of assets, and the fields that the data of each must hold (docs/api-notes.md, Assets). */
export const assetFields = {
  domain: ['fqdn'],
  name: ['first_name', 'last_name'],
  keyword: ['keyword'],
  github_repository: ['repo_owner', 'repo_name'],
  username: ['username'],
  email: ['email'],
  search_query: ['search_query'],
  bin: ['bin'],
  ip: ['ip'],
  secret: ['secret'],
  azure_tenant: ['tenant_id'],
  identity: ['attributes'],
  // only in the public documentation
  ransomleak: ['source', 'id'],
  external_id: ['source', 'id'],
  address_data: ['street', 'city', 'country', 'state'],
  birth_year: ['year'],
  role: ['role'],
  phone_number: ['phone_number'],
} as const satisfies Readonly<Record<string, readonly string[]>>
export type AssetType = keyof typeof assetFields
export const assetTypes = Object.keys(assetFields) as [AssetType, ...AssetType[]]

/** The types that v4 lists (docs/api-notes.md, Lists of identifiers and groups). */
export const identifierTypes: readonly AssetType[] = [
  'bin',
  'ip',
  'keyword',
  'azure_tenant',
  'domain',
  'search_query',
  'github_repository',
  'secret',
  'identity',
]

/** Search types of an asset. `ad` and `ads` are allowed on creation, not on replacement. */
export const replaceSearchTypes = [
  'forum_post',
  'bucket',
  'source_code_files',
  'ransomleak',
  'financial_data',
  'bot',
  'source_code_secrets',
  'domain',
  'stack_exchange',
  'chat_message',
  'leak',
  'google',
  'bucket_object',
  'docker',
  'seller',
  'forum_profile',
  'service',
  'blog_post',
  'stealer_log',
  'forum_topic',
  'listing',
  'paste',
  'social_media_account',
  'illicit_networks',
  'open_web',
  'buckets',
  'source_code',
  'leaks',
  'domains',
  'forum_content',
  'blog_content',
  'profile',
  'infected_devices',
  'social_media',
  // only in the public documentation (docs/api-notes.md, Assets)
  'valid_credential',
  'invalid_credential',
  'mitigated_credential',
] as const
export const createSearchTypes = [...replaceSearchTypes, 'ad', 'ads'] as const

export const policyTypes = [
  'INCLUDED_KEYWORDS',
  'EXCLUDED_KEYWORDS',
  'LUCENE_QUERY',
  'ASTP_COOKIES',
  // only on servers since 2026-05-25 (docs/api-notes.md, Versions)
  'ASTP_DOMAIN',
] as const

/** The severities of events, least first (docs/api-notes.md, Severities). */
export const eventSeverities = ['info', 'low', 'medium', 'high', 'critical'] as const

export const industries = [
  'global',
  'transport',
  'education',
  'energy',
  'finance',
  'healthcare',
  'manufacturing',
  'retail',
  'software',
  'telecommunication',
] as const

export const orders = ['asc', 'desc'] as const

export const expandFields = ['credentials', 'cookies'] as const

/** `urls`: publicly documented, refused by older servers (docs/api-notes.md, Credentials). */
export const credentialIncludes = ['known_password_id', 'auth_domains', 'urls'] as const

export const legacyEventActions = [
  'default',
  'ignored',
  'remediated',
  'risk_score_edited',
  'exclude_ignored',
  'ignored_or_remediated',
] as const

export const legacySortKeys = [
  'created',
  'indexed',
  'updated',
  'alertable-materialized',
  'materialized',
  'searchable',
] as const

export const legacyTypes = [
  'attachment',
  'listing',
  'ransomleak',
  'forum_post',
  'forum_topic',
  'forum_profile',
  'blog_post',
  'seller',
  'paste',
  'leak',
  'chat_message',
  'domain',
  'bot',
  'stealer_log',
  'infected_devices',
  'driller',
  'driller_forum_topic',
  'driller_forum_post',
  'driller_profile',
  'cc',
  'ccbin',
  'financial_data',
  'leaked_data',
  'leaked_file',
  'document',
  'account',
  'actor',
  'forum_content',
  'blog_content',
  'profile',
  'leaked_credential',
  'illicit_networks',
  'open_web',
  'domains',
  'leaks',
  'social_media_account',
  'social_media',
  'source_code',
  'source_code_secrets_np',
  'source_code_secrets',
  'source_code_files',
  'docker',
  'stack_exchange',
  'google',
  'service',
  'driller_host',
  'buckets',
  'bucket',
  'bucket_object',
  'whois',
  'cookie',
  'pii',
  'experimental',
  // only in the public documentation (docs/api-notes.md, Events)
  'valid_credential',
  'invalid_credential',
  'mitigated_credential',
  'intelligence_object',
] as const

/**
 * The types and type groups that the `type` filter of event searches takes. Items may have other
 * types, such as `lookalike` and `docker_image` (docs/api-notes.md, Events).
 */
export const eventFilterTypes = [...legacyTypes, 'ad', 'ads'] as const

/** What people do with an event or a credential at the service. */
export const triageActions = ['ignore', 'unignore', 'remediate', 'unremediate'] as const
export type TriageAction = (typeof triageActions)[number]

/** Whose reports: made for somebody, or by the service for all. */
export const reportTypes = ['custom', 'standard'] as const

export const reportFileFormats = ['docx', 'pdf'] as const

/** The time that a report is about; `range` goes with its ends. */
export const reportTimeRanges = [
  'all',
  'last_24h',
  'last_2d',
  'last_7d',
  'last_1m',
  'last_3m',
  'last_6m',
  'range',
] as const
