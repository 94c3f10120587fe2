import { describe, expect, test } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { LegacySearchRequest } from '../../../../src/upstream/resources/legacy-search.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asked, failureOf, onlyWith, toldBy } from './scene.ts'

const tests = redisForTests()

const path = '/firework/v2/search/'

function search(
  client: UpstreamClient,
  given: Partial<LegacySearchRequest> = {},
): ReturnType<UpstreamClient['legacySearch']> {
  return client.legacySearch({ parameters: {}, from: null, ...given, ...asked() })
}

function uidOf(item: unknown): string {
  return (item as { header: { uid: string } }).header.uid
}

describe.each(['GET', 'POST'] as const)('a legacy search by %s', (method) => {
  test('carries every parameter in the query string, lists as repeated keys', async () => {
    const { client, sent } = await aScene(tests)
    await search(client, {
      method,
      parameters: {
        fields: ['uid', 'header.title'],
        time: '2026-01-01T00:00:00Z@2026-02-01T00:00:00Z',
        size: 50,
        tags: ['a b', 'c&d'],
        tags_query_operator: 'AND',
        types: ['leak', 'illicit_networks'],
        experimental_types: ['x', 'y'],
        event_action: 'exclude_ignored',
        event_actions: ['ignored', 'remediated'],
        risks: [4, 5],
        order: 'asc',
        sort_by: 'alertable-materialized',
        use_global_policies: false,
        time_zone: 'Europe/Oslo',
        query: 'acme AND "blå bær"',
        has_modified_risk_score: true,
        has_notes: false,
      },
    })
    const query = {
      fields: ['uid', 'header.title'],
      time: '2026-01-01T00:00:00Z@2026-02-01T00:00:00Z',
      size: '50',
      tags: ['a b', 'c&d'],
      tags_query_operator: 'AND',
      types: ['leak', 'illicit_networks'],
      experimental_types: ['x', 'y'],
      event_action: 'exclude_ignored',
      event_actions: ['ignored', 'remediated'],
      risks: ['4', '5'],
      order: 'asc',
      sort_by: 'alertable-materialized',
      use_global_policies: 'false',
      time_zone: 'Europe/Oslo',
      query: 'acme AND "blå bær"',
      has_modified_risk_score: 'true',
      has_notes: 'false',
    }
    expect(sent()).toEqual([{ method, path, query, body: undefined, tier: 'search' }])
  })

  test.each(['full', 'absent', 'empty'] as const)(
    'is read whole by its own cursor, where walks end %s',
    async (endMode) => {
      const sandbox = { endMode, searchQuota: { prefix: '', searches: 100 } }
      const scene = await aScene(tests, { sandbox })
      const made = scene.sandbox.addEvents(5)
      const uids: string[] = []
      let from: string | null = null
      do {
        const answer = await search(scene.client, { method, from, parameters: { size: 2 } })
        uids.push(...answer.page.items.map(uidOf))
        expect(answer).toMatchObject({ hits: 5, searchesRemaining: expect.any(Number) as number })
        from = answer.page.next ?? null
      } while (from !== null)
      expect(uids.toSorted()).toEqual(made.map(({ uid }) => uid).toSorted())
      expect(scene.sandbox.violations().changedScans).toBe(0)
    },
  )

  test('goes on by whichever cursor the answer has, and ends where it has none', async () => {
    const { service, client, sent } = await aScriptedScene(tests)
    const answers = [
      { search_after: 'one=', links: { next: 'another' } },
      { links: { next: 'two==' } },
      { links: { next: 'https://api.example/firework/v2/search/?size=2&from=three%3D%3D' } },
      { links: { next: '/firework/v2/search/?size=2&search_after=four%26' } },
      { search_after: ['2026-01-01', 'uid/5'], links: null },
      { search_after: null, links: { next: null } },
      { search_after: null },
      {},
    ]
    const left = [...answers]
    service.answer(() => json(200, { items: [], ...left.shift() }))
    const page = async (from: string | null): Promise<string | null> =>
      (await search(client, { method, from, parameters: { size: 2 } })).page.next ?? null
    let from: string | null = null
    for (let n = 0; n < 6; n += 1) from = await page(from)
    expect(from).toBeNull()
    expect([await page(null), await page(null)]).toEqual([null, null])
    const sixth = encodeURIComponent('["2026-01-01","uid/5"]')
    expect(sent()).toEqual([
      `${method} ${path}?size=2`,
      `${method} ${path}?size=2&search_after=one%3D`,
      `${method} ${path}?size=2&from=two%3D%3D`,
      `${method} ${path}?size=2&from=three%3D%3D`,
      `${method} ${path}?size=2&search_after=four%26`,
      `${method} ${path}?size=2&search_after=${sixth}`,
      `${method} ${path}?size=2`,
      `${method} ${path}?size=2`,
    ])
  })
})

describe('a legacy search', () => {
  test('is made by POST unless somebody says otherwise', async () => {
    const { client, sent } = await aScene(tests)
    await search(client)
    expect(sent()).toMatchObject([{ method: 'POST', query: {} }])
  })

  test('says nothing of hits where the answer does not', async () => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => json(200, { items: [1, { odd: true }] }))
    const { hits, page } = await search(client)
    expect(hits).toBeUndefined()
    expect(page).toEqual({ items: [1, { odd: true }], next: null })
  })

  test.each([
    ['a query that is none', { query: '(acme' }, 'query: '],
    ['a time that is none', { time: 'then@now' }, 'time: not of the form from@to'],
    ['an unknown zone', { time_zone: 'Mars/Base' }, 'time_zone: not a time zone'],
  ])('is refused for %s, in the words of the service', async (_title, parameters, said) => {
    const { client } = await aScene(tests)
    const error = await failureOf(search(client, { parameters }))
    expect(error).toMatchObject({ reason: 'rejected', status: 400, serviceCode: 'BAD_REQUEST' })
    expect(error.message).toContain(said)
  })

  test('with a cursor that is none fails by its code', async () => {
    const { client } = await aScene(tests)
    const error = await failureOf(search(client, { from: 'search_after=nonsense' }))
    expect(error).toMatchObject({ reason: 'rejected', serviceCode: 'INVALID_CURSOR' })
  })

  test('without the permission is forbidden', async () => {
    const { client } = await aScene(tests, { sandbox: onlyWith() })
    expect(await failureOf(search(client))).toMatchObject({ reason: 'auth', status: 403 })
  })

  test('whose answer is no page breaks the contract', async () => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => json(200, { items: 'none' }))
    expect(await failureOf(search(client))).toMatchObject({ reason: 'contract', status: 200 })
  })

  test('that breaks a stated limit is never sent, every mistake told', async () => {
    const { client, sent } = await aScene(tests)
    const parameters = {
      size: 0,
      types: ['leak', 'forum_pots'],
      event_action: 'ingored',
      sort_by: 'materialised',
      risks: [6],
      fields: [''],
    } as never
    const error = await failureOf(search(client, { parameters }))
    expect(error).toMatchObject({ reason: 'invalid', status: undefined })
    expect(toldBy(error)).toEqual([
      'fields.0: empty; write at least 1 character',
      'size: too small; write 1 or more',
      'types.1: not known to the service; did you mean "forum_post"?',
      'event_action: not known to the service; did you mean "ignored"?',
      'risks.0: too large; write 5 or less',
      'sort_by: not known to the service; did you mean "materialized"?',
    ])
    expect(sent('/')).toEqual([])
  })
})
