import { describe, expect, test } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { WireSearchPage } from '../../../../src/upstream/resources/page.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { aScene, asAnotherTenant, asked, type Sent } from './scene.ts'

const tests = redisForTests()

const first = { from: null, size: 2 }
const anyOrder = { ...first, filters: { orderBy: 'id' } } as const
const narrow = {
  ...first,
  filters: { group: 1043, types: ['keyword'], isDisabled: true, orderBy: 'name' },
} as const

function idsIn(items: readonly unknown[]): number[] {
  return items.map((item) => (item as { id: number }).id)
}

function request(path: string, query: Record<string, unknown>): Sent {
  return { method: 'GET', path, query, body: undefined, tier: 'basic' }
}

const list = {
  v4: (client: UpstreamClient, asking: typeof anyOrder | typeof narrow, from: string | null) =>
    client.listIdentifiers({ ...asking, from, ...asked() }),
  v3: (client: UpstreamClient, asking: typeof anyOrder | typeof narrow, from: string | null) =>
    client.listOlderIdentifiers({ ...asking, from, ...asked() }),
}

describe.each(['v4', 'v3'] as const)('identifiers of %s', (version) => {
  test('are read page after page, each once', async () => {
    const { client } = await aScene(tests)
    const ids: number[] = []
    for (let from: string | null = null, pages = 0; pages < 9; pages += 1) {
      const page: WireSearchPage = await list[version](client, anyOrder, from)
      ids.push(...idsIn(page.items))
      if (!page.next) break
      from = page.next
    }
    expect(ids).toEqual([77, 78, 91, 92, 406_285_232_303])
  })

  test('are narrowed as the version names it', async () => {
    const { client, sent } = await aScene(tests)
    await client.toggleAsset({ id: 92, isDisabled: true, ...asked() })
    const { items } = await list[version](client, narrow, null)
    expect(idsIn(items)).toEqual([92])
    const group = version === 'v4' ? 'group_id' : 'parent_group_id'
    const query = { order_by: 'name', [group]: '1043', is_disabled: 'true', types: 'keyword' }
    const path = `/firework/${version}/identifiers/`
    expect(sent(path)).toEqual([request(path, { ...query, size: '2' })])
  })

  test("are the tenant's own", async () => {
    const { client } = await aScene(tests, { account: asAnotherTenant })
    expect((await list[version](client, anyOrder, null)).items).toEqual([])
  })
})

test('v4 lists what is disabled too, v3 only what is enabled', async () => {
  const { client } = await aScene(tests)
  await client.toggleAsset({ id: 77, isDisabled: true, ...asked() })
  expect(idsIn((await list.v4(client, anyOrder, null)).items)).toEqual([77, 78])
  expect(idsIn((await list.v3(client, anyOrder, null)).items)).toEqual([78, 91])
})

test('groups are read with their counts by v3, without by v2', async () => {
  const { client, sent } = await aScene(tests)
  const { items, next } = await client.listGroups({ from: null, size: 1, ...asked() })
  expect(items).toMatchObject([{ group: { id: 1042, name: 'Brand' }, identifier_count: 3 }])
  const rest = await client.listGroups({ from: next ?? null, size: 1, ...asked() })
  expect(rest.items).toMatchObject([{ group: { id: 1043 }, total_identifier_count: 2 }])
  expect(idsIn(await client.listOlderGroups(asked()))).toEqual([1042, 1043])
  const path = '/firework/v3/identifiers/groups'
  expect(sent()).toEqual([
    request(path, { size: '1' }),
    request(path, { size: '1', from: next }),
    request('/firework/v2/assets/groups/', {}),
  ])
})
