/** Which events match an asset or an event query, and which of them a policy admits. Pure. */
import type { AssetType } from '../../upstream/resources/enumerations.ts'
import type { EventQuery } from '../../upstream/resources/events.ts'
import type { PolicyCreation } from '../../upstream/resources/policies.ts'
import { expandTypes, severityRank } from './filters.ts'
import { digitsFinder, hostFinder, type SearchDocument, wordFinder } from './document.ts'
import { parseLucene } from './lucene.ts'

export type Test = (document: SearchDocument) => boolean
type Data = Readonly<Record<string, unknown>>

export interface WatchedAsset {
  type: AssetType
  data: Data
  /** Of an identity, which matches by any of them. */
  attributes: readonly Data[]
  /** Empty means all; also for `risks`. */
  searchTypes: readonly string[]
  risks: readonly number[]
  isDisabled: boolean
}

/** Whether everything but the term matches: state, search types, risks and policies. */
export function admissionTest(
  asset: WatchedAsset,
  policies: readonly Pick<PolicyCreation, 'type' | 'value'>[],
): Test {
  const types = asset.searchTypes.length > 0 ? expandTypes(asset.searchTypes) : null
  const tests = policies.map((policy) => policyTest(policy as PolicyCreation))
  return (document) =>
    !asset.isDisabled &&
    (types === null || types.has(document.type)) &&
    (asset.risks.length === 0 || asset.risks.includes(severityRank(document.severity) + 1)) &&
    tests.every((admits) => admits(document))
}

/** What a policy admits; those about credentials and cookies say nothing of events here. */
function policyTest(policy: PolicyCreation): Test {
  switch (policy.type) {
    case 'INCLUDED_KEYWORDS':
      return anyWord(policy.value.keywords)
    case 'EXCLUDED_KEYWORDS': {
      const isExcluded = anyWord(policy.value.keywords)
      return (document) => !isExcluded(document)
    }
    case 'LUCENE_QUERY':
      return parseLucene(policy.value.query)
    case 'ASTP_DOMAIN':
    case 'ASTP_COOKIES':
      return () => true
  }
}

function anyWord(words: readonly string[]): Test {
  const finders = words.map(wordFinder)
  return ({ text }) => finders.some((finds) => finds(text))
}

/** Whether an event contains the asset's term. */
export function termTest({
  type,
  data,
  attributes,
}: Omit<WatchedAsset, 'risks' | 'searchTypes' | 'isDisabled'>): Test {
  const term = termOf(type, data)
  switch (type) {
    case 'identity': {
      const tests = attributes.map((one) =>
        termTest({ type: one['type'] as AssetType, data: one, attributes: [] }),
      )
      return (document) => tests.some((matches) => matches(document))
    }
    case 'search_query':
      return parseLucene(term)
    case 'name':
      return data['is_strict'] === true ? anyWord([term]) : allWords(term.split(' '))
    case 'secret':
      return ({ text }) => text.includes(term)
    case 'bin':
      return onText(digitsFinder(term))
    case 'domain':
    case 'email':
    case 'ip':
      return onText(hostFinder(term))
    case 'keyword':
    case 'username':
    case 'github_repository':
    case 'azure_tenant':
    case 'ransomleak':
    case 'external_id':
    case 'address_data':
    case 'birth_year':
    case 'role':
    case 'phone_number':
      return anyWord([term])
  }
}

function onText(finds: (text: string) => boolean): Test {
  return ({ text }) => finds(text)
}

function allWords(words: readonly string[]): Test {
  const finders = words.map(wordFinder)
  return ({ text }) => finders.every((finds) => finds(text))
}

/** The fields of an asset's `data` by its type, where it is not the field named as the type. */
const dataFields: Readonly<Partial<Record<AssetType, readonly string[]>>> = {
  domain: ['fqdn'],
  name: ['first_name', 'last_name'],
  github_repository: ['repo_owner', 'repo_name'],
  azure_tenant: ['tenant_id'],
  ransomleak: ['source', 'id'],
  external_id: ['source', 'id'],
  address_data: ['city', 'country', 'state', 'street'],
  birth_year: ['year'],
}

export function fieldsOf(type: AssetType): readonly string[] {
  return dataFields[type] ?? [type]
}

/** An asset's term as text could contain it. */
export function termOf(type: AssetType, data: Data): string {
  const values = fieldsOf(type).map((field) => textOf(data[field]))
  if (type === 'name') return values.join(' ')
  return type === 'github_repository' ? values.join('/') : (values.at(-1) ?? '')
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? `${value}` : ''
}

/** Throws LuceneError if a `query_string` is invalid. */
export function queryTest(query: EventQuery): Test {
  switch (query.type) {
    case 'query_string':
      return parseLucene(query.query_string)
    case 'brand':
      return anyWord([query.name])
    case 'credentials':
      return allWords([query.username, query.password])
    case 'domain':
    case 'email':
    case 'keyword':
    case 'username':
    case 'github_repository':
    case 'name':
    case 'bin':
    case 'ip':
    case 'secret':
    case 'azure_tenant':
      return termTest({ type: query.type, data: query, attributes: [] })
  }
}
