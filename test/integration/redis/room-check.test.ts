import { expect, test } from 'vitest'
import { createRoomCheck } from '../../../src/redis/health.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { connectTo, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

test('whether Redis has room is asked once a second, and again at once where nobody knows', async () => {
  let nowMs = 0
  const clock = { ...systemClock, monotonic: () => nowMs }
  const asked = async (work: () => Promise<unknown>): Promise<number> => {
    const calls = async (): Promise<number> => {
      const stats = await tests.redis.info('commandstats')
      return Number(/^cmdstat_info:calls=(\d+)/m.exec(stats)?.[1] ?? 0)
    }
    const before = await calls()
    await work()
    return (await calls()) - before - 1 // the look itself
  }
  const hasRoom = createRoomCheck(tests.redis, clock)
  const askTen = (): Promise<boolean[]> => Promise.all(Array.from({ length: 10 }, hasRoom))
  expect(await asked(askTen)).toBe(1)
  nowMs = 999
  expect(await asked(askTen)).toBe(0)
  nowMs = 1_000
  expect(await asked(askTen)).toBe(1)
  const gone = connectTo(tests.server.url)
  gone.disconnect()
  const cut = createRoomCheck(gone, clock)
  await expect(cut()).rejects.toThrow('Connection is closed')
  await expect(cut()).rejects.toThrow('Connection is closed')
})
