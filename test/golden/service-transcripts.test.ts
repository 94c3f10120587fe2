/** What commands print that ask the service, against the pretend one; and what they print of a mistake. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import { knownReportRequests } from '../../src/sandbox/reports/reports.ts'
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
  const scene = await aServiceScene(tests, { seed: 1, reportMs: 0, ...options })
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
  ] as const
  return transcript(scene.run, (session) => happen(session, scene), { texts })
}

test('events', async () => {
  await expect(
    await asked(async ({ type }, { runAt }) => {
      await type(`
      events search --group 1042 --limit 2
      events search --group 1042 --type paste --output json
      events search --tenant --limit 1 --output ndjson
      events search --tenant --limit 1 --output csv
      events search --domain example.com
      events search
      events search --severity grave
      events search --since soon
      events get stealer_log/logs/1
      events get forum_post/forum/2 --output json
      events get forum_post/forum/2 --reveal
      events get nothing/at/all
      events expand stealer_log/logs/1 --field credentials
      events expand stealer_log/logs/1 --field cookies --reveal
      events expand stealer_log/logs/1 --field credentials --output json
      events expand forum_post/forum/2 --field credentials
      events expand stealer_log/logs/1
      events legacy-search --type paste
      events legacy-search --type paste --output json
      events legacy-search --risk 9
      # writes
      events ignore paste/site/3
    `)
      await type('# at a terminal, where n is typed')
      await type('events ignore paste/site/3', (...args) => runAt('n', ...args))
      await type('# at a terminal, where y is typed')
      await type('events ignore paste/site/3', (...args) => runAt('y', ...args))
      await type('# by a script')
      await type(`
      events ignore paste/site/3 --yes
      events ignore paste/site/3 nothing/at/all --yes --output json
      events remediate paste/site/3 --yes --by jo
      events remediate nothing/at/all --yes
      events restore paste/site/3 --ignored --yes
      events restore paste/site/3
      events tag paste/site/3 --tags vip,2026
      events tag paste/site/3 --tags vip,2026 --yes
      events tag paste/site/3 --yes
      events note paste/site/3 --text 'a look of ours'
      events note paste/site/3 --text 'a look of ours' --yes
      events note nothing/at/all --text 'a look of ours' --yes
      events severity paste/site/3 --to low
      events severity paste/site/3 --to low --yes
      events severity paste/site/3 --to grave --yes
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
      credentials search --domain example.com --limit 1 --output csv
      credentials search
      credentials search --domain example.com --size 0
      credentials feed 77
      credentials feed 77 --limit 1 --output json
      credentials feed 7
      credentials feed --tenant
      credentials feed
      credentials urls $hash
      credentials urls $hash --output json
      credentials urls nothing
      credentials urls
      cookies search --domain vpn.example.com
      cookies search --domain vpn.example.com --output json
      cookies search --domain vpn.example.com --reveal
      cookies search
      # writes
      credentials ignore $hash
      credentials ignore $hash --yes
      credentials remediate $hash --yes --output json
      credentials remediate nothing --yes
      credentials restore $hash --yes
      credentials restore nothing --yes
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
      assets get 77
      assets get 77 --output json
      assets get 7
      assets get seven
      identifiers list
      identifiers list --type keyword --limit 1
      identifiers list --type keyword --limit 1 --output json
      identifiers list --group 7
      identifiers list --order-by age
      groups list
      groups list --output json
      groups list --limit 1
      groups list --size 0
      # writes
      assets create bank.example --type domain --search-types leak,paste
      assets create bank.example --type domain --search-types leak --output json
      assets create bank.example --type nothing --search-types leak
      assets create bank.example --type domain
      assets disable 78
      assets enable 78 --output json
      assets disable 7
      assets enable 7
      assets replace 77 --file ${anAsset()}
      assets replace 77 --file missing.json
      assets delete 78
      assets delete 78 --yes
      assets delete 78 --yes
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('assets'))
})

function anAsset(): string {
  const data = {
    name: 'Example',
    type: 'domain',
    search_types: ['leak'],
    data: { fqdn: 'example.com' },
  }
  return aFile('asset.json', JSON.stringify(data))
}

test('policies', async () => {
  await expect(
    await asked(async ({ type, know }) => {
      const made = await type('policies create --name breaches --included-keywords breach,leak')
      know('uuid', /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(made)?.[0] ?? '')
      await type(`
      policies create --name nothing
      policies get $uuid
      policies get $uuid --output json
      policies get 00000000-0000-4000-8000-000000000000
      policies assign $uuid --to 77,78
      policies assign $uuid --to 77,78 --yes
      policies assign $uuid --to seven --yes
      policies list --identifier 77
      policies list --identifier 77 --output json
      policies list
      policies list --identifier 7
      policies delete $uuid
      policies delete $uuid --yes
      policies delete $uuid --yes
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('policies'))
})

test('alerts', async () => {
  await expect(
    await asked(({ type }) =>
      type(`
      alerts list
      alerts list --limit 1 --output json
      alerts list --size 11
      alerts get 1042
      alerts get 1042 --output json
      alerts get 7
      feeds import --group 1042
      feeds import --group 7
      feeds import
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('alerts'))
})

/** A report that is made has a form that goes by its id, which differs; those of the start are the same. */
test('reports', async () => {
  const { completed, error } = knownReportRequests
  const report = aFile('report.docx', '')
  await expect(
    await asked(
      async ({ type, know }) => {
        await type(`
      reports list
      reports list --limit 1 --output json
      reports list --type nothing
      reports get 9001
      reports get 9001 --output json
      reports get --request ${error}
      reports get --request ${error} --output json
      reports get 7
      reports get
      reports download 9001
      reports download 9001 --out ${report}
      reports download 9001 --out ${report} --force
      reports download 7 --out missing.docx
      reports wait ${completed} --sink soc
      reports wait ${error}
      reports wait ${completed} --sink sco
      reports wait nothing
      # writes
      reports request --question why --range last_year
      `)
        const question = `--question 'What was said about us?'`
        const made = await type(
          `reports request --title 'What was said' ${question} --range last_7d`,
        )
        know('request', /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(made)?.[0] ?? '')
        await type('reports wait $request')
        await type('reports request --output json')
      },
      { backlog: 6 },
    ),
  ).toMatchFileSnapshot(transcriptFile('reports'))
})

test('tenants and token', async () => {
  await expect(
    await asked(({ type }) =>
      type(`
      tenants list
      tenants list --output json
      tenants list --account nobody
      tenants create --name Umbrella --industry finance
      tenants create --name Umbrella --industry finance --output json
      tenants create --industry finance
      tenants create --name Umbrella --industry nothing
      token test
      token test --output json
      token test --account nobody
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('tenants'))
})

test('assets apply', async () => {
  await expect(
    await asked(async ({ type }) => {
      const file = aFile('monitoring.yaml', monitoring)
      await type(`
      assets apply -f ${file} --plan
      assets apply -f ${file} --plan --output json
      assets apply -f ${file}
      assets apply -f ${file} --yes
      assets apply -f ${file} --yes
      assets apply -f ${file} --plan
      assets apply -f missing.yaml --plan
      assets apply
      assets apply -f ${aFile('bad.yaml', 'assets: { brand: { typ: keyword } }')} --plan
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('assets-apply'))
})

const monitoring = `assets:
  brand:
    name: Example Bank
    type: keyword
    data: { keyword: example bank }
    search_types: [leaks, paste]
    risks: [3, 4, 5]
    policies: [no-jobs]
policies:
  no-jobs: { excluded_keywords: [careers] }
`
