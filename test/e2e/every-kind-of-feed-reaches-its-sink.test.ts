/** The whole daemon with a feed of every type: each item arrives once, and a quota is kept. */
import { expect, test } from 'vitest'
import { expectConservation } from '../support/ledger.ts'
import { nothingPending, until } from '../support/rehearsal.ts'
import { startRig, webhook } from '../support/rig.ts'

test('a feed of every type reaches its sink, each item once', async () => {
  await using rig = await startRig({
    limit: 30,
    sandbox: { searchQuota: 50 },
  })
  const { sandbox } = rig
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
  const sinks = feeds.map((feed) => `  ${feed}: {${webhook(sandbox, feed)}}`)
  const routes = feeds.map((feed) => `  - {matchers: ['feed="${feed}"'], sinks: [${feed}]}`)
  const { app, metrics } = await rig.start(`${rig.yaml().split('feeds:')[0]}feeds:
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
${sinks.join('\n')}
route:
  sinks: [group]
  routes:
${routes.join('\n')}
`)
  const uids = (name: string): string[] =>
    sandbox.received.webhook
      .filter(({ to }) => to === `/hooks/${name}`)
      .map(({ json }) => (json as { data: { uid: string } }).data.uid)
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
  await until('the reserve is kept', async () =>
    (await metrics()).includes('tocsin_feed_paused{feed="reserved",reason="quota"} 1'),
  )
  expect(await metrics()).toMatch(/tocsin_api_searches_remaining\{account="main"\} 4\d\n/)
  for (const ledger of app.ledgers) await expectConservation(ledger)
})
