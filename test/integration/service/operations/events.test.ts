import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { ServiceClient } from '../../../../src/service/client.ts'
import {
  wireSearchItem,
  type EventQuery,
  type GlobalSearchBody,
  type GroupSearchBody,
} from '../../../../src/service/wire/events.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { aScene, asAnotherTenant, asked, failureOf, onlyWith, toldBy } from './scene.ts'

const tests = redisForTests()

const globalPath = '/firework/v4/events/global/_search'
const groupPath = '/firework/v4/events/identifier_groups/1042/_search'
const query: EventQuery = { type: 'domain', fqdn: 'example.com' }

function searchGlobally(
  client: ServiceClient,
  body: Partial<GlobalSearchBody> = {},
): ReturnType<ServiceClient['searchEvents']> {
  return client.searchEvents({ body: { query, size: 10, order: 'asc', ...body }, ...asked() })
}

function searchGroup(
  client: ServiceClient,
  body: Partial<GroupSearchBody> = {},
  groupId = 1042,
): ReturnType<ServiceClient['searchGroupEvents']> {
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
        type: ['leak', 'a_type_of_tomorrow'],
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

  test('because tags mean nothing globally, and because it looks for nothing', async () => {
    const { client, sent } = await aScene(tests)
    const filters = { tags: ['seen'], is_ignored: true }
    const error = await failureOf(searchGlobally(client, impossible({ query: undefined, filters })))
    expect(toldBy(error)).toEqual(['query: missing', 'filters: unknown: tags, is_ignored'])
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

  test('has no detail where its type has none, nobody knows it, or there is nothing in it', async () => {
    const { sandbox, client } = await aScene(tests)
    const none = { type: 'paste', data: null, groupIds: [1042] }
    const { uid } = sandbox.addEvent(none)
    const getEvent = (of: string) => client.getEvent({ uid: of, ...asked() })
    expect(await getEvent(uid)).toEqual({ kind: 'none', why: 'unsupported' })
    expect(await getEvent('paste/x/y')).toEqual({ kind: 'none', why: 'not_found' })
    const { uid: empty } = sandbox.addEvent({ ...none, data: {} })
    expect(await getEvent(empty)).toEqual({ kind: 'none', why: 'empty' })
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
