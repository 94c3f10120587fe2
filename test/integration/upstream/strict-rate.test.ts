/**
 * Three replicas, each for an account of one organization, ask one service that counts every sliding second.
 * Their time passes only while everybody waits. The limiter's scripts run in a real Redis, which is told that time.
 */
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Clock } from '../../../src/lib/clock.ts'
import type { Redis } from '../../../src/redis/client.ts'
import { createRandom } from '../../../src/sandbox/options.ts'
import { createOrganizations } from '../../../src/upstream/access/organizations.ts'
import {
  createApiSlots,
  createPacer,
  createTierLimiter,
  type Pacer,
} from '../../../src/upstream/rate-limits.ts'
import { notBegun } from '../../../src/upstream/error.ts'
import type { Transport } from '../../../src/upstream/transport.ts'
import { redisForTests } from '../../support/ledger.ts'
import { createQuickClock } from '../../support/quick-clock.ts'
import { anAccount } from '../../support/replica.ts'
import { createTextRunner } from '../../support/script-clock.ts'

const tests = redisForTests()

interface Weather {
  /** Whether a process stands still now and then, from 5 ms to over a second. */
  hasStalls: boolean
  /** Whether Redis answers late now and then, and new connections take their time. */
  isNetworkSlow: boolean
  /** How far Redis is away, one way, ms. */
  redisMs: number
}

const calm: Weather = { hasStalls: false, isNetworkSlow: false, redisMs: 0.1 }
const rough: Weather = { hasStalls: true, isNetworkSlow: true, redisMs: 0.1 }

/** When each request reached the service's door, ms. */
async function arrivalsOf(limit: number, seconds: number, weather: Weather): Promise<number[]> {
  let asked = 0
  const { clock, run } = createQuickClock(async () => {
    do await setImmediate()
    while (asked > 0)
  })
  const endMs = clock.now() + seconds * 1000
  const random = createRandom(limit)
  const between = (least: number, most: number): number => least + random.next() * (most - least)
  const limits = { search: limit, basic: limit }
  const accounts = ['one', 'two', 'three'].map((name) =>
    anAccount({ name, organizationId: 7, limits }),
  )
  const organizations = createOrganizations(accounts)
  const keys = tests.keys()
  const arrivals: number[] = []

  /** A process that goes on only when it does not stand still. */
  function aProcess(): { own: Clock; thaw: () => Promise<void> } {
    const stalls: { fromMs: number; toMs: number }[] = []
    for (let atMs = clock.now(); atMs < endMs && weather.hasStalls;) {
      const fromMs = atMs + between(100, 2_500)
      atMs = fromMs + 5 * between(1, 6) ** between(1, 3.2)
      stalls.push({ fromMs, toMs: atMs })
    }
    async function thaw(): Promise<void> {
      const nowMs = clock.now()
      const stall = stalls.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs)
      if (stall) await clock.sleep(stall.toMs - nowMs)
    }
    const own: Clock = {
      ...clock,
      async sleep(ms, signal) {
        await clock.sleep(ms + between(0, 1.5), signal)
        await thaw()
      },
    }
    return { own, thaw }
  }

  // Redis compiles each script once: it reads the time from a key
  const runText = createTextRunner(tests.redis, (text) =>
    text.replaceAll(`redis.call('TIME')`, `redis.call('MGET', 'simulated:s', 'simulated:us')`),
  )

  function redisOf(thaw: () => Promise<void>): Redis {
    const slow = (): boolean => weather.isNetworkSlow && random.chance(0.05)
    const pass = (): Promise<void> =>
      clock.sleep(weather.redisMs + (slow() ? between(20, 700) : between(0, 0.5)))
    const redis = {
      evalsha: () => Promise.reject(new Error('NOSCRIPT')),
      async eval(text: string, keyCount: number, ...rest: string[]) {
        await pass()
        asked += 1
        const micros = Math.round(clock.now() * 1000)
        const [s, us] = [Math.floor(micros / 1_000_000), micros % 1_000_000]
        void tests.redis.mset('simulated:s', s, 'simulated:us', us)
        const answer = await runText(text, keyCount, ...rest).finally(() => (asked -= 1))
        await pass()
        await thaw()
        return answer
      },
    }
    return redis as unknown as Redis
  }

  function transportOf(thaw: () => Promise<void>): Transport {
    return {
      async request({ mayBegin }) {
        const isNew = weather.isNetworkSlow && random.chance(0.2)
        await clock.sleep(isNew ? between(10, 500) : between(0, 2))
        await thaw()
        if (mayBegin?.() === false) throw notBegun
        arrivals.push(clock.now() + between(0, 15))
        const hangs = weather.isNetworkSlow && random.chance(0.02)
        await clock.sleep(hangs ? 30_000 : between(50, 300))
        await thaw()
        return { status: 200, headers: {}, body: '', sentAtMs: clock.now() }
      },
    }
  }

  async function ask(pacer: Pacer): Promise<void> {
    while (clock.now() < endMs) {
      const slot = { kind: 'feed', name: 'brand', dueSinceMs: clock.now() } as const
      const request = { method: 'GET', path: '/', authorization: '' } as const
      await pacer.send(request, { slot, tier: 'search' }).catch(() => undefined)
    }
  }

  const replicas = accounts.map((account) => {
    const { own, thaw } = aProcess()
    const redis = redisOf(thaw)
    const limiter = createTierLimiter({ redis, keys, clock: own, limitFor: () => limit })
    const slots = createApiSlots({ limiter, clock: own })
    const parts = { account, organizations, slots, clock: own, transport: transportOf(thaw) }
    return { slots, pacer: createPacer({ ...parts, secrets: () => [] }) }
  })
  const asking = replicas.flatMap(({ pacer }) =>
    Array.from({ length: 4 + limit / 2 }, () => ask(pacer)),
  )
  const closing = clock.sleep(seconds * 1000).then(() => replicas.map(({ slots }) => slots.close()))
  await run(Promise.all([...asking, closing]))
  return arrivals.filter((atMs) => atMs < endMs).toSorted((a, b) => a - b)
}

/** The shortest time in which one request more than allowed arrived, ms. */
function shortestWindow(arrivals: readonly number[], limit: number): number {
  return Math.min(...arrivals.slice(limit).map((atMs, n) => atMs - arrivals[n]!))
}

const cases = [
  { limit: 1, seconds: 300 },
  { limit: 4, seconds: 120 },
  { limit: 20, seconds: 60 },
]

test.each(cases)(
  'three replicas use 95 % of $limit a second, and exceed it in no second',
  async ({ limit, seconds }) => {
    const arrivals = await arrivalsOf(limit, seconds, calm)
    expect(shortestWindow(arrivals, limit)).toBeGreaterThan(1000)
    expect(arrivals.length).toBeGreaterThanOrEqual(0.95 * limit * seconds)
  },
)

test.each(cases)(
  'three replicas that stall exceed $limit in no second, however late Redis and connections are',
  async ({ limit, seconds }) => {
    const arrivals = await arrivalsOf(limit, seconds, rough)
    expect(shortestWindow(arrivals, limit)).toBeGreaterThan(1000)
    expect(arrivals.length).toBeGreaterThan(0.5 * limit * seconds)
  },
)

test.each(cases.slice(0, 2))(
  'three replicas whose Redis is 40 ms away use 95 % of $limit a second, too',
  async ({ limit, seconds }) => {
    const arrivals = await arrivalsOf(limit, seconds, { ...calm, redisMs: 20 })
    expect(shortestWindow(arrivals, limit)).toBeGreaterThan(1000)
    expect(arrivals.length).toBeGreaterThanOrEqual(0.95 * limit * seconds)
  },
)
