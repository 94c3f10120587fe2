/** `events search`, `credentials search` and `events get`: what they ask, hide and refuse. */
import { describe, expect, test } from 'vitest'
import { withheldText } from '../../../src/masking/masking.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'

const tests = redisForTests()
const secret = 'Hush-Hush-4711'
const logUid = 'stealer_log/stealer_logs_live/4711'

/** A stealer log and an older post that hold the secret, and three credentials, one of them old. */
async function aScene(options: Parameters<typeof aServiceScene>[1] = {}): Promise<ServiceScene> {
  const scene = await aServiceScene(tests, options)
  const nowMs = Date.now()
  const about = { groupIds: [1042], identifiers: [{ id: 77, name: 'example.com' }] }
  scene.sandbox.addEvent({
    ...about,
    uid: 'forum_post/exploit/1',
    type: 'forum_post',
    severity: 'low',
    createdAtMs: nowMs - 3_600_000,
    highlights: { content: [`Ask <mark>Example</mark> Bank\r\nanna@example.com:${secret}`] },
    data: { content: `anna@example.com:${secret}` },
  })
  scene.sandbox.addEvent({
    ...about,
    uid: logUid,
    type: 'stealer_log',
    severity: 'medium',
    override: 'critical',
    tags: ['token:github'],
    createdAtMs: nowMs - 60_000,
    highlights: { 'credentials.password': [`<mark>${secret}</mark>`] },
    data: { malware_information: { malware_family: 'StealC' } },
  })
  const given = { hash: secret, hashType: null, domain: 'example.com', identifierIds: [77] }
  const importedAtMs = nowMs - 3_600_000
  scene.sandbox.addCredentials([
    { ...given, importedAtMs: nowMs - 9 * 86_400_000, identityName: 'old@example.com' },
    { ...given, importedAtMs, identityName: 'anna@example.com', authDomains: ['vpn.example.com'] },
    { ...given, importedAtMs, identityName: `ben@example.com:${secret}` },
  ])
  return scene
}

interface Page {
  items: { metadata: { uid: string }; identity_name: string }[]
  next: string | null
}

const pageIn = (out: string): Page => JSON.parse(out) as Page
const uidsIn = (out: string): string[] => pageIn(out).items.map(({ metadata }) => metadata.uid)

const event = { size: 10, order: 'desc' }
const credential = { size: 20, order: 'desc', include: ['known_password_id', 'auth_domains'] }
const range = { gte: expect.any(String), lte: expect.any(String) }

test.each([
  ['events', ['--email=a@b.example'], { query: { type: 'email', email: 'a@b.example' }, ...event }],
  ['events', ['--keyword=acme'], { query: { type: 'keyword', keyword: 'acme' }, ...event }],
  ['events', ['--query=a AND b'], { query: { type: 'query_string', query_string: 'a AND b' } }],
  ['events', ['--username=anna'], { query: { type: 'username', username: 'anna' } }],
  ['events', ['--brand=Example'], { query: { type: 'brand', name: 'Example' } }],
  ['events', ['--bin=411111'], { query: { type: 'bin', bin: '411111' } }],
  ['events', ['--ip=203.0.113.7'], { query: { type: 'ip', ip: '203.0.113.7' } }],
  ['events', ['--azure-tenant=x'], { query: { type: 'azure_tenant', tenant_id: 'x' } }],
  ['events', ['--group=1042', '--severity=HIGH'], { filters: { severity: 'high' }, ...event }],
  ['events', ['--group=1042', '--severity=high,'], { filters: { severity: ['high'] } }],
  [
    'events',
    ['--tenant', '--type=paste,leak', '--tag=vip,x', '--since=7d', '--until=1d', '--limit=5'],
    {
      filters: { type: ['paste', 'leak'], tags: ['vip', 'x'], estimated_created_at: range },
      size: 5,
    },
    'tenant/_search',
  ],
  ['events', ['--identifier=91'], event, 'identifiers/91/_search'],
  ['credentials', ['--domain=a.example'], { query: { type: 'domain', fqdn: 'a.example' } }],
  ['credentials', ['--auth-domain=x'], { query: { type: 'auth_domain', fqdn: 'x' } }],
  ['credentials', ['--email=a@b'], { query: { type: 'email', email: 'a@b' }, ...credential }],
  ['credentials', ['--keyword=anna', '--limit=2'], { query: { type: 'keyword' }, size: 2 }],
  ['credentials', ['--keyword=anna', '--all'], { size: 100 }],
  ['credentials', ['--domain=x', '--since=7d', '--until=1d'], { filters: { imported_at: range } }],
])('%s search %j asks for that', async (noun, args, body, path = '_search') => {
  const { run, sent } = await aServiceScene(tests)
  expect(await run(noun, 'search', ...args)).toMatchObject({ code: 0, err: '' })
  expect(sent()).toMatchObject([{ body, path: expect.stringContaining(path) }])
})

test.each(['events', 'credentials'])(
  '%s search asks for a secret, or reads it, and shows it nowhere',
  async (noun) => {
    const { runGiven, runAt, sent } = await aScene()
    const read = await runGiven(`${secret}\n`, noun, 'search', '--secret', '--output=json')
    expect(pageIn(read.out).items.length).toBeGreaterThan(0)
    const typed = await runAt(secret, noun, 'search', '--secret')
    expect(`${read.out}${read.err}${typed.out}${typed.err}`).not.toContain(secret)
    const asked = { body: { query: { type: 'secret', secret } } }
    expect(sent()).toMatchObject([asked, asked])
    const none = await runGiven('', noun, 'search', '--secret')
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('no secret was given') })
  },
)

test.each([
  [
    ['events', '--group=1042'],
    {
      metadata: { uid: logUid, type: 'stealer_log', flare_url: expect.stringContaining('https:') },
      tenant_metadata: { severity: { override: 'critical' }, tags: ['token:github'] },
      highlights: { 'credentials.password': ['H••••1'] },
      identifiers: [{ id: 77, name: 'example.com' }],
    },
  ],
  [
    ['credentials', '--email=anna@example.com'],
    { identity_name: 'anna@example.com', hash: 'H••••1', auth_domains: ['vpn.example.com'] },
  ],
])('machines get every field, and no secret: %j', async ([noun = '', ...args], item) => {
  const { run } = await aScene()
  for (const form of ['text', 'json', 'ndjson']) {
    const { out } = await run(noun, 'search', ...args, '--output', form)
    expect(out).not.toContain(secret)
  }
  const [line = ''] = (await run(noun, 'search', ...args, '--output=ndjson')).out.split('\n')
  expect(JSON.parse(line)).toMatchObject(item)
})

test('a line of a dump is withheld, whatever the event is', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  const highlights = { content: ['anna:<mark>Another</mark>-Secret-1'] }
  sandbox.addEvent({ type: 'chat_message', groupIds: [1042], highlights })
  for (const form of ['text', 'json']) {
    const { out } = await run('events', 'search', '--group=1042', '--output', form)
    expect(out).toContain(withheldText)
    expect(out).not.toMatch(/anna|Another/)
  }
})

test('an item that cannot be read is told, and the rest shown', async () => {
  const { run, sandbox } = await aScene()
  sandbox.addRawItem(1042, { metadata: { uid: 7 } })
  const { code, out, err } = await run('events', 'search', '--group', '1042', '--output=json')
  expect(code).toBe(0)
  expect(err).toMatch(/^an item is left out, it is not readable: metadata\.uid: /)
  expect(uidsIn(out)).toHaveLength(2)
})

test.each([
  ['events', [], 'a search needs something to look for; name it, e.g. by --domain example.com'],
  ['events', ['--domain=a', '--ip=::1'], 'choose one of: --domain, --ip'],
  ['events', ['--keyword='], 'It is empty; write a value.'],
  ['events', ['--group=0'], 'Write the id, a whole number of at least 1.'],
  ['events', ['--tenant', '--group=1042'], "cannot be used with option '--tenant'"],
  ['events', ['--keyword=x', '--severity=high,hihg'], 'did you mean "high"?'],
  ['events', ['--keyword=x', '--since=soon'], '"soon" is neither a time nor a duration'],
  ['events', ['--keyword=x', '--since=1d', '--until=7d'], '--since lies after --until'],
  ['events', ['--keyword=x', '--limit=0'], 'Write a whole number from 1 to 1000000.'],
  ['events', ['--keyword=x', '--account=mian'], 'did you mean "main"?'],
  ['credentials', [], 'give exactly one of --domain, --auth-domain, --email, --keyword and'],
  ['credentials', ['--domain=a.example', '--secret'], 'choose one of: --domain, --secret'],
])('%s search %j is refused, and nothing is asked', async (noun, args, said) => {
  const { run, sent } = await aServiceScene(tests)
  const { code, out, err } = await run(noun, 'search', ...args)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain(said)
  expect(sent()).toEqual([])
})

describe('events get', () => {
  test('shows a link that does not lead to the service as text', async () => {
    const { run } = await aScene({ change: (text) => text.replace(/ +link_hosts: .*\n/, '') })
    const { out } = await run('events', 'get', 'forum_post/exploit/1')
    expect(out).toContain('\nUnverified link: hxxps://app[.]example[.]com/#/uid')
    expect(out).not.toContain('https://app')
  })

  test('cuts a long text for people and says by how much, and takes a defanged uid', async () => {
    const { run, sandbox } = await aScene()
    const data = { domain: 'login.example.com', content: 'a word '.repeat(1_000), empty: null }
    sandbox.addEvent({ uid: 'domain/flare/login.example.com', type: 'lookalike', data })
    const { out } = await run('events', 'get', 'domain/flare/login[.]example[.]com')
    expect(out).toMatch(/^content +(a word )+.*\(… \d{4} more characters\)$/m)
    expect(out).not.toContain('empty')
  })
})

test.each([
  [404, 'this server may not have'],
  [403, 'takes the permission'],
])('a %i tells which server or permission a search takes', async (status, said) => {
  const { run, sandbox } = await aServiceScene(tests)
  const on = '/firework/v4/events/tenant/_search'
  sandbox.faults.add({ on, effect: 'status', status, body: 'text', message: 'Not Found' })
  const { code, err } = await run('events', 'search', '--tenant')
  expect(code).toBe(1)
  expect(err).toContain(said)
})
