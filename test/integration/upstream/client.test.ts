import { eventOperations } from '../../../src/upstream/resources/events.ts'
import { inspect } from 'node:util'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from 'vitest'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import type { AccountConfig, Tier } from '../../../src/upstream/config.ts'
import { diagnoseKey } from '../../../src/upstream/access/diagnose-key.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
import type { WireSearchPage } from '../../../src/upstream/resources/page.ts'
import { createAccountKey, createTokenStore } from '../../../src/upstream/access/tokens.ts'
import { startHttpServer, type HttpServer } from '../../support/http-server.ts'
import { freePort } from '../../support/free-port.ts'
import { startRedis, type TestRedis } from '../../support/redis.ts'
import {
  anAccount,
  json,
  pretendService,
  startReplica,
  testKey,
  type PretendService,
  type Replica,
  type ReplicaOptions,
} from '../../support/replica.ts'

const searchPath = '/firework/v4/events/identifier_groups/5/_search'

let redisServer: TestRedis
let server: HttpServer
let service: PretendService
let tests = 0

beforeAll(async () => {
  redisServer = await startRedis()
})
afterAll(() => redisServer.stop())
beforeEach(async () => {
  tests += 1
  server = await startHttpServer()
  service = pretendService(server)
})
afterEach(() => server.stop())

describe('two replicas', () => {
  test('both pause after a 429 to one of them, on that tier alone', async () => {
    const [one, two] = [aReplica(), aReplica()]
    await Promise.all([search(one.client), search(two.client)])
    service.answer(({ path }) =>
      path === searchPath
        ? json(
            429,
            { error: { code: 'RATELIMIT_REACHED', message: 'wait' } },
            { 'retry-after': '1' },
          )
        : json(200, { event_type: 'x', metadata: {}, data: { a: 1 } }),
    )
    const error = await failure(search(one.client))
    const seen = service.arrivals.length
    expect(error).toMatchObject({
      reason: 'rate_limited',
      serviceCode: 'RATELIMIT_REACHED',
      retryAfterMs: 1000,
    })
    await detail(two.client)
    service.answer(() => json(200, { items: [] }))
    await Promise.all([search(one.client), search(two.client)])
    const [refused, ...next] = service.arrivals.slice(seen - 1)
    expect(next.map(({ path }) => path === searchPath)).toEqual([false, true, true])
    expect(next[1]!.atMs - refused!.atMs).toBeGreaterThan(950)
  })

  test('ask for a token each at most, however many requests come at once', async () => {
    const clients = [aReplica(), aReplica()].map(({ client }) => client)
    await Promise.all(Array.from({ length: 16 }, (_, n) => search(clients[n % 2]!, `f${n}`)))
    expect(service.count('/tokens/generate')).toBeLessThanOrEqual(2)
    expect(service.count(searchPath)).toBe(16)
  })

  test('come to share one token where the service ends the one before, without a pause', async () => {
    const clients = [1, 2].map(() => aReplica({ organizationId: 1 }).client)
    const both = Promise.withResolvers<void>()
    service.generate(async (grant) => {
      if (service.count('/tokens/generate') === 2) both.resolve()
      await both.promise // each has asked for a token before either gets one
      service.revoke()
      return grant()
    })
    await Promise.all(clients.map((client) => search(client)))
    for (const client of clients) await search(client)
    const made = service.count('/tokens/generate')
    for (const client of clients) await search(client)
    expect(service.count('/tokens/generate')).toBe(made)
    for (const client of clients) expect(await client.pause()).toBeNull()
  })
})

test('full events that never come keep no other request of their tier waiting', async () => {
  const { client } = aReplica({ organizationId: 7 })
  service.answer(({ path }) => (path === searchPath ? json(200, { items: [] }) : 'hang'))
  const stop = new AbortController()
  const slot = { kind: 'detail', name: 'soc', dueSinceMs: Date.now() } as const
  const hanging = Array.from({ length: 20 }, () =>
    client.getEvent({ uid: 'paste/a/b', slot, signal: stop.signal }),
  )
  const settled = Promise.allSettled(hanging)
  await expect.poll(() => service.arrivals.length).toBe(1 + 20) // the token, too
  await search(client, 'brand', undefined, 'basic')
  expect(service.count(searchPath)).toBe(1)
  stop.abort()
  for (const { status } of await settled) expect(status).toBe('rejected')
})

describe('a token that no header can hold', () => {
  test('is refused with that reason, and asked for again', async () => {
    const replica = aReplica({ organizationId: 7 })
    const { client, redis, keys } = replica
    service.generate(() => json(200, { token: 't0ken\n' }))
    const error = await failure(search(client))
    expect(error).toMatchObject({ reason: 'unavailable', fault: undefined })
    expect(error.message).toContain('a token that no header can hold')
    expect(await redis.keys(`${keys.shared('token')}:*`)).toEqual([])
    service.generate(undefined)
    await search(client)
    expect(service.count('/tokens/generate')).toBe(2)
    expect(await client.pause()).toBeNull()
  })

  test('is dropped where it came from elsewhere, and costs one request', async () => {
    const replica = aReplica({ organizationId: 7 })
    const { client, redis, keys } = replica
    const store = createTokenStore({ redis, keys })
    const key = createAccountKey(client.account)()
    await store.save(key, { value: 't0ken\n', leftMs: 3_600_000 })
    expect(await failure(search(client))).toMatchObject({ reason: 'unavailable', fault: 'unsent' })
    expect(await store.read(key)).toBeUndefined()
    await search(client)
    expect(service.count('/tokens/generate')).toBe(1)
    expect(service.count(searchPath)).toBe(1)
  })
})

describe('a 401', () => {
  test('renews the token once and asks again, with a slot of its own', async () => {
    const replica = aReplica({})
    await search(replica.client)
    service.revoke()
    await Promise.all(['a', 'b', 'c', 'd'].map((name) => search(replica.client, name)))
    expect(service.count('/tokens/generate')).toBe(2)
    expect(await replica.client.pause()).toBeNull()
  })

  test('to a token that another replica has renewed takes that one over', async () => {
    const [one, two] = [aReplica(), aReplica()]
    await search(one.client)
    await search(two.client)
    service.revoke()
    await search(one.client)
    await search(two.client)
    expect(service.count('/tokens/generate')).toBe(2)
  })

  test('to a fresh token pauses the account for all replicas and says so once', async () => {
    const [one, two] = [aReplica(), aReplica()]
    await search(one.client)
    await search(two.client)
    service.answer(() => json(401, { message: 'revoked', code: 'UNAUTHORIZED' }))
    const beganMs = Date.now()
    const error = await failure(search(one.client))
    expect(error).toMatchObject({ reason: 'auth', status: 401, retryAfterMs: 30_000 })
    expect(service.count('/tokens/generate')).toBe(3) // another replica might have ended the first
    const asked = server.requests.length
    const others = await Promise.all([failure(search(two.client)), failure(detail(one.client))])
    for (const other of others) {
      expect(other.reason).toBe('auth')
      expect(other.retryAfterMs! + Date.now() - beganMs).toBeGreaterThanOrEqual(29_999)
    }
    expect(server.requests).toHaveLength(asked)
    const { trouble } = (await two.client.pause())!
    expect(trouble).toMatchObject({ reason: 'auth', count: 1, lastMs: trouble.sinceMs })
    expect(trouble.answer).toContain('(401)')
    expect(trouble.nextTryMs! - trouble.lastMs).toBe(30_000)
    const said = (one.logged() + two.logged()).split('account paused').length - 1
    expect(said).toBe(1)
    expect(JSON.parse(one.logged().trim())).toMatchObject({ account: 'main', level: 'error' })
  })
})

describe('a key that is refused', () => {
  test.each([401, 403])(
    'by %i pauses the account, longer each time, until a success',
    async (status) => {
      const replica = aReplica()
      const { client, redis } = replica
      service.generate(() => json(status, { error: { code: 'NO', message: 'no' } }))
      expect(await failure(search(client))).toMatchObject({ reason: 'auth', retryAfterMs: 30_000 })
      const [name] = await redis.keys(`${replica.keys.shared('account-pause')}:*`)
      const forgottenMs = await redis.pttl(name!) // four times the longest pause: then it begins again
      expect(forgottenMs).toBeGreaterThan(3_590_000)
      expect(forgottenMs).toBeLessThanOrEqual(3_600_000)
      await redis.hset(name!, 'until', '1')
      expect(await failure(search(client))).toMatchObject({ reason: 'auth', retryAfterMs: 60_000 })
      expect(await client.pause()).toMatchObject({ times: 2, trouble: { count: 2 } })
      expect(service.count('/tokens/generate')).toBe(2)
      await redis.hset(name!, 'until', '1')
      service.generate(undefined)
      await search(client)
      expect(await client.pause()).toBeNull()
      expect(replica.logged().match(/account (paused|works again)/g)).toEqual([
        'account paused',
        'account works again',
      ])
    },
  )

  test('does not keep the operator from testing it', async () => {
    const { client } = aReplica()
    service.generate(() => json(401, {}))
    await failure(search(client))
    service.generate(undefined)
    expect(await client.testToken()).toEqual({
      organizationId: 7,
      tenantId: 42,
      userEmail: 'a***@example.com',
    })
    expect(await client.pause()).toBeNull()
  })

  test('pauses no longer once a test in a process that never knew of the pause finds that it works', async () => {
    const [daemon, command] = [aReplica(), aReplica()]
    service.generate(() => json(401, {}))
    await failure(search(daemon.client))
    service.generate(undefined)
    await command.client.testToken()
    expect(await daemon.client.pause()).toBeNull()
    await search(daemon.client)
  })

  test('is no reason for a pause when the service is only down', async () => {
    const { client } = aReplica()
    service.generate(() => ({ status: 502, body: 'bad gateway' }))
    expect(await failure(search(client))).toMatchObject({ reason: 'unavailable', status: 502 })
    expect(await client.pause()).toBeNull()
    service.generate(undefined)
    await search(client)
  })
})

describe('the organization', () => {
  test('is learned before the first search and remembered over a restart', async () => {
    const first = aReplica()
    await search(first.client)
    expect(first.client.organization()).toBe(7)
    expect(service.count('/tokens/test')).toBe(1)
    const second = aReplica()
    await search(second.client)
    expect(second.client.organization()).toBe(7)
    expect(service.count('/tokens/test')).toBe(1)
  })

  test('of the configuration is believed without asking', async () => {
    const { client } = aReplica({ organizationId: 9 })
    await search(client)
    expect(client.organization()).toBe(9)
    expect(service.count('/tokens/test')).toBe(0)
  })

  test('that nobody tells stops nothing', async () => {
    service = pretendService(server, null)
    const { client } = aReplica()
    await search(client)
    await search(client)
    expect(client.organization()).toBeUndefined()
    expect(service.count('/tokens/test')).toBe(1)
  })
})

describe('a search', () => {
  test('sends the body as given and gives the page and when it was asked for', async () => {
    const { client } = aReplica({ tenantId: 42 })
    service.answer(() => json(200, { items: [{ odd: true }], next: 'c%3D' }))
    const beforeMs = Date.now()
    const { page, requestedAtMs } = await search(client)
    expect(page).toMatchObject({ items: [{ odd: true }], next: 'c%3D' })
    expect(requestedAtMs).toBeGreaterThanOrEqual(beforeMs)
    expect(requestedAtMs).toBeLessThanOrEqual(Date.now())
    const [generated, , searched] = server.requests
    expect(generated).toMatchObject({ method: 'POST', body: '{"tenant_id":42}' })
    expect(generated?.headers.authorization).toBe(testKey)
    expect(JSON.parse(searched!.body)).toEqual({ size: 10, order: 'asc', from: 'a', filters: {} })
    expect(searched?.headers['content-type']).toBe('application/json')
  })

  test('is counted with its tier, code and wait', async () => {
    const seen: { tier: Tier; code: number | 'none' }[] = []
    const { client } = aReplica({}, { onRequest: (info) => seen.push(info) })
    service.answer(() => ({ status: 503 }))
    await failure(search(client))
    service.answer(() => 'cut')
    await failure(search(client))
    expect(seen.map(({ tier, code }) => `${tier} ${code}`)).toEqual([
      'basic 200',
      'basic 200',
      'search 503',
      'search none',
    ])
    expect(client.utilization('search')).toBeGreaterThan(0)
  })
})

describe('an event', () => {
  const event = { event_type: 'paste', metadata: { uid: 'paste/a/b c' }, data: { title: 't' } }
  test.each([
    ['bare', event],
    ['as activity', { activity: { data: event.data, header: {} } }],
    ['among items', { items: [{ metadata: { uid: 'other' }, data: { x: 1 } }, event] }],
  ])('%s is understood', async (_title, body) => {
    service.answer(() => json(200, body))
    expect(await detail(aReplica().client)).toMatchObject({ kind: 'detail', data: { title: 't' } })
    expect(server.requests.at(-1)?.path).toBe('/firework/v4/events/?uid=paste%2Fa%2Fb%20c')
  })

  test.each([
    ['unsupported', json(400, { error: { code: 'UNSUPPORTED', message: 'no' } })],
    ['not_found', json(404, { message: 'no', code: 'NOT_FOUND' })],
    ['not_found', json(200, { items: [] })],
    ['empty', json(200, { event_type: 'x', metadata: {}, data: {} })],
    ['empty', json(200, { event_type: 'x', metadata: {}, data: null })],
    ['mismatch', json(200, { metadata: { uid: 'paste/of/another' }, data: { a: 1 } })],
  ])('that is %s has no detail', async (why, answer) => {
    service.answer(() => answer)
    expect(await detail(aReplica().client)).toEqual({ kind: 'none', why })
  })
})

describe('secrets', () => {
  test('neither key nor token lies readable in Redis', async () => {
    const { client, redis } = aReplica()
    await search(client)
    const names = await redis.keys('*')
    const dumped = await Promise.all(names.map((name) => redis.dumpBuffer(name)))
    const hashes = await Promise.all(names.map((name) => redis.hgetall(name).catch(() => ({}))))
    const everything = [...names, ...dumped.map(String), JSON.stringify(hashes)].join('\n')
    expect(names.some((name) => name.includes(':token:'))).toBe(true)
    for (const secret of [testKey, ...service.tokens]) expect(everything).not.toContain(secret)
  })

  test('neither stands in an error or a log line, even if the service echoes it', async () => {
    const replica = aReplica()
    const { client } = replica
    await search(client)
    const told: unknown[] = []
    for (const status of [400, 401, 403, 404, 422, 500]) {
      service.answer(({ headers }) => json(status, { message: `you: ${headers.authorization}` }))
      told.push(await failure(search(client)))
    }
    service.answer(({ headers }) => ({ status: 200, body: `you: ${headers.authorization}` }))
    told.push(await failure(search(client)))
    service.generate(() => json(403, { message: `you: ${testKey}` }))
    told.push(await failure(client.testToken()), await diagnoseKey(client))
    const everything =
      told.map((it) => inspect(it, { depth: 12, showHidden: true })).join() + replica.logged()
    for (const secret of [testKey, ...service.tokens]) expect(everything).not.toContain(secret)
  })
})

describe('the health of the service', () => {
  test('is asked for without a token, and costs no account anything', async () => {
    const { client } = aReplica()
    service.answer(() => json(200, 'ok'))
    await client.checkHealth(AbortSignal.timeout(20_000))
    expect(server.requests.map(({ path }) => path)).toEqual(['/firework/v4/healthz/'])
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization')
  })
})

describe('the diagnosis of a key', () => {
  test('says whose it is', async () => {
    expect(await diagnoseKey(aReplica().client)).toMatchObject({
      detail: expect.stringMatching(/^works; organization 7, tenant 42, user a\*\*\*@/),
      remedy: undefined,
    })
  })

  test('warns when the service answers for another tenant', async () => {
    const { warnings } = await diagnoseKey(aReplica({ tenantId: 5 }).client)
    expect(warnings[0]?.problem).toMatch(/tenant 5 is configured, .*tenant 42/)
  })

  test.each([
    ['a refused key', 401, {}, /make a new one/],
    ['a forbidden tenant', 403, { tenantId: 5 }, /no access to tenant 5/],
    ['a wrong path', 404, {}, /it must end before/],
  ] as const)('names %s', async (_title, status, given, advice) => {
    service.generate(() => json(status, {}))
    expect((await diagnoseKey(aReplica(given).client)).remedy).toMatch(advice)
  })

  test('names a web page, a missing host, a closed port, a port without TLS and a proxy', async () => {
    service.generate(() => ({ status: 200, body: '<!doctype html>' }))
    const away = `127.0.0.1:${await freePort()}`
    const cases: [Partial<AccountConfig>, RegExp][] = [
      [{}, /web page/],
      [{ baseUrl: 'http://no-such-host.invalid' }, /host name in base_url/],
      [{ baseUrl: `http://${away}` }, /host and port/],
      [{ baseUrl: server.url.replace('http', 'https') }, /no TLS: .*; correct the port/],
      [{ proxy: secretFromText(`http://${away}`) }, /credentials in proxy/],
    ]
    for (const [given, advice] of cases) {
      const { detail, remedy = '' } = await diagnoseKey(aReplica(given).client)
      expect(`${detail}; ${remedy}`).toMatch(advice)
    }
  })

  test('warns of a clock that is off', async () => {
    const date = new Date(Date.now() + 600_000).toUTCString()
    server.script(({ path }) =>
      path === '/tokens/generate' ? json(200, { token: 'x' }) : json(200, {}, { date }),
    )
    const { warnings } = await diagnoseKey(aReplica().client)
    expect(warnings[0]?.problem).toMatch(/clock is 10 min behind/)
  })
})

function aReplica(given: Partial<AccountConfig> = {}, more: Partial<ReplicaOptions> = {}): Replica {
  const account = anAccount({ baseUrl: server.url, ...given })
  const prefix = `client-${tests}`
  const replica = startReplica({ redisUrl: redisServer.url, prefix, account, ...more })
  onTestFinished(() => replica.stop())
  return replica
}

function search(
  client: UpstreamClient,
  name = 'brand',
  signal = AbortSignal.timeout(20_000),
  tier: Tier = 'search',
): Promise<{ page: WireSearchPage; requestedAtMs: number }> {
  return client.call(
    eventOperations.searchGroup,
    { identifier_group_id: 5, size: 10, order: 'asc', from: 'a', filters: {} },
    { slot: { kind: 'feed', name, dueSinceMs: Date.now() }, tier, signal },
  )
}

function detail(
  client: UpstreamClient,
  maxWaitMs?: number,
): ReturnType<UpstreamClient['getEvent']> {
  const turn = { kind: 'detail', name: 'soc', dueSinceMs: Date.now() } as const
  return client.getEvent({
    uid: 'paste/a/b c',
    slot: turn,
    maxWaitMs,
    signal: AbortSignal.timeout(20_000),
  })
}

async function failure(work: Promise<unknown>): Promise<UpstreamError> {
  const error = await work.catch((thrown: unknown) => thrown)
  if (error instanceof UpstreamError) return error
  throw new Error(`no UpstreamError: ${inspect(error)}`)
}
