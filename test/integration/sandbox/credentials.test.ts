import { afterEach, describe, expect, test } from 'vitest'
import type { SandboxCredential } from '../../../src/sandbox/credentials/credentials.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireCredential } from '../../../src/upstream/resources/credentials.ts'
import { wireSearchPage, type WireSearchPage } from '../../../src/upstream/resources/page.ts'
import { ask, post, tokenOf, type Answer } from './client.ts'

const open: Sandbox[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false, ...options })
  open.push(sandbox)
  return sandbox
}

async function feed(sandbox: Sandbox, query = '', identifier: number | string = 77, tenant = 42) {
  const token = await tokenOf(sandbox, 'fw_sandbox', tenant)
  const url = `${sandbox.url}/firework/v3/identifiers/${identifier}/feed/credentials${query}`
  return ask(url, { headers: { authorization: `Bearer ${token}` } })
}

async function search(sandbox: Sandbox, body: Record<string, unknown> = {}): Promise<Answer> {
  const token = await tokenOf(sandbox)
  const asked = { query: { type: 'domain', fqdn: 'example.com' }, order: 'asc', ...body }
  const url = `${sandbox.url}/firework/v4/credentials/global/_search`
  return post(url, asked, { authorization: `Bearer ${token}` })
}

const pageIn = ({ json }: Answer): WireSearchPage => wireSearchPage.parse(json)
const idsIn = (answer: Answer): number[] =>
  pageIn(answer).items.map((item) => wireCredential.parse(item).id)
const idsOf = (credentials: readonly SandboxCredential[]): number[] =>
  credentials.map(({ id }) => id)

describe('the feed of an identifier', () => {
  test('shows its records in the v3 shape, twenty a page', async () => {
    const sandbox = await start()
    sandbox.addCredentials(25, { hash: 'hunter2', hashType: null, knownPasswordId: 5 })
    const page = pageIn(await feed(sandbox))
    expect(page.items).toHaveLength(20)
    expect(page.items[0]).toEqual({
      id: expect.any(Number),
      source_id: expect.any(String),
      imported_at: expect.stringMatching(/^[\d-]+T[\d:]+\.\d{6}\+00:00$/),
      identity_name: expect.any(String),
      hash: 'hunter2',
      hash_type: null,
      domain: 'example.com',
      known_password_id: 5,
      source: expect.objectContaining({ id: expect.any(String), pii_tags: expect.any(Array) }),
      remediated_at: null,
      ignored_at: null,
    })
  })

  test('refuses a cursor that was not quoted once more, is none, or expired', async () => {
    const sandbox = await start()
    sandbox.addCredentials(3)
    const { next } = pageIn(await feed(sandbox, '?size=1'))
    expect(next).toContain('%')
    const refusal = { status: 400, json: { code: 'INVALID_CURSOR' } }
    expect(await feed(sandbox, `?size=1&from=${next!}`)).toMatchObject(refusal)
    expect(await feed(sandbox, '?size=1&from=nonsense')).toMatchObject(refusal)
    const quoted = `?size=1&from=${encodeURIComponent(next!)}`
    expect((await feed(sandbox, quoted)).status).toBe(200)
    expect(sandbox.violations().changedScans).toBe(0)
    expect((await feed(sandbox, quoted.replace('size=1', 'size=2'))).status).toBe(200)
    expect(sandbox.violations().changedScans).toBe(0)
    sandbox.expireCursors()
    expect(await feed(sandbox, quoted)).toMatchObject(refusal)
  })

  test('is there for its tenant alone, and for a well-formed request', async () => {
    const sandbox = await start()
    expect((await feed(sandbox, '', 5)).status).toBe(404)
    expect((await feed(sandbox, '', 'x')).status).toBe(400)
    expect((await feed(sandbox, '', 77, 43)).status).toBe(403)
    for (const query of ['?size=0', '?size=x']) {
      expect(await feed(sandbox, query)).toMatchObject({
        status: 400,
        json: { message: expect.stringContaining('size: ') },
      })
    }
  })
})

describe('the global search', () => {
  const joe = {
    identityName: 'joe.doe@example.com',
    domain: 'example.com',
    authDomains: ['vpn.example.com'],
    hash: 'hunter2-of-joe',
  }
  const ann = {
    identityName: 'ann@supplier.example',
    domain: 'supplier.example',
    authDomains: [],
    hash: 'hunter2-of-ann',
  }

  test.each([
    { type: 'domain', fqdn: 'example.com' },
    { type: 'auth_domain', fqdn: 'vpn.example.com' },
    { type: 'secret', secret: 'hunter2-of-joe' },
    { type: 'email', email: 'Joe.Doe@example.com' },
    { type: 'keyword', keyword: 'doe' },
  ])('finds by $type', async (query) => {
    const sandbox = await start()
    const [wanted] = idsOf(sandbox.addCredentials([joe, ann]))
    expect(idsIn(await search(sandbox, { query }))).toEqual([wanted])
  })

  test('shows the v4 shape, ten a page, and what is asked to be included', async () => {
    const sandbox = await start()
    const authDomains = Array.from({ length: 12 }, (_, n) => `a${n}.example.com`)
    sandbox.addCredentials(11, { ...joe, authDomains, knownPasswordId: 5 })
    const plain = pageIn(await search(sandbox))
    expect(plain.items).toHaveLength(10)
    expect(plain.items[0]).toMatchObject({ source: { is_alert_enabled: true } })
    expect(Object.keys(plain.items[0] as object).toSorted()).toEqual(
      [
        'credential_hash domain event_uid hash hash_type id identity_name imported_at',
        'known_password_id source source_id',
      ].flatMap((keys) => keys.split(' ')),
    )
    const include = ['auth_domains', 'known_password_id', 'urls']
    expect(pageIn(await search(sandbox, { include })).items[0]).toMatchObject({
      auth_domains: authDomains,
      urls: authDomains.map((host) => `https://${host}/login`),
      known_password_id: 5,
    })
  })

  test('counts the quota down in a header, a search of up to a hundred results for one', async () => {
    let now = Date.now()
    const searchQuota = { prefix: 'X-Any-', searches: 5 }
    const sandbox = await start({ searchQuota, now: () => now })
    sandbox.addCredentials(150, joe)
    const header = 'x-any-global-searches-remaining'
    const remaining = async (body: object): Promise<string | null> =>
      (await search(sandbox, { ...body })).headers.get(header)
    expect(await remaining({ size: 60 })).toBe('4')
    expect(await remaining({ size: 60 })).toBe('4')
    const { next } = pageIn(await search(sandbox, { size: 60 }))
    expect(await remaining({ size: 60, from: next })).toBe('3')
    expect(await remaining({ query: { type: 'keyword', keyword: 'nobody' } })).toBe('2')
    now += 600_000
    expect(await remaining({ size: 150 })).toBe('0')
    expect(await remaining({ query: { type: 'keyword', keyword: 'other' } })).toBe('0')
    expect(sandbox.quota.remaining()).toBe(0)
  })
})
