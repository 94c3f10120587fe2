import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { wirePolicy, wirePolicyAssignment } from '../../../src/upstream/resources/policies.ts'
import type { Answer } from './client.ts'
import {
  clientOf,
  openMonitoring,
  policiesPath,
  type MonitoringClient,
} from './monitoring-client.ts'

let own: MonitoringClient
let other: MonitoringClient
beforeAll(async () => {
  own = await openMonitoring()
  other = await clientOf(own.sandbox, 43)
})
afterAll(() => own.close())

const missing = '00000000-0000-4000-a000-000000000000'
const keywords = { keywords: ['acme'] }

describe('creation', () => {
  test.each([
    ['INCLUDED_KEYWORDS', keywords, keywords],
    ['EXCLUDED_KEYWORDS', keywords, keywords],
    ['LUCENE_QUERY', { query: 'a AND b' }, { query: 'a AND b' }],
    ['ASTP_COOKIES', { cookie_names: ['sid'] }, { cookie_names: ['sid'], match_subdomains: false }],
  ])('answers with the policy: %s', async (type, value, shown) => {
    const created = await own.call('POST', policiesPath, { name: 'P', type, value })
    expect(created.status).toBe(200)
    const policy = wirePolicy.parse(created.json)
    expect(policy).toEqual({
      uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'P',
      policy_type: type,
      value: shown,
      created_at: expect.stringMatching(/Z$/),
      last_updated_at: policy.created_at,
    })
    expect((await own.call('GET', `${policiesPath}/${policy.uuid}`)).json).toEqual(policy)
  })

  const refused: [string, unknown, (string | number)[]][] = [
    ['without a name', { type: 'INCLUDED_KEYWORDS', value: keywords }, ['body', 'name']],
    [
      'with an empty name',
      { name: '', type: 'INCLUDED_KEYWORDS', value: keywords },
      ['body', 'name'],
    ],
    ['with a type that there is not', { name: 'P', type: 'X', value: keywords }, ['body', 'type']],
    [
      'with no keyword',
      { name: 'P', type: 'INCLUDED_KEYWORDS', value: { keywords: [] } },
      ['body', 'value', 'keywords'],
    ],
    [
      'with a keyword that is none',
      { name: 'P', type: 'INCLUDED_KEYWORDS', value: { keywords: ['a', 7] } },
      ['body', 'value', 'keywords', 1],
    ],
    [
      'with a query that is none',
      { name: 'P', type: 'LUCENE_QUERY', value: { query: '(a' } },
      ['body', 'value', 'query'],
    ],
    ['with no object', 'nonsense', ['body']],
  ]
  test.each(refused)('is refused %s, entry by entry', async (_case, body, loc) => {
    const { status, json } = await own.call('POST', policiesPath, body)
    expect(status).toBe(422)
    const entry = { loc, msg: expect.any(String), type: expect.any(String), ctx: {} }
    expect(json).toEqual({ detail: [{ ...entry, input: inputAt(body, loc.slice(1)) }] })
  })

  function inputAt(body: unknown, path: (string | number)[]): unknown {
    return path.reduce<unknown>((value, key) => (value as never)[key], body) ?? null
  }
})

describe('assignment', () => {
  const entriesOf = async (id: number): Promise<z.infer<typeof wirePolicyAssignment>[]> => {
    const { json } = await own.call('GET', `${policiesPath}/by_identifier_id/${id}`)
    return z.array(wirePolicyAssignment).parse(json)
  }

  test('answers null, and stands in the list of each identifier', async () => {
    const { id } = await own.createAsset()
    const [first, second] = [
      await own.createPolicy('INCLUDED_KEYWORDS', keywords),
      await own.createPolicy('EXCLUDED_KEYWORDS', keywords),
    ]
    expect(await entriesOf(id)).toEqual([])
    expect(await own.assign(first, [id, 91])).toMatchObject({ status: 200, text: 'null' })
    await own.assign(second, [id], true)
    const entries = await entriesOf(id)
    expect(entries.map((one) => [one.matching_policy, one.clean_past_events])).toEqual([
      [first, false],
      [second, true],
    ])
    expect(entries[0]?.assigned_at).toMatch(/Z$/)
    expect((await entriesOf(91)).map((one) => one.matching_policy)).toEqual([first])
  })

  test('again is no second assignment', async () => {
    const { id } = await own.createAsset()
    const policy = await own.createPolicy('INCLUDED_KEYWORDS', keywords)
    await own.assign(policy, [id])
    await own.assign(policy, [id, id], true)
    expect(await entriesOf(id)).toMatchObject([{ clean_past_events: true }])
  })

  test("assigns nothing where one of the identifiers is not there or not the tenant's", async () => {
    const { id } = await own.createAsset()
    const theirs = await other.createAsset()
    const policy = await own.createPolicy('INCLUDED_KEYWORDS', keywords)
    expect(await own.assign(policy, [id, 987_654])).toMatchObject({
      status: 404,
      json: { error: { code: 'NOT_FOUND' } },
    })
    expect(await own.assign(policy, [id, theirs.id])).toMatchObject({
      status: 403,
      json: { error: { code: 'FORBIDDEN' } },
    })
    expect(await entriesOf(id)).toEqual([])
  })

  test.each([
    [{ identifier_ids: 7 }, ['body', 'identifier_ids']],
    [{ identifier_ids: ['7'] }, ['body', 'identifier_ids', 0]],
    [{ identifier_ids: [77], clean_past_events: 'no' }, ['body', 'clean_past_events']],
    [{}, ['body', 'identifier_ids']],
  ])('of %o is refused', async (body, loc) => {
    const { uuid } = await own.createPolicy('INCLUDED_KEYWORDS', keywords)
    const answer = await own.call('POST', `${policiesPath}/${uuid}/assignments`, body)
    expect(answer).toMatchObject({ status: 422, json: { detail: [{ loc }] } })
  })

  test('ends with its policy, whose deletion answers null', async () => {
    const { id } = await own.createAsset()
    const policy = await own.createPolicy('INCLUDED_KEYWORDS', keywords)
    await own.assign(policy, [id])
    const place = `${policiesPath}/${policy.uuid}`
    expect(await own.call('DELETE', place)).toMatchObject({ status: 200, text: 'null' })
    expect(own.sandbox.monitoring.assignments.ofIdentifier(id)).toEqual([])
    expect((await own.call('GET', place)).status).toBe(404)
    expect((await own.call('DELETE', place)).status).toBe(404)
  })

  test('lists of an identifier are refused as its asset would be', async () => {
    const theirs = await other.createAsset()
    const list = (id: number | string): Promise<Answer> =>
      own.call('GET', `${policiesPath}/by_identifier_id/${id}`)
    expect((await list(987_654)).status).toBe(404)
    expect((await list(theirs.id)).status).toBe(403)
    expect(await list('x')).toMatchObject({
      status: 422,
      json: { detail: [{ loc: ['path', 'identifier_id'] }] },
    })
  })
})

test.each(['GET', 'DELETE', 'POST'])(
  "%s of a policy that is not there or not the tenant's is refused",
  async (method) => {
    const { uuid } = await own.createPolicy('INCLUDED_KEYWORDS', keywords)
    const [end, body] = method === 'POST' ? ['/assignments', { identifier_ids: [77] }] : ['']
    const at = (id: string): string => `${policiesPath}/${id}${end}`
    expect(await other.call(method, at(uuid), body)).toMatchObject({
      status: 403,
      json: { error: { code: 'FORBIDDEN' } },
    })
    expect(await own.call(method, at(missing), body)).toMatchObject({
      status: 404,
      json: { error: { code: 'NOT_FOUND' } },
    })
    expect((await own.call('GET', `${policiesPath}/${uuid}`)).status).toBe(200)
  },
)

describe('the path', () => {
  const hyphen = '/firework/v4/matching-policies'
  const body = { name: 'P', type: 'INCLUDED_KEYWORDS', value: keywords }

  test.each([
    ['underscore', 200, 404],
    ['hyphen', 404, 200],
    ['both', 200, 200],
  ] as const)('is spelt with %s as asked for', async (policyPaths, underscored, hyphened) => {
    const client = await openMonitoring({ policyPaths, undescribed: true })
    for (const [path, status] of [
      [policiesPath, underscored],
      [hyphen, hyphened],
    ] as const) {
      const answers = [
        await client.call('POST', path, body),
        await client.call('GET', path),
        await client.call('GET', `${path}/by_identifier_id/77`),
      ]
      expect(answers.map((answer) => answer.status)).toEqual([status, status, status])
      const refusals = answers.filter((answer) => answer.status === 404)
      for (const { json } of refusals) expect(json).toEqual({ detail: 'Not Found' })
    }
    await client.close()
  })
})

describe('operations that are not described', () => {
  const routes = (uuid: string): [string, string][] => [
    ['GET', policiesPath],
    ['PUT', `${policiesPath}/${uuid}`],
    ['GET', `${policiesPath}/${uuid}/assignments`],
    ['DELETE', `${policiesPath}/${uuid}/assignments`],
  ]

  test('are not there by default', async () => {
    for (const [method, path] of routes(missing)) {
      const { status, json } = await own.call(method, path)
      expect([status, json]).toEqual([405, { detail: 'Method Not Allowed' }])
    }
  })

  describe('on request', () => {
    let client: MonitoringClient
    beforeAll(async () => {
      client = await openMonitoring({ undescribed: true })
    })
    afterAll(() => client.close())

    test('list the policies of the tenant, page by page', async () => {
      const made: string[] = []
      for (let count = 0; count < 5; count++) {
        made.push((await client.createPolicy('INCLUDED_KEYWORDS', keywords)).uuid)
      }
      await (await clientOf(client.sandbox, 43)).createPolicy('INCLUDED_KEYWORDS', keywords)
      const read: string[] = []
      for (let from = ''; ;) {
        const { json } = await client.call('GET', `${policiesPath}?size=2&order=asc${from}`)
        const page = z
          .object({ items: z.array(wirePolicy), next: z.string().nullish() })
          .parse(json)
        read.push(...page.items.map(({ uuid }) => uuid))
        if (!page.next) break
        from = `&from=${encodeURIComponent(page.next)}`
      }
      expect(read.toSorted()).toEqual(made.toSorted())
    })

    test.each(['size=26', 'size=0', 'order=up'])('refuse %s in a list', async (query) => {
      const loc = ['query', query.split('=')[0]]
      const answer = await client.call('GET', `${policiesPath}?${query}`)
      expect(answer).toMatchObject({ status: 422, json: { detail: [{ loc }] } })
    })

    test('change name and value of a policy, within its type', async () => {
      const policy = await client.createPolicy('LUCENE_QUERY', { query: 'a' })
      const place = `${policiesPath}/${policy.uuid}`
      const changed = await client.call('PUT', place, { name: 'New', value: { query: 'b' } })
      const { last_updated_at: _, ...rest } = { ...policy, name: 'New', value: { query: 'b' } }
      expect(changed.json).toMatchObject(rest)
      const refused = await client.call('PUT', place, { name: 'New', value: keywords })
      expect(refused.status).toBe(422)
      expect((await client.call('PUT', place, [])).status).toBe(422)
      expect((await client.call('GET', place)).json).toEqual(changed.json)
    })

    test('list the assignments of a policy, and take them back', async () => {
      const policy = await client.createPolicy('INCLUDED_KEYWORDS', keywords)
      const place = `${policiesPath}/${policy.uuid}/assignments`
      await client.assign(policy, [77, 78], true)
      const { json } = await client.call('GET', `${place}?order=asc`)
      const assigned_at = expect.stringMatching(/Z$/)
      expect(json).toEqual({
        items: [
          {
            identifier_id: 77,
            identifier_name: 'example.com',
            clean_past_events: true,
            assigned_at,
          },
          {
            identifier_id: 78,
            identifier_name: 'Example Bank',
            clean_past_events: true,
            assigned_at,
          },
        ],
        next: null,
      })
      const removed = await client.call('DELETE', place, { identifier_ids: [77] })
      expect(removed).toMatchObject({ status: 200, text: 'null' })
      expect((await client.call('GET', place)).json).toMatchObject({
        items: [{ identifier_id: 78 }],
      })
    })

    test("refuse what is another tenant's or not there", async () => {
      const { uuid } = await client.createPolicy('INCLUDED_KEYWORDS', keywords)
      const bodyOf = (method: string) => (method === 'GET' ? undefined : {})
      const stranger = await clientOf(client.sandbox, 43)
      for (const [method, path] of routes(uuid).slice(1)) {
        expect((await stranger.call(method, path, bodyOf(method))).status).toBe(403)
      }
      for (const [method, path] of routes(missing).slice(1)) {
        expect((await client.call(method, path, bodyOf(method))).status).toBe(404)
      }
    })
  })
})
