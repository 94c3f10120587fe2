/**
 * The metrics of one running Tocsin: typed access to every metric of the table, and the text of a
 * scrape. A scrape never waits longer than 0.8 s for Redis: it then goes without the shared gauges
 * and says `tocsin_redis_up 0`. Nothing is kept in prom-client's global registry.
 */
import { collectDefaultMetrics, Registry, type Gauge } from 'prom-client'
import { systemClock, type Clock } from './clock.ts'
import type { Logger } from './logger.ts'
import { accessTo, registerTable, zero, type KnownNames } from './metrics-registry.ts'
import { createSharedGauges } from './metrics-shared.ts'
import type { MetricDefinition } from './metrics-kinds.ts'
import type { MetricTable } from './metrics-table.ts'

/** Every metric of the table by its name in camelCase without prefix, e.g. `feedPollsTotal`. */
export type Metrics = TypedMetrics & {
  /**
   * Makes every label set that can be named beforehand appear with 0. Before counting, and again when
   * the names change: what counts already goes on, the series of names that are gone disappear.
   */
  startAtZero(names: KnownNames): void
  /**
   * Hands in what reads Redis and sets the shared gauges at each scrape. They begin each scrape at
   * 0: what is set outside `refresh` is lost. `feed_lag_seconds` begins at the time since the start.
   */
  onScrape(refresh: () => Promise<void>): void
  /** Prometheus text format; answers within a second and never rejects because of Redis. */
  render(): Promise<{ contentType: string; body: string }>
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

export interface MetricsOptions {
  clock?: Clock
  /** Told once when reading the shared gauges begins to fail. */
  logger?: Logger
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

/** Without the one that `render` computes itself. */
type SettableName = Exclude<keyof MetricTable, 'redis_up'>

type TypedMetrics = {
  readonly [Name in SettableName as CamelCase<Name>]: MetricOf<MetricTable[Name]>
}

export function createMetrics({ clock = systemClock, logger }: MetricsOptions = {}): Metrics {
  const local = new Registry()
  const shared = new Registry()
  const registered = registerTable({ local, shared })
  const redisUp = registered.redis_up.metric as Gauge
  const lag = registered.feed_lag_seconds.metric as Gauge
  const startedAtMs = clock.now()
  let known: KnownNames | undefined
  let refresh = notReadYet
  collectDefaultMetrics({ register: local })

  async function readShared(): Promise<void> {
    zero(
      Object.values(registered).filter(({ definition }) => definition.scope === 'shared'),
      known ?? noNames,
    )
    for (const name of known?.feeds ?? []) {
      lag.set({ feed: name }, Math.max(0, clock.now() - startedAtMs) / 1000)
    }
    await refresh()
  }

  const sharedGauges = createSharedGauges({ registry: shared, read: readShared, clock, logger })
  return {
    ...typedAccess(registered),
    startAtZero(names) {
      zero(Object.values(registered), names, known)
      known = names
    },
    onScrape(given) {
      refresh = given
    },
    async render() {
      const sharedText = await sharedGauges.render()
      redisUp.set(sharedText === undefined ? 0 : 1)
      const body = (await local.metrics()) + (sharedText ?? '')
      return { contentType: local.contentType, body }
    },
  }
}

const noNames: KnownNames = { feeds: [], sinks: [], accounts: [], routes: [] }

function notReadYet(): Promise<void> {
  return Promise.reject(new Error('nothing reads the shared metrics yet'))
}

function typedAccess(registered: ReturnType<typeof registerTable>): TypedMetrics {
  const access = Object.entries(registered).map(([name, metric]) => [
    name.replaceAll(/_(\w)/g, (_match, letter: string) => letter.toUpperCase()),
    accessTo(metric),
  ])
  return Object.fromEntries(access) as TypedMetrics
}
