import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  wireAlert,
  type WireAsset,
  wireAssetAnswer,
} from '../../../src/upstream/resources/assets.ts'
import { createSearchTypes } from '../../../src/upstream/resources/enumerations.ts'
import type { Answer } from './client.ts'
import { anAsset, clientOf, type MonitoringClient, openMonitoring } from './monitoring-client.ts'

const assets = '/firework/v2/assets/'

let own: MonitoringClient
let other: MonitoringClient
beforeAll(async () => {
  own = await openMonitoring()
  other = await clientOf(own.sandbox, 43)
})
afterAll(() => own.close())

function assetOf({ status, json }: Answer): WireAsset {
  expect(status).toBe(200)
  return wireAssetAnswer.parse(json).asset
}

describe('creation', () => {
  test('answers with every field of an asset', async () => {
    const given = { ...anAsset, experimental_search_types: ['x'], risks: [4, 5] }
    const asset = assetOf(await own.call('POST', assets, given))
    expect(asset).toEqual({
      ...given,
      id: expect.any(Number),
      tenant_id: 42,
      feed_id: expect.any(Number),
      v3_refs: { asset_uuid: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      fetching_progress: expect.any(Number),
      count: 0,
      urn: `urn:sandbox:asset:${asset.id}`,
      is_disabled: false,
      source: 'USER',
      data_updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
  })

  test('gives each asset an id of its own, now and then beyond 32 bits', async () => {
    const ids: number[] = []
    for (let count = 0; count < 4; count++) ids.push((await own.createAsset()).id)
    expect(new Set(ids).size).toBe(4)
    expect(ids.some((id) => id > 2 ** 32)).toBe(true)
    expect(ids.every(Number.isSafeInteger)).toBe(true)
  })

  test('takes every search type that the description has', async () => {
    const { search_types } = await own.createAsset({ search_types: createSearchTypes })
    expect(search_types).toEqual(createSearchTypes)
  })

  const refused: [string, Record<string, unknown>, string][] = [
    ['without a name', { name: undefined }, 'name'],
    ['with an empty name', { name: '' }, 'name'],
    ['without a type', { type: undefined }, 'type'],
    ['with a type that there is not', { type: 'brand' }, 'type'],
    ['without search types', { search_types: undefined }, 'search_types'],
    ['with a search type that there is not', { search_types: ['cc'] }, 'search_types: 0'],
    ['without data', { data: undefined }, 'data'],
    ['with a risk that there is not', { risks: [0] }, 'risks: 0'],
  ]
  test.each(refused)('is refused %s', async (_case, change, place) => {
    const { status, json } = await own.call('POST', assets, { ...anAsset, ...change })
    const { message, code } = json as { message: string; code: string }
    expect([status, code]).toEqual([400, 'BAD_REQUEST'])
    expect(message).toContain(place)
  })

  test('is refused with data of another type, by a code of its own', async () => {
    const { status, json } = await own.call('POST', assets, { ...anAsset, type: 'ip' })
    expect(status).toBe(400)
    expect(json).toMatchObject({ error: { code: 'INVALID_IDENTIFIER_DATA' } })
  })

  test('puts an asset into the group asked for, or the first of its tenant', async () => {
    const ids = [await own.createAsset(), await own.createAsset({ assets_group_id: 1043 })]
    const groups = ids.map(({ id }) => own.sandbox.monitoring.assets.get(id)?.groupId)
    expect(groups).toEqual([1042, 1043])
    const nowhere = await other.createAsset()
    expect(own.sandbox.monitoring.assets.get(nowhere.id)).toMatchObject({ groupId: null })
  })

  test('is refused in a group of another tenant, or in none', async () => {
    const theirs = await other.call('POST', assets, { ...anAsset, assets_group_id: 1042 })
    expect(theirs).toMatchObject({ status: 403, json: { code: 'FORBIDDEN' } })
    const none = await own.call('POST', assets, { ...anAsset, assets_group_id: 9 })
    expect(none).toMatchObject({ status: 404, json: { code: 'NOT_FOUND' } })
  })

  test('makes a credential feed of the asset', async () => {
    const { id } = await own.createAsset()
    own.sandbox.addCredentials(2, { identifierIds: [id] })
    const { status, json } = await own.call(
      'GET',
      `/firework/v3/identifiers/${id}/feed/credentials`,
    )
    expect(status).toBe(200)
    expect(json).toMatchObject({ items: [{}, {}] })
  })
})

describe('replacement', () => {
  const put = (id: number, body: unknown): Promise<Answer> => own.call('PUT', assets + id, body)

  test('leaves nothing of what is not sent again', async () => {
    const { id } = await own.createAsset({ risks: [5], experimental_search_types: ['x'] })
    await put(id, { ...anAsset, colour: 'red' })
    const replaced = { name: 'A', type: 'ip', search_types: ['leak'], data: { ip: '198.51.100.7' } }
    const asset = assetOf(await put(id, replaced))
    expect(asset).toMatchObject({ ...replaced, id, risks: [], experimental_search_types: [] })
    expect(asset).not.toHaveProperty('colour')
  })

  test('takes back what was read, keeps unknown fields, and leaves alone what is not for clients', async () => {
    const read = await own.createAsset()
    const asset = assetOf(
      await put(read.id, { ...read, count: 9, id: 1, colour: { deep: ['red'] } }),
    )
    const { data_updated_at: _, fetching_progress: __, ...rest } = asset
    expect(rest).toMatchObject({ id: read.id, count: 0, urn: read.urn, colour: { deep: ['red'] } })
  })

  test('keeps an asset disabled only if it says so', async () => {
    const read = await own.createAsset()
    expect(assetOf(await put(read.id, { ...read, is_disabled: true })).is_disabled).toBe(true)
    expect(assetOf(await put(read.id, anAsset)).is_disabled).toBe(false)
  })

  test.each(['ad', 'ads'])('refuses the search type %s, which creation takes', async (type) => {
    const { id } = await own.createAsset({ search_types: [type] })
    const { status, json } = await put(id, { ...anAsset, search_types: [type] })
    expect(status).toBe(400)
    expect((json as { message: string }).message).toContain('search_types')
  })

  test.each(['name', 'type', 'search_types', 'data'])('is refused without %s', async (field) => {
    const { id } = await own.createAsset()
    const { status, json } = await put(id, { ...anAsset, [field]: undefined })
    expect(status).toBe(400)
    expect((json as { message: string }).message).toContain(field)
  })

  test('shows an identity by its uuid, and takes it back so', async () => {
    const attributes = [{ type: 'email', email: 'a@acme.test' }]
    const read = await own.createAsset({ type: 'identity', data: { attributes } })
    expect(read.data).toEqual({ uuid: expect.any(String) })
    expect(assetOf(await put(read.id, read)).data).toEqual(read.data)
    const { status } = await put(read.id, { ...read, data: { uuid: 'another' } })
    expect(status).toBe(400)
  })
})

describe('toggling', () => {
  test('disables, enables, and needs to be told which', async () => {
    const { id } = await own.createAsset()
    const toggle = (body: unknown): Promise<Answer> =>
      own.call('POST', `${assets}${id}/toggle`, body)
    expect(assetOf(await toggle({ is_disabled: true })).is_disabled).toBe(true)
    expect(assetOf(await toggle({ is_disabled: false })).is_disabled).toBe(false)
    expect((await toggle({})).status).toBe(400)
    expect((await toggle({ is_disabled: 'yes' })).status).toBe(400)
  })
})

test("what is not there, not the tenant's or no id is refused alike by both operations", async () => {
  const { id } = await own.createAsset()
  const statusesOf = async (client: MonitoringClient, place: string): Promise<unknown[]> => {
    const answers = await Promise.all([
      client.call('PUT', assets + place, anAsset),
      client.call('POST', `${assets}${place}/toggle`, { is_disabled: true }),
    ])
    return answers.map(({ status, json }) => [status, (json as { code?: string }).code])
  }
  expect(await statusesOf(own, '123456')).toEqual([
    [404, 'NOT_FOUND'],
    [404, 'NOT_FOUND'],
  ])
  expect(await statusesOf(other, String(id))).toEqual([
    [403, 'FORBIDDEN'],
    [403, 'FORBIDDEN'],
  ])
  expect(await statusesOf(own, 'x1')).toEqual([
    [422, undefined],
    [422, undefined],
  ])
  expect(own.sandbox.monitoring.assets.get(id)?.isDisabled).toBe(false)
})

test('the identifiers that the sandbox begins with are assets, domains and keywords', async () => {
  const standing = own.sandbox.monitoring.assets.all().slice(0, 5)
  expect(standing.map(({ id, type, data }) => [id, type, data])).toEqual([
    [77, 'domain', { fqdn: 'example.com' }],
    [78, 'keyword', { keyword: 'Example Bank' }],
    [406_285_232_303, 'domain', { fqdn: 'vpn.example.com' }],
    [91, 'domain', { fqdn: 'supplier.example' }],
    [92, 'keyword', { keyword: 'Größe & Söhne' }],
  ])
})

describe('alerts of a group', () => {
  const path = (group: number | string): string => `${assets}groups/${group}/alerts`

  test('are a list where there are several, an object where there is one, the same each time', async () => {
    const [several, one] = [await own.call('GET', path(1042)), await own.call('GET', path(1043))]
    const { alerts: list } = several.json as { alerts: unknown[] }
    expect(list.map((alert) => wireAlert.parse(alert).feed_target_id)).toEqual([1042, 1042])
    const { alerts: single } = one.json as { alerts: unknown }
    expect(wireAlert.parse(single)).toMatchObject({
      feed_target_type: 'assets/groups',
      feed_target_id: 1043,
      tenant_id: 42,
      organization_id: 7,
    })
    expect((await own.call('GET', path(1042))).text).toBe(several.text)
  })

  test.each(['object', 'array'] as const)(
    'are always of the one form asked for: %s',
    async (form) => {
      const client = await openMonitoring({ alertsAs: form })
      for (const group of [1042, 1043]) {
        const { alerts } = (await client.call('GET', path(group))).json as { alerts: unknown }
        expect(Array.isArray(alerts)).toBe(form === 'array')
      }
      await client.close()
    },
  )

  test("are refused for a group that is not there, not the tenant's, or no id", async () => {
    expect((await own.call('GET', path(9))).status).toBe(404)
    expect((await other.call('GET', path(1042))).status).toBe(403)
    expect((await own.call('GET', path('x'))).json).toMatchObject({
      detail: [{ loc: ['path', 'assets_group_id'], input: 'x' }],
    })
  })
})

describe('a single asset', () => {
  test('is shown and deleted by its tenant alone, its assignments with it', async () => {
    const { id } = await own.createAsset()
    const policy = await own.createPolicy('INCLUDED_KEYWORDS', { keywords: ['x'] })
    await own.assign(policy, [id, 77])
    const path = `${assets}${id}`
    expect(assetOf(await own.call('GET', path)).id).toBe(id)
    for (const method of ['GET', 'DELETE']) {
      expect((await other.call(method, path)).status).toBe(403)
      expect((await own.call(method, `${assets}999`)).status).toBe(404)
      expect((await own.call(method, `${assets}x`)).status).toBe(422)
    }
    expect(await own.call('DELETE', path)).toMatchObject({ status: 200, json: null })
    expect((await own.call('GET', path)).status).toBe(404)
    const left = own.sandbox.monitoring.assignments.all()
    expect(left.map(({ identifierId }) => identifierId)).toEqual([77])
  })
})
