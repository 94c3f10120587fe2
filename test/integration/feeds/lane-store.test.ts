/** What one replica knows of a lane, and the next one takes over. */
import { expect, test } from 'vitest'
import { loadLane, newLane, saveLane } from '../../../src/feeds/lanes/lane-store.ts'
import { newFeedPlace, type FeedPlace } from '../../../src/feeds/lanes/next-feed.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const nowMs = Date.UTC(2026, 10, 1)
const lane = { organization: 'seven', tier: 'search' }
const wait = { untilMs: nowMs + 60_000, why: 'the service does not answer' }
const rescan = { atMs: nowMs + 90_000, failures: 1, pages: 12 }
const place: FeedPlace = {
  ...newFeedPlace(),
  readAtMs: nowMs,
  failures: 3,
  wait,
  events: 7,
  rescan,
}
const state = {
  fleet: { events: 7, watchedSeconds: 60, deviation: 2, expected: 3, atMs: nowMs },
  freeAtMs: nowMs + 1_000,
  rescansFreeAtMs: nowMs + 2_000,
}

async function saved(generation = 4) {
  const keys = tests.keys()
  await saveLane(tests.redis, keys, lane, { state, places: new Map([['a/b', place]]), generation })
  return {
    keys,
    name: keys.shared('lane', 'seven', 'search'),
    load: (as: number) =>
      loadLane(tests.redis, keys, lane, { generation: as, nowMs: nowMs + 5_000 }),
  }
}

test('what was noted is read as it was by its own configuration', async () => {
  const { load } = await saved()
  expect(await load(4)).toEqual({ state, places: new Map([['a/b', place]]) })
})

test('another configuration takes over what is known of a feed, and neither that it waits nor when it is read again', async () => {
  const { load } = await saved()
  const known = { ...place, wait: undefined, failures: 0, rescan: undefined }
  expect((await load(5)).places.get('a/b')).toEqual(known)
})

test('a lane that nobody has noted begins anew', async () => {
  const load = () => loadLane(tests.redis, tests.keys(), lane, { generation: 1, nowMs })
  expect(await load()).toEqual(newLane(nowMs))
  expect(newLane(nowMs).state).toMatchObject({ freeAtMs: 0, rescansFreeAtMs: 0 })
})

test('only what has changed is written, and a lane that nobody reads is forgotten after a week', async () => {
  const { keys, name, load } = await saved()
  const places = new Map([['a/c', newFeedPlace()]])
  await saveLane(tests.redis, keys, lane, { state, places, generation: 4 })
  expect([...(await load(4)).places.keys()].toSorted()).toEqual(['a/b', 'a/c'])
  const leftMs = await tests.redis.pttl(name)
  expect(leftMs).toBeGreaterThan(7 * 86_400_000 - 60_000)
  expect(leftMs).toBeLessThanOrEqual(7 * 86_400_000)
})
