import { afterEach, describe, expect, test } from 'vitest'
import { permissions, type Permission, type SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireTenant, type WireTenant } from '../../../src/upstream/resources/tenants.ts'
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

async function ownTenants(sandbox: Sandbox, key: string): Promise<WireTenant[]> {
  const { json } = await read(sandbox, '/firework/v2/me/tenants', key)
  return (json as { tenants: unknown[] }).tenants.map((one) => wireTenant.parse(one))
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

  test('is told to the administrators of the organization, and to nobody else', async () => {
    const sandbox = await start(['organization_admin'])
    const { json } = await create(sandbox, { name: 'Acme Labs' })
    const { id } = wireTenant.parse(json)
    const idsOf = async (key: string): Promise<number[]> =>
      (await ownTenants(sandbox, key)).map((one) => one.id)
    expect(await idsOf('all')).toEqual([42, id])
    expect(await idsOf('few')).toEqual([42])
    expect(await idsOf('other')).toEqual([90])
    await expect(tokenOf(sandbox, 'few', id)).rejects.toThrow('403')
    await expect(tokenOf(sandbox, 'other', id)).rejects.toThrow('403')
  })

  test('gives each an id of its own', async () => {
    const sandbox = await start()
    const made = [await create(sandbox, { name: 'a' }), await create(sandbox, { name: 'a' })]
    const ids = made.map(({ json }) => wireTenant.parse(json).id)
    expect(new Set([...ids, 42, 90]).size).toBe(4)
  })

  test.each([
    [{ name: 7 }, 'name'],
    [{ name: 'x', industry: 'crime' }, 'industry'],
  ])('with %j is refused by name', async (body, place) => {
    const answer = await create(await start(), body)
    expect(answer).toMatchObject({ status: 400, json: { code: 'BAD_REQUEST' } })
    expect((answer.json as { message: string }).message).toContain(place)
  })

  test('is forbidden without the right and in another organization, which may be unknown', async () => {
    const sandbox = await start(['organization_admin'])
    const body = { name: 'x' }
    const forbidden = { status: 403, json: { code: 'FORBIDDEN', message: expect.any(String) } }
    expect(await create(sandbox, body, { key: 'few' })).toMatchObject(forbidden)
    expect(await create(sandbox, body, { organization: '8' })).toMatchObject(forbidden)
    expect(await create(sandbox, body, { organization: '9' })).toMatchObject({
      status: 404,
      json: { code: 'NOT_FOUND' },
    })
    expect((await create(sandbox, body, { organization: 'x' })).status).toBe(400)
    expect(await ownTenants(sandbox, 'all')).toHaveLength(1)
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

  test('a credential search without the one for global searches is forbidden', async () => {
    const sandbox = await start(['firework.global_search'])
    const url = `${sandbox.url}/firework/v4/credentials/global/_search`
    const body = { query: { type: 'domain', fqdn: 'example.com' } }
    const statusFor = async (key: string): Promise<Answer> =>
      post(url, body, { authorization: `Bearer ${await tokenOf(sandbox, key)}` })
    expect(await statusFor('few')).toMatchObject({
      status: 403,
      json: { error: { code: 'FORBIDDEN', message: 'needs firework.global_search' } },
    })
    expect((await statusFor('all')).status).toBe(200)
    expect((await searchGroup(sandbox, await tokenOf(sandbox, 'few'))).status).toBe(200)
  })

  test.each([
    ['firework.global_search', 'POST', 'v4/events/global/_search', 'error'],
    ['firework.global_search', 'GET', 'v2/search/', 'message'],
    ['firework.global_search', 'POST', 'v2/search/', 'message'],
    ['astp_cookies_access', 'GET', 'v4/events/_expand?uid=x&field=cookies', 'error'],
    ['astp_credentials_access', 'GET', 'v4/events/_expand?uid=x&field=credentials', 'error'],
  ] as const)('without %s, %s %s is forbidden', async (permission, method, path, shape) => {
    const sandbox = await start([permission])
    const call = async (key: string): Promise<Answer> => {
      const authorization = `Bearer ${await tokenOf(sandbox, key)}`
      const url = `${sandbox.url}/firework/${path}`
      return method === 'GET'
        ? ask(url, { headers: { authorization } })
        : post(url, {}, { authorization })
    }
    const said = { code: 'FORBIDDEN', message: `needs ${permission}` }
    const json = shape === 'error' ? { error: said } : said
    expect(await call('few')).toMatchObject({ status: 403, json })
    expect((await call('all')).status).not.toBe(403)
  })

  test('of the two for stolen fields, each opens its own', async () => {
    const sandbox = await start(['astp_cookies_access'])
    const answer = await read(sandbox, '/firework/v4/events/_expand?uid=x&field=credentials')
    expect(answer.status).not.toBe(403)
  })

  test('without the one for passwords none is shown, in feed, search and event', async () => {
    const sandbox = await start(['leaksdb.show-passwords'])
    const hash = 'hunter2'
    sandbox.addCredentials(1, { hash, domain: 'example.com', identifierIds: [77] })
    const { uid } = sandbox.addEvent({ type: 'leaked_credential', data: { password: hash } })
    const shown = async (key: string): Promise<unknown[]> => {
      const token = await tokenOf(sandbox, key)
      const search = await post(
        `${sandbox.url}/firework/v4/credentials/global/_search`,
        { query: { type: 'domain', fqdn: 'example.com' } },
        { authorization: `Bearer ${token}` },
      )
      const feed = await read(sandbox, '/firework/v3/identifiers/77/feed/credentials', key)
      const items = [feed, search].map(({ json }) => (json as { items: { hash: unknown }[] }).items)
      const { json } = await detailOf(sandbox, token, uid)
      const { password } = (json as { data: { password: unknown } }).data
      return [...items.map(([item]) => item?.hash), password]
    }
    expect(await shown('few')).toEqual([null, null, null])
    expect(await shown('all')).toEqual([hash, hash, hash])
  })
})
