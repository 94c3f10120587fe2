/** `routes explain`: of a file, and of what the ledger holds. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()
let prefixes = 0

const uid = 'paste/source.example/1'
const hourMs = 3_600_000

/** ISO 8601, so many hours from now. */
function hence(hours: number): string {
  return new Date(Date.now() + hours * hourMs).toISOString()
}

function configText(redisUrl: string, prefix: string): string {
  return `redis: { url: "${redisUrl}", prefix: ${prefix} }
accounts:
  main: { base_url: "http://127.0.0.1:9", api_key: fw_key }
  second: { base_url: "http://127.0.0.1:9", api_key: fw_key }
feeds:
  brand: { type: events, account: main, identifier_group: 1042, labels: { team: brand } }
  executives: { type: events, account: main, identifier_group: 1043 }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
  oncall: { type: email, smtp: "smtp://u:hush-hush@127.0.0.1", from: a@b.example, to: [c@d.example] }
route:
  sinks: [oncall]
  routes:
    - { name: trial, matchers: ['type="paste"'], sinks: [soc, oncall], mode: shadow }
    - { name: urgent, matchers: ['severity>=high', 'tag="vip"'], sinks: [soc] }
    - name: brand
      matchers: ['team="brand"']
      group_by: [identifier, tag]
      group_wait: 1m
      mute_time_intervals: [this-century]
      routes: [{ name: alone, matchers: ['severity=info'], group_wait: 0s }]
time_intervals: { this-century: [{ years: ['2020:2099'] }] }
inhibit_rules:
  - { source_matchers: ['type="ransomleak"'], target_matchers: ['type="paste"'], window: 1h }
  - { name: pastes, source_matchers: ['type="paste"'], target_matchers: ['type="chat"'], equal: [identifier], window: 2h }
silences:
  - { matchers: ['type="paste"'], starts: ${hence(-1)}, until: ${hence(1)}, owner: jo, reason: 'known campaign', max_severity: medium }
  - { matchers: ['type="chat"'], until: ${hence(-24)}, owner: al, reason: 'of yesterday', max_severity: low }
`
}

interface Scene {
  ledger: AccountLedger
  config: [string, string]
}

async function aScene(): Promise<Scene> {
  const prefix = `routes${(prefixes += 1)}`
  const ledger = await tests.ledger({ keys: createKeys(prefix) })
  return {
    ledger: ledger,
    config: ['--config', aFile('tocsin.yaml', configText(tests.server.url, prefix))],
  }
}

interface Way {
  feed: string
  visits: { route: string; taken: boolean; failed: unknown }[]
  decisions: { route: string }[]
}

async function waysOf(...args: string[]): Promise<Way[]> {
  const { code, out, err } = await tocsin('routes', 'explain', '--output=json', ...args)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return JSON.parse(out) as Way[]
}

/** As the search gives it. */
const item = {
  metadata: { uid, type: 'paste', severity: 'medium' },
  identifiers: [{ id: 7, name: 'example.com' }],
}

test('routes explain tells of an event in a file which way it takes, and what suppresses it', async () => {
  const { config } = await aScene()
  const file = aFile('event.json', JSON.stringify(item))
  const [way] = await waysOf(file, '--feed', 'brand', ...config)
  expect(way).toMatchObject({
    uid,
    feed: 'brand',
    account: 'main',
    silence: { owner: 'jo' },
    inhibits: ['pastes'],
    may_be_inhibited_by: ['inhibit.1'],
    destinations: [
      { sink: 'oncall', destination: 'c@d.example', routes: ['brand', 'trial'], is_shadow: false },
      { sink: 'soc', destination: 'soc', routes: ['trial'], is_shadow: true },
    ],
  })
  expect(way?.visits.map(({ route, taken }) => [route, taken])).toEqual([
    ['root', false],
    ['trial', true],
    ['urgent', false],
    ['brand', true],
    ['alone', false],
  ])
  expect(way?.visits[2]?.failed).toEqual({ matcher: 'severity>=high', actual: ['medium'] })
  expect(way?.decisions).toMatchObject([
    { route: 'trial', mode: 'shadow', group: { feed: 'brand', type: 'paste' }, muted_until: null },
    {
      route: 'brand',
      mode: 'live',
      why: ['team="brand"'],
      group: { identifier: 'example.com', tag: '' },
      muted_until: expect.stringMatching(/^2\d{3}-/),
      on_mute: 'hold',
    },
  ])
})

test('a stored event is asked about as each feed that showed it, or as the one named', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid, type: 'paste', severity: 'low' })])
  await takeIn(ledger, [routed({ uid, type: 'paste', severity: 'low' })], { feed: 'executives' })
  const both = await waysOf('paste/source[.]example/1', ...config)
  expect(both.map(({ feed, decisions }) => [feed, decisions.map(({ route }) => route)])).toEqual([
    ['brand', ['trial', 'brand']],
    ['executives', ['root', 'trial']],
  ])
  const one = await waysOf(uid, '--feed', 'executives', '--account', 'main', ...config)
  expect(one.map(({ feed }) => feed)).toEqual(['executives'])
})
