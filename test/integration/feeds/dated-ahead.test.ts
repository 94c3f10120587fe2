/** A pretend service that shows events which are dated ahead of now, read over HTTP. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openFeed } from '../../../src/store/feed-state.ts'
import { aFeed } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const feed = aFeed()
/** Whether each event came as backlog. */
let told: boolean[] = []
let rig: FeedRig

beforeEach(async () => {
  told = []
  rig = await startFeedRig({
    tests,
    sandbox: { endMode: 'empty' },
    plan: (_event, _feed, { isBacklog }) => {
      told.push(isBacklog)
      const items = [{ sink: 'soc', destination: 'soc', routes: ['root'] }]
      return { decisions: [{ route: 'root', path: ['root'], why: [] }], items }
    },
  })
})

afterEach(() => rig.stop())

function addAhead(count: number, aheadMs = 14 * hourMs): void {
  rig.sandbox.addEvents(count, { createdAtMs: Date.now() + aheadMs })
}

const taken = async (): Promise<number> => (await rig.records()).size
const state = () => openFeed(rig.ledger, feed.name, feed.startMs)

test('a first scan takes in all of them as its backlog, and stays in front of them', async () => {
  rig.sandbox.addEvents(4)
  addAhead(45)
  await rig.toEnd(feed)
  expect(await taken()).toBe(49)
  expect(new Set(told)).toEqual(new Set([true]))
  expect(await state()).toMatchObject({ isBackfilling: false, scan: { cursor: null } })
  expect(rig.sandbox.violations().changedScans).toBe(0)
})

test('a poll takes one request more while a page does not hold them, and none otherwise', async () => {
  await rig.toEnd(feed)
  addAhead(25)
  await rig.toEnd(feed)
  expect(await taken()).toBe(25)
  rig.asked()
  const requests: number[] = []
  for (let poll = 0; poll < 4; poll += 1) {
    rig.sandbox.addEvents(1)
    await rig.toEnd(feed)
    requests.push(rig.asked().length)
  }
  expect(await taken()).toBe(29)
  expect(Math.max(...requests)).toBe(2)
})

test('what is dated now comes with the next poll, however many stand ahead', async () => {
  addAhead(25)
  await rig.toEnd(feed)
  for (let round = 1; round <= 3; round += 1) {
    rig.sandbox.addEvents(12)
    await rig.toEnd(feed)
    expect(await taken()).toBe(25 + 12 * round)
  }
  expect(rig.sandbox.violations().changedScans).toBe(0)
})
