/** A feed whose every page with items has a `next`, the last one too. */
import { expect, test } from 'vitest'
import { aFeed } from '../../support/feeds.ts'
import { startFeedRig } from '../../support/feed-rig.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

test('an empty page is asked for after a short one, until three have shown that it is the end', async () => {
  const rig = await startFeedRig({ tests, sandbox: { endMode: 'empty' } })
  const feed = aFeed()
  try {
    await rig.toEnd(feed)
    rig.asked()
    const requests: number[] = []
    for (let round = 0; round < 5; round += 1) {
      rig.sandbox.addEvents(2)
      await rig.toEnd(feed)
      requests.push(rig.asked().length)
    }
    expect(requests).toEqual([2, 2, 2, 1, 1])
    expect((await rig.records()).size).toBe(10)
  } finally {
    await rig.stop()
  }
})

test('a full page is followed, whatever was learned', async () => {
  const rig = await startFeedRig({ tests, sandbox: { endMode: 'empty' } })
  const feed = aFeed()
  try {
    await rig.toEnd(feed)
    for (let round = 0; round < 4; round += 1) {
      rig.sandbox.addEvents(2)
      await rig.toEnd(feed)
    }
    rig.asked()
    rig.sandbox.addEvents(12)
    await rig.toEnd(feed)
    expect(rig.asked()).toHaveLength(2)
    expect((await rig.records()).size).toBe(20)
  } finally {
    await rig.stop()
  }
})
