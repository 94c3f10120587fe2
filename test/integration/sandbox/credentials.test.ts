import { afterEach, describe, expect, test } from 'vitest'
import type { SandboxCredential } from '../../../src/sandbox/credentials/credentials.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireCredential } from '../../../src/upstream/resources/credentials.ts'
import { wireSearchPage, type WireSearchPage } from '../../../src/upstream/resources/page.ts'
import { ask, post, searchGroup, tokenOf, type Answer } from './client.ts'

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

/** Every id of the feed, read as the paging rules say. */
async function walkFeed(sandbox: Sandbox, size = 3): Promise<number[]> {
  const ids: number[] = []
  let query = ''
  for (;;) {
    const answer = await feed(sandbox, `?size=${size}${query}`)
    ids.push(...idsIn(answer))
    const { next } = pageIn(answer)
    if (!next) return ids
    query = `&from=${encodeURIComponent(next)}`
  }
}

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

  test.each([
    ['newest', (ids: number[]) => ids.toReversed()],
    ['ascending', (ids: number[]) => ids],
  ] as const)('can stand %s', async (credentialOrder, inOrder) => {
    const sandbox = await start({ credentialOrder })
    const ids = idsOf(sandbox.addCredentials(10))
    expect(await walkFeed(sandbox)).toEqual(inOrder(ids))
  })

  test('can stand in an order that means nothing, the same at each reading', async () => {
    const sandbox = await start({ credentialOrder: 'shuffled' })
    const ids = idsOf(sandbox.addCredentials(30))
    const shown = await walkFeed(sandbox)
    expect(shown.toSorted((a, b) => a - b)).toEqual(ids)
    expect(shown).not.toEqual(ids)
    expect(shown).not.toEqual(ids.toReversed())
    expect(await walkFeed(sandbox)).toEqual(shown)
    const [late] = idsOf(sandbox.addCredentials(1))
    expect((await walkFeed(sandbox)).filter((id) => id !== late)).toEqual(shown)
  })

  test('has a late arrival below what was read already', async () => {
    const sandbox = await start({ credentialOrder: 'ascending' })
    const [first, second] = idsOf(
      sandbox.addCredentials([{ importedAtMs: 1 }, { importedAtMs: 5 }]),
    )
    const { next } = pageIn(await feed(sandbox, '?size=1'))
    const [late] = idsOf(sandbox.addCredentials([{ importedAtMs: 0 }]))
    expect(idsIn(await feed(sandbox, `?size=1&from=${encodeURIComponent(next!)}`))).toEqual([
      second,
    ])
    expect(await walkFeed(sandbox)).toEqual([late, first, second])
  })

  test('shows what is changed later, and any JSON value where one was put', async () => {
    const sandbox = await start()
    const [one] = sandbox.addCredentials([{}, { raw: { id: 'x' } }])
    sandbox.markRemediated(`credential/${one!.id}`, Date.UTC(2026, 0, 1))
    sandbox.markIgnored(`credential/${one!.id}`, Date.UTC(2026, 0, 2))
    const { items } = pageIn(await feed(sandbox))
    expect(items).toContainEqual({ id: 'x' })
    expect(items).toContainEqual(
      expect.objectContaining({
        remediated_at: '2026-01-01T00:00:00.000000+00:00',
        ignored_at: '2026-01-02T00:00:00.000000+00:00',
      }),
    )
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
    expect(sandbox.violations().changedScans).toBe(1)
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

  test('counts against the basic tier, and its faults can wait for a cursor', async () => {
    const sandbox = await start()
    sandbox.addCredentials(2)
    const { next } = pageIn(await feed(sandbox, '?size=1'))
    sandbox.faults.add({ on: '*/feed/credentials', effect: 'status', withCursor: true })
    expect((await feed(sandbox, '?size=1')).status).toBe(200)
    const from = encodeURIComponent(next!)
    expect((await feed(sandbox, `?size=1&from=${from}`)).status).toBe(500)
    const tiers = sandbox.requests.filter(({ path }) => path.endsWith('/feed/credentials'))
    expect(new Set(tiers.map(({ tier }) => tier))).toEqual(new Set(['basic']))
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

  test('goes by import, upwards or downwards, and filters by it', async () => {
    const sandbox = await start()
    const times = [1, 2, 3, 4].map((day) => ({ ...joe, importedAtMs: Date.UTC(2026, 0, day) }))
    const ids = idsOf(sandbox.addCredentials(times))
    const imported_at = { gte: '2026-01-02T00:00:00Z', lte: '2026-01-03T00:00:00' }
    const filters = { imported_at }
    expect(idsIn(await search(sandbox, { filters }))).toEqual(ids.slice(1, 3))
    expect(idsIn(await search(sandbox, { order: 'desc' }))).toEqual(ids.toReversed())
    const first = pageIn(await search(sandbox, { size: 3 }))
    expect(idsIn(await search(sandbox, { size: 3, from: first.next }))).toEqual(ids.slice(3))
  })

  test('can heed the time of import for auth_domain alone, as older servers do', async () => {
    const sandbox = await start({ filtersImportedAt: false })
    const [id] = idsOf(sandbox.addCredentials([{ ...joe, importedAtMs: 0 }]))
    const filters = { imported_at: { gte: '2026-01-02T00:00:00Z' } }
    expect(idsIn(await search(sandbox, { filters }))).toEqual([id])
    const query = { type: 'auth_domain', fqdn: 'vpn.example.com' }
    expect(idsIn(await search(sandbox, { filters, query }))).toEqual([])
  })

  test('takes sizes up to ten thousand, and can end larger ones as a gateway does', async () => {
    const sandbox = await start({ credentialSizeLimit: 300 })
    sandbox.addCredentials(150, joe)
    expect(idsIn(await search(sandbox, { size: 300 }))).toHaveLength(150)
    const gateway = await search(sandbox, { size: 301 })
    expect(gateway).toMatchObject({ status: 504, text: 'upstream request timeout' })
    expect(gateway.headers.get('content-type')).toContain('text/plain')
    expect(await search(sandbox, { size: 10_001 })).toMatchObject({
      status: 422,
      json: { detail: [{ loc: ['body', 'size'] }] },
    })
  })

  test.each([
    ['no query', { query: undefined }],
    ['another kind', { query: { type: 'username', username: 'x' } }],
    ['a field of another kind', { query: { type: 'domain', email: 'x' } }],
    ['another include', { include: ['cookies'] }],
    ['a time that is none', { filters: { imported_at: { gte: 'yesterday' } } }],
  ])('refuses %s', async (_what, body) => {
    expect((await search(await start(), body)).status).toBe(422)
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
    expect(sandbox.quota.overdrawn()).toBe(0)
    expect(await remaining({ query: { type: 'keyword', keyword: 'other' } })).toBe('0')
    expect(sandbox.quota.remaining()).toBe(0)
    expect(sandbox.quota.overdrawn()).toBe(1)
  })

  test('says nothing of a quota unless it has one', async () => {
    const answer = await search(await start())
    expect([...answer.headers.keys()].join(' ')).not.toContain('remaining')
  })
})

describe('what happens by itself, or on demand', () => {
  test('credentials stand at the start, spread over a day and all identifiers', async () => {
    const sandbox = await start({ credentialBacklog: 200 })
    const all = sandbox.credentials()
    expect(all).toHaveLength(200)
    expect(new Set(all.flatMap(({ identifierIds }) => identifierIds)).size).toBe(5)
    const ages = all.map(({ importedAtMs, arrivedAtMs }) => arrivedAtMs - importedAtMs)
    expect(Math.min(...ages)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...ages)).toBeLessThanOrEqual(86_400_000)
  })

  test('credentials and events arrive at a rate, late by up to what is asked', async () => {
    const rates = { eventsPerSecond: 200, credentialsPerSecond: 200 }
    const lateMaxMs = 3 * 86_400_000
    const sandbox = await start({ ...rates, lateShare: 0.5, lateMaxMs })
    const lateness = (): number[][] => [
      sandbox.events().map(({ createdAtMs, arrivedAtMs }) => arrivedAtMs - createdAtMs),
      sandbox.credentials().map(({ importedAtMs, arrivedAtMs }) => arrivedAtMs - importedAtMs),
    ]
    const haveCome = (): boolean => lateness().every((all) => all.length > 60)
    await expect.poll(haveCome, { timeout: 20_000 }).toBe(true)
    for (const all of lateness()) {
      expect(Math.max(...all)).toBeGreaterThan(1_800_000)
      expect(Math.max(...all)).toBeLessThanOrEqual(lateMaxMs)
      expect(all.filter((ms) => ms < 60_000).length).toBeGreaterThan(5)
    }
  })

  test('a raised event shows its override, a remediated and an ignored one their times', async () => {
    const sandbox = await start({ showsIgnored: true })
    const [event] = sandbox.addEvents(1, { severity: 'low', uid: 'paste/site/1' })
    sandbox.raise(event!.uid, 'critical')
    sandbox.markRemediated(event!.uid)
    sandbox.markIgnored(event!.uid)
    const { items } = pageIn(await searchGroup(sandbox, await tokenOf(sandbox)))
    expect(items).toMatchObject([
      {
        metadata: { severity: 'low' },
        tenant_metadata: {
          severity: { original: 'low', override: 'critical' },
          ignored_at: expect.any(String),
          remediated_at: expect.any(String),
        },
      },
    ])
    expect(() => sandbox.raise('paste/site/2', 'high')).toThrow('no event')
    expect(() => sandbox.markIgnored('credential/2')).toThrow('no event')
  })
})
