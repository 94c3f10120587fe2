import { afterEach, describe, expect, test } from 'vitest'
import { permissions, type Permission, type SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireTenant } from '../../../src/upstream/resources/tenants.ts'
import { ask, detailOf, post, searchGroup, tokenOf, type Answer } from './client.ts'

const open: Sandbox[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

/** Its key `few` has everything but the named permissions; `all` has everything. */
async function start(lacking: Permission[] = [], options: SandboxOptions = {}): Promise<Sandbox> {
  const few = permissions.filter((one) => !lacking.includes(one))
  const sandbox = await startSandbox({
    enforceLimits: false,
    organizations: [
      {
        id: 7,
        keys: [
          { key: 'all', tenants: [42] },
          { key: 'few', tenants: [42], permissions: few },
        ],
      },
      { id: 8, keys: [{ key: 'other', tenants: [90] }] },
    ],
    ...options,
  })
  open.push(sandbox)
  return sandbox
}

async function create(
  sandbox: Sandbox,
  body: unknown,
  { key = 'all', organization = '7' } = {},
): Promise<Answer> {
  const authorization = `Bearer ${await tokenOf(sandbox, key)}`
  const url = `${sandbox.url}/firework/v2/organizations/${organization}/tenants`
  return post(url, body, { authorization })
}

async function read(sandbox: Sandbox, path: string, key = 'few'): Promise<Answer> {
  const authorization = `Bearer ${await tokenOf(sandbox, key)}`
  return ask(`${sandbox.url}${path}`, { headers: { authorization } })
}

describe('creating a tenant', () => {
  test('makes one that a token can be had for, with an empty group', async () => {
    const sandbox = await start()
    const given = { name: 'Acme Labs', description: 'Rockets', industry: 'energy' }
    const answer = await create(sandbox, given)
    expect(answer.status).toBe(200)
    const tenant = wireTenant.parse(answer.json)
    expect(tenant).toMatchObject({ ...given, organization_id: 7, is_archived: false })
    const token = await tokenOf(sandbox, 'all', tenant.id)
    expect(await searchGroup(sandbox, token, {}, 1044)).toMatchObject({
      status: 200,
      json: { items: [], next: null },
    })
    const event = sandbox.addEvent({ groupIds: [1044] })
    expect((await detailOf(sandbox, token, event.uid)).status).toBe(200)
    expect((await searchGroup(sandbox, await tokenOf(sandbox, 'all'), {}, 1044)).status).toBe(403)
  })
})

describe('permissions', () => {
  test('are told with the identity, which each key has of its own', async () => {
    const sandbox = await start(['alert_channels'])
    const identities = await Promise.all(
      ['all', 'few', 'other'].map(async (key) => (await read(sandbox, '/tokens/test', key)).json),
    )
    expect(identities).toMatchObject([
      { api_key_id: 1, user_id: 1, user_email: 'sandbox@example.com', organization_id: 7 },
      { api_key_id: 2, user_id: 2, user_email: 'sandbox-2@example.com', tenant_id: 42 },
      { api_key_id: 3, user_id: 3, user_email: 'sandbox-3@example.com', tenant_id: 90 },
    ])
    const scopes = identities.map((one) => (one as { scopes: string[] }).scopes)
    const general = ['authenticated', 'apikey', 'firework']
    expect(scopes[0]).toEqual([...general, ...permissions])
    expect(scopes[1]).toEqual(scopes[0]!.filter((scope) => scope !== 'alert_channels'))
  })
})
