/** `feeds import`: the alerts of an assets group become feeds that the configuration takes. */
import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { feedLines, alertsToFeeds } from '../../../src/cli/monitoring/feeds-import.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aMonitoringScene, configText } from './monitoring-scene.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()

const groups = Array.from({ length: 12 }, (_, index) => ({
  id: 2000 + index,
  name: `Größe & Söhne: #${index} \${HOME}`,
  tenantId: 42,
  identifiers: [],
}))

test('what is printed stands under feeds: and passes the check, whatever the alerts are', async () => {
  const { config } = await aMonitoringScene(tests, '', { groups })
  for (const { id } of groups) {
    const { code, out } = await tocsin('feeds', 'import', '--group', String(id), ...config)
    expect(code).toBe(0)
    const pasted = aFile('tocsin.yaml', configText('https://api.example.com', 'redis://h', out))
    const checked = await tocsin('check', '--output=json', pasted)
    expect(checked.err).toBe('')
    const { feeds } = JSON.parse(checked.out) as { feeds: { type: string }[] }
    expect(feeds.length).toBeGreaterThan(0)
    expect(feeds).toEqual(
      feeds.map(() => expect.objectContaining({ type: 'events', identifier_group: id })),
    )
  }
})

test('what is printed passes the check beside what was imported before, of another group too', async () => {
  const named = [2000, 2001].map((id) => ({ id, name: 'Same', tenantId: 42, identifiers: [] }))
  const { config, sandbox } = await aMonitoringScene(tests, '', { groups: named })
  let pasted = ''
  for (const id of ['2000', '2001', '2000']) {
    const { out } = await tocsin('feeds', 'import', '--group', id, ...config)
    pasted += out
    writeFileSync(config[1], configText(sandbox.url, tests.server.url, pasted))
  }
  const checked = await tocsin('check', '--output=json', config[1])
  expect({ code: checked.code, err: checked.err }).toEqual({ code: 0, err: '' })
  const { feeds } = JSON.parse(checked.out) as { feeds: { name: string }[] }
  const twice = feeds.filter(({ name }) => /-2000(-\d)?$/.test(name))
  expect(twice).not.toEqual([])
  expect(pasted).toContain('    # the configuration has a feed same-')
})

test('types that YAML would read as something else pass the check', async () => {
  const search_types = ['123', 'null', 'true', 'yes', 'leaks', '0x1', '-1']
  const alerts = [{ id: 1, name: 'true', search_types }]
  const feeds = alertsToFeeds(alerts, { groupId: 1042, account: undefined, feeds: [] })
  const text = configText(
    'https://api.example.com',
    'redis://h',
    feeds.flatMap(feedLines).join('\n'),
  )
  const checked = await tocsin('check', '--output=json', aFile('tocsin.yaml', text))
  expect({ code: checked.code, err: checked.err }).toEqual({ code: 0, err: '' })
})

test('severities and types become filters, and alerts of the same filter one feed', async () => {
  const { config, sandbox } = await aMonitoringScene(tests, '', { groups })
  const seen = new Set<string>()
  for (const { id } of groups) {
    const { out } = await tocsin('feeds', 'import', `--group=${id}`, '--output=json', ...config)
    const feeds = JSON.parse(out) as { name: string; filters: object; remarks: string[] }[]
    const filters = feeds.map((feed) => JSON.stringify(feed.filters))
    expect(new Set(filters).size).toBe(filters.length)
    expect(new Set(feeds.map(({ name }) => name)).size).toBe(feeds.length)
    for (const filter of filters) seen.add(filter)
    const alerts = feeds.flatMap(({ remarks }) => remarks).filter((said) => /^alert \d/.test(said))
    expect(alerts).toHaveLength(id % 2 === 0 ? 2 : 1)
  }
  expect([...seen]).toEqual(
    expect.arrayContaining([
      expect.stringContaining('"severity":["medium","high","critical"]'),
      expect.stringContaining('"type":["illicit_networks","leaks"]'),
    ]),
  )
  expect(sandbox.requests.filter(({ method }) => method !== 'GET')).toHaveLength(1) // the token
})

test('nothing of the params of an alert is shown, which hold secrets', async () => {
  const { config } = await aMonitoringScene(tests, '', { groups })
  for (const { id } of groups) {
    for (const form of ['text', 'json']) {
      const args = ['feeds', 'import', `--group=${id}`, `--output=${form}`, ...config]
      const { out, err } = await tocsin(...args)
      expect(out + err).not.toMatch(/webhook_url|hooks\.|slack\.example|api_token|soc@|X-Team/)
      expect(out).not.toMatch(/[0-9a-f]{20}/)
    }
  }
})

test('a channel and a frequency are remarks, since they have no equivalent', async () => {
  const { config } = await aMonitoringScene(tests, '')
  const { out } = await tocsin('feeds', 'import', '--group=1043', ...config)
  expect(out).toMatch(/^ {4}# alert 10430, "Suppliers \(\w+\)": goes to \w+ by channel 100430; /m)
  expect(out).toMatch(/its frequency \d+ has no published unit: every stays at its default/)
})

test.each([
  ['99', 1, 'assets group 99: the service refuses the request (404): no such assets group\n'],
  [
    '0',
    2,
    "error: option '--group <id>' argument '0' is invalid. Write the id, a whole number of at least 1.\n",
  ],
  [
    'brand',
    2,
    "error: option '--group <id>' argument 'brand' is invalid. Write the id, a whole number of at least 1.\n",
  ],
])('the group %s is refused with one sentence', async (group, code, said) => {
  const { config } = await aMonitoringScene(tests, '')
  const ended = await tocsin('feeds', 'import', `--group=${group}`, ...config)
  expect(ended).toEqual({ code, out: '', err: said })
})

test('a wrong key is said to be one', async () => {
  const { sandbox } = await aMonitoringScene(tests, '')
  const wrong = aFile(
    'tocsin.yaml',
    configText(sandbox.url, tests.server.url).replace('fw_sandbox', 'fw_other'),
  )
  const ended = await tocsin('feeds', 'import', '--group=1042', '--config', wrong)
  expect(ended).toMatchObject({ code: 1, out: '' })
  expect(ended.err).toContain('refused (401)')
})
