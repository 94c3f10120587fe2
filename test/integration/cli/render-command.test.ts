/** `render` shows what a sink would send for one event, and sends and writes nothing. */
import { expect, test } from 'vitest'
import { createSecretBox } from '../../../src/lib/sealed-secret.ts'
import { createKeys, type Keys } from '../../../src/redis/keys.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()
let prefixes = 0

const uid = 'stealer_log/logs/1'
const secret = 'hunter2-Acme!'

function configText(redisUrl: string, prefix: string): string {
  return `redis: { url: "${redisUrl}", prefix: ${prefix} }
accounts:
  main: { base_url: "https://api.example.com", api_key: fw_key, tenant_id: 17 }
  second: { base_url: "https://api.example.com", api_key: fw_key }
feeds:
  brand: { type: events, account: main, identifier_group: 1042, labels: { team: brand } }
  leaks: { type: credentials, account: second, identifier: 9, severity: high }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush", time_zone: Europe/Zurich }
  clear: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush", reveal: true }
  siem: { type: webhook, url: "https://siem.example.com/hook", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }
  oncall:
    type: email
    smtp: "smtp://u:hush-hush@127.0.0.1"
    from: a@b.example
    to: [c@d.example]
    digest: { schedule: '0 8 * * *', timezone: UTC, immediate: critical }
route:
  sinks: [siem]
  routes:
    - { name: urgent, matchers: ['severity>=high'], sinks: [soc, clear, oncall], note: Ask the owner, mention: [U012AB3CD] }
messages: { next_steps: { stealer_log: Reset the login } }
`
}

interface Scene {
  ledger: AccountLedger
  keys: Keys
  config: [string, string]
}

async function aScene(more = ''): Promise<Scene> {
  const prefix = `render${(prefixes += 1)}`
  const keys = createKeys(prefix)
  const ledger = await tests.ledger({ keys })
  const text = configText(tests.server.url, prefix) + more
  return { ledger, keys, config: ['--config', aFile('tocsin.yaml', text)] }
}

const item = {
  metadata: {
    uid,
    type: 'stealer_log',
    severity: 'high',
    flare_url: `https://app.example.com/#/uid?uid=${uid}`,
  },
  identifiers: [{ id: 7, name: 'acme.com' }],
  highlights: { 'credentials.username': ['<mark>joe@acme.com</mark>'] },
}
interface Shown {
  subject: string | null
  text: string
  html: string | null
  headers: Record<string, string> | null
  body: { blocks?: unknown[]; type?: string } | null
  notes: string[]
  delivery: string
}

async function shownBy(...args: string[]): Promise<Shown> {
  const { code, out, err } = await tocsin('render', ...args, '--output=json')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return JSON.parse(out) as Shown
}

test('an event of the ledger leads to its page, and names who gets it too', async () => {
  const http = 'http: { public_url: "https://tocsin.example.net" }\n'
  const { ledger, config } = await aScene(http)
  await takeIn(ledger, [routed({ uid }, ['soc', 'siem', 'lake'])])
  const page = `https://tocsin.example.net/events/main/${ledger.fingerprints.recordId(uid)}`
  const { text: shown } = await shownBy(uid, '--sink=soc', ...config)
  expect(shown).toContain(`[ Open in Tocsin ] ${page}`)
  expect(shown).toContain('Also routed to: siem\n')
  const { body } = await shownBy(uid, '--sink=siem', ...config)
  expect(body).toMatchObject({ data: { page_url: page } })
})

test.each(['file', 'ledger'])('an event of the %s says what the daemon would', async (from) => {
  const { ledger, config } = await aScene()
  const event = routed({ uid, type: 'stealer_log', severity: 'critical' }, ['soc'])
  const items = event.items.map((one) => ({ ...one, routes: ['urgent'] }))
  await takeIn(ledger, [{ ...event, items }])
  const given =
    from === 'ledger' ? [uid] : [aFile('event.json', JSON.stringify(item)), '--feed=brand']
  const { text, body } = await shownBy(...given, '--sink=soc', ...config)
  expect(text).toContain('Ask the owner')
  expect(text).toContain('Reset the login')
  expect(text).toContain('Account: main')
  expect(text).toMatch(/fetched \d{4}-\d\d-\d\d \d\d:\d\d CES?T/)
  expect(JSON.stringify(body)).toContain('<@U012AB3CD>')
  const machine = await shownBy(...given, '--sink=siem', ...config)
  expect(machine.body).toMatchObject({
    data: { tenant_id: 17, next_step: 'Reset the login' },
  })
})

test('a leaked secret is masked also where the sink reveals it, and that is said', async () => {
  const { ledger, config } = await aScene()
  const sealed = createSecretBox(() => 'fw_key', 'main').seal(secret, uid)
  await takeIn(ledger, [routed({ uid, type: 'leaked_credential' }, ['soc', 'clear'])])
  const key = ledger.key('pay', ledger.fingerprints.recordId(uid))
  const payload = JSON.parse((await ledger.redis.get(key))!) as object
  await ledger.redis.set(key, JSON.stringify({ ...payload, sealedSecret: sealed }))
  const masked = await shownBy(uid, '--sink=soc', ...config)
  expect(JSON.stringify(masked)).not.toContain(secret)
  const asked = await shownBy(uid, '--sink=clear', ...config)
  expect(JSON.stringify(asked)).not.toContain(secret)
  expect(asked.notes).toContain('clear reveals: what is masked here is sent in clear')
})

test.each([
  ['high', true],
  ['critical', false],
])(
  'render says of a %s event whether it would wait for the digest: %s',
  async (severity, waits) => {
    const { config } = await aScene()
    const text = JSON.stringify({ ...item, metadata: { ...item.metadata, severity } })
    const file = aFile('event.json', text)
    const { notes } = await shownBy(file, '--sink=oncall', '--feed=brand', ...config)
    expect(notes.some((note) => note.startsWith('it would wait for the digest'))).toBe(waits)
  },
)

test('render asks for the account of an event that two accounts know', async () => {
  const { config, ledger, keys } = await aScene()
  const second = await tests.ledger({ keys, account: 'second' })
  for (const one of [ledger, second]) await takeIn(one, [routed({ uid })])
  expect(await tocsin('render', uid, '--sink=soc', ...config)).toMatchObject({ code: 2, out: '' })
  const { text } = await shownBy(uid, '--sink=soc', '--account=second', ...config)
  expect(text).toContain('Account: second')
})
