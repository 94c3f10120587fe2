/** The table's local metrics as prom-client holds them: registered, bounded in their labels, started at 0. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { LabelDomain, LabelDomains, MetricDefinition } from './metrics-kinds.ts'
import { helpOf, metricTable } from './metrics-table.ts'
import { responseCodes, severityWords } from './metrics-words.ts'

/** The configured names that label metrics. */
export interface KnownNames {
  feeds: readonly string[]
  sinks: readonly string[]
  accounts: readonly string[]
  routes: readonly string[]
}

export interface RegisteredMetric {
  definition: MetricDefinition
  metric: Counter | Gauge | Histogram
}

/** What is exported of the table, with the labels it has then; by name. */
export function tableInForce(isDetailed: boolean): Map<string, MetricDefinition> {
  const entries = Object.entries<MetricDefinition>(metricTable).flatMap(([name, definition]) => {
    const { brief, labels } = definition
    if (isDetailed || brief === undefined) return [[name, definition] as const]
    if (brief === 'omitted') return []
    if (brief === 'sparse') return [[name, { ...definition, startsUnset: true }] as const]
    const left = Object.entries(labels).filter(([label]) => !brief.without.includes(label))
    return [[name, { ...definition, labels: Object.fromEntries(left) }] as const]
  })
  return new Map(entries)
}

/** Registers the local metrics of the table. */
export function registerTable(
  table: ReadonlyMap<string, MetricDefinition>,
  registry: Registry,
): Map<string, RegisteredMetric> {
  const local = [...table].filter(([, { scope }]) => scope === 'local')
  return new Map(
    local.map(([name, definition]) => [
      name,
      { definition, metric: register(name, definition, registry) },
    ]),
  )
}

function register(
  name: string,
  definition: MetricDefinition,
  registry: Registry,
): RegisteredMetric['metric'] {
  const options = {
    name: `tocsin_${name}`,
    help: helpOf(definition),
    labelNames: Object.keys(definition.labels),
    registers: [registry],
  }
  switch (definition.kind) {
    case 'counter':
      return new Counter(options)
    case 'gauge':
      return new Gauge(options)
    case 'histogram':
      return new Histogram({ ...options, buckets: [...(definition.buckets ?? [])] })
  }
}

type LabelValues = Record<string, string | number>
export type LooseArguments = [labelsOrAmount?: LabelValues | number, amount?: number]

/** What the parts call: `inc`, `set` or `observe`, with labels bounded on the way. */
export function accessTo({ metric, definition }: RegisteredMetric): object {
  const split = (given: LooseArguments) => splitArguments(given, definition.labels)
  if (metric instanceof Counter) {
    return { inc: (...given: LooseArguments) => metric.inc(...split(given)) }
  }
  if (metric instanceof Gauge) {
    return { set: (...given: LooseArguments) => metric.set(...split(given)) }
  }
  return { observe: (...given: LooseArguments) => metric.observe(...split(given)) }
}

/** The labels that are in force, in their order, with values from their domains; and the amount. */
export function splitArguments(
  [first, second]: LooseArguments,
  domains: LabelDomains,
): [Record<string, string>, number] {
  if (typeof first !== 'object') return [{}, first ?? 1]
  const labels: Record<string, string> = {}
  for (const name in domains) labels[name] = boundedValue(String(first[name]), domains[name])
  return [labels, second ?? 1]
}

function boundedValue(value: string, domain: LabelDomain | undefined): string {
  if (domain === 'severity') return isOneOf(severityWords, value) ? value : 'unknown'
  if (domain === 'code') return isOneOf(responseCodes, value) ? value : 'other'
  return value
}

function isOneOf(words: readonly string[], value: string): boolean {
  return words.includes(value)
}

/**
 * Makes every label set that can be named beforehand appear, unless it starts unset: with 0, or as it
 * counts already. Those that only `before` could name disappear.
 */
export function zero(
  metrics: Iterable<RegisteredMetric>,
  names: KnownNames,
  before?: KnownNames,
): void {
  for (const { definition, metric } of metrics) {
    const old = setsByKey(before ? labelSets(definition.labels, before) : [])
    const wanted = setsByKey(labelSets(definition.labels, names))
    for (const [key, labels] of old) {
      if (!wanted.has(key)) metric.remove(labels)
    }
    for (const [key, labels] of definition.startsUnset ? [] : wanted) {
      if (!(metric instanceof Histogram)) metric.inc(labels, 0)
      else if (!old.has(key)) metric.zero(labels) // once more would forget what was observed
    }
  }
}

type LabelSet = Record<string, string>

function setsByKey(sets: LabelSet[]): Map<string, LabelSet> {
  return new Map(sets.map((labels) => [JSON.stringify(labels), labels]))
}

export function labelSets(domains: LabelDomains, names: KnownNames): LabelSet[] {
  return Object.entries(domains).reduce<LabelSet[]>(
    (sets, [label, domain]) =>
      sets.flatMap((set) => valuesOf(domain, names).map((value) => ({ ...set, [label]: value }))),
    [{}],
  )
}

function valuesOf(domain: LabelDomain, names: KnownNames): readonly string[] {
  if (typeof domain !== 'string') return domain
  switch (domain) {
    case 'severity':
      return severityWords
    case 'code':
      return responseCodes
    case 'version':
      return []
    case 'feeds':
    case 'sinks':
    case 'accounts':
    case 'routes':
      return names[domain]
  }
}
