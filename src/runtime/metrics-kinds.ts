/** What a metric of the table is made of. */

/**
 * Where a label's values come from: names of the configuration; `severity`: the five words, anything
 * else becomes `unknown`; `code`: a status code, rare ones become `other`; or the list itself.
 */
export type LabelDomain =
  | 'feeds'
  | 'sinks'
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
  /** No sample before its value is known, because a 0 would say something untrue. */
  startsUnset?: true
  /** Upper bounds of a histogram's buckets, seconds. */
  buckets?: readonly number[]
  /** How it is told unless `http.metrics` is `detailed`; left out: no otherwise. */
  brief?: Brief
}

/**
 * `omitted`: not at all. `sparse`: a counter begins with its first count, a gauge is shown while it is not 0.
 * `without`: over all values of these labels.
 */
export type Brief = 'omitted' | 'sparse' | { readonly without: readonly string[] }
