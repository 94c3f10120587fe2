/** `render` shows what a sink would send for one event, and sends and writes nothing. */
import { expect, test } from 'vitest'
import { ownFeed } from '../../../src/event.ts'
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
  chat: { type: teams, url: "https://x.logic.azure.com/workflows/a?sig=hush-hush" }
  duty: { type: pagerduty, routing_key: 0123456789abcdef0123456789abcdef }
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
    - { name: urgent, matchers: ['severity>=high'], sinks: [soc, clear, chat, oncall], note: Ask the owner, mention: [U012AB3CD] }
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

/** Without Redis: a file needs none. */
function offline(): [string, string] {
  return ['--config', aFile('tocsin.yaml', configText('redis://127.0.0.1:1', 'none'))]
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
const data = {
  malware_information: { malware_family: 'Lumma' },
  credentials: [{ url: 'https://sso.acme.com/login', username: 'joe@acme.com', password: secret }],
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

test('a full event is shown with its detail, masked; an answer of one item stands for the item', async () => {
  const file = aFile('event.json', JSON.stringify({ items: [{ ...item, data }] }))
  const { text, body } = await shownBy(file, '--sink=soc', '--feed=brand', ...offline())
  expect(text).toContain('Lumma')
  expect(body?.blocks?.length).toBeGreaterThan(2)
  const whole = await shownBy(file, '--sink=siem', '--feed=brand', ...offline())
  expect(JSON.stringify(whole.body)).toContain('https://sso.acme.com/login')
  expect(JSON.stringify(whole)).not.toContain(secret)
})

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

test.each([
  ['chat', 'message', 'content-type'],
  ['siem', 'tocsin.event.v1', 'webhook-id'],
])(
  'the JSON for %s comes with its headers, and names what is added',
  async (sink, type, header) => {
    const file = aFile('event.json', JSON.stringify(item))
    const { body, headers, notes } = await shownBy(
      file,
      `--sink=${sink}`,
      '--feed=brand',
      ...offline(),
    )
    expect(body).toMatchObject({ type })
    expect(headers).toHaveProperty(header)
    expect(headers).not.toHaveProperty('webhook-signature')
    expect(notes.includes('added when it is sent: webhook-timestamp and webhook-signature')).toBe(
      sink === 'siem',
    )
  },
)

test('what no route sends there is shown, and said; the key of the sink is not', async () => {
  const file = aFile('event.json', JSON.stringify(item))
  const args = ['render', file, '--sink=duty', '--feed=brand', ...offline()]
  const { out, err } = await tocsin(...args)
  expect(err).toContain('no route sends this event to duty')
  expect(err).toContain('added when it is sent: routing_key')
  expect(out).toContain('"event_action": "trigger"')
  expect(out).not.toContain('0123456789abcdef')
})

test('a mail is its subject and text, or its HTML; a digest is said to come instead', async () => {
  const file = aFile('event.json', JSON.stringify(item))
  const args = [file, '--sink=oncall', '--feed=brand', ...offline()]
  const plain = await tocsin('render', ...args)
  expect(plain.out).toMatch(/^Subject: \[HIGH\] Stealer log: .*\n\nHIGH /)
  expect(plain.err).toContain('it would wait for the digest')
  const critical = { ...item, metadata: { ...item.metadata, severity: 'critical' } }
  const urgent = aFile('critical.json', JSON.stringify(critical))
  expect((await shownBy(urgent, ...args.slice(1))).notes).toEqual(['nothing was sent'])
  const { html } = await shownBy(...args)
  expect(html).toMatch(/^<!doctype html>/i)
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

test('a stored event is shown with the ids of the ledger, from payload and record alone', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid, severity: 'critical' }, ['soc'])])
  const { delivery, text, notes } = await shownBy(uid, '--sink=soc', ...config)
  const before = await ledger.redis.dump(ledger.key('rec', ledger.fingerprints.recordId(uid)))
  expect(delivery).toMatch(/^e[0-9a-f]{32}$/)
  expect(text).toContain(`delivery ${delivery} · uid ${uid}`)
  expect(text).toContain('routes root')
  expect(notes).toEqual(['nothing was sent'])
  const after = await ledger.redis.dump(ledger.key('rec', ledger.fingerprints.recordId(uid)))
  expect(after).toEqual(before)
})

test("Tocsin's own test event is marked as such", async () => {
  const { ledger, config } = await aScene()
  const canary = { uid: 'canary/tocsin/1790000000000', type: 'canary' }
  await takeIn(ledger, [routed(canary, ['soc'])], { feed: ownFeed })
  const { text } = await shownBy(canary.uid, '--sink=soc', ...config)
  expect(text).toMatch(/TEST Canary: /)
  expect(text).toContain("TEST: Tocsin's own test event, which shows that messages arrive here")
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

test('an event whose content is gone, or that was never there, ends with 1 and says why', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid })])
  await ledger.redis.del(ledger.key('pay', ledger.fingerprints.recordId(uid)))
  const gone = await tocsin('render', uid, '--sink=soc', ...config)
  expect(gone).toMatchObject({ code: 1, out: '' })
  expect(gone.err).toContain('its content is no longer kept (retention.payload)')
  const unknown = await tocsin('render', 'paste/x/1', '--sink=soc', ...config)
  expect(unknown.err).toContain('was never taken in')
})

test('an event that two accounts know is asked about with --account', async () => {
  const { config, ledger, keys } = await aScene()
  const second = await tests.ledger({ keys, account: 'second' })
  for (const one of [ledger, second]) await takeIn(one, [routed({ uid })])
  const both = await tocsin('render', uid, '--sink=soc', ...config)
  expect(both).toMatchObject({ code: 2, err: expect.stringContaining('name one with --account') })
  const { text } = await shownBy(uid, '--sink=soc', '--account=second', ...config)
  expect(text).toContain('Account: second')
})

test.each([
  ['an unknown feed', ['--sink=soc', '--feed=brnd'], 'no feed "brnd"; did you mean'],
  ['an unknown account', ['--sink=soc', '--account=mian'], 'no account "mian"; did you mean'],
  ['no feed among several', ['--sink=soc'], 'say with --feed which feed brings it: brand, leaks'],
])('render refuses %s', async (_what, args, said) => {
  const file = aFile('event.json', JSON.stringify(item))
  const { code, err } = await tocsin('render', file, ...args, ...offline())
  expect(err).toContain(said)
  expect(err).not.toContain('hush-hush')
  expect(code).toBe(2)
})

test('an account stands for its feed, and a record of a credential is read as its feed reads it', async () => {
  const credential = { id: 5, identity_name: 'joe@acme.com', hash: secret, source_id: 'combo' }
  const file = aFile('credential.json', JSON.stringify(credential))
  const { text } = await shownBy(file, '--sink=soc', '--account=second', ...offline())
  expect(text).toContain('joe@acme[.]com')
  expect(text).not.toContain(secret)
})

test('the templates of the configuration are used, and one that fails is said', async () => {
  const fails = '{% if uid contains "boom" %}{{ "now" | date }}{% endif %}'
  const templates = `templates: { title: 'Case {{ uid }}', body: '${fails}own line' }`
  const text = configText('redis://127.0.0.1:1', 'none').replace(
    'sinks:\n  soc: {',
    `sinks:\n  soc: { ${templates},`,
  )
  const config: [string, string] = ['--config', aFile('tocsin.yaml', text)]
  const file = aFile('event.json', JSON.stringify(item))
  const shown = await shownBy(file, '--sink=soc', '--feed=brand', ...config)
  expect(shown.text).toContain(`Case ${uid}`)
  expect(shown.text).toContain('own line')
  const other = { ...item, metadata: { ...item.metadata, uid: 'stealer_log/boom/1' } }
  const failing = aFile('other.json', JSON.stringify(other))
  const failed = await shownBy(failing, '--sink=soc', '--feed=brand', ...config)
  expect(failed.text).toContain('Case stealer_log/boom/1')
  expect(failed.text).not.toContain('own line')
  expect(failed.notes).toContainEqual(
    expect.stringMatching(
      /^the template body failed: the present time .* \(line 1,.*built-in look/,
    ),
  )
})
