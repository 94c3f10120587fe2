/** `credentials search` against the pretend service. */
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'

const tests = redisForTests()
const secret = 'Hush-Hush-4711'
const dayMs = 86_400_000

/** Two credentials of example.com, one of them old; one whose login holds its secret as well. */
async function aScene(options: Parameters<typeof aServiceScene>[1] = {}): Promise<ServiceScene> {
  const scene = await aServiceScene(tests, options)
  const given = { hash: secret, hashType: null, domain: 'example.com', identifierIds: [77] }
  const importedAtMs = Date.now() - 3_600_000
  scene.sandbox.addCredentials([
    { ...given, importedAtMs: importedAtMs - 9 * dayMs, identityName: 'old@example.com' },
    { ...given, importedAtMs, identityName: 'anna@example.com', authDomains: ['vpn.example.com'] },
    { ...given, importedAtMs, identityName: `ben@example.com:${secret}`, ignoredAtMs: Date.now() },
  ])
  return scene
}

interface Page {
  items: { id: number; identity_name: string }[]
  next: string | null
}

function namesIn(out: string): string[] {
  return (JSON.parse(out) as Page).items.map(({ identity_name: name }) => name).toSorted()
}

describe('credentials search', () => {
  test('machines get every field, and no secret unless it is asked for', async () => {
    const { run } = await aScene()
    const ask = ['credentials', 'search', '--domain', 'example.com']
    for (const form of ['text', 'json', 'ndjson']) {
      const { out } = await run(...ask, '--output', form)
      expect(out).toContain('anna@example.com')
      expect(out).not.toContain(secret)
    }
    for (const form of ['text', 'json', 'ndjson']) {
      expect((await run(...ask, '--output', form, '--reveal')).out).toContain(secret)
    }
    const lines = (await run(...ask, '--output=ndjson')).out.trim().split('\n')
    const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(records.find((one) => one['identity_name'] === 'anna@example.com')).toMatchObject({
      id: expect.any(Number),
      imported_at: expect.any(String),
      hash: 'H••••1',
      hash_type: null,
      domain: 'example.com',
      auth_domains: ['vpn.example.com'],
      source: { id: expect.any(String), name: expect.any(String) },
    })
  })

  test.each([
    [['--auth-domain', 'vpn.example.com'], { type: 'auth_domain', fqdn: 'vpn.example.com' }],
    [['--email', 'anna@example.com'], { type: 'email', email: 'anna@example.com' }],
    [['--keyword', 'anna'], { type: 'keyword', keyword: 'anna' }],
  ])('%j asks for that', async (args, query) => {
    const { run, sent } = await aScene()
    const { code, out } = await run('credentials', 'search', ...args, '--output=json')
    expect(code).toBe(0)
    expect(namesIn(out)).toContain('anna@example.com')
    const include = ['known_password_id', 'auth_domains']
    expect(sent()).toMatchObject([{ body: { query, size: 20, order: 'desc', include } }])
  })

  test('reads a secret to search for, and shows it nowhere', async () => {
    const { runGiven, sent } = await aScene()
    const found = await runGiven(
      `${secret}\n`,
      'credentials',
      'search',
      '--secret',
      '--output=json',
    )
    expect(namesIn(found.out)).toHaveLength(3)
    expect(`${found.out}${found.err}`).not.toContain(secret)
    expect(sent()).toMatchObject([{ body: { query: { type: 'secret', secret } } }])
  })

  test.each([
    [[], 'give exactly one of --domain, --auth-domain, --email, --keyword and --secret'],
    [['--domain=a.example', '--email=a@b.example'], 'choose one of: --domain, --email'],
    [['--domain=a.example', '--secret'], 'choose one of: --domain, --secret'],
    [['--domain='], 'It is empty; write a value.'],
    [['--domain=a.example', '--since=1d', '--until=7d'], '--since lies after --until'],
  ])('%j is refused, and nothing is asked', async (args, said) => {
    const { run, sent } = await aServiceScene(tests)
    const { code, err } = await run('credentials', 'search', ...args)
    expect(code).toBe(2)
    expect(err).toContain(said)
    expect(sent()).toEqual([])
  })
})
