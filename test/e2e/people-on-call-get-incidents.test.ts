/** What a type of sink promises, kept by PagerDuty within the whole daemon. */
import { expect, onTestFinished, test } from 'vitest'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { expectConservation } from '../support/ledger.ts'
import type { PagerDutyEvent } from '../support/pagerduty-receiver.ts'
import { startRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

const routingKey = 'c04d9e77b1Q4xZv8hJt2T7F3E9A51C2p'

test('a group, a notice and a canary reach people on call, as the commands show', async () => {
  const redis = await startRedis()
  const sandbox = await startSandbox({
    pagerDutyKey: routingKey,
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
  onTestFinished(async () => {
    await sandbox.close()
    await redis.stop()
  })
  const yaml = `
redis: {url: '${redis.url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s}}
sinks:
  duty: {type: pagerduty, routing_key: ${routingKey}, url: '${sandbox.pagerDutyUrl}', allow_private: true}
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 20/s}
route: {sinks: [duty, soc], group_by: [feed], group_wait: 1s}
self_alerts: {sink: duty}
canary: {every: 30d, sinks: [duty]}
`
  const incidents = (): PagerDutyEvent[] =>
    sandbox.received.pagerduty.map(({ json }) => json as PagerDutyEvent)
  const withClass = (name: string): PagerDutyEvent[] =>
    incidents().filter(({ payload }) => payload.class === name)
  const listing = (start: string): PagerDutyEvent[] =>
    incidents().filter(({ payload }) => payload.summary.includes(start))

  const replica = aReplica(yaml)
  onTestFinished(() => replica.stop())
  const { url } = await replica.start()
  const [ledger] = replica.ledgers
  await until('the canary is accepted', () => withClass('canary').length > 0)
  await until('the feed is read to its end', async () => {
    return (await ledger!.redis.hget(ledger!.key('feed', 'brand'), 'caught_up')) !== null
  })
  await until('all is settled', () => nothingPending(replica))
  sandbox.addEvents(6, { severity: 'high', ignoredAtMs: null })
  await until('the group is an incident', () => listing('6 new events').length > 0)
  const gone = new URL(sandbox.slackUrl).pathname
  sandbox.faults.add({ on: gone, effect: 'status', status: 410 })
  sandbox.addEvents(1, { severity: 'critical', ignoredAtMs: null })
  await until('the notice is an incident', () => withClass('notice').length > 0)

  expect(withClass('canary').map(({ event_action }) => event_action)).toEqual(['resolve'])
  expect(listing('6 new events')).toMatchObject([
    { event_action: 'trigger', payload: { severity: 'error', component: 'brand' } },
  ])
  expect(withClass('notice')[0]).toMatchObject({ event_action: 'trigger' })
  expect(withClass('notice')[0]?.payload.summary).toContain('soc')
  await expectConservation(ledger!)

  const config = ['--config', aFile('tocsin.yaml', yaml)]
  const checked = await tocsin('check', config[1]!)
  const listed = await tocsin('sinks', 'list', ...config)
  const tested = await tocsin('sinks', 'test', 'duty', ...config)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  expect(checked.out).toMatch(/^ {2}duty: PagerDuty$/m)
  expect(listed.out).toMatch(/^duty \(pagerduty\): circuit closed$/m)
  expect(tested.out).toMatch(/^accepted duty: the other side said: 202 success, dedup_key \w+$/m)
  expect(metrics).toMatch(/^tocsin_canary_last_delivered_timestamp_seconds\{sink="duty"\}/m)
  for (const { out, err } of [checked, listed, tested, { out: metrics, err: '' }]) {
    expect(out + err).not.toContain(routingKey)
  }
})
