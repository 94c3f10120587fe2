/** Assets, policies and alerts: what rows cannot say, and which events they let through. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'
import { openMonitoring, policiesPath, type MonitoringClient } from './monitoring-client.ts'

let own: MonitoringClient
beforeEach(async () => {
  own = await openMonitoring({ undescribed: true })
})
afterEach(() => own.close())

const assets = '/firework/v2/assets/'
const keywords = { keywords: ['noise'] }

/** A paste with just this content, wherever it matches. */
function paste(content: string): SandboxEvent {
  return own.sandbox.addEvent({ type: 'paste', data: { content }, highlights: {} })
}

const idsOf = (event: SandboxEvent): number[] => event.identifiers.map(({ id }) => id)

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

  test('that is an identity shows its uuid, and takes it back', async () => {
    const data = { attributes: [{ type: 'email', email: 'a@acme.test' }] }
    const made = await own.createAsset({ type: 'identity', data })
    expect(made.data).toEqual({ uuid: expect.any(String) })
    expect((await own.call('PUT', assets + made.id, made)).status).toBe(200)
    expect(idsOf(paste('from a@acme.test'))).toContain(made.id)
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
