/**
 * The metrics of one running Tocsin: typed access to every metric of the table, and the text of a
 * scrape. A scrape only prints: what is read from Redis was read before. Nothing is kept in
 * prom-client's global registry.
 */
import { collectDefaultMetrics, Registry, type Gauge } from 'prom-client'
import { systemClock, type Clock } from './clock.ts'
import type { MetricDefinition } from './metrics-kinds.ts'
import { accessTo, registerTable, tableInForce, zero, type KnownNames } from './metrics-registry.ts'
import { createStateDraft } from './metrics-state.ts'
import { metricTable, type MetricTable } from './metrics-table.ts'

/** Every local metric of the table by its name in camelCase without prefix, e.g. `feedPollsTotal`. */
export type Metrics = MetricsOf<'local'> & {
  /**
   * Makes every label set that can be named beforehand appear with 0. Before counting, and again when
   * the names change: what counts already goes on, the series of names that are gone disappear.
   */
  startAtZero(names: KnownNames): void
  /**
   * Begins a new state of what is read from Redis: every label set that can be named has 0, and each
   * feed lags since its name was first handed in. Scrapes show the state before until this one is published.
   */
  beginState(): StateMetrics
  /** Prometheus text format. While Redis is away, what was read from it is left out. */
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

/** Without those that `render` computes itself. */
type SettableName = Exclude<keyof MetricTable, 'redis_up' | 'state_age_seconds'>

type MetricsOf<Scope> = {
  readonly [
    Name in SettableName as MetricTable[Name]['scope'] extends Scope ? CamelCase<Name> : never
  ]: MetricOf<MetricTable[Name]>
}

export interface MetricsOptions {
  clock?: Clock
  /** Every series of the table: `http.metrics: detailed`. */
  isDetailed?: boolean
}

export function createMetrics({
  clock = systemClock,
  isDetailed = true,
}: MetricsOptions = {}): Metrics {
  const registry = new Registry()
  const table = tableInForce(isDetailed)
  const registered = registerTable(table, registry)
  const redisUp = registered.get('redis_up')?.metric as Gauge
  const stateAge = registered.get('state_age_seconds')?.metric as Gauge
  let feedsSinceMs = new Map<string, number>()
  let known: KnownNames = { feeds: [], sinks: [], accounts: [], routes: [] }
  let state = { text: '', atMs: clock.now() }
  collectDefaultMetrics({ register: registry })

  return {
    ...typedAccess('local', new Map([...registered].map(([name, one]) => [name, accessTo(one)]))),
    startAtZero(names) {
      zero(registered.values(), names, known)
      if (hasLeft(known, names)) state = { ...state, text: '' } // until the next reading
      known = names
      const nowMs = clock.now()
      feedsSinceMs = new Map(names.feeds.map((feed) => [feed, feedsSinceMs.get(feed) ?? nowMs]))
    },
    beginState() {
      const draft = createStateDraft(table, { isDetailed, names: known })
      const metrics = typedAccess('shared', draft.metrics)
      const nowMs = clock.now()
      for (const [feed, sinceMs] of feedsSinceMs)
        metrics.feedLagSeconds.set({ feed }, Math.max(0, nowMs - sinceMs) / 1000)
      return {
        ...metrics,
        publish(atMs) {
          state = { text: draft.text(), atMs }
        },
      }
    },
    async render(isRedisUp = true) {
      redisUp.set(isRedisUp ? 1 : 0)
      stateAge.set(Math.max(0, clock.now() - state.atMs) / 1000)
      const body = (await registry.metrics()) + (isRedisUp ? state.text : '')
      return { contentType: registry.contentType, body }
    },
  }
}

function hasLeft(before: KnownNames, names: KnownNames): boolean {
  return (['feeds', 'sinks', 'accounts', 'routes'] as const).some((kind) => {
    const kept = new Set(names[kind])
    return before[kind].some((name) => !kept.has(name))
  })
}

const nothing = { inc() {}, set() {}, observe() {} }

/** What is not exported can be called as well. */
function typedAccess<Scope extends MetricDefinition['scope']>(
  scope: Scope,
  metrics: ReadonlyMap<string, object>,
): MetricsOf<Scope> {
  const access = Object.entries<MetricDefinition>(metricTable)
    .filter(([, definition]) => definition.scope === scope)
    .map(([name]) => [
      name.replaceAll(/_(\w)/g, (_match, letter: string) => letter.toUpperCase()),
      metrics.get(name) ?? nothing,
    ])
  return Object.fromEntries(access) as MetricsOf<Scope>
}
