import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSendPace, type SendPace } from '../../../src/delivery/send/attempt.ts'
import type { Redis } from '../../../src/redis/client.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { connectTo, redisForTests, redisMs } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { runScriptAt } from '../../support/script-clock.ts'

const tests = redisForTests()
let other: Redis

beforeAll(() => {
  other = connectTo(tests.server.url)
})

afterAll(() => other.disconnect())

/** Two replicas. */
function replicas(keys: Keys): SendPace[] {
  return [tests.redis, other].map((redis) => createSendPace(redis, keys))
}

test('a place is not held ahead: who asks too early has taken nothing, and hears how long it is', async () => {
  const paces = replicas(tests.keys())
  const soc = aRehearsedSink('soc', { limitPerSecond: 0.001 })
  expect(await paces[0]!.take(soc)).toEqual({ isTaken: true, nextInMs: 1_000_000 })
  let beforeMs = 1_000_000
  for (let i = 0; i < 5; i += 1) {
    const { isTaken, nextInMs } = await paces[i % 2]!.take(soc)
    expect(isTaken).toBe(false)
    expect(nextInMs).toBeGreaterThan(500_000)
    expect(nextInMs).toBeLessThanOrEqual(beforeMs)
    beforeMs = nextInMs
  }
})

test('a place may be taken in the very millisecond of its time, and keeps the beat until 50 ms later', async () => {
  const keys = tests.keys()
  const [pace] = replicas(keys)
  const soc = aRehearsedSink('soc', { limitPerSecond: 0.1 })
  const name = keys.shared('pace', 'soc')
  await tests.redis.set(name, Date.now() - 60)
  expect((await pace!.take(soc)).nextInMs).toBe(10_000)
  const takeAt = async (nowMs: number): Promise<unknown> => {
    await tests.redis.set(name, 1_000_000)
    return runScriptAt({ redis: tests.redis, nowMs }, 'pace-send', [name], [10_000])
  }
  expect(await takeAt(999_999)).toEqual([0, 1])
  expect(await takeAt(1_000_000)).toEqual([1, 10_000])
  expect(await takeAt(1_000_049)).toEqual([1, 9_951])
  expect(await takeAt(1_000_050)).toEqual([1, 10_000])
})

test('a clock of Redis that was set back delays the next send by one place at most', async () => {
  const keys = tests.keys()
  const [pace] = replicas(keys)
  await tests.redis.set(keys.shared('pace', 'soc'), Date.now() + 3_600_000)
  const soc = aRehearsedSink('soc', { limitPerSecond: 2 })
  expect((await pace!.take(soc)).nextInMs).toBeLessThanOrEqual(500)
})

test('the next place of a sink stands in Redis, by the clock of Redis, for a second longer than it matters', async () => {
  const keys = tests.keys()
  const paces = replicas(keys)
  const beganMs = await redisMs(tests.redis)
  await paces[0]!.take(aRehearsedSink('soc', { limitPerSecond: 0.01 }))
  const endedMs = await redisMs(tests.redis)
  const name = keys.shared('pace', 'soc')
  const placeMs = Number(await tests.redis.get(name))
  expect(placeMs).toBeGreaterThanOrEqual(beganMs + 100_000)
  expect(placeMs).toBeLessThanOrEqual(endedMs + 1 + 100_000)
  const goneMs = await tests.redis.pexpiretime(name)
  expect(Math.abs(goneMs - placeMs - 1_000)).toBeLessThanOrEqual(2)
})
