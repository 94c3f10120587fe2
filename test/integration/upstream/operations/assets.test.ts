import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { AssetCreation } from '../../../../src/upstream/resources/assets.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asked, failureOf, toldBy } from './scene.ts'

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
    const lists = { search_types: ['leak'], experimental_search_types: ['x'], risks: [5] }
    const stored = { name: 'Acme 2', isDisabled: true, groupId: 1043, ...lists }
    expect(sandbox.monitoring.assets.get(made.id)).toMatchObject(stored)
    await client.deleteAsset({ id: made.id, ...asked() })
    expect(sandbox.monitoring.assets.get(made.id)).toBeUndefined()
    const methods = ['POST', 'GET', 'PUT', 'GET', 'PUT', 'DELETE']
    expect(sent().map(({ method }) => method)).toEqual(methods)
    expect(sent(path)).toEqual([])
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
