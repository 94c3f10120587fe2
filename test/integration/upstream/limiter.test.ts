import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import type { Redis } from '../../../src/redis/client.ts'
import { connectRedis } from '../../../src/redis/connection.ts'
import { createKeys, type Keys } from '../../../src/redis/keys.ts'
import { runScript } from '../../../src/redis/scripts.ts'
import type { Lane } from '../../../src/upstream/access/organizations.ts'
import {
  createTierLimiter,
  createApiSlots,
  type TierLimiter,
  type SlotRequest,
  type ApiSlots,
} from '../../../src/upstream/rate-limits.ts'
import { startRedis, type TestRedis } from '../../support/redis.ts'
import { runScriptAt } from '../../support/script-clock.ts'

const second = 1_000_000
const known: Lane = { tier: 'search', organization: 'url-7', baseUrl: 'url' }
const unknown: Lane = { tier: 'search', organization: 'url', baseUrl: 'url' }

let server: TestRedis
let redis: Redis
let tests = 0

beforeAll(async () => {
  server = await startRedis()
  redis = connect()
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

describe('slots of a tier', () => {
  test('stand the spacing apart, without burst, even after a long rest', async () => {
    const keys = freshKeys()
    await redis.hset(keys.shared('limit', 'url-7', 'search'), 'last', '1')
    const slots: { slot: number; wait: number }[] = []
    for (let n = 0; n < 5; n += 1) slots.push(await reserve(keys, known, 2 * second))
    const gaps = slots.slice(1).map(({ slot }, n) => slot - slots[n]!.slot)
    expect(gaps).toEqual([2 * second, 2 * second, 2 * second, 2 * second])
    expect(slots[0]!.wait).toBe(0)
  })

  test('keep the widest spacing that a replica stated within the hour', async () => {
    const keys = freshKeys()
    await reserve(keys, known, 4 * second)
    const first = await reserve(keys, known, second)
    const next = await reserve(keys, known, second)
    expect(next.slot - first.slot).toBe(4 * second)
    const name = keys.shared('limit', 'url-7', 'search')
    const longAgo = Number(await redis.hget(name, 'spacing_at')) - 3601 * second
    await redis.hset(name, 'spacing_at', String(longAgo))
    const later = await reserve(keys, known, second)
    expect(later.slot - next.slot).toBe(second)
  })

  test('of a known organization come after those of its base URL, and the other way round', async () => {
    const keys = freshKeys()
    const before = await reserve(keys, unknown, 2 * second)
    const learned = await reserve(keys, known, 2 * second)
    expect(learned.slot - before.slot).toBe(2 * second)
    const next = await reserve(keys, known, 2 * second)
    const stranger = await reserve(keys, unknown, 2 * second)
    expect(stranger.slot - next.slot).toBe(2 * second)
  })

  test('of two organizations do not wait for each other', async () => {
    const keys = freshKeys()
    await reserve(keys, known, 9 * second)
    const other = await reserve(keys, { ...known, organization: 'url-8' }, 9 * second)
    expect(other.wait).toBe(0)
  })

  test('are not lost to a Redis clock that was set back', async () => {
    const keys = freshKeys()
    const future = String((Date.now() + 3_600_000) * 1000)
    await redis.hset(keys.shared('limit', 'url-7', 'search'), {
      last: future,
      pause: future,
      used: future,
    })
    expect((await reserve(keys, known, second)).wait).toBe(0)
    const further = String((Date.now() + 2 * 3_600_000) * 1000)
    await redis.hset(keys.shared('limit', 'url-7', 'search'), { last: further, pause: 0 })
    expect((await reserve(keys, known, 60 * second)).wait).toBeLessThanOrEqual(60 * second)
  })

  test('wait for the longest pause that a service may ask for', async () => {
    const keys = freshKeys()
    const longestMs = 1.1 * 15 * 60_000 // up to a tenth is added
    await runScript(redis, 'pause-tier', names(keys, known), [longestMs])
    expect((await reserve(keys, known, second / 10)).wait).toBeGreaterThan(16 * 60 * second)
  })

  test('are void when the base URL was paused, and not in the very microsecond of its end', async () => {
    const keys = freshKeys()
    const { slot } = await reserve(keys, known, second / 10)
    const wide = keys.shared('limit', 'url', 'search')
    await redis.hset(wide, 'pause', String(slot + 1))
    expect(await claim(keys, slot)).toBe(-1)
    const pausedAt = async (pause: number, nowMs: number): Promise<unknown> => {
      await redis.hset(wide, 'pause', String(pause))
      await redis.hdel(keys.shared('limit', 'url-7', 'search'), 'used')
      return (await claimAt(keys, nowMs))[0]
    }
    expect(await pausedAt(1_000_000_000, 1_000_000)).toBe(0)
    expect(await pausedAt(1, 1_000_250)).toBe(0) // at its time and 250 ms
    expect(await pausedAt(1, 1_000_251)).toBe(-1)
  })

  test('are void when the tier was paused after they were reserved', async () => {
    const keys = freshKeys()
    await reserve(keys, known, second / 10)
    const { slot } = await reserve(keys, known, second / 10)
    expect(await runScript(redis, 'pause-tier', names(keys, known), [60_000])).toBe(60_000)
    expect(await claim(keys, slot)).toBe(-1)
    const left = Number(await runScript(redis, 'pause-tier', names(keys, known), [1000]))
    expect(left).toBeGreaterThan(55_000)
    expect((await reserve(keys, known, second)).wait).toBeGreaterThan(55 * second)
    expect((await reserve(keys, unknown, second)).wait).toBeGreaterThan(55 * second)
  })

  test('wait for the pause of a tier whose organization was not known when the service asked for it', async () => {
    const keys = freshKeys()
    await runScript(redis, 'pause-tier', names(keys, unknown), [60_000])
    expect((await reserve(keys, known, second)).wait).toBeGreaterThan(55 * second)
  })

  test('wait for the pause of a known organization while nobody knows whether they are of the same', async () => {
    const keys = freshKeys()
    await runScript(redis, 'pause-tier', names(keys, known), [60_000])
    expect((await reserve(keys, unknown, second)).wait).toBeGreaterThan(55 * second)
  })

  test('of an organization keep their distance from one that an unknown organization just used', async () => {
    const keys = freshKeys()
    const used = await reserve(keys, unknown, 2 * second)
    const paused = keys.shared('limit', 'url-8', 'search')
    await redis.hset(paused, 'pause', String(used.slot + 60 * second))
    await reserve(keys, { ...known, organization: 'url-8' }, 2 * second)
    const ahead = await reserve(keys, unknown, 2 * second)
    expect(ahead.slot - used.slot).toBeGreaterThan(60 * second)
    const next = await reserve(keys, known, 2 * second)
    expect(next.slot - used.slot).toBe(2 * second)
  })

  test('are void when they are late by more than their spacing, and never used before their time', async () => {
    const keys = freshKeys()
    const { slot } = await reserve(keys, known, second)
    expect(await claim(keys, slot - 2 * second)).toBe(-1)
    expect(await claim(keys, slot + 30 * second)).toBeGreaterThan(29 * second)
  })

  test('that were claimed and not used move to now, by so much as the request may come later', async () => {
    const keys = freshKeys()
    await reserve(keys, known, second)
    const [, use] = await claimAt(keys, 1_000_000)
    expect(use).toBe(1_000_000_000)
    expect(await claimAt(keys, 1_000_300)).toEqual([700_000]) // of another request
    const moved = await claimAt(keys, 1_000_300, { use: use!, later: 25_000 })
    expect(moved).toEqual([0, 1_000_325_000, 0])
    const slot = 1_001_000_000
    expect(await claimAt(keys, 1_001_324, { slot })).toEqual([1_000])
    expect(await claimAt(keys, 1_001_325, { slot })).toEqual([0, 1_001_325_000, 0])
    // the first one comes too late to move: another has begun meanwhile
    expect(await claimAt(keys, 1_001_326, { use: 1_000_325_000 })).toEqual([-1])
  })

  test('that are claimed a little late move none after them, others do', async () => {
    const keys = freshKeys()
    await reserve(keys, known, second)
    expect(await claimAt(keys, 1_000_015)).toEqual([0, 1_000_000_000, 15_000])
    const slot = 1_001_000_000
    expect(await claimAt(keys, 1_001_016, { slot })).toEqual([0, 1_001_016_000, 0])
    expect(await claimAt(keys, 1_002_000, { slot: 1_002_000_000 })).toEqual([16_000])
  })

  test('of an unknown organization keep their distance from the uses of all that are known, and these from its own', async () => {
    const keys = freshKeys()
    const other = { ...known, organization: 'url-8' }
    for (const lane of [known, unknown, other]) await reserve(keys, lane, second)
    await claimAt(keys, 1_000_000, { lane: known })
    expect(await claimAt(keys, 1_000_100, { lane: unknown })).toEqual([900_000])
    const [, use] = await claimAt(keys, 1_001_000, { lane: unknown })
    expect(await claimAt(keys, 1_000_900, { lane: other })).toEqual([1_100_000])
    // a known one that moves keeps the unknown one away, too
    const slot = 1_002_000_000
    const [, late] = await claimAt(keys, 1_002_000, { lane: known, slot })
    await claimAt(keys, 1_002_100, { lane: known, slot, use: late! })
    expect(await claimAt(keys, 1_002_200, { lane: unknown, use: use! })).toEqual([900_000])
  })

  test('are not used closer together than the limit when one comes late', async () => {
    const keys = freshKeys()
    const { slot } = await reserve(keys, known, 10 * second)
    const name = keys.shared('limit', 'url-7', 'search')
    await redis.hset(name, 'used', String(slot + 2 * second))
    const wait = await claim(keys, slot)
    expect(wait).toBeGreaterThan(10 * second)
    expect(wait).toBeLessThanOrEqual(12 * second)
  })

  test('are used by one request each, however late the one before it was', async () => {
    const keys = freshKeys()
    await reserve(keys, known, 10 * second)
    const [seconds, micros] = await redis.time()
    const slot = Number(seconds) * second + Number(micros)
    await redis.hset(keys.shared('limit', 'url-7', 'search'), 'used', String(slot - 60 * second))
    const [first, next] = await Promise.all([claim(keys, slot), claim(keys, slot)])
    expect(first).toBe(0)
    expect(next).toBeGreaterThan(9 * second)
  })
})

describe('a patient process', () => {
  test('takes a slot that nobody has asked for, and none that others wait for', async () => {
    const keys = freshKeys()
    expect((await reserve(keys, known, second, 10)).wait).toBe(0)
    const refused = await reserve(keys, known, second, 10)
    expect(refused.slot).toBe(0)
    expect(refused.wait).toBeGreaterThan(0)
    expect(refused.wait).toBeLessThanOrEqual(second)
  })

  test('gets every tenth slot of a tier that is never free', async () => {
    const keys = freshKeys()
    const order: string[] = []
    for (let round = 0; round < 30; round += 1) {
      await reserve(keys, known, 100 * second)
      order.push('feed')
      const { slot } = await reserve(keys, known, 100 * second, 10)
      if (slot > 0) order.push('command')
    }
    const places = order.flatMap((who, place) => (who === 'command' ? [place] : []))
    expect(places).toEqual([9, 19, 29])
  })
})

describe('turns', () => {
  test('one slot at a time is reserved, however many wait', async () => {
    const keys = freshKeys()
    const turns = someTurns(keys, 0.5)
    await turns.take(feed('first'), known)
    const stop = new AbortController()
    const waiting = ['a', 'b', 'c'].map((name) =>
      turns.take(feed(name), known, { signal: stop.signal }),
    )
    const name = keys.shared('limit', 'url-7', 'search')
    await expect.poll(() => redis.hget(name, 'last')).not.toBe(await redis.hget(name, 'used'))
    const spread = Number(await redis.hget(name, 'last')) - Number(await redis.hget(name, 'used'))
    expect(spread).toBeLessThan(2.2 * second)
    stop.abort()
    for (const outcome of await Promise.allSettled(waiting)) expect(outcome.status).toBe('rejected')
  })

  test('the oldest feed goes first, details after feeds, whoever came first', async () => {
    const turns = someTurns(freshKeys(), 20)
    await turns.take(feed('first'), known)
    const order: string[] = []
    const asked: SlotRequest[] = [
      { kind: 'detail', name: 'detail', dueSinceMs: 0 },
      feed('young', 9),
      feed('old', 1),
    ]
    await Promise.all(
      asked.map((turn) => turns.take(turn, known).then(() => order.push(turn.name))),
    )
    expect(order).toEqual(['old', 'young', 'detail'])
  })

  test('a wait that lasts too long ends as a time-out, and takes no slot from the others', async () => {
    const turns = someTurns(freshKeys(), 2)
    await turns.take(feed('first'), known)
    const late = turns.take(feed('late'), known, { maxWaitMs: 50 })
    await expect(late).rejects.toMatchObject({ reason: 'timeout' })
    const { waitedMs } = await turns.take(feed('next'), known)
    expect(waitedMs).toBeLessThan(800)
  })

  test('a Redis that fails fails the waiting, and the next turn works again', async () => {
    const keys = freshKeys()
    const turns = someTurns(keys, 20)
    const name = keys.shared('limit', 'url-7', 'search')
    await redis.set(name, 'of another type')
    await expect(turns.take(feed('one'), known)).rejects.toThrow(/WRONGTYPE/)
    await redis.del(name)
    await turns.take(feed('two'), known)
  })

  test('closing ends all waits', async () => {
    const turns = someTurns(freshKeys(), 0.01)
    await turns.take(feed('one'), known)
    const waiting = turns.take(feed('two'), known)
    turns.close()
    await expect(waiting).rejects.toMatchObject({ reason: 'timeout' })
  })
})

function feed(name: string, dueSinceMs = 0): SlotRequest {
  return { kind: 'feed', name, dueSinceMs }
}

function someTurns(keys: Keys, limit: number): ApiSlots {
  const turns = createApiSlots({ limiter: aLimiter(keys, limit) })
  onTestFinished(() => turns.close())
  return turns
}

function aLimiter(keys: Keys, limit: number, clock = systemClock): TierLimiter {
  return createTierLimiter({ redis, keys, clock, limitFor: () => limit })
}

async function reserve(
  keys: Keys,
  lane: Lane,
  spacing: number,
  share = 0,
): Promise<{ slot: number; wait: number }> {
  const reply = await runScript(redis, 'reserve-slot', names(keys, lane), [0, spacing, share])
  const [slot, wait] = reply as [number, number]
  return { slot, wait }
}

/** How late a request may be without moving the slots after it, µs. */
const tolerance = 15_000

/** How long to wait, µs; 0: the slot is claimed, -1: it is void. */
async function claim(keys: Keys, slot: number): Promise<number> {
  const reply = await runScript(redis, 'claim-slot', names(keys, known), [0, slot, 0, tolerance])
  return (reply as number[])[0]!
}

/** At such a time of Redis' clock: `[wait]`, or 0, what others count as its use, and how late it is, µs. */
async function claimAt(
  keys: Keys,
  nowMs: number,
  { lane = known, slot = 1_000_000_000, use = 0, later = 0 } = {},
): Promise<number[]> {
  const args = [later, slot, use, tolerance]
  return (await runScriptAt({ redis, nowMs }, 'claim-slot', names(keys, lane), args)) as number[]
}

function names(keys: Keys, lane: Lane): string[] {
  return [lane.organization, lane.baseUrl].map((name) => keys.shared('limit', name, lane.tier))
}

function freshKeys(): Keys {
  tests += 1
  return createKeys(`limiter-${tests}`)
}

function connect(): Redis {
  const config = { url: secretFromText(server.url), prefix: 'x', allowUnsafe: false }
  return connectRedis(config, createLogger({ level: 'silent' }))
}
