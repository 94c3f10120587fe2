/** Which events match an asset, by its state, search types, risks, term and policies. Pure. */
import type { z } from 'zod'
import type { eventQuery } from '../../upstream/resources/events.ts'
import { readStolen } from '../history/draft.ts'
import type { SandboxEvent } from '../history/history.ts'
import type { SandboxAsset, SandboxPolicy } from '../monitoring/store.ts'
import { knownSeverities, expandTypes } from './filters.ts'
import {
  toSearchDocument,
  luceneMatcher,
  parseLucene,
  phraseFinder,
  type SearchDocument,
  type WordText,
  toWordText,
} from './lucene.ts'

export interface Watcher {
  /** Whether everything but the term matches: state, search types, risks, policies. */
  admits(sighting: SearchableEvent): boolean
  /** Whether the event contains the asset's term. */
  mentions(sighting: SearchableEvent): boolean
}

export type WatchedAsset = Pick<
  SandboxAsset,
  'type' | 'data' | 'attributes' | 'searchTypes' | 'risks' | 'isDisabled'
>
type AppliedPolicy = Pick<SandboxPolicy, 'type' | 'value'>

/** Whether `event` matches `asset`, to which `policies` are assigned. */
export function matches(
  asset: WatchedAsset,
  policies: readonly AppliedPolicy[],
  event: SandboxEvent,
): boolean {
  const searchable = toSearchable(event)
  const watcher = createWatcher(asset, policies)
  return watcher.admits(searchable) && watcher.mentions(searchable)
}

/** Prepares the same test for many events. */
export function createWatcher(asset: WatchedAsset, policies: readonly AppliedPolicy[]): Watcher {
  const types = asset.searchTypes.length > 0 ? expandTypes(asset.searchTypes) : null
  const policyTests = policies.map((policy) => policyTest(policy, asset))
  const finds = termFinder(asset)
  return {
    admits: (searchable) =>
      !asset.isDisabled &&
      (types === null || types.has(searchable.event.type)) &&
      (asset.risks.length === 0 || asset.risks.includes(toRisk(searchable.event.severity))) &&
      policyTests.every((agrees) => agrees(searchable)),
    mentions: finds,
  }
}

/**
 * Returns the severity as a risk, 1 to 5 (docs/api-notes.md, Severities); an unknown one ranks
 * highest, as in the filters.
 */
function toRisk(severity: string): number {
  const rank = (knownSeverities as readonly string[]).indexOf(severity)
  return rank === -1 ? knownSeverities.length : rank + 1
}

/** Whether an event contains a term. */
type Finder = (sighting: SearchableEvent) => boolean

/** A host may be followed by a full stop, but not by more of a name. */
const hostEnd = String.raw`(?![a-z0-9\-]|\.[a-z0-9])`
/** Subdomains of a host match; names that merely end alike do not. */
const hostEdges = ['(?<![a-z0-9_-])', hostEnd] as const
const addressEdges = ['(?<![a-z0-9._%+-])', hostEnd] as const
/** An IPv4 address may be followed by a port. */
const v4Edges = [String.raw`(?<![\d.])`, String.raw`(?!\d|\.\d)`] as const
const v6Edges = ['(?<![0-9a-f:])', '(?![0-9a-f:])'] as const
/** A BIN may be followed by the rest of the card number. */
const binEdges = [String.raw`(?<!\d)`, ''] as const

const nameEdges = [String.raw`(?<![\p{L}\p{N}])`, String.raw`(?![\p{L}\p{N}])`] as const

function termFinder(asset: Pick<SandboxAsset, 'type' | 'data' | 'attributes'>): Finder {
  const { type, data, attributes } = asset
  const term = assetTerm(asset) ?? ''
  switch (type) {
    case 'domain':
      return edgesFinder(hostEdges, term)
    case 'email':
      return edgesFinder(addressEdges, term)
    case 'ip':
      return edgesFinder(term.includes(':') ? v6Edges : v4Edges, term)
    case 'bin':
      return edgesFinder(binEdges, term)
    case 'secret':
      return ({ document }) => document.text.includes(term)
    case 'search_query':
      return queryFinder(readTextField(data, 'search_query'))
    case 'name':
      return data['is_strict'] === true ? edgesFinder(nameEdges, term) : bothNamesFinder(data)
    case 'keyword':
    case 'ransomleak':
    case 'external_id':
    case 'address_data':
    case 'birth_year':
    case 'role':
    case 'phone_number':
    case 'username':
    case 'azure_tenant':
    case 'github_repository':
      return wordsFinder(term)
    case 'identity': {
      const finders = attributes.map((attribute) => termFinder(attributeAsAsset(attribute)))
      return (searchable) => finders.some((finds) => finds(searchable))
    }
  }
}

/** Whether the words of `phrase` follow one another in the text, ignoring case. */
function wordsFinder(phrase: string): Finder {
  const finds = phraseFinder(phrase)
  return ({ words }) => finds(words)
}

/** Matches a query in Lucene syntax. */
function queryFinder(query: string): Finder {
  const fits = luceneMatcher(parseLucene(query))
  return ({ document }) => fits(document)
}

/** Matches both names anywhere in the text; strict names must be adjacent and do not get here. */
function bothNamesFinder(data: Record<string, unknown>): Finder {
  const finders = ['first_name', 'last_name'].map((key) => wordsFinder(readTextField(data, key)))
  return (searchable) => finders.every((finds) => finds(searchable))
}

function edgesFinder([before, after]: readonly [string, string], term: string): Finder {
  const escaped = term.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
  const pattern = new RegExp(before + escaped.replaceAll(/\s+/g, String.raw`\s+`) + after, 'iu')
  return ({ document }) => pattern.test(document.text)
}

/**
 * Whether a matching policy admits an event for an asset (docs/api-notes.md, Matching policies).
 */
type PolicyTest = (sighting: SearchableEvent) => boolean

export function policyTest(
  { type, value }: Pick<SandboxPolicy, 'type' | 'value'>,
  asset: Pick<SandboxAsset, 'type' | 'data'>,
): PolicyTest {
  switch (type) {
    case 'INCLUDED_KEYWORDS':
      return anyKeywordTest(toStrings(value['keywords']))
    case 'EXCLUDED_KEYWORDS': {
      const isExcluded = anyKeywordTest(toStrings(value['keywords']))
      return (searchable) => !isExcluded(searchable)
    }
    case 'LUCENE_QUERY':
      return queryFinder(readTextField(value, 'query'))
    case 'ASTP_DOMAIN': // about credentials, which no event search shows
      return () => true
    case 'ASTP_COOKIES':
      return cookieTest(toStrings(value['cookie_names']), value['match_subdomains'] === true, asset)
  }
}

function toStrings(list: unknown): string[] {
  return Array.isArray(list) ? list.map(String) : []
}

function anyKeywordTest(keywords: readonly string[]): PolicyTest {
  const finders = keywords.map(wordsFinder)
  return (searchable) => finders.some((finds) => finds(searchable))
}

/**
 * A stealer log needs a cookie with one of the names. For a domain asset the cookie must be of that
 * host or, if requested, of a host below it. Events without cookies pass.
 */
function cookieTest(
  names: readonly string[],
  matchesSubdomains: boolean,
  { type, data }: Pick<SandboxAsset, 'type' | 'data'>,
): PolicyTest {
  const host = type === 'domain' ? readTextField(data, 'fqdn').toLowerCase() : null
  const isOfHost = (key: string): boolean => {
    const bare = key.toLowerCase().replace(/^\./, '')
    return host === null || bare === host || (matchesSubdomains && bare.endsWith(`.${host}`))
  }
  return ({ event }) => {
    const cookies = readStolen(event)?.cookies
    if (!cookies) return true
    return cookies.some(({ name, host_key: key }) => names.includes(name) && isOfHost(key))
  }
}

/** An event prepared for matching by assets and policies. */
interface SearchableEvent {
  event: SandboxEvent
  document: SearchDocument
  words: WordText
}

/**
 * Leaves out the identifiers: which assets an event was found for says nothing about its content.
 */
export function toSearchable(event: SandboxEvent): SearchableEvent {
  const document = toSearchDocument({ ...event, identifiers: [] })
  return { event, document, words: toWordText(document.text) }
}

/**
 * Returns an asset's search term as text could contain it; null for a search query, which has none.
 */
export function assetTerm({
  type,
  data,
  attributes,
}: Pick<SandboxAsset, 'type' | 'data' | 'attributes'>): string | null {
  const field = (key: string): string => readTextField(data, key)
  switch (type) {
    case 'domain':
      return field('fqdn')
    case 'azure_tenant':
      return field('tenant_id')
    case 'github_repository':
      return `${field('repo_owner')}/${field('repo_name')}`
    case 'name':
      return `${field('first_name')} ${field('last_name')}`
    case 'identity':
      return attributes[0] ? assetTerm(attributeAsAsset(attributes[0])) : null
    case 'search_query':
      return null
    case 'ransomleak':
    case 'external_id':
      return field('id')
    case 'address_data':
      return field('street')
    case 'birth_year':
      return String(data['year'])
    case 'role':
    case 'phone_number':
    case 'keyword':
    case 'username':
    case 'email':
    case 'bin':
    case 'ip':
    case 'secret':
      return field(type)
  }
}

/** Returns an empty string if the field is not a text. */
function readTextField(data: Record<string, unknown>, key: string): string {
  const value = data[key]
  return typeof value === 'string' ? value : ''
}

/** An attribute of an identity has its own type and the data of an asset of that type. */
function attributeAsAsset(
  attribute: Record<string, unknown>,
): Pick<SandboxAsset, 'type' | 'data' | 'attributes'> {
  return { type: attribute['type'] as SandboxAsset['type'], data: attribute, attributes: [] }
}

/** An event query; its terms match as those of assets do (docs/api-notes.md, Event queries). */
type ParsedEventQuery = z.output<typeof eventQuery>

/** Throws LuceneError if a `query_string` is invalid. */
export function eventMatcher(query: ParsedEventQuery): (event: SandboxEvent) => boolean {
  const finds = queryTermFinder(query)
  return (event) => finds(toSearchable(event))
}

function queryTermFinder(query: ParsedEventQuery): Finder {
  switch (query.type) {
    case 'query_string':
      return queryFinder(query.query_string)
    case 'brand':
      return wordsFinder(query.name)
    case 'credentials':
      return credentialFinder(query.username, query.password)
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
      return termFinder({ type: query.type, data: query, attributes: [] })
  }
}

/** Matches user name and password within one stolen or leaked credential. */
function credentialFinder(username: string, password: string): Finder {
  const pairs = [
    ['credentials.username', 'credentials.password'],
    ['identity_name', 'password'],
  ] as const
  return ({ document: { fields } }) =>
    pairs.some(([user, secret]) =>
      fields[user]?.some(
        (name, index) =>
          name.toLowerCase() === username.toLowerCase() && fields[secret]?.[index] === password,
      ),
    )
}
