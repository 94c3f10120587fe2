import { describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../../src/sandbox/options.ts'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { AccountConfig } from '../../../../src/upstream/config.ts'
import type { PolicyCreation, WirePolicy } from '../../../../src/upstream/resources/policies.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import {
  aScene,
  aScriptedScene,
  asAnotherTenant,
  asked,
  failureOf,
  toldBy,
  type Scene,
} from './scene.ts'

const tests = redisForTests()

const path = '/firework/v4/matching_policies'
const policy: PolicyCreation = {
  name: 'Ours',
  type: 'INCLUDED_KEYWORDS',
  value: { keywords: ['acme', 'blå bær'] },
}
const nobodys = '00000000-0000-4000-8000-000000000000'

/** On a path whose spelling is settled, so that nothing but the operations is sent. */
function start(sandbox: SandboxOptions = {}, account: Partial<AccountConfig> = {}): Promise<Scene> {
  return aScene(tests, { sandbox, account: { policyPaths: 'underscore', ...account } })
}

function create(client: UpstreamClient, given: Record<string, unknown> = {}): Promise<WirePolicy> {
  return client.createPolicy({ policy: { ...policy, ...given } as PolicyCreation, ...asked() })
}

const request = { path, query: {}, body: undefined, tier: 'basic' }

describe('a matching policy', () => {
  const creations: PolicyCreation[] = [
    policy,
    { name: 'x', type: 'EXCLUDED_KEYWORDS', value: { keywords: ['no'] } },
    { name: 'x', type: 'LUCENE_QUERY', value: { query: 'acme AND leak' } },
    { name: 'x', type: 'ASTP_COOKIES', value: { cookie_names: ['sid'], match_subdomains: true } },
  ]
  test.each(creations)('$type is created as it is given, and read back', async (given) => {
    const { client, sent } = await start()
    const made = await client.createPolicy({ policy: given, ...asked() })
    expect(made).toMatchObject({ name: given.name, policy_type: given.type, value: given.value })
    expect(await client.getPolicy({ uuid: made.uuid, ...asked() })).toEqual(made)
    expect(sent()).toEqual([
      { ...request, method: 'POST', body: given },
      { ...request, method: 'GET', path: `${path}/${made.uuid}` },
    ])
  })

  test('is assigned, found with its identifier, and gone once it is deleted', async () => {
    const { client, sent } = await start()
    const made = await create(client)
    const assignment = { identifier_ids: [77, 78], clean_past_events: true }
    const { uuid } = made
    expect(await client.assignPolicy({ uuid, assignment, ...asked() })).toBeUndefined()
    const assigned = await client.listIdentifierPolicies({ identifier: 77, ...asked() })
    expect(assigned).toMatchObject([{ matching_policy: made, clean_past_events: true }])
    expect(await client.deletePolicy({ uuid, ...asked() })).toBeUndefined()
    expect(await client.listIdentifierPolicies({ identifier: 77, ...asked() })).toEqual([])
    expect(sent().slice(1)).toEqual([
      { ...request, method: 'POST', path: `${path}/${uuid}/assignments`, body: assignment },
      { ...request, method: 'GET', path: `${path}/by_identifier_id/77` },
      { ...request, method: 'DELETE', path: `${path}/${uuid}` },
      { ...request, method: 'GET', path: `${path}/by_identifier_id/77` },
    ])
  })

  test.each([204, 200])(
    'is deleted and assigned by an answer of %i without a word',
    async (status) => {
      const { service, client } = await aScriptedScene(tests)
      service.answer(({ method }) => (method === 'GET' ? json(405, {}) : { status }))
      const assignment = { identifier_ids: [1] }
      await client.deletePolicy({ uuid: nobodys, ...asked() })
      await client.assignPolicy({ uuid: nobodys, assignment, ...asked() })
      expect(service.count(`${path}/${nobodys}`)).toBe(1)
      expect(service.count(`${path}/${nobodys}/assignments`)).toBe(1)
    },
  )

  test('of a type of tomorrow is read all the same', async () => {
    const { service, client } = await aScriptedScene(tests)
    const later = {
      uuid: 'u',
      name: 'x',
      policy_type: 'ASTP_TOMORROW',
      value: { any: [1] },
      more: 1,
    }
    service.answer(() => json(200, later))
    expect(await client.getPolicy({ uuid: 'u', ...asked() })).toEqual(later)
  })

  const onOne: [string, (client: UpstreamClient, uuid: string) => Promise<unknown>][] = [
    ['read', (client, uuid) => client.getPolicy({ uuid, ...asked() })],
    ['deleted', (client, uuid) => client.deletePolicy({ uuid, ...asked() })],
    [
      'assigned',
      (client, uuid) =>
        client.assignPolicy({ uuid, assignment: { identifier_ids: [77] }, ...asked() }),
    ],
  ]
  test.each(onOne)('is not %s where nobody has it, or another tenant', async (_word, act) => {
    const { sandbox, client } = await start()
    expect(await failureOf(act(client, nobodys))).toMatchObject({
      reason: 'rejected',
      status: 404,
      serviceCode: 'NOT_FOUND',
    })
    const given = { name: 'x', type: 'LUCENE_QUERY', value: { query: 'a' } } as const
    const { uuid } = sandbox.monitoring.policies.create({ ...given, tenantId: 43 })
    expect(await failureOf(act(client, uuid))).toMatchObject({ reason: 'auth', status: 403 })
    expect(sandbox.monitoring.policies.get(uuid)).toBeDefined()
  })

  test('is not assigned to, nor listed for, an identifier that is unknown or another’s', async () => {
    const { client } = await start({}, asAnotherTenant)
    const { uuid } = await create(client)
    for (const [identifier, status] of [[77, 403] as const, [5, 404] as const]) {
      const assignment = { identifier_ids: [identifier] }
      expect(await failureOf(client.assignPolicy({ uuid, assignment, ...asked() }))).toMatchObject({
        status,
      })
      expect(
        await failureOf(client.listIdentifierPolicies({ identifier, ...asked() })),
      ).toMatchObject({
        status,
      })
    }
  })

  test('tells field by field what the service refuses', async () => {
    const { client } = await start()
    const given = { type: 'LUCENE_QUERY', value: { query: '(acme' } }
    const error = await failureOf(create(client, given))
    expect(error).toMatchObject({ reason: 'rejected', status: 422 })
    expect(error.details).toMatchObject([{ loc: 'body.value.query' }])
    expect(error.message).not.toContain('may have been done')
  })
})

describe('what breaks a stated rule is never sent', () => {
  test.each([
    [{ name: '' }, ['name: empty; write at least 1 character']],
    [{ value: { keywords: [] } }, ['value.keywords: empty; write at least 1 entry']],
    [{ value: { keywords: ['a', ''] } }, ['value.keywords.1: empty; write at least 1 character']],
    [{ value: { query: 'x' } }, ['value.keywords: missing', 'value: unknown: query']],
    [
      { type: 'INCLUDE_KEYWORDS' },
      ['type: not known to the service; did you mean "INCLUDED_KEYWORDS"?'],
    ],
    [
      { type: 'BY_MOON_PHASE' },
      [
        'type: not known to the service; write one of INCLUDED_KEYWORDS, EXCLUDED_KEYWORDS, LUCENE_QUERY, ASTP_COOKIES, ASTP_DOMAIN',
      ],
    ],
  ])('a policy with %j', async (mistake, told) => {
    const { client, sent } = await start()
    const error = await failureOf(create(client, mistake))
    expect(error).toMatchObject({ reason: 'invalid', status: undefined })
    expect(toldBy(error)).toEqual(told)
    expect(sent('/')).toEqual([])
  })

  test.each([
    [[], ['identifier_ids: empty; write at least 1 entry']],
    [
      [0, 1.5],
      ['identifier_ids.0: too small; write 1 or more', 'identifier_ids.1: not a whole number'],
    ],
  ])('an assignment to %j, with either method', async (ids, told) => {
    const { client, sent } = await start()
    const given = { uuid: nobodys, assignment: { identifier_ids: ids } }
    for (const act of ['assignPolicy', 'unassignPolicy'] as const) {
      const error = await failureOf(client[act]({ ...given, ...asked() }))
      expect(error.reason).toBe('invalid')
      expect(toldBy(error)).toEqual(told)
    }
    expect(sent('/')).toEqual([])
  })
})

describe('an operation that the description does not have', () => {
  test('lists, changes and takes back where the service has it', async () => {
    const { client, sent } = await start({ undescribed: true })
    const { uuid } = await create(client)
    const assignment = { identifier_ids: [77] }
    await client.assignPolicy({ uuid, assignment, ...asked() })
    const listed = await client.listPolicies({ from: null, ...asked() })
    expect(listed).toMatchObject({ items: [{ uuid }], next: null })
    const assignees = await client.listAssignments({ uuid, from: null, ...asked() })
    expect(assignees?.items).toMatchObject([{ identifier_id: 77 }])
    const change = { name: 'New', value: { keywords: ['x'] } }
    expect(await client.updatePolicy({ uuid, ...change, ...asked() })).toMatchObject(change)
    await client.unassignPolicy({ uuid, assignment, ...asked() })
    expect(await client.listIdentifierPolicies({ identifier: 77, ...asked() })).toEqual([])
    expect(sent().slice(2, -1)).toEqual([
      { ...request, method: 'GET', query: { size: '25' } },
      { ...request, method: 'GET', path: `${path}/${uuid}/assignments`, query: { size: '25' } },
      { ...request, method: 'PUT', path: `${path}/${uuid}`, body: change },
      { ...request, method: 'DELETE', path: `${path}/${uuid}/assignments`, body: assignment },
    ])
  })

  test('is read cursor by cursor', async () => {
    const { client } = await start({ undescribed: true })
    for (let n = 0; n < 26; n += 1) await create(client, { name: `p${n}` })
    const first = await client.listPolicies({ from: null, ...asked() })
    const second = await client.listPolicies({ from: first!.next!, ...asked() })
    expect([first?.items.length, second?.items.length, second?.next]).toEqual([25, 1, null])
  })

  test('says nothing, and nothing is wrong, where the service has it not', async () => {
    const { client } = await start()
    expect(await client.listPolicies({ from: null, ...asked() })).toBeUndefined()
    const none = client.listAssignments({ uuid: nobodys, from: null, ...asked() })
    expect(await none).toBeUndefined()
  })
})
