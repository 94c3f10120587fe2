/** Whose waiting the metrics count. */
import { afterEach, expect, test } from 'vitest'
import { aFeed } from '../../support/feeds.ts'
import { scraped, startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
let rig: FeedRig

afterEach(() => rig.stop())

test('what the tail finds new after its first end has waited, and what a rescan finds has not', async () => {
  rig = await startFeedRig({ tests })
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 86_400_000 } })
  const waited = () => scraped(rig.metrics, 'event_detection_upper_bound_seconds_count')
  rig.sandbox.addEvents(3)
  await rig.toEnd(feed)
  rig.sandbox.addEvent({ createdAtMs: Date.now() - 3_600_000 })
  await rig.toEnd(feed, 'rescan')
  expect(await scraped(rig.metrics, 'rescan_late_events_total{feed="brand"}')).toBe(1)
  expect(await waited()).toBe(0)
  rig.sandbox.addEvents(2)
  await rig.turn(feed)
  expect(await waited()).toBe(2)
})
