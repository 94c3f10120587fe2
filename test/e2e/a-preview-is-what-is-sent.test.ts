/** What `render` and `digests` show is what the daemon sends: the same words by the same options. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, until } from '../support/rehearsal.ts'

let redis: TestRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.stop())

function configText(url: string, sinks: string): string {
  return `
redis: {url: '${redis.url}'}
http: {port: 0}
accounts:
  one: {base_url: '${url}', link_hosts: [app.example.com], api_key: fw_one, tenant_id: 42}
  two: {base_url: '${url}', link_hosts: [app.example.com], api_key: fw_one, tenant_id: 42}
feeds:
  brand: {type: events, account: one, identifier_group: 1042, every: 5s, initial_poll: send, labels: {team: blue}}
messages: {next_steps: {stealer_log: Reset the login}}
sinks:
${sinks}
route:
  sinks: [soc, siem]
  group_wait: 0s
  note: Ask the owner
  runbook_url: https://wiki.example.com/run
  mention: [U012AB3CD]
`
}

test('the daemon says what to do, and render shows what it sent', async () => {
  const sandbox = await startSandbox({
    organizations: [{ id: 7, keys: [{ key: 'fw_one', tenants: [42] }] }],
    groups: [
      { id: 1042, name: 'Brand', tenantId: 42, identifiers: [{ id: 77, name: 'example.com' }] },
    ],
    enforceLimits: false,
  })
  const yaml = configText(
    sandbox.url,
    `  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, time_zone: Europe/Zurich}
  siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}`,
  )
  sandbox.addEvents(1, {
    severity: 'high',
    type: 'stealer_log',
    groupIds: [1042],
  })
  const replica = aReplica(yaml)
  try {
    await replica.start()
    const { slack, webhook } = sandbox.received
    await until('both have it', () => Promise.resolve(slack.length > 0 && webhook.length > 0))
    const said = JSON.stringify(slack[0]?.json)
    const words = [
      'Ask the owner',
      'Reset the login',
      '<@U012AB3CD>',
      'https://wiki.example.com/run',
      'CE',
    ]
    for (const each of words) expect(said).toContain(each)
    expect(said).toContain('"Account\\none"')
    expect(webhook[0]?.json).toMatchObject({
      data: { tenant_id: 42, next_step: 'Reset the login' },
    })
    const { uid } = (webhook[0]!.json as { data: { uid: string } }).data
    const config = ['--config', aFile('tocsin.yaml', yaml)]
    for (const [sink, sent] of [
      ['soc', slack],
      ['siem', webhook],
    ] as const) {
      const { out } = await tocsin('render', uid, `--sink=${sink}`, '--output=json', ...config)
      expect((JSON.parse(out) as { body: unknown }).body).toEqual(sent[0]?.json)
    }
  } finally {
    await replica.stop()
    await sandbox.close()
  }
})
