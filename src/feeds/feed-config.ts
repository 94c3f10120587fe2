/** What the configuration says of a feed, as understood; its types differ in what they are asked. */
import type { Tier } from '../service/config.ts'

export type FeedConfig = EventsFeedConfig | CredentialsFeedConfig | CredentialSearchFeedConfig

export interface FeedCommon {
  name: string
  account: string
  everyMs: number
  lagObjectiveMs: number
  /** How far back the very first poll begins. */
  startMs: number
  /** What the first poll finds reaches people as one summary, or each by itself. */
  backlog: 'summarise' | 'send'
  /** Severities for which the full event is fetched before rendering; none but of events. */
  detail: string[]
  tier: Tier
  labels: Record<string, string>
  /** undefined: what the feed has passed is never read again. */
  sweep: SweepConfig | undefined
}

export interface SweepConfig {
  /** From the beginning of one sweep to the beginning of the next. */
  everyMs: number
  /** How far back a sweep reads; 0 of a feed that cannot be asked by time: it reads all of it. */
  backMs: number
}

/** The events of an identifier group. */
export interface EventsFeedConfig extends FeedCommon {
  type: 'events'
  identifierGroup: number
  filters: FeedFilters
}

/** As the service takes them. A severity string means "this or higher", an array exactly these. */
export interface FeedFilters {
  severity?: string | string[]
  type?: string[]
  tags?: string[]
  is_ignored?: boolean
  is_remediated?: boolean
}

/** The leaked credentials of an identifier. */
export interface CredentialsFeedConfig extends FeedCommon {
  type: 'credentials'
  identifier: number
  /** Of all its credentials: the API gives them none. */
  severity: string
  /** undefined: every source of a pair counts as another credential. */
  dedupe: PairDedupe | undefined
}

/** What a global search for leaked credentials finds; every page costs quota. */
export interface CredentialSearchFeedConfig extends FeedCommon {
  type: 'credential_search'
  query: CredentialQuery
  /** Of all its credentials: the API gives them none. */
  severity: string
  /** undefined: every source of a pair counts as another credential. */
  dedupe: PairDedupe | undefined
  /** The feed stops before fewer searches of the month remain; 0: it may use them all. */
  quotaReserve: number
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
