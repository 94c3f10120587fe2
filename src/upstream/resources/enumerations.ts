/**
 * The lists of words that Tocsin goes by, for what is written; what is read may hold others. Words that
 * grow with the service stand in no list: it refuses those that it does not know.
 */

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

/** The severities of events, least first (docs/api-notes.md, Severities). */
export const eventSeverities = ['info', 'low', 'medium', 'high', 'critical'] as const

export const orders = ['asc', 'desc'] as const

export const expandFields = ['credentials', 'cookies'] as const

/** What people do with an event or a credential at the service. */
export const triageActions = ['ignore', 'unignore', 'remediate', 'unremediate'] as const
export type TriageAction = (typeof triageActions)[number]

export const reportFileFormats = ['docx', 'pdf'] as const
