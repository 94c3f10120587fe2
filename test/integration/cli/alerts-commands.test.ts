/** `alerts get`: how an assets group is alerted on, without the secrets of its channels. */
import { expect, test } from 'vitest'
import type { SandboxGroup } from '../../../src/sandbox/options.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'

const tests = redisForTests()

/** Between them they have alerts of every channel. */
const groups: SandboxGroup[] = Array.from({ length: 20 }, (_, index) => ({
  id: 1042 + index,
  name: `Group ${index}`,
  tenantId: 42,
  identifiers: [],
}))

interface Alert {
  id: number
  type: string
  params: Record<string, unknown>
}

async function alertsOf(
  run: (...args: string[]) => Promise<{ out: string }>,
  ...args: string[]
): Promise<Alert[]> {
  const found: Alert[] = []
  for (const { id } of groups) {
    const { out } = await run('alerts', 'get', String(id), '--output=json', ...args)
    found.push(...(JSON.parse(out) as { items: Alert[] }).items)
  }
  return found
}

test('alerts get shows each alert of the group with its severities and where it goes', async () => {
  const { run } = await aServiceScene(tests)
  const { code, out } = await run('alerts', 'get', '1042')
  expect(code).toBe(0)
  expect(out).toMatch(/^ID +TYPE +FREQUENCY +SEVERITIES +TARGET +NAME$/m)
  expect(out).toMatch(
    /^10420 +email +3600 +critical, high, medium +assets\/groups 1042 +Brand \(email\)\n {4}search types: none given\n {4}channel 100420: \{"email":"soc@example.com"/m,
  )
  expect(out).toMatch(/^10421 .*\n {4}search types: illicit_networks, leaks$/m)
  expect(out).toContain('    https://app.example.com/#/groups/1042')
})

test.each(['object', 'array'] as const)(
  'an alert that is sent as an %s is shown',
  async (alertsAs) => {
    const { run } = await aServiceScene(tests, { alertsAs })
    const { out } = await run('alerts', 'get', '1043', '--output=ndjson')
    expect(JSON.parse(out)).toMatchObject({ id: 10_430, feed_target_id: 1043 })
  },
)

test('alerts get has CSV with every field', async () => {
  const { run } = await aServiceScene(tests)
  const { out } = await run('alerts', 'get', '1042', '--output=csv')
  const [head, ...rows] = out.trim().split('\n')
  expect(head?.split(',')).toHaveLength(16)
  expect(rows).toHaveLength(2)
})

test('no secret and no path of a webhook is shown in any form without --reveal', async () => {
  const { run } = await aServiceScene(tests, { groups })
  const shown = await alertsOf(run, '--reveal')
  expect(new Set(shown.map(({ type }) => type))).toEqual(
    new Set(['email', 'slack', 'webhook', 'splunk']),
  )
  const secrets = shown.flatMap(({ params }) =>
    [params['secret'], params['api_token'], params['webhook_url']].filter(
      (secret) => typeof secret === 'string',
    ),
  )
  expect(secrets.length).toBeGreaterThan(5)
  for (const form of ['text', 'json', 'ndjson', 'csv']) {
    for (const { id } of groups) {
      const { out } = await run('alerts', 'get', String(id), `--output=${form}`)
      expect(secrets.filter((secret) => out.includes(secret))).toEqual([])
    }
  }
  const masked = await alertsOf(run)
  expect(masked.find(({ type }) => type === 'slack')?.params).toEqual({
    webhook_url: 'https://slack.example/••••',
  })
  expect(masked.find(({ type }) => type === 'splunk')?.params).toEqual({
    api_token: '••••',
    netloc: 'splunk.example',
    index: 'threats',
  })
})

test('a group that is not there is named, and what is no id is refused', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  expect((await run('alerts', 'get', 'brand')).code).toBe(2)
  expect(sandbox.requests).toEqual([])
  expect(await run('alerts', 'get', '99')).toEqual({
    code: 1,
    out: '',
    err: 'assets group 99: the service refuses the request (404): no such assets group\n',
  })
})
