/** `tenants create`: in the key's own organization, unless another is named. */
import { expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'

const tests = redisForTests()

const create = ['tenants', 'create', '--name', 'Acme'] as const

test("a tenant is made in the key's own organization, and printed with its id first", async () => {
  const { run, sent } = await aServiceScene(tests)
  const { code, out } = await run(...create, '--description', 'toys', '--industry', 'retail')
  expect(code).toBe(0)
  expect(out).toMatch(/^44 +7 +retail +Acme\n {4}toys\n {4}permissions: firework\.global_search/m)
  expect(sent()).toEqual([
    {
      method: 'POST',
      path: '/firework/v2/organizations/7/tenants',
      body: { name: 'Acme', description: 'toys', industry: 'retail' },
    },
  ])
})

test('it is printed for machines with every field', async () => {
  const { run } = await aServiceScene(tests)
  const json = JSON.parse((await run(...create, '--output=json')).out) as object
  expect(json).toMatchObject({ id: 44, name: 'Acme', organization_id: 7, is_archived: false })
  expect(Object.keys(json)).toHaveLength(13)
  expect(JSON.parse((await run(...create, '--output=ndjson')).out)).toMatchObject({ id: 45 })
  const [head, row] = (await run(...create, '--output=csv')).out.trim().split('\n')
  expect(head?.split(',')).toHaveLength(13)
  expect(row).toMatch(/^"46","Acme","standard"/)
})

test('the organization of the configuration counts before that of the key, the option before both', async () => {
  const { run, sent } = await aServiceScene(tests, {
    change: (text) => text.replace('limits:', 'organization_id: 8\n    limits:'),
  })
  expect((await run(...create)).err).toContain('organization 8: the service refuses the request')
  expect((await run(...create, '--organization', '7')).code).toBe(0)
  expect(sent().map(({ path }) => path)).toEqual([
    '/firework/v2/organizations/8/tenants',
    '/firework/v2/organizations/7/tenants',
  ])
})

test.each([
  ['an empty name', ['tenants', 'create', '--name', ''], "'--name <text>' argument '' is invalid"],
  ['no name', ['tenants', 'create'], "'--name <text>' not specified"],
  [
    'a wrong industry',
    [...create, '--industry', 'finanse'],
    'industry: not known to the service; did you mean "finance"?',
  ],
  ['what is no id', [...create, '--organization', 'ours'], 'a whole number of at least 1'],
])('%s is refused before anything is sent', async (_name, args, said) => {
  const { run, sandbox } = await aServiceScene(tests)
  const { code, out, err } = await run(...args)
  expect(err).toContain(said)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(sandbox.requests).toEqual([])
})

test('a key whose user is no administrator is told so', async () => {
  const key = { key: 'fw_reader', tenants: [42], permissions: ['firework.global_search'] as const }
  const { run } = await aServiceScene(tests, { organizations: [{ id: 7, keys: [key] }] })
  const { code, err } = await run(...create)
  expect(err).toMatch(/^organization 7: access is forbidden \(403\).*needs organization_admin/)
  expect(code).toBe(1)
})
