import { afterEach, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { openFeed } from '../../../src/ledger/feed-state.ts'
import { aCredentialSearch } from '../../support/feeds.ts'
import { scraped, startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import { until } from '../../support/rehearsal.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const feed = aCredentialSearch({ startMs: 4 * dayMs, sweep: { everyMs: 1, backMs: 7 * dayMs } })

let rig: FeedRig

async function begin(sandbox: SandboxOptions = {}): Promise<FeedRig> {
  rig = await startFeedRig({ tests, sandbox })
  return rig
}

afterEach(() => rig.stop())

function add(count: number, importedAtMs = Date.now()): void {
  rig.sandbox.addCredentials(count, { importedAtMs, domain: 'example.com' })
}

function sizes(): number[] {
  return rig.asked().map(({ body }) => (body as { size: number }).size)
}

async function known(): Promise<number> {
  return (await rig.records()).size
}

test('pages for which the gateway gives up are halved until they come, and stay small for a day', async () => {
  await begin({ credentialSizeLimit: 30 })
  add(60)
  await rig.toEnd(feed)
  expect(sizes()).toEqual([100, 50, 25, 25, 25])
  expect((await openFeed(rig.book, 'leaks', 0)).walk?.reason).toBe('page_size_changed')
  const resets = 'feed_cursor_resets_total{feed="leaks",reason="page_size_changed"}'
  expect(await scraped(rig.metrics, resets)).toBe(1)
  add(3)
  await rig.toEnd(feed)
  expect(sizes()).toEqual([25])
  expect(await known()).toBe(63)
  expect(rig.sandbox.violations().changedWalks).toBe(0)
  await expectConservation(rig.book)
})

test('a sweep asks for no more at once than the gateway bore, and still knows what is late', async () => {
  await begin({ credentialSizeLimit: 30 })
  add(40)
  await rig.toEnd(feed)
  add(4, Date.now() - 2 * dayMs)
  sizes()
  await rig.toEnd(feed, 'sweep')
  expect(sizes()).toEqual([25, 25])
  const { feeds } = await expectConservation(rig.book)
  expect(feeds['leaks']).toMatchObject({ new: 44, late: 4 })
})

test('a gateway that gives up on the smallest page too is a failure that moves nothing', async () => {
  await begin({ credentialSizeLimit: 5 })
  add(3)
  expect(await rig.turn(feed)).toMatchObject({ status: 'failed', reason: 'unavailable' })
  expect(sizes()).toEqual([100, 50, 25, 10])
  expect((await openFeed(rig.book, 'leaks', 0)).walk).toBeUndefined()
})

test.each([true, false])(
  'older ones than the start are never sent, whether the server heeds the times (%s) or not',
  async (filtersImportedAt) => {
    await begin({ filtersImportedAt })
    add(30, Date.now() - 10 * dayMs)
    add(20)
    await rig.toEnd(feed)
    await rig.toEnd(feed, 'sweep')
    expect(await known()).toBe(20)
    const { feeds, sinks } = await expectConservation(rig.book)
    expect(feeds['leaks']).toMatchObject({ new: 20, baseline: filtersImportedAt ? 0 : 30 })
    expect(sinks['soc']?.created).toBe(20)
  },
)

test('where the reserve is reached nothing is asked, and after a day one search asks again', async () => {
  await begin({ searchQuota: { prefix: 'X-Any-', searches: 3 } })
  const careful = { ...feed, quotaReserve: 2 }
  add(5)
  await rig.toEnd(careful)
  await until('the quota was noted', async () => (await rig.quota())?.remaining === 2)
  add(5)
  rig.asked()
  expect(await rig.turn(careful)).toEqual({ status: 'quota' })
  expect(await rig.turn(careful, 'sweep')).toEqual({ status: 'quota' })
  expect(rig.asked()).toEqual([])
  expect(await rig.turn(feed)).toEqual({ status: 'caught_up' })

  add(5)
  await rig.setQuota({ remaining: 2, atMs: Date.now() - dayMs + 60_000 })
  expect(await rig.turn(careful)).toEqual({ status: 'quota' })
  await rig.setQuota({ remaining: 2, atMs: Date.now() - dayMs })
  await rig.toEnd(careful)
  expect(await known()).toBe(15)
})
