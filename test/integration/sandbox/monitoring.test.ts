/** Assets, policies and alerts: what rows cannot say, and which events they let through. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'
import { wireAlertsAnswer } from '../../../src/upstream/resources/assets.ts'
import {
  clientOf,
  openMonitoring,
  policiesPath,
  type MonitoringClient,
} from './monitoring-client.ts'

let own: MonitoringClient
beforeEach(async () => {
  own = await openMonitoring({ undescribed: true })
})
afterEach(() => own.close())

const assets = '/firework/v2/assets/'
const identifiers = '/firework/v4/identifiers/'
const keywords = { keywords: ['noise'] }

/** A paste with just this content, wherever it matches. */
function paste(content: string): SandboxEvent {
  return own.sandbox.addEvent({ type: 'paste', data: { content }, highlights: {} })
}

const idsOf = (event: SandboxEvent): number[] => event.identifiers.map(({ id }) => id)

async function disableStanding(): Promise<void> {
  for (const { id } of own.sandbox.monitoring.assets.all()) {
    await own.call('POST', `${assets}${id}/toggle`, { is_disabled: true })
  }
}

describe('an asset', () => {
  test('has the fields of its type, is kept as it was written, and reset where nothing is', async () => {
    const { id } = await own.createAsset({ risks: [5], experimental_search_types: ['x'] })
    const replaced = { name: 'A', type: 'ip', search_types: ['leak'], data: { ip: '198.51.100.7' } }
    const { json } = await own.call('PUT', assets + id, { ...replaced, colour: 'red' })
    const shown = { ...replaced, id, risks: [], experimental_search_types: [], colour: 'red' }
    expect(json).toMatchObject({ asset: shown })
    const wrong = await own.call('PUT', assets + id, { ...replaced, type: 'domain' })
    const error = { code: 'INVALID_IDENTIFIER_DATA' }
    expect(wrong).toMatchObject({ status: 400, json: error })
    expect((await own.call('GET', assets + id)).json).toMatchObject({ asset: shown })
  })

  test('of v4 heeds is_disabled when it is created, and is the same asset at v2', async () => {
    const body = {
      name: 'A',
      data: { type: 'domain', fqdn: 'acme.test' },
      categories: ['leak'],
      emerging_categories: [],
      severities: ['high'],
    }
    for (const isDisabled of [true, false]) {
      const made = await own.call('POST', identifiers, { ...body, is_disabled: isDisabled })
      expect(made.json).toMatchObject({ is_disabled: isDisabled })
      const { id } = made.json as { id: number }
      const { json } = await own.call('GET', `${assets}${id}`)
      expect(json).toMatchObject({ asset: { is_disabled: isDisabled, risks: [4] } })
    }
  })

  test('that is an identity shows its uuid, and takes it back', async () => {
    const data = { attributes: [{ type: 'email', email: 'a@acme.test' }] }
    const made = await own.createAsset({ type: 'identity', data })
    expect(made.data).toEqual({ uuid: expect.any(String) })
    expect((await own.call('PUT', assets + made.id, made)).status).toBe(200)
    expect(idsOf(paste('from a@acme.test'))).toContain(made.id)
  })

  test('goes into the group asked for, which must be the tenant’s', async () => {
    const { id } = await own.createAsset({ assets_group_id: 1043 })
    expect(own.sandbox.monitoring.assets.get(id)?.groupId).toBe(1043)
    const other = await clientOf(own.sandbox, 43)
    const body = { name: 'A', type: 'ip', search_types: [], data: { ip: '198.51.100.7' } }
    for (const [client, group, status] of [
      [other, 1042, 403],
      [own, 9, 404],
    ] as const) {
      const answer = await client.call('POST', assets, { ...body, assets_group_id: group })
      expect(answer.status).toBe(status)
    }
  })

  test('is shown, changed and deleted by its tenant alone, its assignments with it', async () => {
    const { id } = await own.createAsset()
    const policy = await own.createPolicy('INCLUDED_KEYWORDS', keywords)
    await own.assign(policy, [id, 77])
    const other = await clientOf(own.sandbox, 43)
    for (const path of [assets + id, identifiers + id]) {
      for (const method of ['GET', 'DELETE']) {
        expect((await other.call(method, path)).status).toBe(403)
        expect((await own.call(method, path.replace(String(id), '999'))).status).toBe(404)
      }
    }
    expect(await own.call('DELETE', assets + id)).toMatchObject({ status: 200, json: null })
    const left = own.sandbox.monitoring.assignments()
    expect(left.map(({ identifierId }) => identifierId)).toEqual([77])
  })
})

describe('an event that is told nowhere to go', () => {
  test('shows for its subject and for whatever else it mentions, in each of their groups', async () => {
    const { id } = await own.createAsset({ assets_group_id: 1043 })
    const event = paste('acme.test is down')
    expect(event.groupIds).toEqual([1042, 1043])
    expect(idsOf(event)[1]).toBe(id)
    expect(await own.shownIn(1043)).toEqual([event.uid])
  })

  test('shows for nothing that is disabled, and is written about what was made since', async () => {
    await disableStanding()
    expect(paste('about example.com').groupIds).toEqual([])
    const { id } = await own.createAsset({ risks: [], search_types: [] })
    const made = own.sandbox.addEvents(20)
    expect(new Set(made.flatMap(idsOf))).toEqual(new Set([id]))
    expect(JSON.stringify(made.map(({ highlights }) => highlights))).toContain('acme.test')
  })
})

describe('a policy', () => {
  test.each([
    ['EXCLUDED_KEYWORDS', keywords, [[], [0]]],
    ['INCLUDED_KEYWORDS', keywords, [[0], []]],
    ['LUCENE_QUERY', { query: 'noise AND type:paste' }, [[0], []]],
    ['ASTP_COOKIES', { cookie_names: ['sid'] }, [[0], [0]]],
  ])('of the type %s decides over what comes after its assignment', async (type, value, shown) => {
    await disableStanding()
    const { id } = await own.createAsset({ search_types: [] })
    const policy = await own.createPolicy(type, value)
    await own.assign(policy, [id])
    const found = [paste('acme.test noise'), paste('acme.test signal')].map(idsOf)
    expect(found).toEqual(shown.map((one) => one.map(() => id)))
    await own.call('DELETE', `${policiesPath}/${policy.uuid}`)
    expect(idsOf(paste('acme.test noise'))).toEqual([id])
  })

  test('keeps its type when it is changed, and its query is Lucene', async () => {
    const policy = await own.createPolicy('LUCENE_QUERY', { query: 'a' })
    const place = `${policiesPath}/${policy.uuid}`
    const change = { name: 'New', value: { query: 'b' } }
    expect((await own.call('PUT', place, change)).json).toMatchObject({
      ...change,
      policy_type: 'LUCENE_QUERY',
    })
    for (const value of [keywords, { query: '(a' }]) {
      expect((await own.call('PUT', place, { name: 'New', value })).status).toBe(422)
    }
    expect((await own.call('GET', place)).json).toMatchObject(change)
  })

  test('assigns nothing where one identifier is not there, and no identifier twice', async () => {
    const policy = await own.createPolicy('INCLUDED_KEYWORDS', keywords)
    expect((await own.assign(policy, [77, 987_654])).status).toBe(404)
    expect(own.sandbox.monitoring.assignments()).toEqual([])
    await own.assign(policy, [77])
    await own.assign(policy, [77, 77], true)
    const { json } = await own.call('GET', `${policiesPath}/by_identifier_id/77`)
    const { uuid } = policy
    expect(json).toMatchObject([{ matching_policy: { uuid }, clean_past_events: true }])
    const other = await clientOf(own.sandbox, 43)
    expect((await other.assign(policy, [77])).status).toBe(403)
  })
})

test.each([
  ['underscore', 200, 404],
  ['hyphen', 404, 200],
  ['both', 200, 200],
] as const)('the path of policies is spelled %s', async (policyPaths, underscored, hyphened) => {
  const client = await openMonitoring({ policyPaths, undescribed: true })
  for (const [path, status] of [
    [policiesPath, underscored],
    [policiesPath.replace('_', '-'), hyphened],
  ] as const) {
    expect((await client.call('GET', path)).status).toBe(status)
    expect((await client.call('GET', `${path}/by_identifier_id/77`)).status).toBe(status)
  }
  await client.close()
})

test('a server as described lacks the writes of identifiers and what is about all policies', async () => {
  const client = await openMonitoring({ undescribed: false })
  const statuses = await Promise.all([
    client.call('GET', policiesPath).then(({ status }) => status),
    client.call('POST', identifiers, {}).then(({ status }) => status),
    client.call('GET', `${identifiers}77`).then(({ status }) => status),
    client.call('GET', identifiers).then(({ status }) => status),
  ])
  expect(statuses).toEqual([405, 405, 404, 200])
  await client.close()
})

test('alerts of a group are a list, the same each time', async () => {
  const [first, again] = [
    await own.call('GET', `${assets}groups/1042/alerts`),
    await own.call('GET', `${assets}groups/1042/alerts`),
  ]
  const { alerts } = wireAlertsAnswer.parse(first.json)
  expect(alerts?.map((one) => one.feed_target_id)).toEqual([1042, 1042])
  expect(again.text).toBe(first.text)
})
