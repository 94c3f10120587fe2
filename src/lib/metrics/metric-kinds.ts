/** The kinds of metrics, and what a row of the table says about each. */

/**
 * Where a label's values come from: names of the configuration (the feeds that rescan and the
 * sinks with a canary are lists of their own); `severity`: the five words, anything else
 * becomes `unknown`; `code`: a status code, rare ones become `other`; or the list itself.
 */
export type LabelDomain =
  | 'feeds'
  | 'rescannedFeeds'
  | 'sinks'
  | 'canarySinks'
  | 'accounts'
  | 'routes'
  | 'severity'
  | 'code'
  | 'version'
  | readonly string[]

export type LabelDomains = Readonly<Record<string, LabelDomain>>

export interface MetricDefinition {
  kind: 'counter' | 'gauge' | 'histogram'
  /** `shared`: read from Redis by a loop of the process, left out while Redis does not answer. */
  scope: 'local' | 'shared'
  help: string
  labels: LabelDomains
  /** No sample before its value is known, because a 0 would be wrong. */
  startsUnset?: true
  /** Upper bounds of a histogram's buckets, seconds. */
  buckets?: readonly number[]
  /** No sample while it is 0: a feed or a sink has few series, and most counters never count. */
  isSparse?: true
}

/** HELP as exported: what the metric is, and how to aggregate it over instances. */
export function helpText(definition: MetricDefinition): string {
  return `${definition.help} ${describeAggregation(definition)}`
}

function describeAggregation({ kind, scope }: MetricDefinition): string {
  if (scope === 'shared') return 'Shared by all instances (max).'
  return kind === 'gauge' ? 'Local to this instance.' : 'Local to this instance (sum).'
}
