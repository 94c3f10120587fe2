/** The table's metrics as prom-client holds them: registered, bounded in their labels, started at 0. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { LabelDomain, LabelDomains, MetricDefinition } from './metrics-kinds.ts'
import { helpOf, metricTable, type MetricTable } from './metrics-table.ts'
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

export type RegisteredMetrics = Record<keyof MetricTable, RegisteredMetric>

/** Registers each metric of the table in the registry of its scope. */
export function registerTable(registries: {
  local: Registry
  shared: Registry
}): RegisteredMetrics {
  return Object.fromEntries(
    Object.entries<MetricDefinition>(metricTable).map(([name, definition]) => [
      name,
      { definition, metric: register(name, definition, registries[definition.scope]) },
    ]),
  ) as RegisteredMetrics
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
type LooseArguments = [labelsOrAmount?: LabelValues | number, amount?: number]

/** What the parts call: `inc`, `set` or `observe`, with labels bounded on the way. */
export function accessTo({ metric, definition }: RegisteredMetric): object {
  function split([first, second]: LooseArguments): [LabelValues, number] {
    if (typeof first !== 'object') return [{}, first ?? 1]
    return [bounded(first, definition.labels), second ?? 1]
  }
  if (metric instanceof Counter) {
    return { inc: (...given: LooseArguments) => metric.inc(...split(given)) }
  }
  if (metric instanceof Gauge) {
    return { set: (...given: LooseArguments) => metric.set(...split(given)) }
  }
  return { observe: (...given: LooseArguments) => metric.observe(...split(given)) }
}

function bounded(labels: LabelValues, domains: LabelDomains): LabelValues {
  return Object.fromEntries(
    Object.entries(labels).map(([name, value]) => [
      name,
      boundedValue(String(value), domains[name]),
    ]),
  )
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
export function zero(metrics: RegisteredMetric[], names: KnownNames, before?: KnownNames): void {
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

function labelSets(domains: LabelDomains, names: KnownNames): LabelSet[] {
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
