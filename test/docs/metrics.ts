/** The tables of the metrics, from the table that exports them. */
import type { MetricDefinition } from '../../src/lib/metrics/metric-kinds.ts'
import { metricTable } from '../../src/lib/metrics/metric-table.ts'
import { code, codes, table } from './markdown.ts'

/** What the name of a metric begins with decides where it stands; the first that fits. */
const groups: Record<string, RegExp> = {
  feeds: /^(feed|rescan|match_time|quarantine)_/,
  service: /^(api|token|account)_/,
  events: /^(events?|unknown_severity)_/,
  ledger: /^(ledger_|retention_)/,
  deliveries:
    /^(items|deliver(y|ies)|template_failures|possible_duplicates|dead_letters|sink|canary|suppressed|silences|digest)/,
  process: /^(config|build|http|redis|state)/,
}

export function metricBlocks(): [string, string][] {
  const grouped = Object.groupBy(Object.entries<MetricDefinition>(metricTable), ([name]) =>
    groupOf(name),
  )
  return Object.keys(groups).map((group) => [
    `metrics ${group}`,
    table(
      ['Metric', 'Labels', 'Over replicas', 'Meaning'],
      (grouped[group] ?? []).map(([name, definition]) => [
        code(`tocsin_${name}`),
        Object.keys(definition.labels).join(', ') || '–',
        aggregationOf(definition),
        meaningOf(definition),
      ]),
    ),
  ])
}

function groupOf(name: string): string {
  const group = Object.entries(groups).find(([, pattern]) => pattern.test(name))
  if (group === undefined) throw new Error(`no group of metrics fits ${name}: add it to metrics.ts`)
  return group[0]
}

function aggregationOf({ kind, scope, isSparse }: MetricDefinition): string {
  const how = kind === 'gauge' ? 'each' : 'sum'
  return `${scope === 'shared' ? 'max' : how}${isSparse ? ', sparse' : ''}`
}

function meaningOf({ help, kind, labels, startsUnset, isSparse }: MetricDefinition): string {
  const closed = Object.entries(labels).flatMap(([label, domain]) =>
    Array.isArray(domain) ? [`${code(label)} is one of ${codes(domain)}.`] : [],
  )
  return [
    kind === 'histogram' ? `Histogram. ${help}` : help,
    ...closed,
    ...(startsUnset && !isSparse ? ['No series before the first value.'] : []),
  ].join(' ')
}
