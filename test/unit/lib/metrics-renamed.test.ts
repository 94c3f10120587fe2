import { expect, test } from 'vitest'
import { createMetrics } from '../../../src/lib/metrics.ts'

const names = { feeds: ['brand'], sinks: ['soc'], accounts: ['main'], routes: ['root'] }
const renamed = { ...names, feeds: ['staff'], sinks: ['soc', 'extra'] }

test('when names change, what goes on keeps its counts, what is new starts at 0, what is gone disappears', async () => {
  const metrics = createMetrics()
  metrics.startAtZero(names)
  metrics.feedPollsTotal.inc({ feed: 'brand' }, 3)
  metrics.feedLagObjectiveSeconds.set({ feed: 'brand' }, 300)
  metrics.eventMatchToFetchSeconds.observe({ feed: 'brand' }, 1)
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
