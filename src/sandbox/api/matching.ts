/** Which events concern an asset: by its state, its search types, risks, term and policies (pure). */
import type { z } from 'zod'
import type { eventQuery } from '../../upstream/resources/events.ts'
import { stolenOf } from '../history/draft.ts'
import type { SandboxEvent } from '../history/history.ts'
import type { SandboxAsset, SandboxPolicy } from '../monitoring/store.ts'
import { knownSeverities, typesOf } from './filters.ts'
import {
  documentOf,
  luceneMatcher,
  parseLucene,
  phraseFinder,
  type SearchDocument,
  type WordText,
  wordTextOf,
} from './lucene.ts'

export interface Watcher {
  /** Everything but the term: state, search types, risks, policies. */
  admits(sighting: Sighting): boolean
  /** Whether the asset's term is found. */
  mentions(sighting: Sighting): boolean
}

export type Watched = Pick<
  SandboxAsset,
  'type' | 'data' | 'attributes' | 'searchTypes' | 'risks' | 'isDisabled'
>
type Deciding = Pick<SandboxPolicy, 'type' | 'value'>

/** Whether `event` concerns `asset`, to which `policies` are assigned. */
export function matches(
  asset: Watched,
  policies: readonly Deciding[],
  event: SandboxEvent,
): boolean {
  const sighting = sightingOf(event)
  const watcher = watcherOf(asset, policies)
  return watcher.admits(sighting) && watcher.mentions(sighting)
}

/** The same, made ready for many events. */
export function watcherOf(asset: Watched, policies: readonly Deciding[]): Watcher {
  const types = asset.searchTypes.length > 0 ? typesOf(asset.searchTypes) : null
  const agreements = policies.map((policy) => agreementOf(policy, asset))
  const finds = mentionOf(asset)
  return {
    admits: (sighting) =>
      !asset.isDisabled &&
      (types === null || types.has(sighting.event.type)) &&
      (asset.risks.length === 0 || asset.risks.includes(riskOf(sighting.event.severity))) &&
      agreements.every((agrees) => agrees(sighting)),
    mentions: finds,
  }
}

/** The severity as a risk, 1 to 5 (docs/api-notes.md, Severities); an unknown word ranks highest, as in the filters. */
function riskOf(severity: string): number {
  const rank = (knownSeverities as readonly string[]).indexOf(severity)
  return rank === -1 ? knownSeverities.length : rank + 1
}

/** Whether an event speaks of what an asset stands for. */

type Finder = (sighting: Sighting) => boolean

/** A host may end a sentence, but not go on. */
const hostEnd = String.raw`(?![a-z0-9\-]|\.[a-z0-9])`
/** What is below a host is its own; what merely ends alike is not. */
const hostEdges = ['(?<![a-z0-9_-])', hostEnd] as const
const addressEdges = ['(?<![a-z0-9._%+-])', hostEnd] as const
/** A port may follow. */
const v4Edges = [String.raw`(?<![\d.])`, String.raw`(?!\d|\.\d)`] as const
const v6Edges = ['(?<![0-9a-f:])', '(?![0-9a-f:])'] as const
/** A card number begins with its BIN. */
const binEdges = [String.raw`(?<!\d)`, ''] as const

const nameEdges = [String.raw`(?<![\p{L}\p{N}])`, String.raw`(?![\p{L}\p{N}])`] as const

function mentionOf(asset: Pick<SandboxAsset, 'type' | 'data' | 'attributes'>): Finder {
  const { type, data, attributes } = asset
  const term = termOf(asset) ?? ''
  switch (type) {
    case 'domain':
      return between(hostEdges, term)
    case 'email':
      return between(addressEdges, term)
    case 'ip':
      return between(term.includes(':') ? v6Edges : v4Edges, term)
    case 'bin':
      return between(binEdges, term)
    case 'secret':
      return ({ document }) => document.text.includes(term)
    case 'search_query':
      return hasQueried(textIn(data, 'search_query'))
    case 'name':
      return data['is_strict'] === true ? between(nameEdges, term) : hasEach(data)
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
      return hasWords(term)
    case 'identity': {
      const finders = attributes.map((attribute) => mentionOf(attributeAsAsset(attribute)))
      return (sighting) => finders.some((finds) => finds(sighting))
    }
  }
}

/** Whether words stand in the text one after the other, in whatever case. */
function hasWords(phrase: string): Finder {
  const finds = phraseFinder(phrase)
  return ({ words }) => finds(words)
}

/** In Lucene's syntax. */
function hasQueried(query: string): Finder {
  const fits = luceneMatcher(parseLucene(query))
  return ({ document }) => fits(document)
}

/** Both names, anywhere; strictly they stand side by side. */
function hasEach(data: Record<string, unknown>): Finder {
  const finders = ['first_name', 'last_name'].map((key) => hasWords(textIn(data, key)))
  return (sighting) => finders.every((finds) => finds(sighting))
}

function between([before, after]: readonly [string, string], term: string): Finder {
  const escaped = term.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
  const pattern = new RegExp(before + escaped.replaceAll(/\s+/g, String.raw`\s+`) + after, 'iu')
  return ({ document }) => pattern.test(document.text)
}

/** Whether a matching policy lets an event through to an asset (docs/api-notes.md, Matching policies). */

type Agreement = (sighting: Sighting) => boolean

export function agreementOf(
  { type, value }: Pick<SandboxPolicy, 'type' | 'value'>,
  asset: Pick<SandboxAsset, 'type' | 'data'>,
): Agreement {
  switch (type) {
    case 'INCLUDED_KEYWORDS':
      return hasAny(wordsOf(value['keywords']))
    case 'EXCLUDED_KEYWORDS': {
      const isExcluded = hasAny(wordsOf(value['keywords']))
      return (sighting) => !isExcluded(sighting)
    }
    case 'LUCENE_QUERY':
      return hasQueried(textIn(value, 'query'))
    case 'ASTP_DOMAIN': // about credentials, which no event search shows
      return () => true
    case 'ASTP_COOKIES':
      return hasCookie(wordsOf(value['cookie_names']), value['match_subdomains'] === true, asset)
  }
}

function wordsOf(list: unknown): string[] {
  return Array.isArray(list) ? list.map(String) : []
}

function hasAny(keywords: readonly string[]): Agreement {
  const finders = keywords.map(hasWords)
  return (sighting) => finders.some((finds) => finds(sighting))
}

/**
 * A stealer log needs a cookie of one of the names; of a domain's asset, one of that host, or of one
 * below it if asked. What has no cookies is not for this policy to judge.
 */
function hasCookie(
  names: readonly string[],
  matchesSubdomains: boolean,
  { type, data }: Pick<SandboxAsset, 'type' | 'data'>,
): Agreement {
  const host = type === 'domain' ? textIn(data, 'fqdn').toLowerCase() : null
  const isOfHost = (key: string): boolean => {
    const bare = key.toLowerCase().replace(/^\./, '')
    return host === null || bare === host || (matchesSubdomains && bare.endsWith(`.${host}`))
  }
  return ({ event }) => {
    const cookies = stolenOf(event)?.cookies
    if (!cookies) return true
    return cookies.some(({ name, host_key: key }) => names.includes(name) && isOfHost(key))
  }
}

/** An event as assets and policies look at it. */
interface Sighting {
  event: SandboxEvent
  document: SearchDocument
  words: WordText
}

/** Without its identifiers: whom an event was found for says nothing about what it holds. */
export function sightingOf(event: SandboxEvent): Sighting {
  const document = documentOf({ ...event, identifiers: [] })
  return { event, document, words: wordTextOf(document.text) }
}

/** What an asset looks for, as a text could hold it; null: a search query is no such thing. */
export function termOf({
  type,
  data,
  attributes,
}: Pick<SandboxAsset, 'type' | 'data' | 'attributes'>): string | null {
  const of = (key: string): string => textIn(data, key)
  switch (type) {
    case 'domain':
      return of('fqdn')
    case 'azure_tenant':
      return of('tenant_id')
    case 'github_repository':
      return `${of('repo_owner')}/${of('repo_name')}`
    case 'name':
      return `${of('first_name')} ${of('last_name')}`
    case 'identity':
      return attributes[0] ? termOf(attributeAsAsset(attributes[0])) : null
    case 'search_query':
      return null
    case 'ransomleak':
    case 'external_id':
      return of('id')
    case 'address_data':
      return of('street')
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
      return of(type)
  }
}

/** Empty where there is no text. */
function textIn(data: Record<string, unknown>, key: string): string {
  const value = data[key]
  return typeof value === 'string' ? value : ''
}

/** An attribute of an identity has a type of its own, and the data of such an asset. */
function attributeAsAsset(
  attribute: Record<string, unknown>,
): Pick<SandboxAsset, 'type' | 'data' | 'attributes'> {
  return { type: attribute['type'] as SandboxAsset['type'], data: attribute, attributes: [] }
}

/** What each kind of event query finds (docs/api-notes.md, Event queries); terms match as those of assets do. */

type Query = z.output<typeof eventQuery>

/** Throws LuceneError where a `query_string` is none. */
export function eventMatcher(query: Query): (event: SandboxEvent) => boolean {
  const finds = finderOf(query)
  return (event) => finds(sightingOf(event))
}

function finderOf(query: Query): Finder {
  switch (query.type) {
    case 'query_string':
      return hasQueried(query.query_string)
    case 'brand':
      return hasWords(query.name)
    case 'credentials':
      return hasPair(query.username, query.password)
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
      return mentionOf({ type: query.type, data: query, attributes: [] })
  }
}

/** Both in one stolen or leaked credential. */
function hasPair(username: string, password: string): Finder {
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
