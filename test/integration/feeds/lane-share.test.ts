/** What lanes ask of the service and of Redis, counted over hours that pass in moments. */
import { expect, test } from 'vitest'
import type { PolledFeed } from '../../../src/feeds/types/polled-feed.ts'
import { createLaneReader, type LaneLimit, type LaneReader } from '../../../src/feeds/lanes/lane.ts'
import { newLane, saveLane } from '../../../src/feeds/lanes/lane-store.ts'
import { expectIntervals, newFeedPlace } from '../../../src/feeds/lanes/next-feed.ts'
import type { PollOutcome, PollRequest } from '../../../src/feeds/poll-run.ts'
import { type Clock, defaultTimings } from '../../../src/lib/clock.ts'
import type { Redis } from '../../../src/redis/client.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { aFeed, anEventSearch } from '../../support/feeds.ts'
import { redisForTests, silent } from '../../support/ledger.ts'
import { createQuickClock, type QuickClock } from '../../support/quick-clock.ts'

const tests = redisForTests()
const hourMs = 3_600_000

function aQuickClock(): QuickClock {
  return createQuickClock(async () => {
    do {
      await tests.redis.ping() // what was asked of Redis before is answered
      await new Promise((resolve) => setImmediate(resolve))
    } while ((tests.redis as Redis & { commandQueue: { length: number } }).commandQueue.length > 0)
  })
}

interface Asked {
  feed: PolledFeed
  kind: PollRequest['kind']
  atMs: number
}

type Rescanning = (feed: PolledFeed, nowMs: number) => Promise<PollOutcome> | undefined

/** Answers each request after 0.1 s; rescans never end, but for what a test says. */
function aService(clock: Clock, rescan: Rescanning = () => undefined) {
  const requests: Asked[] = []
  const looks: Asked[] = []
  const changed = new Set<string>()
  async function pollOnce(feed: PolledFeed, asked: PollRequest): Promise<PollOutcome> {
    const { kind, onSlot, onPage, mayContinue: goesOn } = asked
    if (kind === 'rescan') {
      looks.push({ feed, kind, atMs: clock.now() })
      const outcome = await rescan(feed, clock.now())
      if (outcome) return outcome
    }
    for (let pages = 1; ; pages += 1) {
      onSlot?.()
      requests.push({ feed, kind, atMs: clock.now() })
      await clock.sleep(100)
      const hasMore = kind === 'rescan'
      const isNewScan = changed.delete(feed.name)
      onPage?.({ newEvents: 0, urgentEvents: 0, hasMore, isBacklog: false, isNewScan })
      if (!hasMore) return { status: 'caught_up' }
      if (!(await goesOn?.(pages))) return { status: 'more' }
    }
  }
  return { requests, looks, changed, pollOnce }
}

function laneOf({ account }: Pick<PolledFeed, 'account'>): LaneLimit {
  return { id: account, organization: account, tier: 'search', perSecond: 1, share: 0.7 }
}

function readerOf(
  feeds: PolledFeed[],
  {
    clock,
    keys,
    service,
    of = laneOf,
  }: {
    clock: Clock
    keys: Keys
    service: ReturnType<typeof aService>
    /** The lane of a feed. */
    of?: (feed: PolledFeed) => LaneLimit
  },
): LaneReader {
  return createLaneReader({
    feeds,
    poller: service,
    laneFor: of,
    lanesVersion: () => of(feeds[0]!).id.length,
    generation: () => 1,
    redis: tests.redis,
    keys,
    clock,
    logger: silent,
    timings: defaultTimings,
  })
}

function feedsOf(account: string, count: number): PolledFeed[] {
  return Array.from({ length: count }, (_none, at) =>
    aFeed({ account, name: `${account}-${at}`, longestMs: undefined }),
  )
}

/** Each lane in turns of half a minute, for so long. */
async function readFor(reader: LaneReader, clock: Clock, ms: number): Promise<void> {
  const endMs = clock.now() + ms
  async function readLane(lane: LaneLimit): Promise<void> {
    while (clock.now() < endMs) {
      const turnEndsMs = clock.now() + 30_000
      await reader.hold(lane, () => clock.now() >= turnEndsMs)
    }
  }
  await Promise.all([...reader.lanes().values()].map(({ limit }) => readLane(limit)))
}

test('tails and rescans together keep the share of each organization, and no feed waits longer than 1.5 × N ÷ R', async () => {
  const { clock, run } = aQuickClock()
  const service = aService(clock)
  const feeds = [...feedsOf('small', 5), ...feedsOf('large', 60)]
  const reader = readerOf(feeds, { clock, keys: tests.keys(), service })
  const startMs = clock.now()
  await run(readFor(reader, clock, hourMs / 3))
  for (const account of ['small', 'large']) {
    const names = feeds.filter((feed) => feed.account === account).map(({ name }) => name)
    const boundMs = (1.5 * names.length * 1000) / 0.7
    expect(longestGapMs(service.requests, names, startMs)).toBeLessThanOrEqual(boundMs)
    const own = service.requests.filter(({ feed }) => feed.account === account)
    const rescans = own.filter(({ kind }) => kind === 'rescan')
    expect(own.length).toBeLessThanOrEqual(0.7 * 1_200 + 2)
    expect(own.length).toBeGreaterThan(0.9 * 0.7 * 1_200) // the end of a turn costs a slot
    expect(rescans.length).toBeLessThanOrEqual(0.07 * 1_200 + 2)
    expect(rescans.length).toBeGreaterThan(0.9 * 0.07 * 1_200)
  }
})

test('rescans take what the tails leave of the share, and no more', async () => {
  const { clock, run } = aQuickClock()
  const service = aService(clock)
  const reader = readerOf(feedsOf('main', 1), { clock, keys: tests.keys(), service })
  await run(readFor(reader, clock, hourMs))
  const tails = service.requests.filter(({ kind }) => kind === 'feed')
  expect(service.requests.length).toBeLessThanOrEqual(0.7 * 3_600 + 2)
  expect(service.requests.length).toBeGreaterThan(0.9 * 0.7 * 3_600)
  expect(tails.length).toBeGreaterThan(550) // every 5 s, and up to a slot of 1.4 s that it waits for
})

test('rescans go on at their pace after a replica whose clock was hours ahead', async () => {
  const { clock, run } = aQuickClock()
  const keys = tests.keys()
  const feeds = feedsOf('main', 20)
  const lane = laneOf(feeds[0]!)
  const { state } = newLane(clock.now())
  const ahead = { ...state, rescansFreeAtMs: clock.now() + 3 * hourMs }
  await saveLane(tests.redis, keys, lane, { state: ahead, places: new Map(), generation: 1 })
  const service = aService(clock)
  await run(readFor(readerOf(feeds, { clock, keys, service }), clock, 10 * 60_000))
  const kinds = service.requests.map(({ kind }) => kind)
  const rescans = kinds.filter((kind) => kind === 'rescan').length
  expect(rescans / kinds.length).toBeGreaterThan(0.08)
})

test('rescans are looked for when they are due, not before, and the next replica knows when', async () => {
  const { clock, run } = aQuickClock()
  const beginMs = clock.now()
  const dueMs = beginMs + 4 * 60_000
  const service = aService(clock, (_feed, nowMs) =>
    Promise.resolve({ status: 'not_due', untilMs: nowMs < dueMs ? dueMs : nowMs + hourMs }),
  )
  const feeds = feedsOf('main', 50)
  const keys = tests.keys()
  const [first, second] = [0, 1].map(() => readerOf(feeds, { clock, keys, service }))
  await run(readFor(first!, clock, 2 * 60_000))
  await run(readFor(second!, clock, 4 * 60_000))
  const times = service.looks.map(({ atMs }) => (atMs - beginMs) / 60_000)
  expect(times.filter((minutes) => minutes < 1)).toHaveLength(50)
  const later = times.filter((minutes) => minutes >= 1)
  expect(later).toHaveLength(50)
  for (const minutes of later) expect(minutes).toBeCloseTo(4, 0)
})

/** Notes for the next holder of a feed's lane when the feed was read. */
async function noteRead(feed: PolledFeed, keys: Keys, readAtMs: number): Promise<void> {
  const read = { ...newFeedPlace(), readAtMs, askedAtMs: readAtMs }
  const places = new Map([[`main/${feed.name}`, read]])
  const { state } = newLane(readAtMs)
  await saveLane(tests.redis, keys, laneOf(feed), { state, places, generation: 1 })
}

test('what an answer says that comes after the hold reaches the next replica', async () => {
  const { clock, run } = aQuickClock()
  const keys = tests.keys()
  const feed = { ...feedsOf('main', 1)[0]!, rescan: undefined }
  const late = async (_feed: PolledFeed, { onSlot }: PollRequest): Promise<PollOutcome> => {
    onSlot?.()
    await clock.sleep(20_000)
    return { status: 'failed', reason: 'unavailable', retryAfterMs: 600_000 }
  }
  const first = readerOf([feed], { clock, keys, service: { ...aService(clock), pollOnce: late } })
  const endMs = clock.now() + 5_000
  await run(first.hold(laneOf(feed), () => clock.now() >= endMs))
  await run(clock.sleep(30_000))
  const service = aService(clock)
  await run(readFor(readerOf([feed], { clock, keys, service }), clock, 60_000))
  expect(service.requests).toEqual([])
})

test.each([
  ['was read an hour ago', hourMs],
  ['was never read', undefined],
])('a feed that costs quota and %s is asked once while its answer is out', async (_what, agoMs) => {
  const { clock, run } = aQuickClock()
  const usual = aService(clock)
  const feed = anEventSearch({ account: 'main', everyMs: hourMs, rescan: undefined })
  const keys = tests.keys()
  const asked: { by: string; atMs: number }[] = []
  function aReplica(by: string): LaneReader {
    function pollOnce(_feed: PolledFeed, turn: PollRequest): Promise<PollOutcome> {
      asked.push({ by, atMs: clock.now() })
      turn.onSlot?.()
      return new Promise(() => {})
    }
    return readerOf([feed], { clock, keys, service: { ...usual, pollOnce } })
  }
  async function holdFor(reader: LaneReader, ms: number): Promise<void> {
    const endMs = clock.now() + ms
    await run(reader.hold(laneOf(feed), () => clock.now() >= endMs))
  }
  if (agoMs !== undefined) await noteRead(feed, keys, clock.now() - agoMs)
  await holdFor(aReplica('first'), 5_000)
  const second = aReplica('second')
  await holdFor(second, hourMs - 10_000)
  expect(asked.map(({ by }) => by)).toEqual(['first'])
  await holdFor(second, 20_000)
  expect(asked[1]).toMatchObject({ by: 'second' })
  expect(asked[1]!.atMs - asked[0]!.atMs).toBeGreaterThanOrEqual(hourMs)
})

test('a poll that takes nothing in leaves its feed due', async () => {
  const { clock, run } = aQuickClock()
  const feed = anEventSearch({ account: 'main', everyMs: hourMs, rescan: undefined })
  const keys = tests.keys()
  await noteRead(feed, keys, clock.now() - hourMs)
  async function pollOnce(_feed: PolledFeed, turn: PollRequest): Promise<PollOutcome> {
    turn.onSlot?.()
    await clock.sleep(100)
    return { status: 'stopped' }
  }
  const stopping = { ...aService(clock), pollOnce }
  const endMs = clock.now() + 1_000
  const first = readerOf([feed], { clock, keys, service: stopping })
  await run(first.hold(laneOf(feed), () => clock.now() >= endMs))
  const service = aService(clock)
  await run(readFor(readerOf([feed], { clock, keys, service }), clock, hourMs / 4))
  expect(service.requests).not.toEqual([])
})

test('what is learned of a feed stays with it when its organization becomes known', async () => {
  const { clock, run } = aQuickClock()
  const feed = { ...feedsOf('main', 1)[0]!, rescan: undefined }
  let lane = { ...laneOf(feed), id: 'unknown', organization: 'unknown' }
  let asked = 0
  async function pollOnce(_feed: PolledFeed, { onSlot }: PollRequest): Promise<PollOutcome> {
    asked += 1
    onSlot?.()
    await clock.sleep(20_000)
    return { status: 'failed', reason: 'unavailable', retryAfterMs: 600_000 }
  }
  const service = { ...aService(clock), pollOnce }
  const of = (): LaneLimit => lane
  const reader = readerOf([feed], { clock, keys: tests.keys(), service, of })
  const endMs = clock.now() + 5_000
  await run(reader.hold(lane, () => clock.now() >= endMs))
  lane = laneOf(feed)
  await run(readFor(reader, clock, 60_000))
  expect(asked).toBe(1)
})

test('what was learned of a feed is known while its lane is held, and not after', async () => {
  const { clock, run } = aQuickClock()
  const [feed] = feedsOf('main', 1)
  const reader = readerOf([feed!], { clock, keys: tests.keys(), service: aService(clock) })
  const endMs = clock.now() + 60_000
  let whileHeld: unknown
  await run(
    reader.hold(laneOf(feed!), () => {
      whileHeld = reader.feedPlace(feed!)?.intervalMs
      return clock.now() >= endMs
    }),
  )
  expect(whileHeld).toBeGreaterThan(0)
  await run(clock.sleep(1_000))
  expect(reader.feedPlace(feed!)).toBeUndefined()
})

test('a new walk of the tail has its feed looked at again at once', async () => {
  const { clock, run } = aQuickClock()
  const service = aService(clock, () => Promise.resolve({ status: 'not_due', untilMs: undefined }))
  const reader = readerOf(feedsOf('main', 2), { clock, keys: tests.keys(), service })
  await run(readFor(reader, clock, 60_000))
  expect(service.looks).toHaveLength(2)
  service.changed.add('main-1')
  await run(readFor(reader, clock, 60_000))
  expect(service.looks.slice(2).map(({ feed }) => feed.name)).toEqual(['main-1'])
})

test('a poll that fails is told when the feed is asked again', async () => {
  const { clock, run } = aQuickClock()
  const feed = anEventSearch({ account: 'main', everyMs: hourMs, rescan: undefined })
  const [asked, promised]: number[][] = [[], []]
  const service = {
    ...aService(clock),
    pollOnce(_feed: PolledFeed, turn: PollRequest): Promise<PollOutcome> {
      const failure = { status: 'failed', reason: 'timeout', retryAfterMs: undefined } as const
      turn.onSlot?.()
      asked!.push(clock.now())
      promised!.push(clock.now() + (turn.waitAfter?.(failure) ?? 0))
      return Promise.resolve(failure)
    },
  }
  const keys = tests.keys()
  await noteRead(feed, keys, clock.now() - hourMs)
  await run(readFor(readerOf([feed], { clock, keys, service }), clock, hourMs / 4))
  expect(asked!.length).toBeGreaterThan(3)
  expect(asked![1]).toBeGreaterThanOrEqual(promised![0]!) // a lane that sleeps may be later
  expect(asked!.slice(2)).toEqual(promised!.slice(1, -1))
})

/** What `check` states for so many feeds of a lane, ms. */
function statedMs(count: number, { perSecond, share }: LaneLimit): number {
  const feeds = feedsOf('main', count).map(({ name }) => ({ id: name }))
  const budget = { perSecond: perSecond * share, minIntervalMs: defaultTimings.minPollIntervalMs }
  return expectIntervals(feeds, budget).longestMs
}

/** The longest time between two reads of any of these feeds, from `fromMs` on. */
function longestGapMs(
  requests: readonly Asked[],
  names: readonly string[],
  fromMs: number,
): number {
  const gaps = names.flatMap((name) => {
    const times = requests
      .filter(({ feed, kind, atMs }) => feed.name === name && kind === 'feed' && atMs >= fromMs)
      .map(({ atMs }) => atMs)
    expect(times.length).toBeGreaterThan(2)
    return times.slice(1).map((atMs, n) => atMs - times[n]!)
  })
  return Math.max(...gaps)
}

test.each([1, 10])(
  'at %i a second, six feeds keep the times of six while twelve others of their account hang',
  async (perSecond) => {
    const { clock, run } = aQuickClock()
    const feeds = feedsOf('main', 18)
    const healthy = feeds.slice(12).map(({ name }) => name)
    const service = aService(clock)
    const answered = service.pollOnce
    service.pollOnce = async (feed, asked) => {
      if (healthy.includes(feed.name)) return answered(feed, asked)
      asked.onSlot?.()
      service.requests.push({ feed, kind: asked.kind, atMs: clock.now() })
      await clock.sleep(defaultTimings.requestTimeoutMs)
      return { status: 'failed', reason: 'timeout', retryAfterMs: undefined }
    }
    const of = (feed: PolledFeed): LaneLimit => ({ ...laneOf(feed), perSecond })
    const reader = readerOf(feeds, { clock, keys: tests.keys(), service, of })
    const startMs = clock.now()
    await run(readFor(reader, clock, hourMs / 2))
    const lane = of(feeds[0]!)
    // at first, none is known to hang
    const fromMs = startMs + 2 * statedMs(18, lane)
    const slotMs = 1000 / (lane.perSecond * lane.share)
    expect(longestGapMs(service.requests, healthy, fromMs)).toBeLessThanOrEqual(
      statedMs(6, lane) + slotMs + 1,
    )
    // and those that hang are asked again and again
    for (const { name } of feeds.slice(0, 12)) {
      const asked = service.requests.filter(({ feed }) => feed.name === name)
      expect(asked.length).toBeGreaterThan(5)
    }
  },
)

test('feeds of an account whose token does not come cost the others of its organization no more', async () => {
  const { clock, run } = aQuickClock()
  const [stuck, well] = [feedsOf('stuck', 12), feedsOf('well', 2)]
  const service = aService(clock)
  const answered = service.pollOnce
  service.pollOnce = async (feed, asked) => {
    if (feed.account === 'well') return answered(feed, asked)
    await clock.sleep(defaultTimings.requestTimeoutMs)
    return { status: 'failed', reason: 'timeout', retryAfterMs: undefined }
  }
  const lane = laneOf({ account: 'both' })
  const of = (): LaneLimit => lane
  const reader = readerOf([...stuck, ...well], { clock, keys: tests.keys(), service, of })
  const startMs = clock.now()
  await run(readFor(reader, clock, hourMs / 4))
  const names = well.map(({ name }) => name)
  const slotMs = 1000 / (lane.perSecond * lane.share)
  // a slot for each that waits at first
  expect(longestGapMs(service.requests, names, startMs)).toBeLessThanOrEqual(13 * slotMs)
  expect(longestGapMs(service.requests, names, startMs + 60_000)).toBeLessThanOrEqual(
    statedMs(2, lane) + 4 * slotMs,
  )
})
