import { expect, test } from 'vitest'
import { aFeed } from '../../support/feeds.ts'
import { startFeedRig } from '../../support/feed-rig.ts'
import { createRoomCheck } from '../../../src/redis/health.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { connectTo, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

async function commandCalls(): Promise<Map<string, number>> {
  const info = await tests.redis.info('commandstats')
  return new Map(
    [...info.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(([, name, calls]) => [
      name!,
      Number(calls),
    ]),
  )
}

test('a poll that finds nothing takes three scripts and twenty-five commands of Redis at most', async () => {
  const rig = await startFeedRig({ tests })
  const feed = aFeed({ rescan: undefined })
  try {
    await rig.toEnd(feed)
    await rig.toEnd(feed)
    const before = await commandCalls()
    const polls = 10
    for (let poll = 0; poll < polls; poll += 1) {
      await systemClock.sleep(5) // a poll that comes before its slot is free takes a script more
      await rig.turn(feed)
    }
    const after = await commandCalls()
    const each = [...after].map(
      ([name, calls]) => [name, (calls - (before.get(name) ?? 0)) / polls] as const,
    )
    const commands = each.filter(([name]) => name !== 'info' && !name.startsWith('eval'))
    const scripts = each.filter(([name]) => name === 'evalsha')
    expect(sum(scripts)).toBeLessThanOrEqual(3)
    expect(sum(commands)).toBeLessThanOrEqual(25)
    expect(sum(commands)).toBeGreaterThan(10)
  } finally {
    await rig.stop()
  }
})

function sum(calls: readonly (readonly [string, number])[]): number {
  return calls.reduce((total, [, count]) => total + count, 0)
}

test('whether Redis has room is asked once a second, and again at once where nobody knows', async () => {
  let nowMs = 0
  const clock = { ...systemClock, monotonic: () => nowMs }
  const asked = async (work: () => Promise<unknown>): Promise<number> => {
    const calls = async (): Promise<number> => (await commandCalls()).get('info') ?? 0
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
