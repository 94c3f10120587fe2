import { afterAll, beforeAll, expect, test } from 'vitest'
import { readAccounting } from '../../src/store/accounts.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, until } from '../support/rehearsal.ts'

const dayMs = 86_400_000
const count = 3_000

let redis: TestRedis
let sandbox: Sandbox

beforeAll(async () => {
  redis = await startRedis()
  const limits = { search: 10, basic: 10 }
  sandbox = await startSandbox({
    organizations: [{ id: 7, limits, keys: [{ key: 'fw_one', tenants: [42] }] }],
    slackLimit: { perSecond: 50, burst: 50 },
    keep: 10_000,
  })
})

afterAll(async () => {
  await sandbox?.close()
  await redis?.stop()
})

function configuration(severities: string): string {
  return `
redis: {url: '${redis.url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_one, limits: {search: 10, basic: 10}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s, start: 7d, filters: {severity: [${severities}]}}}
sinks:
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true}
route: {sinks: [soc]}
`
}

/** `ageDays` before now, and matched then. */
function add(severity: string, ageDays: number): string {
  const createdAtMs = Date.now() - ageDays * dayMs
  const given = { createdAtMs, arrivedAtMs: createdAtMs, matchedAtMs: createdAtMs }
  return sandbox.addEvent({ severity, ignoredAtMs: null, groupIds: [1042], ...given }).uid
}

test('a critical event that a changed filter lets in is told long before the re-reading ends', async () => {
  add('medium', 0)
  const before = aReplica(configuration('medium'))
  await before.start()
  await until('the feed is read', async () => {
    const { feeds } = await readAccounting(before.ledgers[0]!)
    return feeds['brand']?.new === 1
  })
  await before.stop()
  const urgent = add('critical', 6.9)
  for (let i = 0; i < count; i += 1) add('low', 6.8 - (6.7 * i) / count)
  const after = aReplica(configuration('medium, low, critical'))
  await after.start()
  try {
    const told = (): boolean => sandbox.received.slack.some(({ uids }) => uids.includes(urgent))
    await until('the critical event is told', told)
    const { feeds } = await readAccounting(after.ledgers[0]!)
    expect(feeds['brand']!.new).toBeGreaterThan(100)
    expect(feeds['brand']!.new).toBeLessThan(count)
    const [message] = sandbox.received.slack
    expect(sandbox.received.slack).toHaveLength(1)
    expect(message!.uids).toEqual([urgent]) // nothing of what can wait is told with it
  } finally {
    await after.stop()
  }
})
