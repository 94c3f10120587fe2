/**
 * The metrics of one running Tocsin: typed access to every metric of the table, and the text of a
 * scrape. A scrape only prints: each reading of Redis fills a registry of its own, which is shown whole
 * once it is published. Nothing is kept in prom-client's global registry.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type Clock, systemClock } from '../clock.ts'
import {
  helpText,
  type LabelDomain,
  type LabelDomains,
  type MetricDefinition,
} from './metric-kinds.ts'
import { metricTable, type MetricTable, responseCodes, severityWords } from './metric-table.ts'

/**
 * Every local metric of the table by its name in camelCase without prefix, e.g. `feedPollsTotal`.
 */
export type Metrics = MetricsOf<'local'> & {
  /**
   * Gives every known label set a 0. Called before counting and again when the names change:
   * existing counts go on, and the series of removed names disappear.
   */
  startAtZero(names: KnownNames): void
  /**
   * Begins a new state of what is read from Redis. Every known label set has 0, and a feed's lag
   * counts from when its name first appeared. Scrapes show the previous state until this one is
   * published.
   */
  beginState(): StateMetrics
  /** Prometheus text format. While Redis is unreachable, what was read from it is left out. */
  render(isRedisUp?: boolean): Promise<{ contentType: string; body: string }>
}

/** The shared metrics of the table, as one reading of Redis finds them. */
export type StateMetrics = MetricsOf<'shared'> & {
  /** `atMs`: when the reading began. */
  publish(atMs: number): void
}

export interface CounterMetric<Labels> {
  inc(...labelsAndBy: [...LabelArgument<Labels>, by?: number]): void
}

export interface GaugeMetric<Labels> {
  set(...labelsAndValue: [...LabelArgument<Labels>, value: number]): void
}

export interface HistogramMetric<Labels> {
  observe(...labelsAndSeconds: [...LabelArgument<Labels>, seconds: number]): void
}

type LabelArgument<Labels> = keyof Labels extends never ? [] : [labels: Labels]

type LabelValue<Domain> = Domain extends readonly (infer Word)[]
  ? Word
  : Domain extends 'code'
    ? number | 'none'
    : string

type LabelsOf<Domains> = { [Label in keyof Domains]: LabelValue<Domains[Label]> }

type MetricOf<Definition extends MetricDefinition> = {
  counter: CounterMetric<LabelsOf<Definition['labels']>>
  gauge: GaugeMetric<LabelsOf<Definition['labels']>>
  histogram: HistogramMetric<LabelsOf<Definition['labels']>>
}[Definition['kind']]

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name

/** All but those that `render` sets itself. */
type SettableName = Exclude<keyof MetricTable, 'redis_up' | 'state_age_seconds'>

type MetricsOf<Scope> = {
  readonly [
    Name in SettableName as MetricTable[Name]['scope'] extends Scope ? CamelCase<Name> : never
  ]: MetricOf<MetricTable[Name]>
}

export interface MetricsOptions {
  clock?: Clock
}

export function createMetrics({ clock = systemClock }: MetricsOptions = {}): Metrics {
  const registry = new Registry()
  const registered = registerTable('local', registry)
  const redisUp = registered.get('redis_up')?.metric as Gauge
  const stateAge = registered.get('state_age_seconds')?.metric as Gauge
  let feedsSinceMs = new Map<string, number>()
  let hasStarted = false
  let knownNames: KnownNames = { feeds: [], sinks: [], accounts: [], routes: [] }
  let state = { registry: new Registry(), atMs: clock.now() }
  collectDefaultMetrics({ register: registry })
  // gauges under names of counters; the same without `_total` tell more
  for (const what of ['resources', 'handles', 'requests'])
    registry.removeSingleMetric(`nodejs_active_${what}_total`)

  return {
    ...typedAccess<'local'>(registered),
    startAtZero(names) {
      startSeries(registered.values(), names, hasStarted ? knownNames : undefined)
      hasStarted = true
      // until the next reading
      if (hasRemovedNames(knownNames, names)) state.registry.clear()
      knownNames = names
      const nowMs = clock.now()
      feedsSinceMs = new Map(names.feeds.map((feed) => [feed, feedsSinceMs.get(feed) ?? nowMs]))
    },
    beginState() {
      const read = new Registry()
      const shared = registerTable('shared', read)
      startSeries(shared.values(), knownNames)
      const metrics = typedAccess<'shared'>(shared)
      const nowMs = clock.now()
      for (const [feed, sinceMs] of feedsSinceMs)
        metrics.feedLagSeconds.set({ feed }, Math.max(0, nowMs - sinceMs) / 1000)
      return {
        ...metrics,
        publish(atMs) {
          state = { registry: read, atMs }
        },
      }
    },
    async render(isRedisUp = true) {
      redisUp.set(isRedisUp ? 1 : 0)
      stateAge.set(Math.max(0, clock.now() - state.atMs) / 1000)
      const body = (await registry.metrics()) + (isRedisUp ? await state.registry.metrics() : '')
      return { contentType: registry.contentType, body }
    },
  }
}

function hasRemovedNames(before: KnownNames, names: KnownNames): boolean {
  return (['feeds', 'sinks', 'accounts', 'routes'] as const).some((kind) => {
    const currentNames = new Set(names[kind])
    return before[kind].some((name) => !currentNames.has(name))
  })
}

function typedAccess<Scope extends MetricDefinition['scope']>(
  registered: ReadonlyMap<string, RegisteredMetric>,
): MetricsOf<Scope> {
  const access = [...registered].map(([name, one]) => [
    name.replaceAll(/_(\w)/g, (_match, letter: string) => letter.toUpperCase()),
    boundedAccess(one),
  ])
  return Object.fromEntries(access) as MetricsOf<Scope>
}

/** The configured names that label metrics. */
export interface KnownNames {
  feeds: readonly string[]
  /** Of the feeds, those that rescan. */
  rescannedFeeds?: readonly string[]
  sinks: readonly string[]
  /** Of the sinks, those with a canary. */
  canarySinks?: readonly string[]
  accounts: readonly string[]
  routes: readonly string[]
}

interface RegisteredMetric {
  definition: MetricDefinition
  metric: Counter | Gauge | Histogram
}

const definitions = Object.entries<MetricDefinition>(metricTable)

/** Registers the metrics of the table of one scope. */
function registerTable(
  scope: MetricDefinition['scope'],
  registry: Registry,
): Map<string, RegisteredMetric> {
  const own = definitions.filter(([, definition]) => definition.scope === scope)
  return new Map(
    own.map(([name, definition]) => [
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
    help: helpText(definition),
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

/**
 * What the parts call: `inc`, `set` or `observe`, with label values checked against their domains.
 * A sparse metric has no sample while it is 0.
 */
function boundedAccess({ metric, definition }: RegisteredMetric): object {
  const isShown = (value: number): boolean => value !== 0 || !definition.isSparse
  const split = (given: LooseArguments) => splitArguments(given, definition.labels)
  if (metric instanceof Counter) {
    return {
      inc(...given: LooseArguments) {
        const [labels, by] = split(given)
        if (isShown(by)) metric.inc(labels, by)
      },
    }
  }
  if (metric instanceof Gauge) {
    return {
      set(...given: LooseArguments) {
        const [labels, value] = split(given)
        if (isShown(value)) metric.set(labels, value)
      },
    }
  }
  return { observe: (...given: LooseArguments) => metric.observe(...split(given)) }
}

/** Returns the exported labels in their order, with values from their domains, and the amount. */
function splitArguments(
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
 * Creates every known label set that does not start unset: with 0, or with its present count. Those
 * known only to `before` disappear.
 */
function startSeries(
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
    if (definition.startsUnset && metric instanceof Gauge) metric.remove({}) // else it begins with 0
    for (const [key, labels] of definition.startsUnset ? [] : wanted) {
      if (!(metric instanceof Histogram)) metric.inc(labels, 0)
      else if (!old.has(key)) metric.zero(labels) // a second zero() would forget what was observed
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
      sets.flatMap((set) =>
        domainValues(domain, names).map((value) => ({ ...set, [label]: value })),
      ),
    [{}],
  )
}

function domainValues(domain: LabelDomain, names: KnownNames): readonly string[] {
  if (typeof domain !== 'string') return domain
  switch (domain) {
    case 'severity':
      return severityWords
    case 'code':
      return responseCodes
    case 'version':
      return []
    case 'feeds':
    case 'rescannedFeeds':
    case 'sinks':
    case 'canarySinks':
    case 'accounts':
    case 'routes':
      return names[domain] ?? []
  }
}
