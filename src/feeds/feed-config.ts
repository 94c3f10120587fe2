/** What the configuration says of a feed, as understood; its types differ in what they are asked. */
import type { KnownSeverity } from '../events/severity.ts'
import type { EventQuery } from '../service/wire/events.ts'
import type { LegacySearchParameters } from '../service/wire/legacy-search.ts'
import type { Tier } from '../service/config.ts'

export type FeedConfig =
  | EventsFeedConfig
  | TenantEventsFeedConfig
  | IdentifierEventsFeedConfig
  | CredentialsFeedConfig
  | TenantCredentialsFeedConfig
  | CredentialSearchFeedConfig
  | EventSearchFeedConfig
  | LegacySearchFeedConfig
  | ReportsFeedConfig

export interface FeedCommon {
  name: string
  account: string
  /** The interval of feeds that keep one; undefined of those that are read by rate (next-feed.ts). */
  everyMs: number | undefined
  /** Of feeds that are read by rate, the longest interval that the operator states, if any. */
  longestMs: number | undefined
  /** undefined: it follows from how often the feed is read (config/lane-outlook.ts). */
  lagObjectiveMs: number | undefined
  /** How far back the very first poll begins. */
  startMs: number
  /** What the first poll finds reaches people as one summary, or each by itself. */
  backlog: 'summarise' | 'send'
  /** Severities for which the full event is fetched before rendering; none but of events. */
  detail: string[]
  tier: Tier
  labels: Record<string, string>
  /** undefined: audited only on command. */
  audit: AuditConfig | undefined
  /** undefined: what the feed has passed is never read again. */
  sweep: SweepConfig | undefined
}

export interface AuditConfig {
  /** From the end of one audit to the beginning of the next. */
  everyMs: number
  /** How far back it compares. */
  backMs: number
}

export interface SweepConfig {
  /** From the beginning of one sweep to the beginning of the next; undefined: as often as the budget allows. */
  everyMs: number | undefined
  /** How far back a sweep reads; 0 of a feed that cannot be asked by time: it reads all of it. */
  backMs: number
}

/** The events of an identifier group. */
export interface EventsFeedConfig extends WatchedEvents {
  type: 'events'
  identifierGroup: number
}

/** All events that the account's tenant watches for. */
export interface TenantEventsFeedConfig extends WatchedEvents {
  type: 'tenant_events'
}

/** The events of one identifier. */
export interface IdentifierEventsFeedConfig extends WatchedEvents {
  type: 'identifier_events'
  identifier: number
}

interface WatchedEvents extends FeedCommon {
  everyMs: undefined
  filters: FeedFilters
}

/** As the service takes them. A severity string means "this or higher", an array exactly these. */
export interface FeedFilters {
  severity?: KnownSeverity | KnownSeverity[]
  type?: string[]
  tags?: string[]
  is_ignored?: boolean
  is_remediated?: boolean
}

/** The leaked credentials of an identifier. */
export interface CredentialsFeedConfig extends LeakedCredentials {
  type: 'credentials'
  identifier: number
}

/** The leaked credentials of all identifiers of the account's tenant. */
export interface TenantCredentialsFeedConfig extends LeakedCredentials {
  type: 'tenant_credentials'
}

interface LeakedCredentials extends FeedCommon {
  everyMs: number
  /** Of all its credentials: the API gives them none. */
  severity: string
  /** undefined: every source of a pair counts as another credential. */
  dedupe: PairDedupe | undefined
}

/** What a search for leaked credentials finds; every page costs quota, unless the account has ASTP. */
export interface CredentialSearchFeedConfig extends LeakedCredentials {
  type: 'credential_search'
  query: CredentialQuery
  /** The feed stops before fewer searches of the month remain; 0: it may use them all. */
  quotaReserve: number
}

/** What a global search for events finds; every page costs quota. */
export interface EventSearchFeedConfig extends FeedCommon {
  type: 'event_search'
  everyMs: number
  query: EventSearchQuery
  filters: EventSearchFilters
  /** As of a credential search. */
  quotaReserve: number
}

export type EventSearchFilters = Pick<FeedFilters, 'severity' | 'type'>

/** Kinds with a secret in them are left out: a secret does not belong in a configuration file. */
export type EventSearchQuery = Exclude<EventQuery, { type: 'secret' | 'credentials' }>

/** What the legacy search finds, deprecated by the service; every page costs quota. */
export interface LegacySearchFeedConfig extends FeedCommon {
  type: 'legacy_search'
  everyMs: number
  /** Lucene query syntax. */
  query: string
  filters: LegacyFilters
  quotaReserve: number
}

export type LegacyFilters = Pick<
  LegacySearchParameters,
  | 'types'
  | 'experimental_types'
  | 'risks'
  | 'tags'
  | 'tags_query_operator'
  | 'event_action'
  | 'use_global_policies'
  | 'has_modified_risk_score'
  | 'has_notes'
>

/** Threat-flow reports, by the requests that have them made. */
export interface ReportsFeedConfig extends FeedCommon {
  type: 'reports'
  everyMs: number
  requests: string[]
  severity: string
  /** How long a report may be in the making before that is told. */
  timeoutMs: number
}

/** How a credential that another source shows is recognised. */
export interface PairDedupe {
  by: PairPart[]
  /** How long a pair is remembered. */
  forMs: number
  /** Whether who had the pair gets it again from another source. */
  isSentAgain: boolean
}

export type PairPart = 'identity' | 'secret' | 'domain'

/** A search for a secret is none of them: a secret does not belong in a configuration file. */
export type CredentialQuery =
  | { type: 'domain' | 'auth_domain'; fqdn: string }
  | { type: 'email'; email: string }
  | { type: 'keyword'; keyword: string }
