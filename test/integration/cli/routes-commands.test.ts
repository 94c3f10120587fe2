/** `routes explain`: of a file, and of what the ledger holds. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
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
  decisions: Record<string, unknown>[]
  destinations: unknown[]
  silence: { owner: string } | null
  inhibits: string[]
  may_be_inhibited_by: string[]
}

async function waysOf(...args: string[]): Promise<Way[]> {
  const { code, out, err } = await tocsin('routes', 'explain', '--output=json', ...args)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return JSON.parse(out) as Way[]
}

/** An item as the search gives it. */
function anItem(overrides: { severity?: string; type?: string } = {}): string {
  const { severity = 'medium', type = 'paste' } = overrides
  return JSON.stringify({
    metadata: { uid: `${type}/source.example/1`, type, severity },
    identifiers: [{ id: 7, name: 'example.com' }],
  })
}

test('routes explain tells of an event in a file which way it takes, and what keeps it back', async () => {
  const { config } = await aScene()
  const file = aFile('event.json', anItem())
  const args = [file, '--feed', 'brand', ...config]
  const [way] = await waysOf(...args)
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

test('a silence keeps nothing back that is above its severity', async () => {
  const { config } = await aScene()
  const severe = aFile('event.json', anItem({ severity: 'high' }))
  const [way] = await waysOf(severe, '--feed', 'executives', ...config)
  expect(way?.silence).toBeNull()
  expect(way?.decisions).toMatchObject([{ route: 'root' }, { route: 'trial' }])
})

test('an event may come by standard input', async () => {
  const { config } = await aScene()
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const stop = new AbortController().signal
  input.end(anItem({ severity: 'info' }))
  const args = ['routes', 'explain', '-', '--feed=brand', '--output=json', ...config]
  expect(await runProgram(args, { input, output, errors, stop })).toBe(0)
  output.end()
  expect(JSON.parse(await text(output))).toMatchObject([
    { decisions: [{ route: 'trial' }, { route: 'alone', group: null }] },
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

test('a feed that the file no longer has is asked about with the labels it had', async () => {
  const { ledger, config } = await aScene()
  const event = routed({ uid, type: 'chat', severity: 'low' })
  await takeIn(ledger, [event], { feed: 'gone', labels: { team: 'brand' } })
  const [way] = await waysOf(uid, ...config)
  expect(way).toMatchObject({ feed: 'gone', decisions: [{ route: 'brand' }] })
})

test('an event that is not known, or of which only the history is left, ends with 1', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid })])
  const args = ['routes', 'explain', ...config]
  expect(await tocsin(...args, 'paste/other/1')).toMatchObject({
    code: 1,
    err: expect.stringContaining('was never taken in'),
  })
  expect((await tocsin(...args, uid, '--account', 'second')).code).toBe(1)
  await ledger.redis.del(ledger.key('pay', ledger.fingerprints.recordId(uid)))
  expect(await tocsin(...args, uid)).toMatchObject({
    code: 1,
    err: expect.stringContaining('its content is no longer kept (retention.payload)'),
  })
})

test.each([
  ['nothing', [], "missing required argument 'event'"],
  ['no feed among several', ['FILE'], 'with --feed which feed brings it: brand, executives'],
  ['an unknown feed', ['a/b/c', '--feed=brnd'], 'no feed "brnd"; did you mean "brand"?'],
  ['an unknown account', ['FILE', '--account=nobody'], 'no account "nobody"'],
  ['a file that is not there', ['/nowhere.json', '--feed=brand'], 'there is no such file'],
  ['what is no JSON', ['FILE', '--feed=brand'], 'not JSON; write one item of a search'],
])('routes explain refuses %s', async (_what, args, said) => {
  const { config } = await aScene()
  const file = aFile('event.json', '{"password": hush-hush')
  const given = args.map((arg) => arg.replace('FILE', file))
  const { code, err } = await tocsin('routes', 'explain', ...given, ...config)
  expect(err).toContain(said)
  expect(err).not.toContain('hush-hush')
  expect(code).toBe(2)
})

test('routes explain says what makes a text no event', async () => {
  const { config } = await aScene()
  const file = aFile('event.json', '{"metadata": {"type": "paste"}}')
  const args = [file, '--feed', 'brand', ...config]
  const { code, err } = await tocsin('routes', 'explain', ...args)
  expect(err).toMatch(/not an event: metadata\.uid: .*; write one item of a search answer/)
  expect(code).toBe(2)
})
