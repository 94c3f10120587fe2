import { afterEach, expect, test } from 'vitest'
import { createCapabilities } from '../../../src/upstream/access/capabilities.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import type { MaterializedFilter } from '../../../src/sandbox/options.ts'
import { aFeed } from '../../support/feeds.ts'
import { scraped, startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { redisForTests, silent } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const startMs = dayMs
const name = 'materialized_at events'
const feed = aFeed({ startMs, rescan: { everyMs: undefined, backMs: 7 * dayMs } })

let rig: FeedRig
let keys: Keys
function memory() {
  keys = tests.keys()
  const { redis } = tests
  return createCapabilities({
    redis,
    keys,
    logger: silent,
    keyFingerprint: () => 'rig',
    account: 'main',
  })
}

async function begin(materializedFilter: MaterializedFilter) {
  const capabilities = memory()
  rig = await startFeedRig({
    tests,
    sandbox: { endMode: 'empty', materializedFilter },
    capabilities,
  })
  rig.sandbox.addEvents(5, { createdAtMs: Date.now() - 2 * hourMs })
  await rig.toEnd(feed)
  rig.asked()
  return capabilities
}

async function expectRefusedForADay(): Promise<void> {
  const leftMs = await tests.redis.pttl(keys.shared('capability', 'rig', name))
  expect(leftMs).toBeGreaterThan(dayMs - hourMs)
  expect(leftMs).toBeLessThanOrEqual(dayMs)
}

afterEach(() => rig.stop())

test.each([
  ['honoured', false],
  ['refused', true],
] as const)(
  'the filter is used at once, and not for a day where it is %s: %s',
  async (...given) => {
    const [manner, isRefused] = given
    const capabilities = await begin(manner)
    await rig.turn(feed, 'rescan')
    expect(await capabilities.isRefused(name)).toBe(isRefused)
    await rig.turn(feed, 'rescan')
    rig.asked()
    await rig.turn(feed, 'rescan')
    expect(rig.asked()).toEqual([])
    const { rescans } = await openFeed(rig.ledger, 'brand', startMs)
    expect(rescans.matched !== undefined).toBe(!isRefused)
    if (isRefused) await expectRefusedForADay()
  },
)

test('what matches late is told, however old it is, and once: old matches of a new identifier too', async () => {
  await begin('honoured')
  const arrivedAtMs = Date.now() - 120_000 // windows end a minute before now
  const matched = { arrivedAtMs, matchedAtMs: arrivedAtMs }
  const old = rig.sandbox.addEvents(12, { createdAtMs: Date.now() - 400 * dayMs, ...matched })
  await rig.turn(feed, 'rescan')
  const last = rig.sandbox.addEvent({ createdAtMs: Date.now() - 3 * hourMs, arrivedAtMs })
  await rig.turn(feed, 'rescan')
  expect([...(await rig.records()).keys()]).not.toContain(last.uid) // no window is due yet
  await tests.redis.hset(
    rig.ledger.key('feed', 'brand'),
    'matched',
    await matchedBefore(2 * hourMs),
  )
  await rig.turn(feed, 'rescan')
  const known = await rig.records()
  for (const { uid } of [...old, last])
    expect([uid, known.get(uid)?.items.length]).toEqual([uid, 1])
  await tests.redis.hset(
    rig.ledger.key('feed', 'brand'),
    'matched',
    await matchedBefore(2 * hourMs),
  )
  await rig.turn(feed, 'rescan')
  expect([...(await rig.records()).values()].every(({ items }) => items.length === 1)).toBe(true)
})

/** As if the feed had been read by match time up to so long ago. */
async function matchedBefore(agoMs: number): Promise<string> {
  const { scan: walk } = await openFeed(rig.ledger, 'brand', startMs)
  return JSON.stringify({ fingerprint: walk?.fingerprint, toMs: Date.now() - agoMs })
}

test('an event that match time should have shown and did not takes the filter back, loudly', async () => {
  const capabilities = await begin('honoured')
  await rig.turn(feed, 'rescan')
  const key = rig.ledger.key('feed', 'brand')
  // it was matched within what was read by match time, and only a scan of the whole window shows it
  await tests.redis.hset(key, 'matched', await matchedBefore(-hourMs))
  const missed = rig.sandbox.addEvent({
    createdAtMs: Date.now() - 2 * hourMs,
    matchedAtMs: Date.now() - hourMs,
  })
  await rig.toEnd(aFeed({ startMs, rescan: { everyMs: 1, backMs: 7 * dayMs } }), 'rescan')
  expect([...(await rig.records()).keys()]).toContain(missed.uid)
  expect(await capabilities.isRefused(name)).toBe(true)
  expect(await scraped(rig.metrics, 'match_time_doubted_total{feed="brand"}')).toBe(1)
})

test('a filter that works no more brings nothing from below the start bound', async () => {
  const capabilities = await begin('ignored')
  const old = rig.sandbox.addEvents(25, {
    createdAtMs: Date.now() - 30 * dayMs,
    arrivedAtMs: Date.now() - 30 * dayMs,
  })
  await rig.turn(feed, 'rescan')
  const known = await rig.records()
  expect(old.filter(({ uid }) => known.has(uid))).toEqual([])
  expect(await capabilities.isRefused(name)).toBe(true)
  expect(await scraped(rig.metrics, 'match_time_doubted_total{feed="brand"}')).toBe(1)
  expect((await openFeed(rig.ledger, 'brand', startMs)).rescans.matched).toBeUndefined()
})
