import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSendPace, type SendPace } from '../../../src/delivery/send-pace.ts'
import type { Redis } from '../../../src/redis/connection.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { connectTo, redisForTests } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'

const tests = redisForTests()
let other: Redis

beforeAll(() => {
  other = connectTo(tests.server.url)
})

afterAll(() => other.disconnect())

/** Two replicas; a place says how long it is until then. */
function replicas(keys: Keys): SendPace[] {
  return [tests.redis, other].map((redis) => createSendPace(redis, keys))
}

test('replicas share one pace: so many sends take so long, whoever sends', async () => {
  const paces = replicas(tests.keys())
  const soc = aRehearsedSink('soc', { limitPerSecond: 2 })
  const startMs = systemClock.monotonic()
  const slept: number[] = []
  for (let i = 0; i < 20; i += 1) slept.push(await paces[i % 2]!.reserve(soc))
  const tookMs = systemClock.monotonic() - startMs
  expect(slept[0]).toBe(0)
  expect(slept.at(-1)!).toBeGreaterThan(19 * 500 - tookMs - 10)
  expect(slept.at(-1)!).toBeLessThanOrEqual(19 * 500)
  expect(slept).toEqual(slept.toSorted((a, b) => a - b))
})

test('a pause that was asked for holds for every replica, and a shorter one does not shorten it', async () => {
  const paces = replicas(tests.keys())
  const soc = aRehearsedSink('soc', { limitPerSecond: 100 })
  await paces[0]!.pause(soc, 30_000)
  await paces[1]!.pause(soc, 1_000)
  expect(await paces[1]!.reserve(soc)).toBeGreaterThan(29_000)
})

test('a sink without a limit waits for nothing', async () => {
  const paces = replicas(tests.keys())
  for (let i = 0; i < 3; i += 1) {
    expect(await paces[0]!.reserve(aRehearsedSink('siem'))).toBe(0)
  }
})

test('a pause of a sink without a limit holds nothing up once it has one', async () => {
  const paces = replicas(tests.keys())
  await paces[0]!.pause(aRehearsedSink('siem'), 30_000)
  expect(await paces[0]!.reserve(aRehearsedSink('siem', { limitPerSecond: 100 }))).toBe(0)
})

test('the next place of a sink stands in Redis, by the clock of Redis, for a second longer than it matters', async () => {
  const keys = tests.keys()
  const paces = replicas(keys)
  await paces[0]!.reserve(aRehearsedSink('soc', { limitPerSecond: 0.1 }))
  const name = keys.shared('pace', 'soc')
  const [seconds] = await tests.redis.time()
  expect(Number(await tests.redis.get(name)) - Number(seconds) * 1000).toBeGreaterThan(9_000)
  expect(Number(await tests.redis.get(name)) - Number(seconds) * 1000).toBeLessThanOrEqual(11_000)
  const leftMs = await tests.redis.pttl(name)
  expect(leftMs).toBeGreaterThan(10_000)
  expect(leftMs).toBeLessThanOrEqual(11_000)
})
