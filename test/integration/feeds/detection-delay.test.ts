/** Between what the waiting of new events lies, as the metrics say it. */
import { callInstead } from '../../support/call.ts'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { aFeed } from '../../support/feeds.ts'
import { scraped, startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
let rig: FeedRig

afterEach(() => rig.stop())

/** How many events were observed, and how many of them with up to so many seconds. */
async function observed(bound: 'lower' | 'upper', ...buckets: number[]): Promise<number[]> {
  const name = `event_detection_${bound}_bound_seconds`
  const series = buckets.map((le) => `${name}_bucket{le="${le}"}`)
  return Promise.all([`${name}_count`, ...series].map((one) => scraped(rig.metrics, one)))
}

/** The feed was last read to its end so long ago. */
async function readBefore(ms: number): Promise<void> {
  await tests.redis.hset(rig.ledger.key('feed', 'brand'), 'caught_up', Date.now() - ms)
}

test('each new event of a tail has waited between its own request and the one that read to the end before', async () => {
  let aheadMs = 0
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs }
  rig = await startFeedRig({ tests, clock })
  const { client } = rig.replica
  client.call = callInstead(client.call, 'events.search-group', async (_request, _asked, ask) => {
    const answer: unknown = await ask()
    aheadMs += 7_000 // until it is taken in
    return answer
  })
  rig.sandbox.addEvents(3)
  await rig.turn(aFeed())
  expect(await observed('lower')).toEqual([0]) // nobody knows how long they had been there
  expect(await observed('upper')).toEqual([0])
  await rig.toEnd(aFeed())
  await readBefore(40_000)
  rig.sandbox.addEvents(2)
  await rig.turn(aFeed())
  expect(await observed('lower', 5, 10)).toEqual([2, 0, 2])
  expect(await observed('upper', 30, 60)).toEqual([2, 0, 2])
})

test('what a rescan finds had its turn before, and is not among them', async () => {
  rig = await startFeedRig({ tests })
  const feed = aFeed({ rescan: { everyMs: 1, backMs: 86_400_000 } })
  rig.sandbox.addEvents(3)
  await rig.toEnd(feed)
  rig.sandbox.addEvent({ createdAtMs: Date.now() - 3_600_000 })
  await rig.toEnd(feed, 'rescan')
  expect(await scraped(rig.metrics, 'rescan_late_events_total{feed="brand"}')).toBe(1)
  expect(await observed('upper')).toEqual([0])
})
