/** The whole daemon with a feed of every type: each item arrives once, and a quota is kept. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

test('a feed of every type reaches its sink, each item once', async () => {
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 30, basic: 30 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
    searchQuota: { prefix: 'X-Vendor-', searches: 50 },
  })
  onTestFinished(() => sandbox.close())
  const highlights = { content: ['something of <mark>acme</mark>'] }
  const events = sandbox.addEvents(12, { severity: 'high', groupIds: [1042], highlights })
  const others = sandbox.addEvents(8, { severity: 'high', groupIds: [1043], highlights })
  const credentials = sandbox.addCredentials(9, { identifierIds: [77], domain: 'example.com' })
  const expires_utc = '2090-01-01T00:00:00'
  const cookies = ['a', 'b', 'c'].map((value) => ({
    host_key: '.vpn.example.com',
    path: '/',
    expires_utc,
    name: 'sid',
    value: `c00kie-${value}`,
  }))
  sandbox.addEvent({
    type: 'stealer_log',
    groupIds: [],
    identifiers: [],
    stolen: { credentials: [], cookies },
  })
  const sink = (name: string): string =>
    `${name}: {type: webhook, url: '${sandbox.url}/hooks/${name}', secret: '${sandbox.webhookSecret}', allow_private: true}`
  const feeds = [
    'group',
    'tenant',
    'one',
    'global',
    'staff',
    'everybody',
    'leaks',
    'sessions',
    'reserved',
  ]
  const app = aReplica(`
redis: {url: '${redis.url}', prefix: kinds}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 30, basic: 30}}}
feeds:
  group: {type: events, identifier_group: 1042}
  tenant: {type: events}
  one: {type: events, identifier: 77}
  global: {type: event_search, query: {type: keyword, keyword: acme}}
  staff: {type: credentials, identifier: 77, severity: high}
  everybody: {type: credentials, severity: high}
  leaks: {type: credential_search, query: {type: domain, fqdn: example.com}, severity: high}
  sessions: {type: cookies, domain: vpn.example.com}
  reserved: {type: event_search, every: 5s, query: {type: keyword, keyword: acme}, quota_reserve: 50}
sinks:
  ${feeds.map(sink).join('\n  ')}
route:
  sinks: [group]
  routes:
    ${feeds.map((feed) => `- {matchers: ['feed="${feed}"'], sinks: [${feed}]}`).join('\n    ')}
`)
  onTestFinished(() => app.stop())
  const { url } = await app.start()
  const uids = (name: string): string[] =>
    sandbox.received.webhook
      .filter(({ to }) => to.endsWith(`/hooks/${name}`))
      .flatMap(({ json }) => {
        const { data } = json as { data: { uid: string } }
        return [data.uid]
      })
      .toSorted()
  const all = [...events, ...others].map(({ uid }) => uid).toSorted()
  const leaked = credentials.map((one) => `credential/${one.id}`).toSorted()
  await until('every search has found all', () =>
    ['global', 'tenant'].every((feed) => uids(feed).length >= 20),
  )
  await until('every credential is there', () =>
    ['leaks', 'staff', 'everybody'].every((feed) => uids(feed).length >= 9),
  )
  await until('every cookie is there', () => uids('sessions').length >= 3)
  await until('nothing is pending', () => nothingPending(app))
  expect(uids('group')).toEqual(events.map(({ uid }) => uid).toSorted())
  expect(uids('tenant')).toEqual(all)
  const ofOne = [...events, ...others].filter(({ identifiers }) =>
    identifiers.some((identifier) => identifier.id === 77),
  )
  expect(uids('one')).toEqual(ofOne.map(({ uid }) => uid).toSorted())
  expect(uids('global')).toEqual(all)
  expect(uids('staff')).toEqual(leaked)
  expect(uids('everybody')).toEqual(leaked)
  expect(uids('leaks')).toEqual(leaked)
  expect(uids('sessions')).toHaveLength(3)
  expect(JSON.stringify(sandbox.received.webhook)).not.toContain('c00kie')
  const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`)).text()
  await until('the reserve is kept', async () =>
    (await metrics()).includes('tocsin_feed_paused{feed="reserved",reason="quota"} 1'),
  )
  expect(await metrics()).toMatch(/tocsin_api_searches_remaining\{account="main"\} 4\d\n/)
  for (const ledger of app.ledgers) await expectConservation(ledger)
})
