import { expect, test } from 'vitest'
import { parseAssetData } from '../../../src/sandbox/monitoring/store.ts'
import type { AssetType } from '../../../src/upstream/resources/enumerations.ts'

const fresh = { uuid: 'u-1', attributes: [] }

const good: [AssetType, Record<string, unknown>][] = [
  ['domain', { fqdn: 'example.com' }],
  ['domain', { type: 'domain', fqdn: 'a-b.example.co.uk' }],
  ['keyword', { keyword: 'Größe & Söhne' }],
  ['email', { email: 'a@example.com' }],
  ['username', { username: 'neo' }],
  ['name', { first_name: 'A', last_name: 'B' }],
  ['name', { first_name: 'A', last_name: 'B', is_strict: true }],
  ['github_repository', { repo_owner: 'a', repo_name: 'b' }],
  ['search_query', { search_query: 'a AND b' }],
  ['bin', { bin: '453211' }],
  ['ip', { ip: '2001:db8::1' }],
  ['secret', { secret: 's' }],
  ['azure_tenant', { tenant_id: 't' }],
]
test.each(good)('data of a %s: %o is kept as it is', (type, data) => {
  expect(parseAssetData(type, data, fresh)).toEqual({ data, attributes: [] })
})

const bad: [AssetType, Record<string, unknown>, string][] = [
  ['domain', { keyword: 'example.com' }, 'data.fqdn'],
  ['domain', { fqdn: 'not a host' }, 'data.fqdn'],
  ['domain', { type: 'ip', fqdn: 'example.com' }, 'data.type'],
  ['keyword', { keyword: ' ' }, 'data.keyword'],
  ['keyword', { keyword: 'a', further: 1 }, 'further'],
  ['email', { email: 'nobody' }, 'data.email'],
  ['username', {}, 'data.username'],
  ['name', { first_name: 'A' }, 'data.last_name'],
  ['name', { first_name: 'A', last_name: 'B', is_strict: 'yes' }, 'data.is_strict'],
  ['github_repository', { repo_owner: 'a' }, 'data.repo_name'],
  ['search_query', { search_query: '(a' }, 'data.search_query'],
  ['bin', { bin: '12' }, 'data.bin'],
  ['ip', { ip: '300.1.1.1' }, 'data.ip'],
  ['secret', { secret: 7 }, 'data.secret'],
  ['azure_tenant', {}, 'data.tenant_id'],
  ['identity', { uuid: 'u-1' }, 'data.attributes'],
  ['identity', { attributes: [] }, 'data.attributes'],
  ['identity', { attributes: [{ type: 'email', email: 'nobody' }] }, 'data.attributes.0.email'],
]
test.each(bad)('data of a %s: %o is refused, and the place named', (type, data, place) => {
  const { problem } = parseAssetData(type, data, fresh) as { problem: string }
  expect(problem).toContain(`asset of type ${type}`)
  expect(problem).toContain(place)
})

test('an identity is written with attributes and read with a uuid, which may be written again', () => {
  const attributes = [{ type: 'email', email: 'a@example.com' }]
  const written = parseAssetData('identity', { attributes }, fresh)
  expect(written).toEqual({ data: { uuid: 'u-1' }, attributes })
  const known = { uuid: 'u-1', attributes }
  expect(parseAssetData('identity', { uuid: 'u-1' }, known)).toEqual(written)
  expect(parseAssetData('identity', { uuid: 'u-2' }, known)).toHaveProperty('problem')
})
