import { expect, test } from 'vitest'
import type { Redis } from '../../../src/redis/client.ts'
import { createRedisClock, redisNow } from '../../../src/redis/scripts.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const fourDaysMs = 4 * 86_400_000

/** A machine whose wall clock is off and can be set; no time passes on it by itself. */
function aMachine(offMs: number) {
  const machine = {
    ...systemClock,
    wallMs: Date.now() + offMs,
    passedMs: 7,
    now: () => machine.wallMs,
    monotonic: () => machine.passedMs,
  }
  return machine
}

test.each([fourDaysMs, -fourDaysMs, 90_000])(
  'a machine that is %d ms off shows the time of Redis, also once it is set right',
  async (offMs) => {
    const machine = aMachine(offMs)
    const clock = createRedisClock(machine)
    expect(clock.now()).toBe(machine.wallMs) // nobody was asked yet
    const beforeMs = await redisNow(tests)
    await clock.follow(tests.redis)
    const shownMs = clock.now()
    expect(shownMs).toBeGreaterThanOrEqual(beforeMs)
    expect(shownMs).toBeLessThanOrEqual((await redisNow(tests)) + 1)
    machine.wallMs -= offMs
    expect(clock.now()).toBe(shownMs)
    machine.passedMs += 500
    expect(clock.now()).toBe(shownMs + 500)
  },
)

test.each([
  ['fits what is shown by its way there alone changes nothing', 101_000, 0],
  ['fits what is shown by its way back alone changes nothing', 95_000, 0],
  ['says that it is later moves it on', 102_000, 1_000],
  ['says that it is earlier takes it back, by what is certain', 92_000, -2_999],
])('an answer on its way for some seconds that %s', async (_what, answeredMs, changeMs) => {
  const machine = aMachine(0)
  Object.assign(machine, { wallMs: 95_000, passedMs: 0 })
  const clock = createRedisClock(machine)
  const slow = {
    async time() {
      machine.passedMs += 6_000
      await Promise.resolve()
      return [String(answeredMs / 1_000), '0']
    },
  } as unknown as Redis
  await clock.follow(slow)
  expect(clock.now()).toBe(101_000 + changeMs)
})
