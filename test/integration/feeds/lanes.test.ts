import { afterEach, expect, test } from 'vitest'
import type { LaneLimit } from '../../../src/feeds/lanes/lane.ts'
import { createLanes, type Lanes, type LanesOptions } from '../../../src/feeds/lanes/lanes.ts'
import type { PolledFeed } from '../../../src/feeds/types/polled-feed.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { aFeed } from '../../support/feeds.ts'
import { redisForTests, silent } from '../../support/ledger.ts'
import { shortTimings, until } from '../../support/rehearsal.ts'
import type { PollOutcome, PollRequest } from '../../../src/feeds/poll-run.ts'

const tests = redisForTests()
const running: Lanes[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((lanes) => lanes.stop(2_000)))
})

function laneNamed(organization: string): LaneLimit {
  const id = `${organization}.search`
  return { id, organization, tier: 'search', perSecond: 20, share: 0.5 }
}

/** A poller that takes its slot and a page at once, but for what a test says of a feed. */
function aPoller(special: Record<string, (asked: PollRequest) => Promise<PollOutcome>> = {}) {
  const polls: { feed: string; kind: string; at: number }[] = []
  return {
    polls,
    of: (feed: string, kind = 'feed') =>
      polls.filter((poll) => poll.feed === feed && poll.kind === kind),
    async pollOnce({ name }: PolledFeed, asked: PollRequest): Promise<PollOutcome> {
      polls.push({ feed: name, kind: asked.kind, at: performance.now() })
      if (asked.kind === 'rescan') return { status: 'not_due', untilMs: undefined }
      const answer = special[name]
      if (answer) return answer(asked)
      asked.onSlot?.()
      asked.onPage?.({ newEvents: 0, urgentEvents: 0, hasMore: false, isBacklog: false })
      return { status: 'caught_up' }
    },
  }
}

function hang({ onSlot, signal }: PollRequest): Promise<PollOutcome> {
  onSlot?.()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve({ status: 'stopped' }))
  })
}

async function start(
  poller: ReturnType<typeof aPoller>,
  feeds: PolledFeed[],
  more: Partial<LanesOptions> & { keys: Keys },
): Promise<Lanes> {
  const lanes = createLanes({
    feeds,
    poller,
    laneFor: ({ account }) => laneNamed(account),
    lanesVersion: () => 0,
    generation: () => 1,
    isActive: () => true,
    redis: tests.redis,
    clock: systemClock,
    logger: silent,
    timings: shortTimings,
    ...more,
  })
  running.push(lanes)
  await lanes.ensure()
  lanes.start()
  return lanes
}

function feedsOf(account: string, count: number): PolledFeed[] {
  return Array.from({ length: count }, (_none, at) =>
    aFeed({ account, name: `${account}-${at}`, longestMs: undefined }),
  )
}

test('what waits for a slot in one organization, or hangs there, costs another nothing', async () => {
  const stuck = feedsOf('slow', 30)
  function waiting({ onJoin, signal }: PollRequest): Promise<PollOutcome> {
    onJoin?.()
    return hang({ kind: 'feed', signal })
  }
  const answers = Object.fromEntries(
    stuck.map(({ name }, at) => [name, at % 2 === 0 ? waiting : hang] as const),
  )
  const poller = aPoller(answers)
  const timings = { ...shortTimings, laneHoldMs: 600_000 }
  const known = { version: 0 }
  await start(poller, [...stuck, ...feedsOf('quick', 1)], {
    keys: tests.keys(),
    timings,
    laneFor: ({ account }) =>
      laneNamed(account === 'quick' && known.version > 0 ? 'moved' : account),
    lanesVersion: () => known.version,
  })
  const isStuck = (): boolean =>
    stuck.some(({ name }, at) => at % 2 === 0 && poller.of(name).length > 0)
  await until('one lane is held for longer than the test takes', isStuck)
  timings.laneHoldMs = 300
  known.version = 1 // the quick feed comes to a lane that changes hands all the time
  const asked = (): number => stuck.flatMap(({ name }) => poller.of(name)).length
  const [before, askedBefore] = [poller.of('quick-0').length, asked()]
  const goesOn = (): boolean => poller.of('quick-0').length > before + 10
  await until('the other goes on, turn after turn', goesOn)
  expect(asked()).toBe(askedBefore) // by nobody: it is stuck
})

test('no feed waits at the end of a turn for rescans that have nothing to read', async () => {
  const poller = aPoller()
  const feeds = feedsOf('main', 2).map((feed) => ({ ...feed, rescan: undefined }))
  const timings = { ...shortTimings, laneHoldMs: 1_000 }
  // the sleep of a lane with nothing to read ends by a signal or not at all
  const sleep: Clock['sleep'] = (ms, signal) => systemClock.sleep(ms < 5_000 ? ms : 600_000, signal)
  const clock = { ...systemClock, sleep }
  await start(poller, feeds, { keys: tests.keys(), timings, clock })
  await until('some turns were over', () => poller.of('main-0').length > 12)
  expect(poller.polls.every(({ kind }) => kind === 'feed')).toBe(true)
})

test('replicas share lanes: one reads at a time, and what it knows is handed over', async () => {
  const keys = tests.keys()
  const feeds = feedsOf('main', 2)
  const timings = { ...shortTimings, laneHoldMs: 400, minPollIntervalMs: 300 }
  const pollers = [aPoller(), aPoller()]
  for (const poller of pollers) await start(poller, feeds, { keys, timings })
  await until('the lanes went on', () => pollers.every((poller) => poller.of('main-0').length > 3))
  const times = pollers.flatMap((poller) => poller.of('main-0').map(({ at }) => at))
  const sorted = times.toSorted((a, b) => a - b)
  const gaps = sorted.slice(1).map((at, place) => at - sorted[place]!)
  expect(Math.min(...gaps)).toBeGreaterThan(250)
})

test('a failing feed backs off in every replica, and is asked at once by another configuration', async () => {
  const keys = tests.keys()
  const fail = (): Promise<PollOutcome> =>
    Promise.resolve({ status: 'failed', reason: 'unavailable', retryAfterMs: 60_000 })
  const first = aPoller({ 'main-0': fail })
  const lanes = await start(first, feedsOf('main', 2), { keys })
  await until(
    'the lanes went on',
    () => first.of('main-0').length === 1 && first.of('main-1').length > 1,
  )
  await lanes.stop(2_000)

  const same = aPoller()
  const again = await start(same, feedsOf('main', 2), { keys })
  await until('the lanes went on', () => same.of('main-1').length > 2)
  expect(same.of('main-0')).toEqual([])
  await again.stop(2_000)

  const mended = aPoller()
  await start(mended, feedsOf('main', 2), { keys, generation: () => 2 })
  await until('the lanes went on', () => mended.of('main-0').length > 0)
})

test('accounts that turn out to be of one organization come to its lane', async () => {
  const poller = aPoller()
  const known = { version: 0 }
  const redis = tests.redis
  const keys = tests.keys()
  await start(poller, [...feedsOf('a', 1), ...feedsOf('b', 1)], {
    keys,
    laneFor: () => laneNamed(known.version === 0 ? 'unknown' : 'seven'),
    lanesVersion: () => known.version,
  })
  await until('the lanes went on', () => poller.of('b-0').length > 0)
  known.version = 1
  const before = poller.polls.length
  await until('the lanes went on', () => poller.polls.length > before + 5)
  await until(
    'the lanes went on',
    async () => (await redis.exists(keys.shared('lanes', 'unknown.search'))) === 0,
  )
  expect(await redis.exists(keys.shared('lanes', 'seven.search'))).toBe(1)
})

test('a stop that may take long gives lanes back at once, though a server hangs', async () => {
  const keys = tests.keys()
  const poller = aPoller({ 'main-0': hang })
  const timings = { ...shortTimings, laneHoldMs: 600_000 }
  const lanes = await start(poller, feedsOf('main', 1), { keys, timings })
  await until('the lanes went on', () => poller.of('main-0').length > 0)
  await lanes.stop(600_000) // longer than the test may take
  expect(await tests.redis.llen(keys.shared('lanes', 'active'))).toBe(0)
})

test('many lanes that change hands all the time are each held once: none counts as stalled', async () => {
  const keys = tests.keys()
  const poller = aPoller()
  const feeds = Array.from({ length: 150 }, (_none, at) => feedsOf(`main${at}`, 1)).flat()
  const timings = {
    ...shortTimings,
    minPollIntervalMs: 50,
    laneHoldMs: 100,
    stalledCheckMs: 100,
  }
  const lanes = await start(poller, feeds, { keys, timings })
  const events = keys.shared('lanes', 'events')
  const saidOf = async (event: string) => {
    const entries = await tests.redis.xrange(events, '-', '+')
    return entries.filter(([, fields]) => fields.includes(event)).map(([, fields]) => fields)
  }
  await until('each lane changed hands', async () => (await saidOf('active')).length > 150 * 3)
  timings.laneHoldMs = 60_000
  // from here on a lane keeps its lock only if that is renewed; where it ends, the lane counts as stalled
  const jobs = feeds.map(({ account }) => keys.shared('lanes', `${account}.search`))
  const firstSeen = new Map<string, number>()
  async function isRenewed(job: string): Promise<boolean> {
    const [holder, endMs, fetchedAt] = await Promise.all([
      tests.redis.get(`${job}:lock`),
      tests.redis.pexpiretime(`${job}:lock`),
      tests.redis.hget(job, 'processedOn'),
    ])
    if (holder === null) return false
    const hold = `${job} ${holder} ${fetchedAt}` // a token may get the same lane again
    if (!firstSeen.has(hold)) firstSeen.set(hold, endMs)
    return endMs > firstSeen.get(hold)!
  }
  await until('the lock of each lane was renewed while one hold lasted', async () =>
    (await Promise.all(jobs.map(isRenewed))).every(Boolean),
  )
  expect(await saidOf('stalled')).toEqual([])
  await lanes.stop(2_000)
})

test('jobs that somebody deleted are added again', async () => {
  const keys = tests.keys()
  const poller = aPoller()
  const timings = { ...shortTimings, laneHoldMs: 300 }
  const lanes = await start(poller, feedsOf('main', 1), { keys, timings })
  await until('the lanes went on', () => poller.of('main-0').length > 0)
  await tests.redis.del(await tests.redis.keys(keys.shared('lanes', '*')))
  await until('the lanes went on', async () => {
    await lanes.ensure()
    return (await tests.redis.exists(keys.shared('lanes', 'main.search'))) === 1
  })
  const before = poller.polls.length
  await until('the lanes went on', () => poller.polls.length > before + 3)
  // a job that is fetched leaves the one for the other
  const places = ['active', 'wait'].map((place) => keys.shared('lanes', place))
  const looks = await tests.redis.multi(places.map((place) => ['llen', place])).exec()
  expect(looks!.reduce((sum, [, jobs]) => sum + Number(jobs), 0)).toBe(1)
})

test('an answer that came late is followed by the next page at once', async () => {
  const timings = { ...shortTimings, laneHoldMs: 600_000 }
  async function answerLate({ onSlot, onPage }: PollRequest): Promise<PollOutcome> {
    onSlot?.()
    await systemClock.sleep(600)
    onPage?.({ newEvents: 10, urgentEvents: 0, hasMore: true, isBacklog: false })
    return { status: 'more' }
  }
  const poller = aPoller({ 'main-0': answerLate })
  await start(poller, feedsOf('main', 1), { keys: tests.keys(), timings })
  await until('three pages', () => poller.of('main-0').length >= 3)
  expect(poller.of('main-1')).toEqual([])
})

test('a clock that is set back by hours stops no feed, nor what a replica with a clock ahead handed over', async () => {
  const keys = tests.keys()
  let aheadMs = 3 * 3_600_000
  const clock = { ...systemClock, now: () => Date.now() + aheadMs }
  const backOff = (): Promise<PollOutcome> =>
    Promise.resolve({ status: 'failed', reason: 'unavailable', retryAfterMs: 1_000 })
  const poller = aPoller({ 'main-2': backOff })
  const lanes = await start(poller, feedsOf('main', 3), { keys, clock })
  const names = feedsOf('main', 3).map(({ name }) => name)
  async function readAllOnceMore(one: typeof poller): Promise<void> {
    const before = names.map((name) => one.of(name).length)
    const isRead = (): boolean => names.every((name, at) => one.of(name).length > before[at]!)
    await until('every feed is read once more', isRead)
  }
  await readAllOnceMore(poller)
  aheadMs = 0
  await readAllOnceMore(poller)
  aheadMs = 3 * 3_600_000
  await readAllOnceMore(poller)
  await lanes.stop(2_000)
  const other = aPoller()
  await start(other, feedsOf('main', 3), { keys })
  await readAllOnceMore(other)
  expect(other.of('main-0')).not.toEqual([])
})

test('a replica of an older configuration gives a lane back that only the newer one has', async () => {
  const keys = tests.keys()
  const newer = aPoller()
  const lanes = await start(newer, feedsOf('added', 1), { keys, generation: () => 2 })
  await lanes.stop(2_000)
  const job = keys.shared('lanes', 'added.search')
  const waiting = keys.shared('lanes', 'wait')
  const timesHeld = async (): Promise<number> => Number(await tests.redis.hget(job, 'ats'))
  const before = await timesHeld()
  await start(aPoller(), feedsOf('main', 1), { keys, isActive: () => false })
  const isLeft = async (): Promise<boolean> =>
    (await timesHeld()) > before && (await tests.redis.lpos(waiting, 'added.search')) !== null
  await until('the older one had it', isLeft)
  expect(await tests.redis.zcard(keys.shared('lanes', 'delayed'))).toBe(0) // no clock's time
})
