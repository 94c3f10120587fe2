import { afterEach, describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireSearchItem } from '../../../src/upstream/resources/events.ts'
import { post, searchGroup, tokenOf, uidOf, type Answer } from './client.ts'

const open: Sandbox[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false, ...options })
  open.push(sandbox)
  return sandbox
}

function searchAll(sandbox: Sandbox, token: string, body: unknown): Promise<Answer> {
  const url = `${sandbox.url}/firework/v4/events/global/_search`
  return post(url, body, { authorization: `Bearer ${token}` })
}

interface WirePage {
  items: unknown[]
  next?: string | null
}

/** What a search finds, over all its pages. */
async function found(sandbox: Sandbox, token: string, body: object): Promise<string[]> {
  const uids: string[] = []
  let from: string | null | undefined
  do {
    const answer = await searchAll(sandbox, token, { ...body, ...(from && { from }) })
    if (answer.status !== 200) throw new Error(`no page: ${answer.status} ${answer.text}`)
    const page = answer.json as WirePage
    uids.push(...page.items.map(uidOf))
    from = page.next
  } while (from)
  return uids
}

const everything = { type: 'query_string', query_string: '*' }

const twoTenants: SandboxOptions = {
  groups: [
    { id: 1, name: 'Own', tenantId: 42, identifiers: [{ id: 5, name: 'own.example' }] },
    { id: 2, name: 'Other', tenantId: 43, identifiers: [{ id: 6, name: 'other.example' }] },
  ],
}

describe('the global search', () => {
  test('goes over all events, whoever has them, in either order and without identifiers', async () => {
    const sandbox = await start({ ...twoTenants, backlog: 60 })
    const token = await tokenOf(sandbox)
    const inOrder = sandbox
      .events()
      .toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.uid < b.uid ? -1 : 1))
      .map(({ uid }) => uid)
    expect(await found(sandbox, token, { query: everything, order: 'asc' })).toEqual(inOrder)
    expect(await found(sandbox, token, { query: everything })).toEqual(inOrder.toReversed())
    const { json } = await searchAll(sandbox, token, { query: everything })
    for (const item of (json as WirePage).items) {
      expect(wireSearchItem.parse(item)).not.toHaveProperty('identifiers')
    }
  })

  test('finds what came since by a cursor that was kept', async () => {
    const sandbox = await start({ endMode: 'empty' })
    sandbox.addEvents(12)
    const token = await tokenOf(sandbox)
    const body = { query: everything, order: 'asc', size: 10 }
    const first = (await searchAll(sandbox, token, body)).json as WirePage
    const second = (await searchAll(sandbox, token, { ...body, from: first.next })).json as WirePage
    const since = sandbox.addEvent()
    const third = (await searchAll(sandbox, token, { ...body, from: second.next })).json as WirePage
    expect(third.items.map(uidOf)).toEqual([since.uid])
    expect(sandbox.violations().changedScans).toBe(0)
    await searchAll(sandbox, token, { ...body, size: 9, from: second.next })
    expect(sandbox.violations().changedScans).toBe(1)
  })

  test('shows what a tenant noted to that tenant alone, and filters by it for that tenant alone', async () => {
    const sandbox = await start(twoTenants)
    const noted = { severity: 'low', override: 'critical', tags: ['vip'], notes: 'ours' }
    const own = sandbox.addEvent({ ...noted, groupIds: [1] })
    const other = sandbox.addEvent({ ...noted, groupIds: [2], ignoredAtMs: 5 })
    const token = await tokenOf(sandbox)
    const { json } = await searchAll(sandbox, token, { query: everything })
    const metadataOf = (uid: string): unknown =>
      (json as { items: Record<string, unknown>[] }).items.find((item) => uidOf(item) === uid)?.[
        'tenant_metadata'
      ]
    expect(metadataOf(own.uid)).toMatchObject({ severity: { override: 'critical' }, notes: 'ours' })
    expect(metadataOf(other.uid)).toEqual({
      severity: null,
      tags: [],
      notes: null,
      ignored_at: null,
      remediated_at: null,
    })
    const critical = { query: everything, filters: { severity: ['critical'] } }
    expect(await found(sandbox, token, critical)).toEqual([own.uid])
  })

  test('filters by severity, type and both times', async () => {
    const sandbox = await start()
    const old = sandbox.addEvent({ type: 'paste', severity: 'high', createdAtMs: 1000 })
    const log = sandbox.addEvent({ type: 'stealer_log', severity: 'critical', arrivedAtMs: 2000 })
    sandbox.addEvent({ type: 'listing', severity: 'low' })
    const token = await tokenOf(sandbox)
    const by = (filters: object): Promise<string[]> =>
      found(sandbox, token, { query: everything, filters })
    expect(new Set(await by({ severity: 'high' }))).toEqual(new Set([old.uid, log.uid]))
    expect(await by({ severity: ['high'] })).toEqual([old.uid])
    expect(await by({ type: ['infected_devices'] })).toEqual([log.uid])
    expect(await by({ estimated_created_at: { lte: '1970-01-01T00:00:01' } })).toEqual([old.uid])
    expect(await by({ materialized_at: { lt: '1970-01-01T00:00:03Z' } })).toEqual([log.uid])
  })

  test.each([
    [{}, ['body', 'query']],
    [{ query: { type: 'astrology' } }, ['body', 'query', 'type']],
    [{ query: { type: 'domain' } }, ['body', 'query', 'fqdn']],
    [{ query: everything, size: 11 }, ['body', 'size']],
    [{ query: everything, filters: { type: ['lookalike'] } }, ['body', 'filters', 'type', 0]],
    [
      { query: { type: 'name', first_name: 'Ann', last_name: 'Lee' } },
      ['body', 'query', 'is_strict'],
    ],
    [
      { query: { type: 'query_string', query_string: 'a'.repeat(10_001) } },
      ['body', 'query', 'query_string'],
    ],
  ])('refuses %j with the place', async (body, loc) => {
    const sandbox = await start()
    const answer = await searchAll(sandbox, await tokenOf(sandbox), body)
    expect(answer).toMatchObject({ status: 422, json: { detail: [{ loc }] } })
  })

  test('refuses a query that is none, in either search, and a cursor that is none', async () => {
    const sandbox = await start()
    const token = await tokenOf(sandbox)
    const query = { type: 'query_string', query_string: 'a AND (b' }
    const message = 'a parenthesis without its end'
    const refusal = { status: 400, json: { error: { code: 'BAD_REQUEST', message } } }
    expect(await searchAll(sandbox, token, { query })).toMatchObject(refusal)
    expect(await searchGroup(sandbox, token, { query })).toMatchObject(refusal)
    expect(await searchAll(sandbox, token, { query: everything, from: 'x' })).toMatchObject({
      status: 400,
      json: { error: { code: 'INVALID_CURSOR' } },
    })
  })
})

describe('each kind of query finds what holds it, and nothing that only looks alike', () => {
  const texts = {
    host: 'see https://vpn.acme.example/login now',
    alike: 'see https://acme.example.evil.test and bad-acme.example',
    address: 'write to A.Keller@acme.example.',
    alikeAddress: 'write to xa.keller@acme.example or a.keller@acme.example.org',
    person: 'owner is Anna Keller of Basel',
    people: 'Keller is the name, Anna the sister',
    repository: 'clone github.com/acme/infra-7.git',
    card: 'cards from 412345 and 4123459876543210',
    number: 'phone 9412345',
    address4: 'from 203.0.113.7, port 22',
    alike4: 'from 203.0.113.77',
    tenant: 'AZURE_TENANT_ID=0A1B2C3D-0000-4000-8000-00000000000f',
    secret: 'key AKIA-hush-Hush',
  }
  const kinds: [Record<string, unknown>, (keyof typeof texts)[]][] = [
    [{ type: 'domain', fqdn: 'acme.example' }, ['host', 'address', 'alikeAddress']],
    [{ type: 'domain', fqdn: 'vpn.acme.example' }, ['host']],
    [{ type: 'email', email: 'a.keller@ACME.example' }, ['address']],
    [{ type: 'keyword', keyword: 'basel' }, ['person']],
    [{ type: 'query_string', query_string: 'owner AND NOT sister' }, ['person']],
    [{ type: 'name', first_name: 'anna', last_name: 'keller', is_strict: true }, ['person']],
    [{ type: 'github_repository', repo_owner: 'acme', repo_name: 'infra-7' }, ['repository']],
    [{ type: 'brand', name: 'the Sister' }, ['people']],
    [{ type: 'bin', bin: '412345' }, ['card']],
    [{ type: 'ip', ip: '203.0.113.7' }, ['address4']],
    [{ type: 'secret', secret: 'AKIA-hush-Hush' }, ['secret']],
    [{ type: 'azure_tenant', tenant_id: '0a1b2c3d-0000-4000-8000-00000000000f' }, ['tenant']],
    [{ type: 'username', username: 'infra-7' }, ['repository']],
  ]

  test.each(kinds)('%j', async (query, names) => {
    const sandbox = await start()
    for (const [name, content] of Object.entries(texts)) {
      const uid = `paste/site/${name}`
      sandbox.addEvent({ uid, type: 'paste', groupIds: [1042], highlights: {}, data: { content } })
    }
    const token = await tokenOf(sandbox)
    const wanted = new Set(names.map((name) => `paste/site/${name}`))
    expect(new Set(await found(sandbox, token, { query }))).toEqual(wanted)
    const { json } = await searchGroup(sandbox, token, { query })
    expect(new Set((json as WirePage).items.map(uidOf))).toEqual(wanted)
  })

  test('a name that is not strict needs both its parts, anywhere', async () => {
    const sandbox = await start()
    for (const content of [texts.person, texts.people, 'Anna alone']) {
      sandbox.addEvent({ type: 'paste', highlights: {}, data: { content } })
    }
    const query = { type: 'name', first_name: 'Anna', last_name: 'Keller', is_strict: false }
    expect(await found(sandbox, await tokenOf(sandbox), { query })).toHaveLength(2)
  })

  test('credentials are a user and a password', async () => {
    const sandbox = await start()
    const leaked = sandbox.addEvent({ type: 'leaked_credential' })
    sandbox.addEvent({ type: 'leaked_credential' })
    const token = await tokenOf(sandbox)
    const { identity_name: username, password } = leaked.data ?? {}
    const query = { type: 'credentials', username, password }
    expect(await found(sandbox, token, { query })).toEqual([leaked.uid])
  })
})

describe('the quota', () => {
  const searchQuota = { prefix: 'X-Test-', searches: 5 }

  async function remaining(sandbox: Sandbox, token: string, body: object): Promise<unknown[]> {
    const { headers } = await searchAll(sandbox, token, body)
    return ['remaining', 'batch-reached'].map((name) =>
      headers.get(`x-test-global-searches-${name}`),
    )
  }

  test('a unit pays for a hundred results; refining the search costs nothing more', async () => {
    const sandbox = await start({ searchQuota })
    sandbox.addEvents(101, { severity: 'low' })
    const token = await tokenOf(sandbox)
    const seen: unknown[] = []
    let from: string | null | undefined
    do {
      const body = { query: everything, order: 'asc', ...(from && { from }) }
      const { headers, json } = await searchAll(sandbox, token, body)
      const left = headers.get('x-test-global-searches-remaining')
      seen.push([left, headers.get('x-test-global-searches-batch-reached')])
      from = (json as WirePage).next
    } while (from)
    expect(seen).toEqual([
      ...Array.from({ length: 9 }, () => ['4', null]),
      ['4', 'true'],
      ['3', null],
    ])
    const refined = { query: everything, filters: { severity: 'low' } }
    expect(await remaining(sandbox, token, refined)).toEqual(['3', null])
    const other = { type: 'keyword', keyword: 'x' }
    expect(await remaining(sandbox, token, { query: other })).toEqual(['2', null])
    expect(sandbox.quota.remaining()).toBe(2)
  })

  test('is one with that of the credential search, and a group costs nothing of it', async () => {
    const sandbox = await start({ searchQuota })
    const token = await tokenOf(sandbox)
    const query = { type: 'domain', fqdn: 'example.com' }
    await searchAll(sandbox, token, { query })
    const url = `${sandbox.url}/firework/v4/credentials/global/_search`
    const { headers } = await post(url, { query }, { authorization: `Bearer ${token}` })
    expect(headers.get('x-test-global-searches-remaining')).toBe('3')
    expect(
      (await searchGroup(sandbox, token, { query })).headers.has(
        'x-test-global-searches-remaining',
      ),
    ).toBe(false)
    expect(sandbox.quota.remaining()).toBe(3)
  })

  test('no header where nothing is counted', async () => {
    const sandbox = await start()
    const token = await tokenOf(sandbox)
    expect(await remaining(sandbox, token, { query: everything })).toEqual([null, null])
  })
})
