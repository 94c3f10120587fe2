import type { Tier } from '../service/config.ts'

export interface FeedConfig {
  name: string
  type: 'events'
  account: string
  identifierGroup: number
  filters: FeedFilters
  everyMs: number
  lagObjectiveMs: number
  /** How far back the very first poll begins. */
  startMs: number
  /** Severities for which the full event is fetched before rendering. */
  detail: string[]
  tier: Tier
  labels: Record<string, string>
}

/** As the service takes them. A severity string means "this or higher", an array exactly these. */
export interface FeedFilters {
  severity?: string | string[]
  type?: string[]
  tags?: string[]
  is_ignored?: boolean
  is_remediated?: boolean
}
