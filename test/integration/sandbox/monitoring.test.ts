/** Assets and policies: what rows cannot say. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openMonitoring, policiesPath, type MonitoringClient } from './monitoring-client.ts'

let own: MonitoringClient
beforeEach(async () => {
  own = await openMonitoring({ undescribed: true })
})
afterEach(() => own.close())

const assets = '/firework/v2/assets/'
const keywords = { keywords: ['noise'] }
const disabled = { is_disabled: true }

describe('an asset', () => {
  test('is what new events of its group are about, until it is disabled', async () => {
    const { id } = await own.createAsset({ assets_group_id: 1043, name: 'acme.test' })
    for (const other of [91, 92]) await own.call('POST', `${assets}${other}/toggle`, disabled)
    const event = own.sandbox.addEvent({ groupIds: [1043] })
    expect(event.identifiers).toEqual([{ id, name: 'acme.test' }])
    expect(await own.shownIn(1043)).toEqual([event.uid])
  })

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

  test('that is an identity shows its uuid, and takes it back', async () => {
    const data = { attributes: [{ type: 'email', email: 'a@acme.test' }] }
    const made = await own.createAsset({ type: 'identity', data })
    expect(made.data).toEqual({ uuid: expect.any(String) })
    expect((await own.call('PUT', assets + made.id, made)).status).toBe(200)
  })
})

describe('a policy', () => {
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
})
