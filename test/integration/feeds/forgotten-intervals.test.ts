/** Feeds that keep an interval, where nobody remembers when they were last read. */
import { expect, test } from 'vitest'
import { rewindFeed } from '../../../src/store/feed-state.ts'
import { anEventSearch, aFeed } from '../../support/feeds.ts'
import { startFeedRig } from '../../support/feed-rig.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000

test('a feed that costs quota is not asked early: its ledger says when it was read', async () => {
  const rig = await startFeedRig({ tests })
  const feed = anEventSearch({ everyMs: hourMs })
  try {
    await rig.toEnd(feed)
    rig.asked()
    const outcome = await rig.turn(feed, 'feed', { isForgotten: true })
    expect(outcome.status).toBe('not_due')
    const waitMs = (outcome as { untilMs: number }).untilMs - Date.now()
    expect(waitMs).toBeGreaterThan(hourMs - 60_000)
    expect(waitMs).toBeLessThanOrEqual(hourMs)
    const { readAtMs } = outcome as { readAtMs: number }
    expect(Math.abs(readAtMs + hourMs - (outcome as { untilMs: number }).untilMs)).toBeLessThan(1)
    expect(rig.asked()).toHaveLength(0)
    await rewindFeed(rig.ledger, feed.name, Date.now() - hourMs)
    await rig.turn(feed, 'feed', { isForgotten: true })
    expect(rig.asked().length).toBeGreaterThan(0)
  } finally {
    await rig.stop()
  }
})

test('a feed without an interval is read at once, whatever its ledger says', async () => {
  const rig = await startFeedRig({ tests })
  try {
    await rig.toEnd(aFeed())
    expect(await rig.turn(aFeed(), 'feed', { isForgotten: true })).toEqual({ status: 'caught_up' })
  } finally {
    await rig.stop()
  }
})
