import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { AssetCreation } from '../../../../src/upstream/resources/assets.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asAnotherTenant, asked, failureOf, toldBy } from './scene.ts'

const tests = redisForTests()

const path = '/firework/v2/assets/'
const newPath = '/firework/v4/identifiers/'
const asset: AssetCreation = {
  name: 'Acme',
  type: 'domain',
  search_types: ['leak', 'ads'],
  data: { fqdn: 'acme.test' },
}

/** As v4 shows it. */
const identifier = {
  id: 5,
  name: 'Acme',
  tenant_id: 42,
  data: { type: 'domain', fqdn: 'acme.test' },
  categories: ['leak'],
  emerging_categories: [],
  severities: ['high', 'critical'],
  group_id: 1043,
  enrichments: null,
  is_disabled: false,
  updated_at: '2026-07-01T00:00:00Z',
}

function create(
  client: UpstreamClient,
  given: Record<string, unknown> = {},
): Promise<{ id: number }> {
  return client.createAsset({ asset: { ...asset, ...given } as AssetCreation, ...asked() })
}

function replace(
  client: UpstreamClient,
  id: number,
  given: Record<string, unknown> = {},
): Promise<void> {
  const whole = { ...asset, search_types: ['leak'], ...given } as never
  return client.changeAsset({ id, asset: whole, ...asked() })
}

function toggle(client: UpstreamClient, id: number, isDisabled = true): Promise<void> {
  return client.toggleAsset({ id, isDisabled, ...asked() })
}

describe('an asset', () => {
  test('is created as it is given, and comes back with its id', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const body = {
      ...asset,
      experimental_search_types: ['x'],
      risks: [4, 5],
      assets_group_id: 1043,
    }
    const { id } = await client.createAsset({ asset: body, ...asked() })
    expect(sent()).toEqual([{ method: 'POST', path, query: {}, body, tier: 'basic' }])
    const stored = { name: 'Acme', data: asset.data, risks: [4, 5], groupId: 1043 }
    expect(sandbox.monitoring.assets.get(id)).toMatchObject(stored)
  })

  test('is changed where it is told: other fields and the rest of its data stay', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const data = { first_name: 'Ann', last_name: 'Lee', is_strict: true }
    const { id } = await create(client, { type: 'name', data })
    sandbox.monitoring.assets.change(id, { others: { of_tomorrow: { deep: [1] } } })
    const given = { type: 'name', data: { first_name: 'Anna', last_name: 'Lee' } }
    await replace(client, id, given)
    const whole = { data: { ...data, first_name: 'Anna' }, of_tomorrow: { deep: [1] } }
    expect(sent().slice(-2)).toMatchObject([
      { method: 'GET', path: `${path}${id}` },
      { method: 'PUT', path: `${path}${id}`, body: { ...whole, search_types: ['leak'] } },
    ])
    const stored = { data: whole.data, others: { of_tomorrow: whole.of_tomorrow } }
    expect(sandbox.monitoring.assets.get(id)).toMatchObject(stored)
  })

  test('is deleted', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const { id } = await create(client)
    await client.deleteAsset({ id, ...asked() })
    expect(sent().at(-1)).toMatchObject({ method: 'DELETE', path: `${path}${id}`, tier: 'basic' })
    expect(sandbox.monitoring.assets.get(id)).toBeUndefined()
  })

  test('is disabled and enabled, each said in the body', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const { id } = await create(client)
    for (const isDisabled of [true, false]) {
      await toggle(client, id, isDisabled)
      expect(sandbox.monitoring.assets.get(id)).toMatchObject({ isDisabled })
    }
    const request = { method: 'POST', path: `${path}${id}/toggle`, query: {}, tier: 'basic' }
    expect(sent(`${path}${id}`)).toEqual([
      { ...request, body: { is_disabled: true } },
      { ...request, body: { is_disabled: false } },
    ])
  })

  test('of a later version of the service is read all the same', async () => {
    const { service, client } = await aScriptedScene(tests)
    const later = { id: 2 ** 40, name: 'x', type: 'of_tomorrow', search_types: ['new'], data: null }
    service.answer(({ path: at }) =>
      at === newPath ? json(405, {}) : json(200, { asset: { ...later, further: true } }),
    )
    expect(await create(client)).toEqual({ ...later, further: true })
  })

  const refusals: [string, (client: UpstreamClient, id: number) => Promise<unknown>][] = [
    ['replaced', (client, id) => replace(client, id)],
    ['toggled', (client, id) => toggle(client, id)],
  ]
  test.each(refusals)('that nobody has, or that is another’s, is not %s', async (_word, act) => {
    const { client } = await aScene(tests)
    expect(await failureOf(act(client, 4040))).toMatchObject({
      reason: 'rejected',
      status: 404,
      serviceCode: 'NOT_FOUND',
    })
    const foreign = await aScene(tests, { account: asAnotherTenant })
    const error = await failureOf(act(foreign.client, 77))
    expect(error).toMatchObject({ reason: 'auth', status: 403, serviceCode: 'FORBIDDEN' })
    expect(error.message).not.toContain('may have been done')
  })

  test('in a group of another tenant is not created', async () => {
    const { sandbox, client } = await aScene(tests, { account: asAnotherTenant })
    const before = sandbox.monitoring.assets.all().length
    const error = await failureOf(create(client, { assets_group_id: 1042 }))
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
    expect(sandbox.monitoring.assets.all()).toHaveLength(before)
  })

  test('whose data do not fit its type is refused in the words of the service', async () => {
    const { client } = await aScene(tests)
    const error = await failureOf(create(client, { data: { keyword: 'acme' } }))
    expect(error).toMatchObject({ status: 400, serviceCode: 'INVALID_IDENTIFIER_DATA' })
    expect(error.message).toContain('data.fqdn: missing')
  })

  test('tells field by field what the service refuses', async () => {
    const { service, client } = await aScriptedScene(tests)
    const detail = [
      { loc: ['body', 'risks', 0], msg: 'too odd', type: 'x', input: 'in', ctx: {} },
      { loc: ['body', 'name'], msg: 'taken', type: 'x', input: 'in', ctx: {} },
    ]
    service.answer(() => json(422, { detail }))
    const error = await failureOf(create(client))
    expect(error).toMatchObject({ reason: 'rejected', status: 422 })
    expect(toldBy(error)).toEqual(['body.risks.0: too odd', 'body.name: taken'])
  })

  const secrets: [string, Record<string, unknown>][] = [
    ['a secret', { type: 'secret', data: { secret: 'hush-hush' } }],
    [
      'an identity',
      { type: 'identity', data: { attributes: [{ type: 'secret', secret: 'hush-hush' }] } },
    ],
    [
      'an identity with a login',
      {
        type: 'identity',
        data: { attributes: [{ type: 'credentials', username: 'anna', password: 'hush-hush' }] },
      },
    ],
  ]
  test.each(secrets)('that is %s stands in no error', async (_title, given) => {
    const { service, client } = await aScriptedScene(tests)
    const refusal = { message: 'bad data: hush-hush', code: 'hush-hush' }
    service.answer(({ method }) => (method === 'GET' ? json(200, identifier) : json(400, refusal)))
    for (const work of [() => create(client, given), () => replace(client, 5, given)]) {
      const error = await failureOf(work())
      expect(error.message).toContain('bad data: <secret>')
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('hush')
    }
  })
})

describe('a server with the identifiers of v4', () => {
  const today = { sandbox: { undescribed: true } }

  test('has assets created, changed, toggled and deleted there, and nothing asked of v2', async () => {
    const { sandbox, client, sent } = await aScene(tests, today)
    const more = { experimental_search_types: ['x'], risks: [4, 5], assets_group_id: 1043 }
    const made = await create(client, more)
    expect(sent(newPath)[0]).toMatchObject({
      method: 'POST',
      body: {
        name: 'Acme',
        data: { type: 'domain', fqdn: 'acme.test' },
        categories: ['leak', 'ads'],
        emerging_categories: ['x'],
        severities: ['high', 'critical'],
        group_id: 1043,
      },
    })
    await replace(client, made.id, { name: 'Acme 2', risks: [5] })
    await toggle(client, made.id)
    const lists = { searchTypes: ['leak'], experimentalSearchTypes: ['x'], risks: [5] }
    const stored = { name: 'Acme 2', isDisabled: true, groupId: 1043, ...lists }
    expect(sandbox.monitoring.assets.get(made.id)).toMatchObject(stored)
    await client.deleteAsset({ id: made.id, ...asked() })
    expect(sandbox.monitoring.assets.get(made.id)).toBeUndefined()
    const methods = ['POST', 'GET', 'PUT', 'GET', 'PUT', 'DELETE']
    expect(sent().map(({ method }) => method)).toEqual(methods)
    expect(sent(path)).toEqual([])
  })

  test('keeps of an asset what its replacement leaves out, and words that nobody knows', async () => {
    const { service, client } = await aScriptedScene(tests)
    const now = {
      ...identifier,
      data: { ...identifier.data, is_strict: true },
      emerging_categories: ['x'],
      severities: ['high', 'word_of_tomorrow'],
      is_disabled: true,
    }
    const written: unknown[] = []
    service.answer(({ method, body }) => {
      if (method === 'PUT') written.push(JSON.parse(body))
      return json(200, now)
    })
    await replace(client, 5, { name: 'Acme 2' })
    await replace(client, 5, { risks: [5], experimental_search_types: [] })
    const { name, data, categories, emerging_categories, severities, group_id } = now
    const kept = { name, data, categories, emerging_categories, severities, group_id }
    expect(written).toEqual([
      { ...kept, name: 'Acme 2', is_disabled: true },
      {
        ...kept,
        emerging_categories: [],
        severities: ['critical', 'word_of_tomorrow'],
        is_disabled: true,
      },
    ])
  })

  test('changes an identifier without a name and with lists of nothing', async () => {
    const { service, client } = await aScriptedScene(tests)
    const lists = { categories: null, emerging_categories: null, severities: null }
    const written: unknown[] = []
    service.answer(({ method, body }) => {
      if (method === 'PUT') written.push(JSON.parse(body))
      return json(200, { ...identifier, ...lists, name: null })
    })
    const empty = { categories: [], emerging_categories: [], severities: [] }
    await toggle(client, 5)
    expect(written).toEqual([expect.objectContaining({ ...empty, name: null, is_disabled: true })])
  })

  const inStore = ({ type, data }: { type: string; data: object }): object =>
    type === 'identity' ? data : { data }

  test.each([
    [
      'an identity otherwise than it is written',
      { type: 'identity', data: { attributes: [{ type: 'email', email: 'ann@acme.test' }] } },
      { type: 'identity', data: { attributes: [{ type: 'username', username: 'ann' }] } },
    ],
    [
      'no secret back',
      { type: 'secret', data: { secret: 'hush-hush' } },
      { type: 'secret', data: { secret: 'hush-more' } },
    ],
  ])('shows %s: it is toggled and changed at v2', async (_what, given, other) => {
    const { sandbox, client, sent } = await aScene(tests, today)
    const { id } = await create(client, given)
    await toggle(client, id)
    const stored = (): unknown => sandbox.monitoring.assets.get(id)
    expect(stored()).toMatchObject({ ...inStore(given), isDisabled: true })
    await replace(client, id, other)
    expect(stored()).toMatchObject(inStore(other))
    expect(sent().map((one) => `${one.method} ${one.path}`)).toEqual([
      `POST ${newPath}`,
      `GET ${newPath}${id}`,
      `POST ${path}${id}/toggle`,
      `GET ${newPath}${id}`,
      `GET ${path}${id}`,
      `PUT ${path}${id}`,
    ])
  })

  test('has assets of types that v4 lacks at v2', async () => {
    const { client, sent } = await aScene(tests, today)
    const given = { type: 'email', data: { email: 'ann@acme.test' } }
    const { id } = await create(client, given)
    await replace(client, id, given)
    await toggle(client, id)
    expect(sent().map((one) => `${one.method} ${one.path}`)).toEqual([
      `POST ${path}`,
      `GET ${path}${id}`,
      `PUT ${path}${id}`,
      `POST ${path}${id}/toggle`,
    ])
  })

  test('creates nothing at v2 where v4 refuses, or may have done it', async () => {
    const { sandbox, client, sent } = await aScene(tests, today)
    for (const fault of [
      { effect: 'status', status: 403 },
      { effect: 'status', status: 404, code: 'NOT_FOUND', message: 'no such group' },
      { effect: 'status', status: 422 },
      { effect: 'status', status: 500 },
      { effect: 'lose-answer' },
    ] as const) {
      const end = sandbox.faults.add({ on: newPath, ...fault })
      await failureOf(create(client))
      end()
    }
    expect(sent(path)).toEqual([])
    const made = sandbox.monitoring.assets.all().filter(({ name }) => name === 'Acme')
    expect(made).toHaveLength(1) // the lost answer's
  })
})

test('a server without the identifiers of v4 is asked once a day, and each asset is made once', async () => {
  const { sandbox, client } = await aScene(tests)
  await create(client)
  await create(client)
  const asking = sandbox.requests.filter(({ method }) => method === 'POST')
  expect(asking.map((one) => `${one.path} ${one.status}`).slice(1)).toEqual([
    `${newPath} 405`,
    `${path} 200`,
    `${path} 200`,
  ])
})

describe('an asset that breaks a stated rule is never sent', () => {
  test('where it is created or changed', async () => {
    const { client, sent } = await aScene(tests)
    for (const act of [
      create,
      (one: UpstreamClient, given: object) => replace(one, 77, { ...given }),
    ]) {
      const error = await failureOf(act(client, { name: '' }))
      expect(error).toMatchObject({ reason: 'invalid', status: undefined })
      expect(toldBy(error)).toEqual(['name: empty; write at least 1 character'])
    }
    expect(sent('/')).toEqual([])
  })

  test.each(['ad', 'ads'])('"%s" in the place of what was there', async (word) => {
    const { client, sent } = await aScene(tests)
    const error = await failureOf(replace(client, 77, { search_types: ['leak', word] }))
    expect(toldBy(error)).toEqual([
      `search_types.1: "${word}" may be given when an asset is created, not when it is replaced`,
    ])
    expect(sent('/')).toEqual([])
    expect(await create(client, { search_types: [word] })).toMatchObject({ search_types: [word] })
  })

  test('as a creation, with fields that are the service’s', async () => {
    const { client, sent } = await aScene(tests)
    const error = await failureOf(create(client, { id: 5, urn: 'x' }))
    expect(toldBy(error)).toEqual([': unknown: id, urn'])
    expect(sent('/')).toEqual([])
  })
})
