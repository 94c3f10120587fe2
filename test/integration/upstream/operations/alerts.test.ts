import { describe, expect, test } from 'vitest'
import { wireTenantAlert } from '../../../../src/upstream/resources/identifiers.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asAnotherTenant, asked, failureOf } from './scene.ts'

const tests = redisForTests()

test('all alerts of the tenant are read in pages of ten, without what configures their channels', async () => {
  const { client, sent } = await aScene(tests)
  const { items } = await client.listAlerts({ from: null, size: 10, ...asked() })
  const path = '/firework/v4/alerts/'
  expect(sent()).toMatchObject([{ method: 'GET', path, query: { size: '10' }, tier: 'basic' }])
  expect(items.map((item) => wireTenantAlert.parse(item).feed_definition)).toEqual([
    { type: 'group', id: 1042 },
    { type: 'group', id: 1042 },
    { type: 'group', id: 1043 },
  ])
  expect(JSON.stringify(items)).not.toContain('webhook_url')
})

describe('the alerts of a group', () => {
  test('are asked for by its id alone', async () => {
    const { client, sent } = await aScene(tests)
    const alerts = await client.groupAlerts({ groupId: 1042, ...asked() })
    const path = '/firework/v2/assets/groups/1042/alerts'
    expect(sent()).toEqual([{ method: 'GET', path, query: {}, body: undefined, tier: 'basic' }])
    expect(alerts.map(({ id, feed_target_id }) => [id, feed_target_id])).toEqual([
      [10_420, 1042],
      [10_421, 1042],
    ])
  })

  test.each([
    ['object', 1043, [10_430]],
    ['array', 1043, [10_430]],
    ['either', 1043, [10_430]],
    ['either', 1042, [10_420, 10_421]],
  ] as const)(
    'are a list where the service gives %s for group %i',
    async (alertsAs, groupId, ids) => {
      const { client } = await aScene(tests, { sandbox: { alertsAs } })
      const alerts = await client.groupAlerts({ groupId, ...asked() })
      expect(alerts.map(({ id }) => id)).toEqual(ids)
    },
  )

  test.each([[{ alerts: [] }], [{ alerts: null }], [{}]])('are none in %j', async (body) => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => json(200, body))
    expect(await client.groupAlerts({ groupId: 5, ...asked() })).toEqual([])
  })

  test('may be of a channel of tomorrow', async () => {
    const { service, client } = await aScriptedScene(tests)
    const alert = { id: 1, type: 'carrier_pigeon', frequency: 0.5, params: { deep: [] }, more: 1 }
    service.answer(() => json(200, { alerts: alert }))
    expect(await client.groupAlerts({ groupId: 5, ...asked() })).toEqual([alert])
  })

  test('that are no alerts break the contract', async () => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => json(200, { alerts: 'none' }))
    const error = await failureOf(client.groupAlerts({ groupId: 5, ...asked() }))
    expect(error).toMatchObject({ reason: 'contract', status: 200 })
  })

  test('of a group that nobody has, or of another tenant, are refused', async () => {
    const { client } = await aScene(tests)
    const unknown = await failureOf(client.groupAlerts({ groupId: 5, ...asked() }))
    expect(unknown).toMatchObject({ reason: 'rejected', status: 404, serviceCode: 'NOT_FOUND' })
    const foreign = await aScene(tests, { account: asAnotherTenant })
    const forbidden = await failureOf(foreign.client.groupAlerts({ groupId: 1042, ...asked() }))
    expect(forbidden).toMatchObject({ reason: 'auth', status: 403, serviceCode: 'FORBIDDEN' })
  })

  test('of no whole number are refused field by field', async () => {
    const { client } = await aScene(tests)
    const error = await failureOf(client.groupAlerts({ groupId: 1.5, ...asked() }))
    expect(error).toMatchObject({
      status: 422,
      details: [{ loc: 'path.assets_group_id', msg: 'not an integer' }],
    })
  })
})
