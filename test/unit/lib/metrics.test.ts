import { register } from 'prom-client'
import { describe, expect, test } from 'vitest'
import { severities } from '../../../src/event.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import type { MetricDefinition } from '../../../src/lib/metrics/metric-kinds.ts'
import { metricNames, metricTable } from '../../../src/lib/metrics/metric-table.ts'
import { createMetrics, type Metrics } from '../../../src/lib/metrics/metrics.ts'
import { pendingStates } from '../../../src/store/records.ts'

const names = { feeds: ['brand'], sinks: ['soc'], accounts: ['main'], routes: ['root', 'urgent'] }
const definitions = Object.entries<MetricDefinition>(metricTable)

async function scrape(metrics: Metrics): Promise<string> {
  return (await metrics.render()).body
}

/** The value of one sample line, e.g. `tocsin_redis_up`; undefined where there is none. */
async function sample(metrics: Metrics, series: string): Promise<number | undefined> {
  const body = await scrape(metrics)
  const line = body.split('\n').find((text) => text.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

function clockAt(seconds: () => number): Clock {
  return { ...systemClock, now: () => seconds() * 1000 }
}

describe('names and help', () => {
  test.each(definitions)('%s follows the naming rules', (name, { kind, labels }) => {
    expect(name).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/)
    expect(name.endsWith('_total')).toBe(kind === 'counter')
    expect(name.endsWith('_seconds') || kind !== 'histogram').toBe(true)
    expect(name.endsWith('_timestamp_seconds')).toBe(name.includes('timestamp'))
    expect(name).not.toMatch(/_(count|sum|bucket|counter|gauge|histogram)$/)
    expect(name).not.toMatch(/millis|_ms$|minutes|hours|kilobytes|percent/)
    for (const label of Object.keys(labels)) {
      expect(label).toMatch(/^[a-z]+$/)
      expect(['le', 'quantile', 'job', 'instance']).not.toContain(label)
    }
  })

  test('everything in the table, and nothing else of its own, is in a scrape', async () => {
    const metrics = createMetrics()
    metrics.beginState().publish(0)
    const body = await scrape(metrics)
    const shown = [...body.matchAll(/^# TYPE (tocsin_\S+)/gm)].map((match) => String(match[1]))
    expect(shown.toSorted()).toEqual(metricNames().toSorted())
    expect(body).toMatch(/^process_cpu_seconds_total /m)
    expect(body).toMatch(/^nodejs_eventloop_lag_seconds /m)
  })
})

describe('counting', () => {
  test('a severity that is not known is counted as unknown', async () => {
    const metrics = createMetrics()
    metrics.eventsNewBySeverityTotal.inc({ severity: 'apocalyptic' })
    metrics.eventsNewBySeverityTotal.inc({ severity: 'constructor' })
    const body = await scrape(metrics)
    expect(body).toContain('tocsin_events_new_by_severity_total{severity="unknown"} 2')
    expect(body).not.toContain('apocalyptic')
  })

  test('two instances in one process count apart and leave the global registry alone', async () => {
    const one = createMetrics()
    const other = createMetrics()
    one.feedPollsTotal.inc({ feed: 'brand' })
    expect(await sample(other, 'tocsin_feed_polls_total{feed="brand"}')).toBeUndefined()
    expect(register.getMetricsAsArray()).toEqual([])
  })
})

describe('starting at 0', () => {
  test('every metric with labels that can be named beforehand has a sample of 0', async () => {
    const metrics = createMetrics()
    metrics.startAtZero(names)
    metrics.beginState().publish(0)
    const body = await scrape(metrics)
    const withSamples = new Set(
      [...body.matchAll(/^(tocsin_\w+?)(_bucket)?[{ ]/gm)].map((m) => m[1]),
    )
    const expected = definitions
      .filter(([name, { startsUnset }]) => name !== 'build_info' && !startsUnset)
      .map(([name]) => `tocsin_${name}`)
    expect(expected.filter((name) => !withSamples.has(name))).toEqual([])
    expect(body).toContain('tocsin_events_routed_total{route="urgent"} 0')
    expect(body).not.toContain('tocsin_feed_polls_failed_total{')
    expect(body).not.toContain('tocsin_items_pending{')
    expect(body).toContain(
      'tocsin_event_fetch_to_delivery_seconds_count{audience="machines",severity="critical"} 0',
    )
  })
})

describe('what is read from Redis', () => {
  test('is shown whole: a reading that goes on changes nothing, what is gone from Redis is gone', async () => {
    const metrics = createMetrics()
    metrics.startAtZero(names)
    const removed = 'tocsin_dead_letters{sink="removed"}'
    const first = metrics.beginState()
    first.deadLetters.set({ sink: 'removed' }, 3)
    expect(await sample(metrics, removed)).toBeUndefined()
    first.publish(0)
    expect(await sample(metrics, removed)).toBe(3)
    const second = metrics.beginState()
    second.deadLetters.set({ sink: 'soc' }, 4)
    expect(await sample(metrics, removed)).toBe(3)
    second.publish(0)
    expect(await sample(metrics, removed)).toBeUndefined()
    expect(await sample(metrics, 'tocsin_dead_letters{sink="soc"}')).toBe(4)
  })

  test('has no sample where a 0 would be untrue, until it is set', async () => {
    const metrics = createMetrics()
    metrics.startAtZero(names)
    const series = 'tocsin_api_searches_remaining{account="main"}'
    metrics.beginState().publish(0)
    expect(await sample(metrics, series)).toBeUndefined()
    const state = metrics.beginState()
    state.apiSearchesRemaining.set({ account: 'main' }, 0)
    state.publish(0)
    expect(await sample(metrics, series)).toBe(0)
  })

  test('is left out while Redis is away, and local counters stay', async () => {
    const metrics = createMetrics()
    metrics.startAtZero(names)
    metrics.feedPollsTotal.inc({ feed: 'brand' })
    metrics.beginState().publish(0)
    const { body } = await metrics.render(false)
    expect(body).toContain('tocsin_redis_up 0')
    expect(body).toContain('tocsin_feed_polls_total{feed="brand"} 1')
    const shared = definitions.filter(([, { scope }]) => scope === 'shared')
    expect(shared.filter(([name]) => body.includes(`tocsin_${name}`))).toEqual([])
    expect(await sample(metrics, 'tocsin_redis_up')).toBe(1)
    expect(await sample(metrics, 'tocsin_dead_letters{sink="soc"}')).toBe(0)
  })

  test('says how old it is: since its reading began, before the first since the start', async () => {
    let now = 1_000_000
    const metrics = createMetrics({ clock: clockAt(() => now) })
    now += 7
    expect(await sample(metrics, 'tocsin_state_age_seconds')).toBe(7)
    metrics.beginState().publish((now - 2) * 1000)
    expect(await sample(metrics, 'tocsin_state_age_seconds')).toBe(2)
    now += 300
    expect(await sample(metrics, 'tocsin_state_age_seconds')).toBe(302)
  })

  test('a feed that a reload adds lags since then, and the others since the start', async () => {
    let now = 1_000_000
    const metrics = createMetrics({ clock: clockAt(() => now) })
    metrics.startAtZero(names)
    now += 3_600
    metrics.startAtZero({ ...names, feeds: [...names.feeds, 'added'] })
    now += 60
    metrics.beginState().publish(0)
    expect(await sample(metrics, 'tocsin_feed_lag_seconds{feed="brand"}')).toBe(3_660)
    expect(await sample(metrics, 'tocsin_feed_lag_seconds{feed="added"}')).toBe(60)
  })

  test('a name from the ledger cannot end its label', async () => {
    const metrics = createMetrics()
    const state = metrics.beginState()
    state.deadLetters.set({ sink: 'a"} 1\ntocsin_redis_up 0 \\' }, 2)
    state.publish(0)
    const line = 'tocsin_dead_letters{sink="a\\"} 1\\ntocsin_redis_up 0 \\\\"} 2'
    expect((await scrape(metrics)).split('\n')).toContain(line)
  })
})

describe('the number of series', () => {
  /** What 3,000 polls of a healthy feed, and deliveries to its sink, leave in a scrape. */
  async function seriesOf(counts: { feeds: number; sinks: number }): Promise<string[]> {
    const metrics = createMetrics()
    const [feeds, sinks] = [counts.feeds, counts.sinks].map((count, kind) =>
      Array.from({ length: count }, (_, index) => `${kind ? 'sink' : 'feed'}-${index}`),
    ) as [string[], string[]]
    metrics.startAtZero({ feeds, sinks, accounts: [], routes: [] })
    const state = metrics.beginState()
    for (const feed of feeds) {
      metrics.feedPollIntervalSeconds.set({ feed }, 60)
      metrics.feedLagObjectiveSeconds.set({ feed }, 300)
      metrics.feedRescanIntervalSeconds.set({ feed }, 3600)
      metrics.feedPagesTotal.inc({ feed })
      metrics.eventsDuplicateTotal.inc({ feed })
      metrics.eventsQuarantinedTotal.inc({ feed }, 0)
      metrics.eventsBaselineTotal.inc({ feed }, 0)
      metrics.eventsSeverityRaisedTotal.inc({ feed }, 0)
      metrics.eventsNewTotal.inc({ feed }, 5)
      metrics.eventMatchToFetchSeconds.observe(1)
      state.feedPaused.set({ feed, reason: 'operator' }, 0)
      state.feedBackfillInProgress.set({ feed }, 0)
    }
    for (const sink of sinks) {
      for (const outcome of ['delivered', 'timeout'] as const) {
        metrics.deliveryAttemptsTotal.inc({ sink, outcome })
      }
      metrics.deliveriesTotal.inc({ sink, outcome: 'delivered' })
      metrics.itemsSettledTotal.inc({ sink, outcome: 'delivered' })
      for (const severity of severities) {
        metrics.eventFetchToDeliverySeconds.observe({ audience: 'people', severity }, 1)
        metrics.suppressedTotal.inc({ sink, severity, reason: 'silence' })
      }
      for (const word of pendingStates) state.itemsPending.set({ sink, state: word }, 0)
      state.itemsPending.set({ sink, state: 'digest' }, 3)
    }
    state.publish(0)
    return (await scrape(metrics)).split('\n').filter((line) => line.startsWith('tocsin_'))
  }

  test('a feed costs at most 15 series, a sink at most 30', async () => {
    const none = (await seriesOf({ feeds: 0, sinks: 0 })).length
    const feed = (await seriesOf({ feeds: 1, sinks: 0 })).length - none
    const second = (await seriesOf({ feeds: 2, sinks: 0 })).length - none - feed
    expect(second).toBeLessThanOrEqual(15)
    expect(second).toBeGreaterThan(10)
    const sinks = (await seriesOf({ feeds: 0, sinks: 2 })).length
    const one = (await seriesOf({ feeds: 0, sinks: 1 })).length
    expect(sinks - one).toBeLessThanOrEqual(30)
    expect(sinks - one).toBeGreaterThan(10)
  })

  test('what is 0 or never happened is left out', async () => {
    const lines = await seriesOf({ feeds: 1, sinks: 1 })
    expect(lines).toContain('tocsin_events_new_total{feed="feed-0"} 5')
    expect(lines).toContain(
      'tocsin_event_fetch_to_delivery_seconds_count{audience="people",severity="high"} 1',
    )
    expect(lines).toContain('tocsin_items_pending{sink="sink-0",state="digest"} 3')
    expect(lines.filter((line) => line.includes('state="queued"'))).toEqual([])
    expect(lines.filter((line) => line.includes('tocsin_feed_paused'))).toEqual([])
    expect(lines.filter((line) => line.includes('tocsin_events_quarantined'))).toEqual([])
    expect(lines.filter((line) => line.includes('outcome="gone"'))).toEqual([])
  })
})

const renamed = { ...names, feeds: ['staff'], sinks: ['soc', 'extra'] }

test('when names change, what goes on keeps its counts, what is new starts at 0, what is gone disappears', async () => {
  const metrics = createMetrics()
  metrics.startAtZero(names)
  metrics.feedPollsTotal.inc({ feed: 'brand' }, 3)
  metrics.feedLagObjectiveSeconds.set({ feed: 'brand' }, 300)
  metrics.itemsCreatedTotal.inc({ sink: 'soc' }, 5)
  metrics.eventFetchToDeliverySeconds.observe({ audience: 'people', severity: 'high' }, 1)
  metrics.startAtZero(renamed)
  const { body } = await metrics.render()
  expect(body).not.toContain('feed="brand"')
  expect(body).toContain('tocsin_feed_polls_total{feed="staff"} 0')
  expect(body).toContain('tocsin_items_created_total{sink="soc"} 5')
  expect(body).toContain('tocsin_items_created_total{sink="extra"} 0')
  const count = 'tocsin_event_fetch_to_delivery_seconds_count'
  expect(body).toContain(`${count}{audience="people",severity="high"} 1`)
  expect(body).toContain(`${count}{audience="machines",severity="high"} 0`)
})

test('when a name is gone, what was read from Redis before goes too, until it is read again', async () => {
  const metrics = createMetrics()
  metrics.startAtZero(names)
  metrics.beginState().publish(0)
  metrics.startAtZero({ ...names, sinks: ['soc', 'extra'] })
  expect((await metrics.render()).body).toContain('tocsin_feed_lag_seconds{feed="brand"}')
  metrics.startAtZero(renamed)
  expect((await metrics.render()).body).not.toContain('feed="brand"')
  metrics.beginState().publish(0)
  expect((await metrics.render()).body).toContain('tocsin_feed_lag_seconds{feed="staff"}')
})
