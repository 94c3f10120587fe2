/** What the commands of the first hour print: a configuration is made, checked and tried. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createKeys } from '../../src/redis/keys.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { redisForTests } from '../support/ledger.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'
import { transcript, transcriptFile, transcriptFolder } from './transcript.ts'

const tests = redisForTests()

beforeEach(() => void vi.stubEnv('USER', 'ann'))
afterEach(() => void vi.unstubAllEnvs())

async function aSandbox(): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false, seed: 1 })
  onTestFinished(() => sandbox.close())
  return sandbox
}

/** Addresses, which are of ports that were free. */
function addresses(sandbox: Sandbox): [string | RegExp, string][] {
  return [
    [/\bhour\d+\b/g, 'tocsin'],
    [/\bRedis \d+\.\d+\.\d+/g, 'Redis <version>'],
    [/\b\d+ MiB (of memory|used)/g, '<number> MiB $1'],
    [sandbox.url, 'http://sandbox'],
    [new URL(sandbox.url).host, 'sandbox'],
    [new URL(sandbox.smtpUrl).host, 'sandbox:smtp'],
    [new URL(tests.server.url).host, 'redis'],
  ]
}

let prefixes = 0

function configText(sandbox: Sandbox): string {
  prefixes += 1
  return `redis: { url: "${tests.server.url}", prefix: hour${prefixes} }
http: { port: 0 }
accounts:
  main: { base_url: "${sandbox.url}", api_key: ${sandbox.apiKeys[0]}, limits: { search: 100, basic: 100 } }
feeds:
  brand: { type: events, identifier_group: 1042, filters: { type: [stealer_log] } }
sinks:
  soc: { type: slack, url: "${sandbox.slackUrl}", allow_private: true }
  siem: { type: webhook, url: "${sandbox.webhookUrl}", secret: ${sandbox.webhookSecret}, allow_private: true }
  gone: { type: teams, url: "${sandbox.url}/nowhere", allow_private: true }
  oncall:
    type: email
    smtp: "smtp://ann:hush-hush@${new URL(sandbox.smtpUrl).host}"
    from: tocsin@example.com
    to: [ann@example.com, bob@example.com]
route: { sinks: [soc, siem, gone, oncall] }
`
}

test('check', async () => {
  const sandbox = await aSandbox()
  const good = aFile('good.yaml', configText(sandbox))
  const bad = aFile(
    'bad.yaml',
    `accounts: { main: { base_url: "https://api.example.com", api_key: none } }
feeds: { brand: { type: events, identifer_group: 1042 } }
sinks: { soc: { type: slak, url: "https://hooks.slack.com/services/T0/B0/none" } }
route: { sinks: [sco], matchers: ['severity>>high'] }
`,
  )
  await expect(
    await transcript(
      tocsin,
      ({ type }) =>
        type(`
      check config/minimal.yaml
      check config/minimal.yaml --output json
      check config/tocsin.yaml
      check config/tocsin.yaml --output json
      check ${good}
      check ${good} --output json
      check ${bad}
      check ${bad} --output json
      check missing.yaml
    `),
      { texts: addresses(sandbox), spans: false },
    ),
  ).toMatchFileSnapshot(transcriptFile('check'))
})

test('init', async () => {
  const file = aFile('tocsin.yaml', '')
  const draft = join(dirname(file), 'draft.yaml')
  await expect(
    await transcript(tocsin, async ({ type }) => {
      await type(`
      init ${draft} --sink slak
      init ${draft} --sink slack,email,teams,pagerduty,webhook
      check ${draft}
      init ${file}
      users hash hunter2
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('init'))
  await expect(readFileSync(draft, 'utf8')).toMatchFileSnapshot(
    join(transcriptFolder, '../init-draft.yaml'),
  )
})

test('doctor', async () => {
  const sandbox = await aSandbox()
  const file = aFile('tocsin.yaml', configText(sandbox))
  await expect(
    await transcript(
      (...args) => tocsin(...args, '--config', file),
      ({ type }) =>
        type(`
      doctor
      doctor --send
      doctor --output json
      sinks test soc
      sinks test siem --output json
      sinks test gone
      sinks test oncall
      sinks test sco
    `),
      { texts: addresses(sandbox) },
    ),
  ).toMatchFileSnapshot(transcriptFile('doctor'))
})

/** How often a page was read until all was sent. */
const readAgain = [
  [/\d+ fetched = /g, '<number> fetched = '],
  [/\d+ duplicate/g, '<number> duplicate'],
] as const

test('audit', async () => {
  const sandbox = await aSandbox()
  for (const name of ['kept', 'lost', 'last']) {
    const uid = `stealer_log/logs/${name}`
    sandbox.addEvent({ uid, type: 'stealer_log', severity: 'high', groupIds: [1042] })
  }
  const text = configText(sandbox).replace('[soc, siem, gone, oncall]', '[siem]')
  const file = aFile('tocsin.yaml', text)
  const app = aReplica(text)
  await app.start()
  await until('all have arrived', () => sandbox.received.webhook.length === 3)
  await until('nothing is pending', () => nothingPending(app))
  await app.stop()
  const ledger = await tests.ledger({ keys: createKeys(`hour${prefixes}`) })
  const id = ledger.fingerprints.recordId('stealer_log/logs/lost')
  await tests.redis.del(ledger.key('rec', id), ledger.key('pay', id))
  await expect(
    await transcript(
      (...args) => tocsin(...args, '--config', file),
      ({ type }) =>
        type(`
      audit
      audit --feed brand --output json
      audit --feed brnd
    `),
      { texts: [...addresses(sandbox), ...readAgain] },
    ),
  ).toMatchFileSnapshot(transcriptFile('audit'))
})

test('run, sandbox and demo', async () => {
  const sandbox = await aSandbox()
  sandbox.addEvent({
    uid: 'stealer_log/logs/1',
    type: 'stealer_log',
    severity: 'high',
    groupIds: [1042],
  })
  const file = aFile('tocsin.yaml', configText(sandbox))
  await expect(
    await transcript(
      tocsin,
      async ({ type }) => {
        await type(`
        run --config missing.yaml
        run --output csv --config ${file}
        sandbox --rate often
        demo --for soon
        schema --output csv
        nothing
        --version
      `)
      },
      { texts: addresses(sandbox) },
    ),
  ).toMatchFileSnapshot(transcriptFile('run'))
})
