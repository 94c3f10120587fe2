import { expect, onTestFinished, test, vi } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import { readDigestTimes } from '../../src/grouping/flusher.ts'
import { digestGroupId, type GroupingSink } from '../../src/grouping/placement.ts'
import { readTimerMs } from '../../src/grouping/timers.ts'
import { createSchedule } from '../../src/lib/cron-schedule.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createKeys } from '../../src/redis/keys.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { until } from '../support/rehearsal.ts'
import { slack, startRig } from '../support/rig.ts'

const dayMs = 86_400_000
const schedule = createSchedule({ cron: '0 8 * * *', timeZone: 'UTC' })

function windowsOf({ ledgers }: App) {
  const ledger = ledgers[0] as AccountLedger
  const gather = (sink: string): string => ledger.key('group', digestGroupId(sink))
  return {
    ledger,
    dueMs: (sink: string) => readTimerMs(ledger, digestGroupId(sink), sink),
    beganMs: async (sink: string) => Number(await ledger.redis.hget(gather(sink), 'from')),
    makeDue: async (sink: string): Promise<void> => {
      await ledger.redis.hset(gather(sink), 'from', Date.now() - 2 * dayMs)
      await ledger.redis.zadd(ledger.key('timers'), Date.now(), `c:${digestGroupId(sink)}:${sink}`)
    },
  }
}

test('a clock that jumps four days ahead and back sends no digest early and leaves each window as it is', async () => {
  await using rig = await startRig()
  const { sandbox } = rig
  const machine = { aheadMs: 0 }
  const wall = vi.spyOn(systemClock, 'now').mockImplementation(() => Date.now() + machine.aheadMs)
  onTestFinished(() => wall.mockRestore())
  const digest = `${slack(sandbox)}, digest: {schedule: '0 8 * * *', timezone: UTC, send_empty: true}`
  const { app } = await rig.start(rig.yaml({ sinks: { morning: digest, now: digest } }))
  const { ledger, dueMs, beganMs, makeDue } = windowsOf(app)
  await until('both have a window', async () =>
    [await dueMs('morning'), await dueMs('now')].every((ms) => ms !== undefined),
  )
  const before = [await dueMs('morning'), await beganMs('morning')]

  machine.aheadMs = 4 * dayMs
  for (const count of [1, 2]) {
    await makeDue('now') // when it comes, a pass has looked at the other one, too
    await until('what is due comes', () => sandbox.received.slack.length >= count)
    expect(sandbox.received.slack).toHaveLength(count)
  }
  expect([await dueMs('morning'), await beganMs('morning')]).toEqual(before)

  machine.aheadMs = 0
  expect(await beganMs('now')).toBeLessThanOrEqual(Date.now() + 1)
  const sink = { name: 'now', destinations: [{ id: 'now' }], digest: { schedule } }
  const store = { lead: ledger, redis: ledger.redis, keys: createKeys('tocsin') }
  const state = await readDigestTimes(store, sink as unknown as GroupingSink, Date.now())
  expect(await dueMs('now')).toBe(state!.nextDueMs)
})
