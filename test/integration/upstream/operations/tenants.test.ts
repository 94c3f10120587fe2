import { describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../../src/sandbox/options.ts'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { WireTenant } from '../../../../src/upstream/resources/tenants.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asked, failureOf, onlyWith, toldBy } from './scene.ts'

const tests = redisForTests()

const path = '/firework/v2/organizations/7/tenants'
const twoOrganizations: SandboxOptions = {
  organizations: [
    { id: 7, keys: [{ key: 'fw_seven', tenants: [42] }] },
    { id: 8, keys: [{ key: 'fw_eight', tenants: [52] }] },
  ],
}

function create(
  client: UpstreamClient,
  given: Record<string, unknown> = {},
  organizationId = 7,
): Promise<WireTenant> {
  const tenant = { name: 'Acme', ...given } as { name: string }
  return client.createTenant({ organizationId, tenant, ...asked() })
}

test("the tenants of the key's user are listed", async () => {
  const { client, sent } = await aScene(tests)
  const tenants = await client.listTenants(asked())
  expect(tenants).toMatchObject([
    { id: 42, organization_id: 7 },
    { id: 43, organization_id: 7 },
  ])
  const request = { method: 'GET', path: '/firework/v2/me/tenants', query: {}, tier: 'basic' }
  expect(sent()).toEqual([{ ...request, body: undefined }])
})

describe('a tenant', () => {
  test.each([
    [{ name: 'Acme' }],
    [{ name: 'Acme', description: 'Rockets', industry: 'manufacturing' }],
  ])('is created as it is given: %j', async (body) => {
    const { client, sent } = await aScene(tests)
    const made = await create(client, body)
    expect(sent()).toEqual([{ method: 'POST', path, query: {}, body, tier: 'basic' }])
    expect(made).toMatchObject({ ...body, id: 44, organization_id: 7, is_archived: false })
  })

  test('of a type of tomorrow is read all the same', async () => {
    const { service, client } = await aScriptedScene(tests)
    const tenant = { id: 1, name: 'x', type: 'of_tomorrow', industry: 'space', further: [] }
    service.answer(() => json(200, tenant))
    expect(await create(client)).toEqual(tenant)
  })

  test('is refused where the organization is unknown or another’s', async () => {
    const { client } = await aScene(tests, { sandbox: twoOrganizations })
    const unknown = await failureOf(create(client, {}, 5))
    expect(unknown).toMatchObject({ reason: 'rejected', status: 404, serviceCode: 'NOT_FOUND' })
    const foreign = await failureOf(create(client, {}, 8))
    expect(foreign).toMatchObject({ reason: 'auth', status: 403, serviceCode: 'FORBIDDEN' })
    const odd = await failureOf(create(client, {}, 1.5))
    expect(toldBy(odd)).toEqual(['path.organization_id: not an integer'])
  })

  test('is refused to who does not administer the organization', async () => {
    const { client } = await aScene(tests, { sandbox: onlyWith('firework.global_search') })
    const error = await failureOf(create(client))
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
    expect(error.message).toContain('needs organization_admin')
  })

  test.each([
    [{ name: '' }, ['name: empty; write at least 1 character']],
    [{ name: undefined }, ['name: missing']],
    [{ industry: 'finanse' }, ['industry: not known to the service; did you mean "finance"?']],
    [{ type: 'x' }, [': unknown: type']],
  ])('with %j is never sent', async (mistake, told) => {
    const { client, sent } = await aScene(tests)
    const error = await failureOf(create(client, mistake))
    expect(error).toMatchObject({ reason: 'invalid', status: undefined })
    expect(toldBy(error)).toEqual(told)
    expect(sent('/')).toEqual([])
  })
})
