import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { AssetCreation, WireAsset } from '../../../../src/upstream/resources/assets.ts'
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

function create(client: UpstreamClient, given: Record<string, unknown> = {}): Promise<WireAsset> {
  return client.createAsset({ asset: { ...asset, ...given } as AssetCreation, ...asked() })
}

function replace(
  client: UpstreamClient,
  id: number,
  given: Record<string, unknown> = {},
): Promise<WireAsset> {
  const whole = { ...asset, search_types: ['leak'], ...given } as never
  return client.replaceAsset({ id, asset: whole, ...asked() })
}

function toggle(client: UpstreamClient, id: number, isDisabled = true): Promise<WireAsset> {
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
    const made = await client.createAsset({ asset: body, ...asked() })
    expect(sent()).toEqual([{ method: 'POST', path, query: {}, body, tier: 'basic' }])
    expect(made).toMatchObject({ ...asset, risks: [4, 5], is_disabled: false, source: 'USER' })
    expect(sandbox.monitoring.assets.get(made.id)).toMatchObject({ name: 'Acme', groupId: 1043 })
  })

  test('is replaced whole, fields that nobody knows included', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const made = await create(client)
    const later = { ...made, name: 'Acme 2', search_types: ['leak'], of_tomorrow: { deep: [1] } }
    const replaced = await client.replaceAsset({ id: made.id, asset: later as never, ...asked() })
    expect(sent().at(-1)).toEqual({
      method: 'PUT',
      path: `${path}${made.id}`,
      query: {},
      body: later,
      tier: 'basic',
    })
    expect(replaced).toMatchObject({ id: made.id, name: 'Acme 2', of_tomorrow: { deep: [1] } })
    expect(sandbox.monitoring.assets.get(made.id)).toMatchObject({ name: 'Acme 2' })
  })

  test('is read as it stands', async () => {
    const { client, sent } = await aScene(tests)
    const made = await create(client)
    const read = await client.getAsset({ id: made.id, ...asked() })
    expect({ ...read, fetching_progress: 0 }).toEqual({ ...made, fetching_progress: 0 })
    const url = `${path}${made.id}`
    expect(sent().at(-1)).toEqual({ method: 'GET', path: url, query: {}, tier: 'basic' })
  })

  test('is deleted, and then unknown', async () => {
    const { client, sent } = await aScene(tests)
    const { id } = await create(client)
    await client.deleteAsset({ id, ...asked() })
    expect(sent().at(-1)).toMatchObject({ method: 'DELETE', path: `${path}${id}`, tier: 'basic' })
    const error = await failureOf(client.getAsset({ id, ...asked() }))
    expect(error).toMatchObject({ reason: 'rejected', status: 404 })
  })

  test('is disabled and enabled, each said in the body', async () => {
    const { client, sent } = await aScene(tests)
    const { id } = await create(client)
    expect(await toggle(client, id, true)).toMatchObject({ id, is_disabled: true })
    expect(await toggle(client, id, false)).toMatchObject({ id, is_disabled: false })
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

  test('has assets created, read, replaced, toggled and deleted there, and nothing asked of v2', async () => {
    const { sandbox, client, sent } = await aScene(tests, today)
    const more = { experimental_search_types: ['x'], risks: [4, 5], assets_group_id: 1043 }
    const made = await create(client, more)
    const { assets_group_id: _group, ...written } = { ...asset, ...more }
    expect(made).toMatchObject({ ...written, is_disabled: false, group_id: 1043 })
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
    expect(await client.getAsset({ id: made.id, ...asked() })).toMatchObject(written)
    expect(await replace(client, made.id, { name: 'Acme 2', risks: [5] })).toMatchObject({
      name: 'Acme 2',
      search_types: ['leak'],
      risks: [5],
      experimental_search_types: ['x'],
    })
    expect(await toggle(client, made.id)).toMatchObject({ name: 'Acme 2', is_disabled: true })
    const stored = { name: 'Acme 2', isDisabled: true, groupId: 1043 }
    expect(sandbox.monitoring.assets.get(made.id)).toMatchObject(stored)
    await client.deleteAsset({ id: made.id, ...asked() })
    expect(sandbox.monitoring.assets.get(made.id)).toBeUndefined()
    const methods = ['POST', 'GET', 'GET', 'PUT', 'GET', 'PUT', 'DELETE']
    expect(sent().map(({ method }) => method)).toEqual(methods)
    expect(sent(path)).toEqual([])
  })

  test('keeps of an asset what its replacement leaves out, and words that nobody knows', async () => {
    const { service, client } = await aScriptedScene(tests)
    const now = {
      ...identifier,
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
    await replace(client, 5, { risks: [5], experimental_search_types: [], is_disabled: false })
    const { name, data, categories, emerging_categories, severities, group_id } = now
    const kept = { name, data, categories, emerging_categories, severities, group_id }
    expect(written).toEqual([
      { ...kept, name: 'Acme 2', is_disabled: true },
      {
        ...kept,
        emerging_categories: [],
        severities: ['critical', 'word_of_tomorrow'],
        is_disabled: false,
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
    expect(await toggle(client, 5)).toMatchObject({ id: 5, name: '', search_types: [], risks: [] })
    expect(written).toEqual([expect.objectContaining({ ...empty, name: null, is_disabled: true })])
  })

  test('shows an identity otherwise than it is written: it is toggled and replaced at v2', async () => {
    const { sandbox, client, sent } = await aScene(tests, today)
    const data = { attributes: [{ type: 'email', email: 'ann@acme.test' }] }
    const { id } = await create(client, { type: 'identity', data })
    const read = await client.getAsset({ id, ...asked() })
    expect(read).toMatchObject({ type: 'identity', data: { uuid: expect.any(String) } })
    expect(await toggle(client, id)).toMatchObject({ id, is_disabled: true, data: read.data })
    const other = { attributes: [{ type: 'username', username: 'ann' }] }
    await replace(client, id, { type: 'identity', data: other })
    expect(sandbox.monitoring.assets.get(id)).toMatchObject(other)
    expect(sent().map((one) => `${one.method} ${one.path}`)).toEqual([
      `POST ${newPath}`,
      `GET ${newPath}${id}`,
      `GET ${newPath}${id}`,
      `POST ${path}${id}/toggle`,
      `GET ${newPath}${id}`,
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
  const mistakes: [Record<string, unknown>, string[]][] = [
    [{ name: '' }, ['name: empty; write at least 1 character']],
    [{ type: 'doamin' }, ['type: not known to the service; did you mean "domain"?']],
    [{ data: undefined }, ['data: missing']],
    [
      { risks: [0, 6] },
      ['risks.0: too small; write 1 or more', 'risks.1: too large; write 5 or less'],
    ],
    [
      { search_types: ['leak', 'forum_psot'] },
      ['search_types.1: not known to the service; did you mean "forum_post"?'],
    ],
  ]
  test.each(mistakes)('%j', async (mistake, told) => {
    const { client, sent } = await aScene(tests)
    for (const act of [() => create(client, mistake), () => replace(client, 77, mistake)]) {
      const error = await failureOf(act())
      expect(error).toMatchObject({ reason: 'invalid', status: undefined })
      expect(toldBy(error)).toEqual(told)
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
