/** What commands print that ask the service, against the pretend one; and what they print of a mistake. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import { aServiceScene, type ServiceScene } from '../integration/cli/service-scene.ts'
import { aFile } from '../integration/cli/tocsin.ts'
import { redisForTests } from '../support/ledger.ts'
import { type Session, transcript, transcriptFile } from './transcript.ts'

const tests = redisForTests()
const secret = 'Hush-Hush-4711'
const minuteMs = 60_000

beforeEach(() => void vi.stubEnv('USER', 'ann'))
afterEach(() => void vi.unstubAllEnvs())

/** What is leaked has always the same names, and comes a minute apart. */
async function aScene(options: SandboxOptions): Promise<ServiceScene> {
  const scene = await aServiceScene(tests, { seed: 1, reportMs: 0, searchQuota: 50, ...options })
  const { sandbox } = scene
  const nowMs = Date.now()
  const identifiers = [{ id: 77, name: 'example.com' }]
  for (const [n, { uid, ...given }] of events.entries()) {
    const createdAtMs = nowMs - (n + 1) * minuteMs
    sandbox.addEvent({ uid, groupIds: [1042], identifiers, createdAtMs, ...given })
  }
  const given = { hash: secret, hashType: null, domain: 'example.com', identifierIds: [77] }
  const logins = ['anna', 'ben', 'cleo'].map((name, n) => ({
    ...given,
    importedAtMs: nowMs - (n + 1) * minuteMs,
    identityName: `${name}@example.com`,
    authDomains: ['vpn.example.com'],
  }))
  sandbox.addCredentials(logins)
  return scene
}

const stolen = {
  credentials: [
    {
      url: 'https://vpn.example.com/login',
      username: 'anna@example.com',
      password: secret,
      application: 'Outlook',
    },
  ],
  cookies: [
    {
      host_key: 'vpn.example.com',
      path: '/',
      expires_utc: '2036-01-01T00:00:00',
      name: 'sid',
      value: secret,
    },
  ],
}

const events = [
  {
    uid: 'stealer_log/logs/1',
    type: 'stealer_log',
    severity: 'critical',
    highlights: { 'credentials.password': [`<mark>${secret}</mark>`] },
    data: { malware_information: { malware_family: 'StealC' } },
    stolen,
  },
  {
    uid: 'forum_post/forum/2',
    type: 'forum_post',
    severity: 'low',
    highlights: { content: [`Ask <mark>Example</mark> Bank, anna@example.com:${secret}`] },
    data: { content: `anna@example.com:${secret}`, actor: { name: 'darkcat' } },
  },
  { uid: 'paste/site/3', type: 'paste', severity: 'high', tags: ['vip'], highlights: {}, data: {} },
]

/** With the service's address hidden. */
async function asked(
  happen: (session: Session, scene: ServiceScene) => Promise<unknown>,
  options: SandboxOptions = {},
): Promise<string> {
  const scene = await aScene(options)
  const texts = [
    [scene.sandbox.url, 'http://sandbox'],
    [new URL(scene.sandbox.url).host, 'sandbox'],
    [/(--from '|"next": ")W[\w%]+/g, '$1<cursor>'],
  ] as const
  return transcript(scene.run, (session) => happen(session, scene), { texts })
}

function act(type: string): string {
  return JSON.stringify({ targets: [{ uid: 'paste/site/3' }], action: { type } })
}

test('events', async () => {
  await expect(
    await asked(async ({ type }, { runAt }) => {
      await type(`
      events search --group 1042 --limit 2
      events search --group 1042 --type paste --output json
      events search --tenant --limit 1 --output ndjson
      events search --domain example.com
      events search
      events search --severity grave
      events search --since soon
      events get stealer_log/logs/1
      events get forum_post/forum/2 --output json
      events get forum_post/forum/2 --reveal
      events get nothing/at/all
      api events.expand --uid stealer_log/logs/1 --field credentials
      api events.expand --uid stealer_log/logs/1 --field cookies --reveal
      api events.expand --uid stealer_log/logs/1 --field credentials --output json
      api events.expand --uid forum_post/forum/2 --field credentials
      api events.expand --uid stealer_log/logs/1
      api events.legacy-search --types paste
      api events.legacy-search --types paste --output json
      api events.legacy-search --types nothing
      # writes
      api events.act --body '${act('ignore')}'
    `)
      await type('# at a terminal, where n is typed')
      await type(`api events.act --body '${act('ignore')}'`, (...args) => runAt('n', ...args))
      await type('# at a terminal, where y is typed')
      await type(`api events.act --body '${act('ignore')}'`, (...args) => runAt('y', ...args))
      await type('# by a script')
      await type(`
      api events.act --body '${act('ignore')}' --yes
      api events.act --body '${act('remediate')}' --yes --by jo --output json
      api events.act --body '${act('forget')}' --yes
      api events.act --yes
      api events.note --uid paste/site/3 --tags vip,2026
      api events.note --uid paste/site/3 --notes 'a look of ours' --yes
      api events.note --uid nothing/at/all --severity low --yes
      api events.note --uid paste/site/3 --severity grave --yes
      items show paste/site/3
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('events'))
})

test('credentials and cookies', async () => {
  await expect(
    await asked(async ({ type, know }, { run }) => {
      const { out } = await run(
        'credentials',
        'search',
        '--domain=example.com',
        '--output=json',
        '--reveal',
      )
      const { items } = JSON.parse(out) as { items: { credential_hash: string }[] }
      know('hash', items[0]!.credential_hash)
      await type(`
      credentials search --domain example.com
      credentials search --email anna@example.com --output json
      credentials search
      api credentials.feed --identifier-id 77
      api credentials.feed --identifier-id 77 --limit 1 --output json
      api credentials.feed --identifier-id 7
      api credentials.feed
      api credentials.urls --credential-hash $hash
      api credentials.urls --credential-hash $hash --output json
      api credentials.urls
      api cookies.search --domain vpn.example.com
      api cookies.search --body '{"query":{"type":"domain","fqdn":"vpn.example.com"}}'
      # writes
      api credentials.act --body '{"targets":[{"credential_hash":"$hash"}],"action":{"type":"ignore"}}'
      api credentials.act --body '{"targets":[{"credential_hash":"$hash"}],"action":{"type":"ignore"}}' --yes
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('credentials'))
})

test('assets, identifiers, groups', async () => {
  await expect(
    await asked(({ type }) =>
      type(`
      assets list
      assets list --group 1043 --output json
      assets list --type nothing
      api identifiers.get --identifier-id 77
      api identifiers.get --identifier-id 77 --output json
      api identifiers.get --identifier-id 7
      api identifiers.get --identifier-id seven
      api identifiers.list --types keyword --limit 1
      api identifiers.list --order-by age
      groups list
      groups list --output json
      groups list --limit 1
      groups list --limit 0
      # writes
      api assets.create --body '${anAsset}' --yes
      api assets.create --body '${anAsset}' --name Other --yes --output json
      api assets.create --name Bank --type nothing
      api assets.toggle --asset-id 78 --is-disabled true
      api assets.toggle --asset-id 78 --is-disabled true --yes
      api assets.toggle --asset-id 7 --is-disabled true --yes
      api assets.delete --asset-id 78 --yes
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('assets'))
})

const anAsset = JSON.stringify({
  name: 'Example',
  type: 'domain',
  search_types: ['leak'],
  data: { fqdn: 'example.com' },
})

test('policies', async () => {
  await expect(
    await asked(async ({ type, know }) => {
      const policy = `'{"name":"breaches","type":"INCLUDED_KEYWORDS","value":{"keywords":["breach"]}}'`
      const made = await type(`api policies.create --body ${policy} --yes`)
      know('uuid', /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(made)?.[0] ?? '')
      await type(`
      api policies.create --body '{"name":"nothing"}'
      api policies.get --policy-uuid $uuid
      api policies.get --policy-uuid $uuid --output json
      api policies.get --policy-uuid 00000000-0000-4000-8000-000000000000
      api policies.assign --policy-uuid $uuid --identifier-ids 77,78
      api policies.assign --policy-uuid $uuid --identifier-ids 77,78 --yes
      api policies.assign --policy-uuid $uuid --identifier-ids seven --yes
      api policies.of-identifier --identifier-id 77
      api policies.of-identifier --identifier-id 77 --output json
      api policies.delete --policy-uuid $uuid
      api policies.delete --policy-uuid $uuid --yes
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('policies'))
})

test('alerts', async () => {
  await expect(
    await asked(({ type }) =>
      type(`
      api
      api alerts.list
      api alerts.list --limit 1 --output json
      api alerts.list --limit 0
      api alerts.of-group --assets-group-id 1042
      api alerts.of-group --assets-group-id 7
      api alerts.lits
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('alerts'))
})

/** A report that is made has a form that goes by its id, which differs; those of the start are the same. */
test('reports', async () => {
  const report = aFile('report.docx', '')
  await expect(
    await asked(
      async ({ type }) => {
        await type(`
      api reports.list
      api reports.list --limit 1 --output json
      api reports.get --report-id 9001
      api reports.get --report-id 9001 --output json
      api reports.get --report-id 7
      api reports.get
      reports download 9001
      reports download 9001 --out ${report}
      reports download 9001 --out ${report.replace('report.', 'other.')}
      reports download 7 --out missing.docx
      # writes
      api reports.request --body '{"title":"What was said"}'
    `)
      },
      { backlog: 6 },
    ),
  ).toMatchFileSnapshot(transcriptFile('reports'))
})

test('tenants', async () => {
  await expect(
    await asked(({ type }) =>
      type(`
      tenants list
      tenants list --output json
      tenants list --account nobody
      api tenants.create --organization-id 7 --name Umbrella --industry finance
      api tenants.create --organization-id 7 --name Umbrella --industry finance --yes
      api tenants.create --organization-id 7 --name Umbrella --industry nothing --yes
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('tenants'))
})

test('monitoring', async () => {
  await expect(
    await asked(async ({ type }, { runAt }) => {
      const file = aFile('monitoring.yaml', monitoring)
      const changed = aFile('changed.yaml', monitoring.replace('[3, 4, 5]', '[5]'))
      await type(`
      monitoring plan -f ${file}
      monitoring plan -f ${file} --output json
      monitoring apply -f ${file}
      monitoring apply -f ${file}
      monitoring apply -f ${changed}
      # at a terminal, where y is typed
      `)
      await type(`monitoring apply -f ${changed}`, (...args) => runAt('y', ...args))
      await type(`
      # by a script
      monitoring plan -f ${changed} --prune
      monitoring apply -f ${changed} --prune
      monitoring apply -f ${changed} --prune --yes --output json
      monitoring plan -f missing.yaml
      monitoring plan
      monitoring plan -f ${aFile('bad.yaml', 'assets: { brand: { typ: keyword } }')}
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('monitoring'))
})

const monitoring = `assets:
  brand:
    name: Acme Bank
    type: keyword
    data: { keyword: acme bank }
    search_types: [leaks, paste]
    risks: [3, 4, 5]
    policies: [no-jobs]
policies:
  no-jobs: { excluded_keywords: [careers] }
`
