import { callInstead } from '../../support/call.ts'
import { afterEach, expect, test } from 'vitest'
import { createCapabilities } from '../../../src/upstream/capabilities.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { UpstreamError, type UpstreamReason } from '../../../src/upstream/error.ts'
import type { MaterializedFilter } from '../../../src/sandbox/options.ts'
import { aFeed } from '../../support/feeds.ts'
import { scraped, startFeedRig, type FeedRig, type FeedRigOptions } from '../../support/feed-rig.ts'
import { redisForTests, silent } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const startMs = dayMs
const name = 'materialized_at events'
const feed = aFeed({ startMs, sweep: { everyMs: undefined, backMs: 7 * dayMs } })

let rig: FeedRig
const memory = () =>
  createCapabilities({
    redis: tests.redis,
    keys: tests.keys(),
    clock: systemClock,
    logger: silent,
    keyFingerprint: () => 'rig',
    account: 'main',
  })

async function begin(
  materializedFilter: MaterializedFilter,
  { clock, sandbox }: Pick<FeedRigOptions, 'clock' | 'sandbox'> = {},
) {
  const capabilities = memory()
  rig = await startFeedRig({
    tests,
    sandbox: { endMode: 'empty', materializedFilter, ...sandbox },
    clock,
    capabilities: () => capabilities,
  })
  rig.sandbox.addEvents(5, { createdAtMs: Date.now() - 2 * hourMs })
  await rig.toEnd(feed)
  rig.asked()
  return capabilities
}

afterEach(() => rig.stop())

test.each([
  ['honoured', true],
  ['ignored', false],
  ['refused', false],
  ['empty', false],
] as const)(
  'whether a service filters by match time is asked once, and the answer is remembered: %s',
  async (manner, has) => {
    const capabilities = await begin(manner)
    expect(await rig.turn(feed, 'sweep')).toMatchObject({ status: 'not_due' })
    expect((await capabilities.read(name))?.has).toBe(has)
    rig.asked()
    await rig.turn(feed, 'sweep')
    expect(rig.asked()).toEqual([])
    const { rescans } = await openFeed(rig.ledger, 'brand', startMs)
    expect(rescans.matched !== undefined).toBe(has)
  },
)

test('what matches late is told, however old it is, and once: old matches of a new identifier too', async () => {
  await begin('honoured')
  const arrivedAtMs = Date.now() - 120_000 // windows end a minute before now
  const old = rig.sandbox.addEvents(12, { createdAtMs: Date.now() - 400 * dayMs, arrivedAtMs })
  await rig.turn(feed, 'sweep')
  const last = rig.sandbox.addEvent({ createdAtMs: Date.now() - 3 * hourMs, arrivedAtMs })
  await rig.turn(feed, 'sweep')
  expect([...(await rig.records()).keys()]).not.toContain(last.uid) // no window is due yet
  await tests.redis.hset(
    rig.ledger.key('feed', 'brand'),
    'matched',
    await matchedBefore(2 * hourMs),
  )
  await rig.turn(feed, 'sweep')
  const known = await rig.records()
  for (const { uid } of [...old, last])
    expect([uid, known.get(uid)?.items.length]).toEqual([uid, 1])
  await tests.redis.hset(
    rig.ledger.key('feed', 'brand'),
    'matched',
    await matchedBefore(2 * hourMs),
  )
  await rig.turn(feed, 'sweep')
  expect([...(await rig.records()).values()].every(({ items }) => items.length === 1)).toBe(true)
})

/** As if the feed had been read by match time up to so long ago. */
async function matchedBefore(agoMs: number): Promise<string> {
  const { scan: walk } = await openFeed(rig.ledger, 'brand', startMs)
  return JSON.stringify({ fingerprint: walk?.fingerprint, toMs: Date.now() - agoMs })
}

test('an event that match time should have shown and did not takes the filter back, loudly', async () => {
  const capabilities = await begin('honoured')
  await rig.turn(feed, 'sweep')
  const key = rig.ledger.key('feed', 'brand')
  // it was matched within what was read by match time, and only a scan of the whole window shows it
  await tests.redis.hset(key, 'matched', await matchedBefore(-hourMs))
  const missed = rig.sandbox.addEvent({
    createdAtMs: Date.now() - 2 * hourMs,
    matchedAtMs: Date.now() - hourMs,
  })
  await rig.toEnd(aFeed({ startMs, sweep: { everyMs: 1, backMs: 7 * dayMs } }), 'sweep')
  expect([...(await rig.records()).keys()]).toContain(missed.uid)
  expect((await capabilities.read(name))?.has).toBe(false)
  expect(await scraped(rig.metrics, 'match_time_doubted_total{feed="brand"}')).toBe(1)
})

test('an event that comes into the feed later, as by a raised severity, takes nothing back', async () => {
  const capabilities = await begin('honoured')
  await rig.turn(feed, 'sweep')
  await tests.redis.hset(rig.ledger.key('feed', 'brand'), 'matched', await matchedBefore(-hourMs))
  const matchedAtMs = Date.now() - hourMs
  const given = { createdAtMs: matchedAtMs, arrivedAtMs: matchedAtMs, matchedAtMs }
  const raised = rig.sandbox.addEvent(given)
  await rig.toEnd(aFeed({ startMs, sweep: { everyMs: 1, backMs: 7 * dayMs } }), 'sweep')
  expect([...(await rig.records()).keys()]).toContain(raised.uid)
  expect((await capabilities.read(name))?.has).toBe(true)
  expect(await scraped(rig.metrics, 'match_time_doubted_total{feed="brand"}')).toBe(0)
})

/** From now on every request that filters by match time fails so. */
function failMatched(reason: UpstreamReason, status?: number): void {
  const { client } = rig.replica
  client.call = callInstead(client.call, 'events.search-group', (request, _asked, ask) => {
    if (!JSON.stringify(request).includes('materialized_at')) return ask()
    return Promise.reject(new UpstreamError(reason, 'no', { status }))
  })
}

/** From now on a request for what is to be matched some time is refused. */
function refuseFuture(): void {
  const { client } = rig.replica
  client.call = callInstead(
    client.call,
    'events.search-group',
    ({ filters }: { filters?: Record<string, { gte?: string }> }, _asked, ask) =>
      Date.parse(filters?.['materialized_at']?.gte ?? '') > Date.now()
        ? Promise.reject(new UpstreamError('rejected', 'no', { status: 422 }))
        : ask(),
  )
}

/** The shortest window of the ladder is due; resolves with an event that only a rescan shows. */
async function aLateEvent(): Promise<string> {
  await tests.redis.hset(rig.ledger.key('feed', 'brand'), 'rung:0', '1')
  return rig.sandbox.addEvent({ createdAtMs: Date.now() - 120_000 }).uid
}

test.each([
  ['fails (500)', 'unavailable', 500],
  ['answers nonsense', 'contract', undefined],
  ['does not find the group any more (404)', 'rejected', 404],
] as const)(
  'late events are found by the ladder while the question about match time %s, which settles nothing',
  async (_manner, reason, status) => {
    const capabilities = await begin('honoured')
    failMatched(reason, status)
    const late = await aLateEvent()
    await rig.turn(feed, 'sweep')
    expect([...(await rig.records()).keys()]).toContain(late)
    expect(await capabilities.read(name)).toBeUndefined()
  },
)

test('late events are found by the ladder when a service that filtered by match time refuses to', async () => {
  await begin('honoured')
  await rig.turn(feed, 'sweep')
  failMatched('rejected', 422)
  await tests.redis.hset(
    rig.ledger.key('feed', 'brand'),
    'matched',
    await matchedBefore(2 * hourMs),
  )
  const late = await aLateEvent()
  await rig.turn(feed, 'sweep')
  await rig.turn(feed, 'sweep')
  expect([...(await rig.records()).keys()]).toContain(late)
})

test.each([
  ['shows all', () => undefined],
  ['refuses', refuseFuture],
])(
  'a filter that works no more brings nothing from below the start bound, and is taken back, where a window in the future %s',
  async (_manner, answerFuture) => {
    const capabilities = await begin('ignored')
    answerFuture()
    const old = rig.sandbox.addEvents(25, {
      createdAtMs: Date.now() - 30 * dayMs,
      arrivedAtMs: Date.now() - 30 * dayMs,
    })
    await capabilities.note(name, true) // as it was before
    await rig.turn(feed, 'sweep')
    const known = await rig.records()
    expect(old.filter(({ uid }) => known.has(uid))).toEqual([])
    expect((await capabilities.read(name))?.has).toBe(false)
    expect(await scraped(rig.metrics, 'match_time_doubted_total{feed="brand"}')).toBe(1)
    expect((await openFeed(rig.ledger, 'brand', startMs)).rescans.matched).toBeUndefined()
  },
)

test('what is matched while this machine’s clock is ahead is found all the same', async () => {
  const clock = { ...systemClock }
  await begin('honoured', { clock })
  await rig.turn(feed, 'sweep')
  const before = (await openFeed(rig.ledger, 'brand', startMs)).rescans.matched!
  clock.now = () => Date.now() + 2 * hourMs
  await rig.turn(feed, 'sweep')
  const after = (await openFeed(rig.ledger, 'brand', startMs)).rescans.matched!
  expect(after.toMs - before.toMs).toBeLessThan(60_000)
})
