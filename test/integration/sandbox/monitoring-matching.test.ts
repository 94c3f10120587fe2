import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'
import { createMonitoring } from '../../../src/sandbox/monitoring/monitoring.ts'
import { withDefaults } from '../../../src/sandbox/options.ts'
import { openMonitoring, type MonitoringClient } from './monitoring-client.ts'

let client: MonitoringClient
beforeEach(async () => {
  client = await openMonitoring()
})
afterEach(() => client.close())

const toggle = (id: number, isDisabled: boolean) =>
  client.call('POST', `/firework/v2/assets/${id}/toggle`, { is_disabled: isDisabled })

/** A paste with just this content, wherever it matches. */
function paste(content: string): SandboxEvent {
  return client.sandbox.addEvent({ type: 'paste', data: { content }, highlights: {} })
}

const identifiersOf = (event: SandboxEvent): number[] => event.identifiers.map(({ id }) => id)

async function disableStanding(): Promise<void> {
  for (const { id } of client.sandbox.monitoring.assets.all()) await toggle(id, true)
}

describe('an event that is told nowhere to go', () => {
  test('shows for its subject, and for whatever else it mentions, in each of their groups', async () => {
    const { id } = await client.createAsset({ assets_group_id: 1043 })
    const event = paste('acme.test is down')
    expect(event.groupIds).toEqual([1042, 1043])
    expect(identifiersOf(event)).toHaveLength(2)
    expect(identifiersOf(event)[1]).toBe(id)
    expect(await client.shownIn(1043)).toEqual([event.uid])
    expect(await client.shownIn(1042)).toEqual([event.uid])
  })

  test('shows nowhere where its subject is disabled and nobody else matches', async () => {
    await disableStanding()
    const event = paste('acme.test is down')
    expect([event.groupIds, event.identifiers]).toEqual([[], []])
    expect(await client.shownIn(1042)).toEqual([])
    await toggle(77, false)
    expect(identifiersOf(paste('about example.com'))).toEqual([77])
  })

  test('is written about assets that were made since', async () => {
    await disableStanding()
    const { id } = await client.createAsset()
    const made = client.sandbox.addEvents(200)
    expect(new Set(made.flatMap(identifiersOf))).toEqual(new Set([id]))
    expect(JSON.stringify(made.map(({ highlights }) => highlights))).toContain('acme.test')
    const answer = await toggle(id, false)
    const count = made.filter(({ identifiers }) => identifiers.length > 0).length
    expect(answer.json).toMatchObject({ asset: { count } })
  })

  test('is matched by what an asset is now', async () => {
    await disableStanding()
    const { id } = await client.createAsset()
    const keyword = { name: 'K', type: 'keyword', search_types: [], data: { keyword: 'umbrella' } }
    expect(identifiersOf(paste('acme.test'))).toContain(id)
    await client.call('PUT', `/firework/v2/assets/${id}`, keyword)
    const event = paste('the umbrella')
    expect(event.identifiers).toContainEqual({ id, name: 'K' })
  })
})

test('an event that is told where to go goes there, whatever matches', async () => {
  await disableStanding()
  await client.createAsset()
  const told = { groupIds: [1043], data: { content: 'acme.test' }, highlights: {} }
  const event = client.sandbox.addEvent({ ...told, type: 'paste' })
  expect(await client.shownIn(1043)).toEqual([event.uid])
  const identifiers = [{ id: 91, name: 'supplier.example' }]
  const forOne = client.sandbox.addEvent({ groupIds: [1043], identifiers })
  expect(forOne).toMatchObject({ groupIds: [1043], identifiers })
})

test('events that arrive by themselves, and a backlog, are matched too', async () => {
  const busy = await openMonitoring({ eventsPerSecond: 400, backlog: 400 })
  const standing = busy.sandbox.events()
  const below = standing.filter(({ identifiers }) => identifiers[0]?.name === 'vpn.example.com')
  expect(below.some((event) => identifiersOf(event).includes(77))).toBe(true)
  for (const { id } of busy.sandbox.monitoring.assets.all()) {
    await busy.call('POST', `/firework/v2/assets/${id}/toggle`, { is_disabled: true })
  }
  const before = busy.sandbox.events().length
  await expect.poll(() => busy.sandbox.events().length).toBeGreaterThan(before + 20)
  const since = busy.sandbox.events().slice(before)
  expect(since.flatMap(({ groupIds }) => groupIds)).toEqual([])
  await busy.close()
})

describe('a policy', () => {
  test('decides over what comes after its assignment, until it is gone', async () => {
    await disableStanding()
    const { id } = await client.createAsset()
    const policy = await client.createPolicy('EXCLUDED_KEYWORDS', { keywords: ['noise'] })
    const before = paste('acme.test noise')
    await client.assign(policy, [id])
    const after = paste('acme.test noise')
    const clear = paste('acme.test signal')
    expect([before, after, clear].map(identifiersOf)).toEqual([[id], [], [id]])
    expect(await client.shownIn(1042)).toEqual(expect.arrayContaining([before.uid, clear.uid]))
    await client.call('DELETE', `/firework/v4/matching_policies/${policy.uuid}`)
    expect(identifiersOf(paste('acme.test noise'))).toEqual([id])
  })

  test('keeps an event also from the asset that it was written about', async () => {
    const policy = await client.createPolicy('LUCENE_QUERY', { query: 'type:nothing' })
    await client.assign(policy, [77, 78, 406_285_232_303])
    client.sandbox.addEvents(50)
    expect(await client.shownIn(1042)).toEqual([])
  })

  test('that cleans takes away what matched, from its identifier and from the group', async () => {
    await disableStanding()
    const one = await client.createAsset()
    const two = await client.createAsset({ assets_group_id: 1043 })
    const [noise, signal] = [paste('acme.test noise'), paste('acme.test signal')]
    const policy = await client.createPolicy('EXCLUDED_KEYWORDS', { keywords: ['noise'] })
    await client.assign(policy, [one.id], true)
    expect(await client.shownIn(1042)).toEqual([signal.uid])
    expect((await client.shownIn(1043)).toSorted()).toEqual([noise.uid, signal.uid].toSorted())
    expect(client.sandbox.events().map(identifiersOf)).toEqual([[two.id], [one.id, two.id]])
  })

  test('that cleans leaves an event in a group where another identifier has it', async () => {
    await disableStanding()
    const [one, two] = [await client.createAsset(), await client.createAsset()]
    const event = paste('acme.test noise')
    const policy = await client.createPolicy('EXCLUDED_KEYWORDS', { keywords: ['noise'] })
    await client.assign(policy, [one.id], true)
    expect(await client.shownIn(1042)).toEqual([event.uid])
    await client.assign(policy, [two.id], true)
    expect(await client.shownIn(1042)).toEqual([])
  })

  test('that cleans also judges events that were told where to go', async () => {
    const noise = client.sandbox.addEvent({
      groupIds: [1042],
      identifiers: [{ id: 77, name: 'example.com' }],
      data: { content: 'noise' },
    })
    const policy = await client.createPolicy('EXCLUDED_KEYWORDS', { keywords: ['noise'] })
    const elsewhere = { ...noise, uid: 'paste/site/2', identifiers: [{ id: 91, name: 'supplier' }] }
    client.sandbox.addEvent(elsewhere)
    await client.assign(policy, [78], true)
    expect(await client.shownIn(1042)).toHaveLength(2)
    await client.assign(policy, [77], true)
    expect(await client.shownIn(1042)).toEqual([elsewhere.uid])
  })
})

test('the state goes through JSON into another sandbox, and on from there', async () => {
  const asset = await client.createAsset({ risks: [5] })
  await toggle(77, true)
  const policy = await client.createPolicy('INCLUDED_KEYWORDS', { keywords: ['a'] })
  await client.assign(policy, [asset.id])
  const { monitoring } = client.sandbox
  const text = JSON.stringify(monitoring.snapshot())
  const restored = createMonitoring(withDefaults({}))
  expect(restored.snapshot()).not.toEqual(monitoring.snapshot())
  restored.restore(JSON.parse(text))
  expect(restored.snapshot()).toEqual(monitoring.snapshot())
  expect(restored.assets.nextId()).toBe(monitoring.assets.nextId())
  expect(restored.groups()[0]?.identifiers.map(({ id }) => id)).toContain(asset.id)
  expect(() => restored.restore({ assets: 7 })).toThrow(/assets|expected/i)
})

test('requests for assets and policies count against the basic limit, whatever others count against', async () => {
  const strict = await openMonitoring({ tiers: { detail: 'search' } })
  await strict.createAsset()
  await strict.call('GET', '/firework/v4/matching_policies/by_identifier_id/77')
  await strict.call('GET', '/firework/v2/assets/groups/1042/alerts')
  await strict.call('GET', '/firework/v4/events/?uid=x')
  const tiers = strict.sandbox.requests.slice(1).map(({ tier }) => tier)
  expect(tiers).toEqual(['basic', 'basic', 'basic', 'search'])
  await strict.close()
})
