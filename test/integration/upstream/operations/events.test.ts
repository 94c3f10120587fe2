import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import {
  wireSearchItem,
  type EventQuery,
  type GlobalSearchBody,
  type GroupSearchBody,
} from '../../../../src/upstream/resources/events.ts'
import { redisForTests } from '../../../support/ledger.ts'
import type { ScriptedAnswer } from '../../../support/http-server.ts'
import { json } from '../../../support/replica.ts'
import {
  aScene,
  aScriptedScene,
  asAnotherTenant,
  asked,
  failureOf,
  onlyWith,
  toldBy,
} from './scene.ts'

const tests = redisForTests()

const globalPath = '/firework/v4/events/global/_search'
const groupPath = '/firework/v4/events/identifier_groups/1042/_search'
const query: EventQuery = { type: 'domain', fqdn: 'example.com' }

function searchGlobally(
  client: UpstreamClient,
  body: Partial<GlobalSearchBody> = {},
): ReturnType<UpstreamClient['searchEvents']> {
  return client.searchEvents({ body: { query, size: 10, order: 'asc', ...body }, ...asked() })
}

function searchGroup(
  client: UpstreamClient,
  body: Partial<GroupSearchBody> = {},
  groupId = 1042,
): ReturnType<UpstreamClient['searchGroupEvents']> {
  return client.searchGroupEvents({
    groupId,
    body: { size: 10, order: 'asc', ...body },
    tier: 'search',
    ...asked(),
  })
}

function uidsOf(items: unknown[]): string[] {
  return items.map((item) => wireSearchItem.parse(item).metadata.uid)
}

const impossible = <Body>(body: Record<string, unknown>): Partial<Body> => body as Partial<Body>

describe('a search in an identifier group', () => {
  test('sends its body as it is given, against the tier that the caller says', async () => {
    const { client, sent } = await aScene(tests, {
      sandbox: { tiers: { groupSearch: 'basic' } },
    })
    const body: GroupSearchBody = {
      query: { type: 'keyword', keyword: 'acme' },
      size: 7,
      order: 'desc',
      filters: {
        severity: ['high', 'critical'],
        type: ['leak', 'intelligence_object'],
        estimated_created_at: { gte: '2026-01-01T00:00:00Z', lt: '2026-02-01T00:00:00Z' },
        materialized_at: { gt: '2026-01-01T00:00:00Z' },
        tags: ['seen'],
        is_ignored: true,
        is_remediated: false,
      },
    }
    await client.searchGroupEvents({ groupId: 1042, body, tier: 'basic', ...asked() })
    expect(sent()).toEqual([{ method: 'POST', path: groupPath, query: {}, body, tier: 'basic' }])
    expect(client.budget('search').utilization).toBe(0)
  })

  test('needs no query, and is read cursor by cursor with the identifiers of each event', async () => {
    const { sandbox, client } = await aScene(tests)
    const made = sandbox.addEvents(5, { groupIds: [1042] })
    const first = await searchGroup(client, { size: 3 })
    const second = await searchGroup(client, { size: 3, from: first.page.next! })
    const items = [...first.page.items, ...second.page.items]
    expect(uidsOf(items).toSorted()).toEqual(made.map(({ uid }) => uid).toSorted())
    expect(wireSearchItem.parse(items[0]).identifiers).toEqual(
      made.find(({ uid }) => uid === uidsOf(items)[0])?.identifiers,
    )
    expect(second.page.next).toBeNull()
  })

  test.each([
    ['that nobody has', 5, {}, { reason: 'rejected', status: 404 }],
    ['of another tenant', 1042, asAnotherTenant, { reason: 'auth', status: 403 }],
  ])('in a group %s fails by its reason', async (_title, groupId, account, failure) => {
    const { client } = await aScene(tests, { account })
    expect(await failureOf(searchGroup(client, {}, groupId))).toMatchObject(failure)
  })

  test('lets a type of tomorrow through, which the service judges', async () => {
    const { client } = await aScene(tests)
    const error = await failureOf(searchGroup(client, { filters: { type: ['lookalike'] } }))
    expect(error).toMatchObject({ reason: 'rejected', status: 422 })
    expect(toldBy(error)[0]).toMatch(/^body\.filters\.type\.0: /)
  })

  test('tells field by field what the service refuses', async () => {
    const { client } = await aScene(tests)
    const filters = { estimated_created_at: { gte: 'yesterday', lte: 'tomorrow' } }
    const error = await failureOf(searchGroup(client, { filters }))
    expect(error).toMatchObject({ reason: 'rejected', status: 422 })
    expect(toldBy(error)).toEqual([
      'body.filters.estimated_created_at.gte: not a date-time',
      'body.filters.estimated_created_at.lte: not a date-time',
    ])
  })
})

describe('a search in the tenant, and in an identifier', () => {
  const body: GroupSearchBody = { size: 10, order: 'asc', filters: { is_ignored: true } }

  test('send their body as it is given, against the tier that the caller says', async () => {
    const { client, sent } = await aScene(tests, { sandbox: { tiers: { groupSearch: 'basic' } } })
    await client.searchTenantEvents({ body, tier: 'basic', ...asked() })
    await client.searchIdentifierEvents({ identifier: 77, body, tier: 'basic', ...asked() })
    const request = { method: 'POST', query: {}, body, tier: 'basic' }
    expect(sent()).toEqual([
      { ...request, path: '/firework/v4/events/tenant/_search' },
      { ...request, path: '/firework/v4/events/identifiers/77/_search' },
    ])
  })

  test('show all that the tenant watches for, once each, and what one identifier matched', async () => {
    const { sandbox, client } = await aScene(tests)
    const one = sandbox.addEvent({ groupIds: [1042], identifiers: [{ id: 77, name: 'a' }] })
    const two = sandbox.addEvent({ groupIds: [1042, 1043], identifiers: [{ id: 91, name: 'b' }] })
    sandbox.addEvent({ groupIds: [] })
    const all = { size: 10, order: 'asc' } as const
    const tenant = await client.searchTenantEvents({ body: all, tier: 'search', ...asked() })
    expect(uidsOf(tenant.page.items).toSorted()).toEqual([one.uid, two.uid].toSorted())
    const identifier = { identifier: 91, body: all, tier: 'search', ...asked() } as const
    const { page } = await client.searchIdentifierEvents(identifier)
    expect(uidsOf(page.items)).toEqual([two.uid])
  })

  test.each([
    ['that nobody has', 5, {}, { reason: 'rejected', status: 404 }],
    ['of another tenant', 77, asAnotherTenant, { reason: 'auth', status: 403 }],
  ])('an identifier %s fails by its reason', async (_title, identifier, account, failure) => {
    const { client } = await aScene(tests, { account })
    const search = client.searchIdentifierEvents({ identifier, body, tier: 'search', ...asked() })
    expect(await failureOf(search)).toMatchObject(failure)
  })
})

describe('what was matched when', () => {
  const hourMs = 3_600_000
  const nowMs = Date.UTC(2026, 10, 22, 12)
  const since = { filters: { materialized_at: { gte: '2026-11-22T11:50:00Z' } } }

  test('tells what was created long ago and matched now from what was matched then', async () => {
    const { sandbox, client } = await aScene(tests, { sandbox: { now: () => nowMs } })
    const place = { groupIds: [1042] }
    const late = sandbox.addEvent({ ...place, createdAtMs: nowMs - 100 * hourMs })
    const arrivedAtMs = nowMs - 2 * hourMs
    const old = sandbox.addEvent({ ...place, createdAtMs: arrivedAtMs - 10_000, arrivedAtMs })
    expect([null, arrivedAtMs]).toContain(old.matchedAtMs)
    const { page } = await searchGroup(client, since)
    expect(uidsOf(page.items)).toEqual([late.uid])
  })

  test.each([
    ['ignored', 2],
    ['empty', 0],
  ] as const)('is %s by servers of another manner', async (materializedFilter, shown) => {
    const { sandbox, client } = await aScene(tests, { sandbox: { materializedFilter } })
    sandbox.addEvents(2, { groupIds: [1042], arrivedAtMs: 0 })
    expect((await searchGroup(client, since)).page.items).toHaveLength(shown)
    expect((await searchGroup(client)).page.items).toHaveLength(2)
  })

  test('is refused by servers that do not know it', async () => {
    const { sandbox, client } = await aScene(tests, { sandbox: { materializedFilter: 'refused' } })
    sandbox.addEvents(2, { groupIds: [1042] })
    const error = await failureOf(searchGroup(client, since))
    expect(error).toMatchObject({ reason: 'rejected', status: 422 })
    expect(toldBy(error)[0]).toMatch(/^body\.filters\.materialized_at: /)
    expect((await searchGroup(client)).page.items).toHaveLength(2)
  })
})

describe('the words that filters take', () => {
  test('are told with the groups and what these contain; item types are no filters', async () => {
    const { client, sent } = await aScene(tests)
    const types = await client.eventTypeFilters(asked())
    expect(types).toHaveLength(59)
    expect(types).toEqual(expect.arrayContaining(['illicit_networks', 'stealer_log', 'ads']))
    expect(types).not.toContain('lookalike')
    expect(await client.eventSeverityFilters(asked())).toEqual([
      'info',
      'low',
      'medium',
      'high',
      'critical',
    ])
    expect(sent()).toMatchObject([
      { method: 'GET', path: '/firework/v4/events/filters/types', tier: 'basic' },
      { method: 'GET', path: '/firework/v4/events/filters/severities', tier: 'basic' },
    ])
  })
})

describe('a global search', () => {
  test('sends its body as it is given, against the search tier, and says what is left', async () => {
    const { sandbox, client, sent } = await aScene(tests, {
      sandbox: { searchQuota: { prefix: 'X-', searches: 5 } },
    })
    sandbox.addEvents(2, { data: { domain: 'example.com' }, type: 'domain' })
    const body: GlobalSearchBody = {
      query,
      size: 1,
      order: 'desc',
      filters: { severity: 'info', type: ['domain'] },
    }
    const { page, searchesRemaining } = await client.searchEvents({ body, ...asked() })
    expect(sent()).toEqual([{ method: 'POST', path: globalPath, query: {}, body, tier: 'search' }])
    expect(page.items).toHaveLength(1)
    expect(page.next).toEqual(expect.any(String))
    expect(searchesRemaining).toBe(4)
    expect(client.budget('search').utilization).toBeGreaterThan(0)
  })

  const kinds: EventQuery[] = [
    { type: 'domain', fqdn: 'example.com' },
    { type: 'email', email: 'ann@example.com' },
    { type: 'keyword', keyword: 'acme' },
    { type: 'query_string', query_string: 'acme AND leak' },
    { type: 'username', username: 'ann' },
    { type: 'github_repository', repo_owner: 'acme', repo_name: 'site' },
    { type: 'brand', name: 'Acme' },
    { type: 'name', first_name: 'Ann', last_name: 'Lee', is_strict: true },
    { type: 'bin', bin: '424242' },
    { type: 'ip', ip: '192.0.2.1' },
    { type: 'credentials', username: 'ann', password: 'pa55' },
    { type: 'secret', secret: 'pa55' },
    { type: 'azure_tenant', tenant_id: 'acme.example' },
  ]
  test.each(kinds)('for $type is understood', async (kind) => {
    const { client, sent } = await aScene(tests)
    expect((await searchGlobally(client, { query: kind })).page.items).toEqual([])
    expect(sent()).toMatchObject([{ body: { query: kind } }])
  })

  test('without the permission is forbidden', async () => {
    const { client } = await aScene(tests, { sandbox: onlyWith() })
    const error = await failureOf(searchGlobally(client))
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
    expect(error.message).toContain('needs firework.global_search')
  })

  test('with a cursor that is none fails by its code', async () => {
    const { client } = await aScene(tests)
    const failure = { reason: 'rejected', status: 400, serviceCode: 'INVALID_CURSOR' }
    expect(await failureOf(searchGlobally(client, { from: 'nonsense' }))).toMatchObject(failure)
  })

  const looked: EventQuery[] = [
    { type: 'secret', secret: 'correct horse' },
    { type: 'credentials', username: 'ann', password: 'correct horse' },
  ]
  test.each(looked)('for $type repeats in no error what it looks for', async (kind) => {
    const { sandbox, client } = await aScene(tests)
    const messages = ['nothing for correct horse', 'nothing for correct%20horse']
    const answers = messages.flatMap((message) =>
      [400, 422, 500].map((status) => ({ message, status })),
    )
    for (const answer of answers) {
      sandbox.faults.add({ on: '/firework/*_search', effect: 'status', ...answer, times: 1 })
      const body = { query: kind, size: 10, order: 'asc' } as const
      const isGlobal = answer.status === 400
      const error = await failureOf(
        isGlobal ? searchGlobally(client, body) : searchGroup(client, body),
      )
      expect(error.status).toBe(answer.status)
      expect(error.message).toContain('nothing for <secret>')
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('horse')
    }
  })
})

describe('a search that breaks a stated limit is never sent', () => {
  const mistakes: [string, Record<string, unknown>, string[]][] = [
    ['a size of 0', { size: 0 }, ['size: too small; write 1 or more']],
    ['a size of 11', { size: 11 }, ['size: too large; write 10 or less']],
    [
      'an unknown order',
      { order: 'desk' },
      ['order: not known to the service; did you mean "desc"?'],
    ],
    [
      'an unknown severity among others',
      { filters: { severity: ['high', 'critcal'] } },
      ['filters.severity.1: not known to the service; did you mean "critical"?'],
    ],
    [
      'an unknown least severity',
      { filters: { severity: 'hihg' } },
      ['filters.severity: not known to the service; did you mean "high"?'],
    ],
    [
      'an unknown kind of query',
      { query: { type: 'domian', fqdn: 'x' } },
      ['query.type: not known to the service; did you mean "domain"?'],
    ],
    [
      'an empty word',
      { query: { type: 'secret', secret: '' } },
      ['query.secret: empty; write at least 1 character'],
    ],
  ]

  test.each(mistakes)('because of %s', async (_title, mistake, told) => {
    const { client, sent } = await aScene(tests)
    for (const search of [searchGlobally, searchGroup]) {
      const error = await failureOf(search(client, impossible(mistake)))
      expect(error).toMatchObject({ reason: 'invalid', status: undefined })
      expect(toldBy(error)).toEqual(told)
    }
    expect(sent('/')).toEqual([])
  })

  test('because a global search looks for nothing, and because nobody knows a filter', async () => {
    const { client, sent } = await aScene(tests)
    const filters = { tags: ['seen'], is_ignored: true, is_new: true }
    const error = await failureOf(searchGlobally(client, impossible({ query: undefined, filters })))
    expect(toldBy(error)).toEqual(['query: missing', 'filters: unknown: is_new'])
    expect(sent('/')).toEqual([])
  })
})

describe('an event', () => {
  test('is asked for by its uid alone and comes back with its data', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const given = { type: 'paste', uid: 'paste/of a/b?c&d=é', data: { title: 'hello' } }
    const { uid } = sandbox.addEvent({ ...given, groupIds: [1042] })
    const answer = await client.getEvent({ uid, ...asked() })
    expect(answer).toMatchObject({ kind: 'detail', event: { metadata: { uid } } })
    expect(answer).toMatchObject({ data: { title: 'hello' } })
    const path = '/firework/v4/events/'
    expect(sent()).toEqual([
      { method: 'GET', path, query: { uid }, body: undefined, tier: 'basic' },
    ])
  })

  test('is asked of the older operation where its type has no model', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const highlights = { body: ['<mark>acme</mark> for sale'] }
    const none = { type: 'forum_topic', data: null, highlights, groupIds: [1042] }
    const { uid } = sandbox.addEvent(none)
    const answer = await client.getEvent({ uid, ...asked() })
    expect(answer).toMatchObject({ kind: 'detail', event: { event_type: 'forum_topic' } })
    expect(answer).toMatchObject({ data: { uid, body: 'acme for sale' } })
    const request = { method: 'GET', query: { uid }, body: undefined, tier: 'basic' }
    expect(sent()).toEqual([
      { ...request, path: '/firework/v4/events/' },
      { ...request, path: '/firework/v2/activities/' },
    ])
    expect(await client.getActivity({ uid, ...asked() })).toEqual(answer)
  })

  test('has no detail where nobody knows it, or there is nothing in it', async () => {
    const { sandbox, client } = await aScene(tests)
    expect(await client.getEvent({ uid: 'paste/x/y', ...asked() })).toEqual({
      kind: 'none',
      why: 'not_found',
    })
    const { uid } = sandbox.addEvent({ type: 'paste', data: {}, groupIds: [1042] })
    expect(await client.getEvent({ uid, ...asked() })).toMatchObject({ kind: 'detail' })
  })

  const unsupported = json(400, { error: { code: 'UNSUPPORTED', message: 'no model' } })
  const older: [string, ScriptedAnswer, number][] = [
    ['does not have it', json(404, { detail: 'Not Found' }), 3],
    ['closes it to the key', json(403, { message: 'no', code: 'FORBIDDEN' }), 4],
    ['answers nonsense', { status: 200, body: '<html>' }, 4],
    ['does not know the event', json(404, { message: 'no such event', code: 'NOT_FOUND' }), 4],
    ['tells of another event', json(200, { activity: { header: { uid: 'b' }, data: {} } }), 4],
    ['has nothing in it', json(200, { activity: { header: { uid: 'a' }, data: {} } }), 4],
  ]
  test.each(older)(
    'has no detail where the older operation of a server %s',
    async (_title, answer, requests) => {
      const { service, client, sent } = await aScriptedScene(tests)
      service.answer(({ path }) => (path.includes('/activities/') ? answer : unsupported))
      for (const _time of [1, 2]) {
        const told = await client.getEvent({ uid: 'a', ...asked() })
        expect(told).toEqual({ kind: 'none', why: 'unsupported' })
      }
      expect(sent()).toHaveLength(requests)
    },
  )

  test('is asked for again where the older operation fails for now', async () => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(({ path }) => (path.includes('/activities/') ? json(503, {}) : unsupported))
    expect(await failureOf(client.getEvent({ uid: 'a', ...asked() }))).toMatchObject({
      reason: 'unavailable',
    })
  })

  test('of another tenant is forbidden', async () => {
    const { sandbox, client } = await aScene(tests, { account: asAnotherTenant })
    const { uid } = sandbox.addEvent({ groupIds: [1042] })
    const error = await failureOf(client.getEvent({ uid, ...asked() }))
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
  })
})

describe('an expanded field', () => {
  const cookies = Array.from({ length: 25 }, (_, index) => ({
    host_key: 'example.com',
    path: '/',
    expires_utc: '2027-01-01T00:00:00',
    name: `c${index}`,
    value: `v${index}`,
  }))

  test.each(['cookies', 'credentials'] as const)('%s is read in pages of 20', async (field) => {
    const { sandbox, client, sent } = await aScene(tests)
    const credentials = cookies.map(({ name, value }) => ({
      url: 'https://example.com',
      username: name,
      password: value,
      application: 'Firefox',
    }))
    const log = { type: 'stealer_log', stolen: { cookies, credentials }, groupIds: [1042] }
    const { uid } = sandbox.addEvent(log)
    const expand = (from?: string) =>
      client.expandEvent({ expansion: { uid, field, size: 20, ...(from && { from }) }, ...asked() })
    const first = await expand()
    const second = await expand(first.next!)
    expect([...first.items, ...second.items]).toEqual(log.stolen[field])
    expect(second.next).toBeNull()
    const path = '/firework/v4/events/_expand'
    const request = { method: 'GET', path, body: undefined, tier: 'basic' }
    expect(sent()).toEqual([
      { ...request, query: { uid, field, size: '20' } },
      { ...request, query: { uid, field, size: '20', from: first.next } },
    ])
  })

  test('of an event that has none, is unknown or is another tenant’s fails by its reason', async () => {
    const { sandbox, client } = await aScene(tests)
    const { uid } = sandbox.addEvent({ type: 'paste', groupIds: [1042] })
    const { uid: foreign } = sandbox.addEvent({ type: 'stealer_log', groupIds: [] })
    const expand = (of: string) =>
      failureOf(
        client.expandEvent({ expansion: { uid: of, field: 'cookies', size: 5 }, ...asked() }),
      )
    expect(await expand(uid)).toMatchObject({ reason: 'rejected', serviceCode: 'UNSUPPORTED' })
    expect(await expand('stealer_log/x/y')).toMatchObject({ reason: 'rejected', status: 404 })
    expect(await expand(foreign)).toMatchObject({ reason: 'auth', status: 403 })
  })

  test.each([
    [{ size: 21 }, ['size: too large; write 20 or less']],
    [{ size: 0 }, ['size: too small; write 1 or more']],
    [{ uid: '' }, ['uid: empty; write at least 1 character']],
    [{ field: 'cokies' }, ['field: not known to the service; did you mean "cookies"?']],
  ])('with %j is never asked for', async (mistake, told) => {
    const { client, sent } = await aScene(tests)
    const expansion = { uid: 'stealer_log/x/y', field: 'cookies', size: 20, ...mistake } as never
    const error = await failureOf(client.expandEvent({ expansion, ...asked() }))
    expect(error.reason).toBe('invalid')
    expect(toldBy(error)).toEqual(told)
    expect(sent('/')).toEqual([])
  })
})
