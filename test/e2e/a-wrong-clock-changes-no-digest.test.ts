import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import { readDigestState } from '../../src/grouping/flusher.ts'
import { digestGroupId, type GroupingSink } from '../../src/grouping/placement.ts'
import { readTimerMs } from '../../src/grouping/timers.ts'
import { createSchedule } from '../../src/lib/cron-schedule.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createKeys } from '../../src/redis/keys.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import { readRecord } from '../../src/store/records.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, until } from '../support/rehearsal.ts'

const dayMs = 86_400_000
const schedule = createSchedule({ cron: '0 8 * * *', timeZone: 'UTC' })

let redis: TestRedis
let sandbox: Sandbox

beforeAll(async () => {
  redis = await startRedis()
  sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
})

afterAll(async () => {
  await sandbox.close()
  await redis.stop()
})

/** Two digests every morning, on a machine whose clock is ahead. */
function aMachine(prefix: string, more = '') {
  const machine = { aheadMs: 0 }
  const wall = vi.spyOn(systemClock, 'now').mockImplementation(() => Date.now() + machine.aheadMs)
  const digest = (name: string): string =>
    `${name}: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, digest: {schedule: '0 8 * * *', timezone: UTC, send_empty: true}}`
  const replica = aReplica(`
redis: {url: '${redis.url}', prefix: ${prefix}}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s}}
sinks:
  ${digest('morning')}
  ${digest('now')}
  siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}
route: {sinks: [morning, now]}
${more}`)
  async function end(): Promise<void> {
    await replica.stop()
    wall.mockRestore()
  }
  return { machine, replica, end }
}

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
  const prefix = 'jumps'
  const { machine, replica, end } = aMachine(prefix)
  try {
    await replica.start()
    const { ledger, dueMs, beganMs, makeDue } = windowsOf(replica)
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
    const store = { ledgers: [ledger], redis: ledger.redis, keys: createKeys(prefix) }
    const state = await readDigestState(store, sink as unknown as GroupingSink, {
      nowMs: Date.now(),
    })
    expect(await dueMs('now')).toBe(state!.nextDueMs)
  } finally {
    await end()
  }
})

test('a clock that is four days ahead from the start gives windows and canaries the time of Redis', async () => {
  const canary = 'canary: {every: 1d, sinks: [siem]}'
  const { machine, replica, end } = aMachine('ahead', canary)
  machine.aheadMs = 4 * dayMs
  try {
    const fromMs = Date.now()
    await replica.start()
    const { ledger, dueMs, beganMs } = windowsOf(replica)
    await until('there is a window', async () => (await dueMs('morning')) !== undefined)
    const beginMs = await beganMs('morning')
    expect(beginMs).toBeGreaterThanOrEqual(fromMs - 1)
    expect(beginMs).toBeLessThanOrEqual(Date.now() + 1)
    expect(await dueMs('morning')).toBe(schedule.next(beginMs))
    await until(
      'a canary is taken in',
      async () => (await readAccounting(ledger)).sinks['siem'] !== undefined,
    )
    const slots = [fromMs, Date.now()].map((ms) => Math.floor(ms / dayMs) * dayMs)
    const records = await Promise.all(
      slots.map((ms) => readRecord(ledger, ledger.fingerprints.recordId(`canary/tocsin/${ms}`))),
    )
    expect(records.some((record) => record !== undefined)).toBe(true)
  } finally {
    await end()
  }
})
