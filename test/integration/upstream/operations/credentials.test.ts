import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parseCredential } from '../../../../src/feed-types/credentials.ts'
import type { EndMode, SandboxOptions } from '../../../../src/sandbox/options.ts'
import type { Sandbox } from '../../../../src/sandbox/sandbox.ts'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import { UpstreamError } from '../../../../src/upstream/error.ts'
import type { WireCredentialSearchBody } from '../../../../src/upstream/resources/credentials.ts'
import type { WireSearchPage } from '../../../../src/upstream/resources/page.ts'
import { redisForTests } from '../../../support/ledger.ts'
import type { ReplicaOptions } from '../../../support/replica.ts'
import { aScene, asAnotherTenant, asked, failureOf, onlyWith, toldBy } from './scene.ts'

const identifier = 77
const feedPath = `/firework/v3/identifiers/${identifier}/feed/credentials`
const searchPath = '/firework/v4/credentials/global/_search'

const tests = redisForTests()

function start(
  options: SandboxOptions = {},
  more: Partial<ReplicaOptions> = {},
): Promise<{ sandbox: Sandbox; client: UpstreamClient }> {
  return aScene(tests, { sandbox: options, more })
}

const feedPage = (
  client: UpstreamClient,
  from: string | null = null,
  size = 20,
): Promise<{ page: WireSearchPage; requestedAtMs: number }> =>
  client.credentialFeed({
    identifier,
    from,
    size,
    slot: { kind: 'feed', name: 'staff', dueSinceMs: Date.now() },
    signal: AbortSignal.timeout(20_000),
  })

const searchPage = (
  client: UpstreamClient,
  body: Partial<WireCredentialSearchBody> = {},
): ReturnType<UpstreamClient['searchCredentials']> =>
  client.searchCredentials({
    body: { query: { type: 'domain', fqdn: 'example.com' }, size: 100, order: 'asc', ...body },
    slot: { kind: 'feed', name: 'leaks', dueSinceMs: Date.now() },
    signal: AbortSignal.timeout(20_000),
  })

/** Every id of a walk, as the paging rules say: until `next` is empty, or an empty page repeats it. */
async function walk(page: (from: string | null) => Promise<WireSearchPage>): Promise<number[]> {
  const ids: number[] = []
  let from: string | null = null
  for (;;) {
    const { items, next }: WireSearchPage = await page(from)
    ids.push(...items.map((item) => (item as { id: number }).id))
    if (!next || (next === from && items.length === 0)) return ids
    from = next
  }
}

describe('the credential feed', () => {
  const ends: EndMode[] = ['full', 'empty', 'absent', 'echo']
  test.each(ends)('is read whole, cursor by cursor, where walks end %s', async (endMode) => {
    const { sandbox, client } = await start({ endMode, shortPages: 0.3, emptyPages: 0.2 })
    const made = sandbox.addCredentials(25)
    sandbox.addCredentials(5, { identifierIds: [78] })
    const ids = await walk(async (from) => (await feedPage(client, from, 7)).page)
    expect(ids).toEqual(made.map(({ id }) => id).toReversed())
    expect(sandbox.violations().changedScans).toBe(0)
  })

  test('asks for the size and the cursor in the query, on the basic tier, and says when', async () => {
    const { sandbox, client } = await start()
    sandbox.addCredentials(3)
    const beforeMs = Date.now()
    const { page, requestedAtMs } = await feedPage(client, null, 2)
    await feedPage(client, page.next, 2)
    const asked = sandbox.requests.filter(({ path }) => path === feedPath)
    expect(asked.map(({ query }) => query)).toEqual([{ size: '2' }, { size: '2', from: page.next }])
    expect(asked.map(({ tier, method }) => [tier, method])).toEqual(Array(2).fill(['basic', 'GET']))
    expect(requestedAtMs).toBeGreaterThanOrEqual(beforeMs)
    expect(requestedAtMs).toBeLessThanOrEqual(Date.now())
  })

  test('yields records that become events', async () => {
    const { sandbox, client } = await start()
    const [made] = sandbox.addCredentials([{ remediatedAtMs: 1_700_000_000_000 }])
    const { page } = await feedPage(client)
    expect(parseCredential(page.items[0], 'high')).toMatchObject({
      ok: true,
      secret: made!.hash,
      identity: made!.identityName,
      domain: made!.domain,
      event: {
        uid: `credential/${made!.id}`,
        source: made!.source?.id,
        createdAtMs: made!.importedAtMs,
        remediatedAtMs: 1_700_000_000_000,
        ignoredAtMs: null,
      },
    })
  })

  test('fails by its reason when it is refused, and where the identifier is not ours', async () => {
    const { sandbox, client } = await start()
    await expect(feedPage(client, 'nonsense')).rejects.toMatchObject({
      reason: 'rejected',
      status: 400,
      serviceCode: 'INVALID_CURSOR',
    })
    const asked = {
      from: null,
      size: 20,
      slot: { kind: 'feed', name: 'x', dueSinceMs: 0 },
    } as const
    const unknown = client.credentialFeed({ identifier: 5, ...asked })
    await expect(unknown).rejects.toMatchObject({ reason: 'rejected', status: 404 })
    sandbox.faults.add({ on: feedPath, effect: 'wrong-shape', times: 1 })
    await expect(feedPage(client)).rejects.toMatchObject({ reason: 'contract' })
    const foreign = await aScene(tests, { account: asAnotherTenant })
    await expect(feedPage(foreign.client)).rejects.toMatchObject({ reason: 'auth', status: 403 })
  })

  test('tells what the service refuses of its size, which nothing bounds before', async () => {
    const { client } = await start()
    const error = await failureOf(feedPage(client, null, 0))
    expect(error).toMatchObject({ reason: 'rejected', status: 422 })
    expect(error.details.map(({ loc }) => loc)).toEqual(['query.size'])
  })
})

describe('the credential search', () => {
  test('is read whole, cursor by cursor, on the search tier', async () => {
    const { sandbox, client } = await start()
    const given = { domain: 'example.com' }
    const made = sandbox.addCredentials(12, given)
    const ids = await walk(
      async (from) => (await searchPage(client, { size: 5, ...(from && { from }) })).page,
    )
    expect(ids).toEqual(made.map(({ id }) => id))
    expect(
      sandbox.requests.filter(({ path }) => path === searchPath).map(({ tier }) => tier),
    ).toEqual(Array(3).fill('search'))
    expect(sandbox.violations().changedScans).toBe(0)
  })

  test('sends its body as it is given', async () => {
    const { sandbox, client } = await start()
    const body: WireCredentialSearchBody = {
      query: { type: 'auth_domain', fqdn: 'vpn.example.com' },
      size: 100,
      order: 'desc',
      include: ['auth_domains', 'known_password_id'],
      filters: { imported_at: { gte: '2026-01-01T00:00:00Z', lte: '2026-02-01T00:00:00Z' } },
    }
    await searchPage(client, body)
    const asked = sandbox.requests.filter(({ path }) => path === searchPath)
    expect(asked).toMatchObject([{ body, status: 200 }])
  })

  test.each(['X-Vendor-', 'x-', ''])(
    'tells how many searches remain, whatever stands before the header: "%s"',
    async (prefix) => {
      const told: number[] = []
      const onQuota = (remaining: number): void => void told.push(remaining)
      const { client } = await start({ searchQuota: { prefix, searches: 2 } }, { onQuota })
      const fqdns = ['a.example', 'b.example', 'c.example']
      const remaining = []
      for (const fqdn of fqdns) {
        const answer = await searchPage(client, { query: { type: 'domain', fqdn } })
        remaining.push(answer.searchesRemaining)
      }
      expect(remaining).toEqual([1, 0, 0])
      expect(told).toEqual([1, 0, 0])
    },
  )

  test('tells also by a refusal how many searches remain', async () => {
    const told: number[] = []
    const { sandbox, client } = await start(
      {},
      { onQuota: (remaining) => void told.push(remaining) },
    )
    const headers = { 'x-y-global-searches-remaining': '0', 'retry-after': '1' }
    sandbox.faults.add({ on: searchPath, effect: 'status', status: 429, headers })
    await expect(searchPage(client)).rejects.toMatchObject({ reason: 'rate_limited' })
    expect(told).toEqual([0])
  })

  test('knows of no quota where no header tells of one', async () => {
    const told: number[] = []
    const { client } = await start({}, { onQuota: (remaining) => void told.push(remaining) })
    expect((await searchPage(client)).searchesRemaining).toBeUndefined()
    expect(told).toEqual([])
  })

  test('fails as unavailable with a 504 when a gateway gives up on a large page', async () => {
    const { sandbox, client } = await start({ credentialSizeLimit: 100 })
    const made = sandbox.addCredentials(1, { domain: 'example.com' })
    await expect(searchPage(client, { size: 101 })).rejects.toMatchObject({
      reason: 'unavailable',
      status: 504,
    })
    expect((await searchPage(client, { size: 100 })).page.items).toHaveLength(made.length)
  })

  test('never repeats the secret that it looks for in an error', async () => {
    const { sandbox, client } = await start()
    const secret = 'correct horse battery staple'
    for (const status of [400, 422, 429, 500]) {
      const message = `no results for ${secret} nor ${encodeURIComponent(secret)}`
      const headers = { 'retry-after': '0' }
      sandbox.faults.add({ on: searchPath, effect: 'status', status, message, headers, times: 1 })
      const query = { type: 'secret', secret } as const
      const error: unknown = await searchPage(client, { query }).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(UpstreamError)
      expect(error).toMatchObject({ status })
      expect(inspect(error)).toContain('<secret>')
      expect(inspect(error)).not.toMatch(/horse/)
    }
  })

  test('tells field by field what the service refuses', async () => {
    const { client } = await start()
    const filters = { imported_at: { gte: 'yesterday', lte: 'now' } }
    const error = await failureOf(searchPage(client, { filters }))
    expect(error).toMatchObject({ reason: 'rejected', status: 422 })
    expect(toldBy(error)).toEqual([
      'body.filters.imported_at.gte: not a date-time',
      'body.filters.imported_at.lte: not a date-time',
    ])
  })

  test('without the permission is forbidden', async () => {
    const { client } = await start(onlyWith())
    expect(await failureOf(searchPage(client))).toMatchObject({ reason: 'auth', status: 403 })
  })

  test.each([
    [{ size: 0 }, ['size: too small; write 1 or more']],
    [{ size: 10_001 }, ['size: too large; write 10000 or less']],
    [{ query: { type: 'email', email: '' } }, ['query.email: empty; write at least 1 character']],
    [
      { query: { type: 'auth_domian', fqdn: 'example.com' } },
      ['query.type: not known to the service; did you mean "auth_domain"?'],
    ],
    [
      { query: { type: 'domain', fqdn: 'example.com' }, include: ['auth_domain', 'cookies'] },
      [
        'include.0: not known to the service; did you mean "auth_domains"?',
        'include.1: not known to the service; write one of known_password_id, auth_domains, urls',
      ],
    ],
    [{ filters: { imported_at: { gt: 'x' } } }, ['filters.imported_at: unknown: gt']],
  ])('with %j is never sent', async (mistake, told) => {
    const { sandbox, client } = await start()
    const error = await failureOf(searchPage(client, mistake as never))
    expect(error).toMatchObject({ reason: 'invalid', status: undefined })
    expect(toldBy(error)).toEqual(told)
    expect(sandbox.requests).toEqual([])
  })
})

describe("the tenant's credentials", () => {
  const tenantPage = (
    client: UpstreamClient,
    from: string | null = null,
    method: 'GET' | 'POST' = 'GET',
  ): ReturnType<UpstreamClient['tenantCredentials']> =>
    client.tenantCredentials({
      from,
      size: 7,
      order: 'asc',
      method,
      slot: { kind: 'feed', name: 'all', dueSinceMs: Date.now() },
      signal: AbortSignal.timeout(20_000),
    })

  test('are all of its identifiers, in the order of import, and go on where the last page ended', async () => {
    const { sandbox, client } = await start({ endMode: 'empty' })
    const made = [
      ...sandbox.addCredentials(8),
      ...sandbox.addCredentials(8, { identifierIds: [91] }),
    ]
    sandbox.addCredentials(3, { identifierIds: [4711] })
    let last: string | null = null
    const ids = await walk(async (from) => {
      const { page } = await tenantPage(client, from)
      last = page.next ?? last
      return page
    })
    expect(ids).toEqual(made.map(({ id }) => id))
    const [next] = sandbox.addCredentials(1)
    const { page } = await tenantPage(client, last)
    expect(page.items).toMatchObject([{ id: next!.id, credential_hash: expect.any(String) }])
  })

  test.each(['GET', 'POST'] as const)('are asked for by %s in the query alone', async (method) => {
    const { sandbox, client } = await start()
    await tenantPage(client, null, method)
    const asked = sandbox.requests.filter(({ path }) => path.endsWith('/me/feed/credentials'))
    expect(asked).toMatchObject([
      { method, query: { size: '7', order_type: 'asc' }, tier: 'basic' },
    ])
    expect(asked[0]?.body).toBeUndefined()
  })
})

describe('the search without a quota', () => {
  const astpPage = (client: UpstreamClient): ReturnType<UpstreamClient['searchAstpCredentials']> =>
    client.searchAstpCredentials({
      body: {
        query: { type: 'domain', fqdn: 'example.com' },
        size: 10,
        order: 'asc',
        include: ['urls'],
      },
      slot: { kind: 'feed', name: 'leaks', dueSinceMs: Date.now() },
      signal: AbortSignal.timeout(20_000),
    })

  test('finds the same, costs nothing and takes the basic tier', async () => {
    const { sandbox, client } = await start({ searchQuota: { prefix: 'X-', searches: 5 } })
    sandbox.addCredentials(3, { domain: 'example.com', eventUid: 'stealer_log/a/1' })
    const { page } = await astpPage(client)
    const first = { event_uid: 'stealer_log/a/1', urls: expect.arrayContaining([]) }
    expect(page.items).toHaveLength(3)
    expect(page.items[0]).toMatchObject(first)
    expect(sandbox.quota.remaining()).toBe(5)
    const asked = sandbox.requests.filter(({ path }) => path === '/astp/v2/credentials/_search')
    expect(asked).toMatchObject([{ method: 'POST', tier: 'basic' }])
  })

  test('is closed to a key without the permission, and says which', async () => {
    const { client } = await start(onlyWith('firework.global_search'))
    const error = await failureOf(astpPage(client))
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
    expect(error.message).toContain('astp_credentials_access')
  })
})

describe('the addresses of a credential', () => {
  test('are read by its hash, page after page', async () => {
    const { sandbox, client } = await start()
    sandbox.addCredentials(1, { domain: 'a.example', authDomains: ['c.example', 'b.example'] })
    const body = { query: { type: 'domain', fqdn: 'a.example' }, size: 1, order: 'asc' } as const
    const found = await client.searchAstpCredentials({ body, ...asked() })
    const { credential_hash: hash } = found.page.items[0] as { credential_hash: string }
    const page = (from: string | null) => client.credentialUrls({ hash, from, size: 1, ...asked() })
    const first = await page(null)
    const last = await page(first.next ?? null)
    expect([...first.items, ...last.items]).toEqual([
      { url: 'https://b.example/login', domain: 'b.example', credential_hash: hash },
      { url: 'https://c.example/login', domain: 'c.example', credential_hash: hash },
    ])
    expect(last.next).toBeNull()
    const path = '/astp/urls/by_credential_hash'
    expect(sandbox.requests.filter((one) => one.path === path)).toMatchObject([
      { method: 'POST', tier: 'basic', body: { credential_hash: hash, size: 1 } },
      { method: 'POST', tier: 'basic', body: { credential_hash: hash, size: 1, from: first.next } },
    ])
  })

  test('are closed to a key without the permission', async () => {
    const { client } = await start(onlyWith('firework.global_search'))
    const error = await failureOf(
      client.credentialUrls({ hash: 'x', from: null, size: 5, ...asked() }),
    )
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
  })
})

describe('stolen cookies', () => {
  const body = { domain: 'a.example', size: 2, order: 'asc' } as const

  test('are found by their domain, page after page, in the basic tier', async () => {
    const { sandbox, client } = await start({ searchQuota: { prefix: 'X-', searches: 5 } })
    const cookies = ['x', 'y', 'z'].map((value) => ({
      host_key: '.a.example',
      path: '/',
      expires_utc: '2090-01-01T00:00:00',
      name: 'sid',
      value,
    }))
    sandbox.addEvent({ type: 'stealer_log', stolen: { credentials: [], cookies } })
    const first = await client.searchCookies({ body, ...asked() })
    const from = first.page.next ?? ''
    const last = await client.searchCookies({ body: { ...body, from }, ...asked() })
    const items = [...first.page.items, ...last.page.items] as { value: string }[]
    expect(items.map(({ value }) => value).toSorted()).toEqual(['x', 'y', 'z'])
    expect(sandbox.quota.remaining()).toBe(5)
    const sent = sandbox.requests.filter(({ path }) => path === '/astp/v2/cookies/_search')
    expect(sent).toMatchObject([{ tier: 'basic', body }, { body: { ...body, from } }])
  })

  test('are closed to a key without the permission', async () => {
    const { client } = await start(onlyWith('astp_credentials_access'))
    const error = await failureOf(client.searchCookies({ body, ...asked() }))
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
    expect(error.message).toContain('astp_cookies_access')
  })

  test('are not asked for beyond what the service takes', async () => {
    const { client } = await start()
    const names = Array.from({ length: 11 }, (_, at) => `n${at}`)
    const error = await failureOf(client.searchCookies({ body: { ...body, names }, ...asked() }))
    expect(toldBy(error)).toEqual(['names: too long; at most 10 entries'])
  })
})
