import { afterEach, describe, expect, test } from 'vitest'
import type { EndMode, SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireFullEvent, wireSearchItem } from '../../../src/upstream/resources/events.ts'
import { wireTokenGrant, wireTokenTest } from '../../../src/upstream/resources/page.ts'
import { ask, detailOf, post, searchGroup, tokenOf, uidOf, walkGroup } from './client.ts'

const open: Sandbox[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false, ...options })
  open.push(sandbox)
  return sandbox
}

describe('paging', () => {
  const ends: [EndMode, number, unknown][] = [
    ['full', 3, null],
    ['absent', 3, undefined],
    ['empty', 4, null],
  ]
  test.each(ends)(
    'a walk that ends %s takes %i pages for thirty events',
    async (endMode, count, next) => {
      const sandbox = await start({ endMode })
      sandbox.addEvents(30)
      const { uids, pages } = await walkGroup(sandbox, await tokenOf(sandbox), { order: 'asc' })
      expect(new Set(uids)).toEqual(new Set(sandbox.events().map(({ uid }) => uid)))
      expect(uids).toHaveLength(30)
      expect(pages).toHaveLength(count)
      expect(pages.at(-1)!.next).toBe(next)
      expect('next' in pages.at(-1)!).toBe(endMode !== 'absent')
    },
  )

  test.each(['full', 'empty', 'absent'] as const)(
    'with end %s, short, empty and late pages, the saved cursor goes on to what came since',
    async (endMode) => {
      const sandbox = await start({ endMode, shortPages: 0.3, emptyPages: 0.3, backlog: 60 })
      const token = await tokenOf(sandbox)
      const group = sandbox.events().filter(({ groupIds }) => groupIds.includes(1042))
      const body = { order: 'asc', size: 7 }
      const first = await walkGroup(sandbox, token, body)
      expect(first.uids).toEqual(expect.arrayContaining(group.map(({ uid }) => uid)))
      expect(first.uids).toHaveLength(group.length)
      expect(first.pages.some(({ items, next }) => items.length === 0 && next)).toBe(true)

      const since = sandbox.addEvents(12)
      const late = sandbox.addEvent({ createdAtMs: Date.now() - 90_000_000 })
      const second = await searchFrom(sandbox, token, { ...body, from: first.cursor })
      expect(second).toEqual(expect.arrayContaining(since.map(({ uid }) => uid)))
      expect(second).not.toContain(late.uid)
      expect((await walkGroup(sandbox, token, body)).uids).toContain(late.uid)
      expect(sandbox.violations().changedScans).toBe(0)
    },
  )

  async function searchFrom(sandbox: Sandbox, token: string, body: object): Promise<string[]> {
    const uids: string[] = []
    let next: unknown = (body as { from?: string }).from
    do {
      const page = (await searchGroup(sandbox, token, { ...body, from: next })).json as {
        items: unknown[]
        next?: string | null
      }
      uids.push(...page.items.map(uidOf))
      next = page.next
    } while (next)
    return uids
  }

  test('an end that echoes repeats the cursor over an empty page', async () => {
    const sandbox = await start({ endMode: 'echo' })
    sandbox.addEvents(3)
    const token = await tokenOf(sandbox)
    const first = await searchGroup(sandbox, token, { order: 'asc' })
    const { next: from } = first.json as { next: string }
    const end = await searchGroup(sandbox, token, { order: 'asc', from })
    expect(end.json).toEqual({ items: [], next: from })
  })

  test('an empty group ends at once', async () => {
    const sandbox = await start({ endMode: 'empty' })
    const { json } = await searchGroup(sandbox, await tokenOf(sandbox), { order: 'asc' })
    expect(json).toEqual({ items: [], next: null })
  })

  test('by default pages hold ten events, newest first', async () => {
    const sandbox = await start({ backlog: 80 })
    const { json } = await searchGroup(sandbox, await tokenOf(sandbox))
    const uids = (json as { items: unknown[] }).items.map(uidOf)
    const newest = sandbox
      .events()
      .filter(({ groupIds }) => groupIds.includes(1042))
      .toSorted((a, b) => b.createdAtMs - a.createdAtMs)
    expect(uids).toEqual(newest.slice(0, 10).map(({ uid }) => uid))
  })

  test('the cursor is the last item by creation and uid, in quoted base64', async () => {
    const sandbox = await start()
    sandbox.addEvent({ uid: 'paste/site/1', createdAtMs: 1_700_000_000_123 })
    sandbox.addEvent({ uid: 'paste/site/2', createdAtMs: 1_700_000_000_124 })
    const { json } = await searchGroup(sandbox, await tokenOf(sandbox), { order: 'asc', size: 1 })
    const { next } = json as { next: string }
    expect(next).toMatch(/^[\w%]+$/)
    const text = Buffer.from(decodeURIComponent(next), 'base64').toString()
    expect(JSON.parse(text)).toEqual([1_700_000_000_123, 'paste/site/1'])
  })

  test('a walk whose filters change under its cursor is noticed', async () => {
    const sandbox = await start()
    sandbox.addEvents(20)
    const token = await tokenOf(sandbox)
    const { json } = await searchGroup(sandbox, token, { order: 'asc' })
    const { next: from } = json as { next: string }
    await searchGroup(sandbox, token, { order: 'asc', from })
    expect(sandbox.violations().changedScans).toBe(0)
    await searchGroup(sandbox, token, { order: 'asc', from, filters: { severity: 'low' } })
    expect(sandbox.violations().changedScans).toBe(1)
  })

  test('a cursor that is none, or that expired, is refused', async () => {
    const sandbox = await start()
    sandbox.addEvents(20)
    const token = await tokenOf(sandbox)
    const refusal = { status: 400, json: { error: { code: 'INVALID_CURSOR' } } }
    expect(await searchGroup(sandbox, token, { from: 'nonsense' })).toMatchObject(refusal)
    const { json } = await searchGroup(sandbox, token, { order: 'asc' })
    const body = { order: 'asc', from: (json as { next: string }).next }
    expect((await searchGroup(sandbox, token, body)).status).toBe(200)
    sandbox.expireCursors()
    expect(await searchGroup(sandbox, token, body)).toMatchObject(refusal)
  })

  test('filters narrow the walk', async () => {
    const sandbox = await start()
    sandbox.addEvents(15, { severity: 'low' })
    const wanted = sandbox.addEvents(15, { severity: 'high', type: 'stealer_log' })
    const token = await tokenOf(sandbox)
    const filters = { severity: 'medium', type: ['infected_devices'] }
    const { uids } = await walkGroup(sandbox, token, { order: 'asc', filters })
    expect(uids.toSorted()).toEqual(wanted.map(({ uid }) => uid).toSorted())
  })

  test('a raw item stands among the others, whatever it is', async () => {
    const sandbox = await start()
    sandbox.addEvent()
    sandbox.addRawItem(1042, { metadata: null })
    sandbox.addRawItem(1042, 42)
    const { json } = await searchGroup(sandbox, await tokenOf(sandbox), { order: 'asc' })
    const { items } = json as { items: unknown[] }
    expect(items).toContainEqual({ metadata: null })
    expect(items).toContain(42)
    expect(items.filter((item) => wireSearchItem.safeParse(item).success)).toHaveLength(1)
  })

  test('a changed event shows its change, an ignored one is gone', async () => {
    const sandbox = await start()
    const [first, second] = sandbox.addEvents(2, { severity: 'low' })
    sandbox.changeEvent(first!.uid, { severity: 'critical' })
    sandbox.changeEvent(second!.uid, { ignoredAtMs: 1 })
    const { json } = await searchGroup(sandbox, await tokenOf(sandbox), { order: 'asc' })
    const { items } = json as { items: { metadata: object }[] }
    expect(items.map(({ metadata }) => metadata)).toMatchObject([
      { uid: first!.uid, severity: 'critical' },
    ])
  })

  test('a bad body is refused with its place', async () => {
    const sandbox = await start()
    const answer = await searchGroup(sandbox, await tokenOf(sandbox), { size: 11 })
    expect(answer).toMatchObject({ status: 422, json: { detail: [{ loc: ['body', 'size'] }] } })
  })
})

describe('tokens', () => {
  test('a key is exchanged for a token, which tells whose it is', async () => {
    const sandbox = await start()
    const grant = await ask(`${sandbox.url}/tokens/generate`, {
      method: 'POST',
      headers: { authorization: sandbox.apiKeys[0]!, 'content-type': 'application/json' },
    })
    const { token } = wireTokenGrant.parse(grant.json)
    const identity = await ask(`${sandbox.url}/tokens/test`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(wireTokenTest.parse(identity.json)).toMatchObject({ tenant_id: 42, organization_id: 7 })
  })

  test('without a token, with the bare key or a made up one, the answer is 401', async () => {
    const sandbox = await start()
    const url = `${sandbox.url}/tokens/test`
    for (const authorization of ['', 'fw_sandbox', 'Bearer', 'Bearer made-up', 'bearer x']) {
      const answer = await ask(url, { headers: { authorization } })
      expect(answer).toMatchObject({ status: 401, json: { error: { code: 'UNAUTHORIZED' } } })
    }
    const headers = { authorization: 'Bearer fw_sandbox' }
    expect((await ask(`${sandbox.url}/tokens/generate`, { method: 'POST', headers })).status).toBe(
      401,
    )
  })

  test('a token lasts its lifetime and not a millisecond more', async () => {
    let now = Date.now()
    const sandbox = await start({ now: () => now, tokenLifetimeMs: 60_000 })
    const token = await tokenOf(sandbox)
    now += 59_999
    expect((await searchGroup(sandbox, token)).status).toBe(200)
    now += 1
    expect((await searchGroup(sandbox, token)).status).toBe(401)
    expect((await searchGroup(sandbox, await tokenOf(sandbox))).status).toBe(200)
  })

  test('revoked tokens and the tokens of a refused key are worth nothing', async () => {
    const sandbox = await start()
    const first = await tokenOf(sandbox)
    sandbox.tokens.revokeAll()
    expect((await searchGroup(sandbox, first)).status).toBe(401)
    const second = await tokenOf(sandbox)
    expect((await searchGroup(sandbox, second)).status).toBe(200)
    sandbox.tokens.refuseKey('fw_sandbox')
    expect((await searchGroup(sandbox, second)).status).toBe(401)
    await expect(tokenOf(sandbox)).rejects.toThrow('401')
    sandbox.tokens.admitKey('fw_sandbox')
    expect((await searchGroup(sandbox, await tokenOf(sandbox))).status).toBe(200)
  })

  test('a tenant that is not the key’s, or a group that is not the tenant’s, is forbidden', async () => {
    const sandbox = await start()
    await expect(tokenOf(sandbox, 'fw_sandbox', 99)).rejects.toThrow('403')
    const token = await tokenOf(sandbox, 'fw_sandbox', 43)
    expect(await searchGroup(sandbox, token)).toMatchObject({
      status: 403,
      json: { error: { code: 'FORBIDDEN' } },
    })
    expect((await detailOf(sandbox, token, sandbox.addEvent().uid)).status).toBe(403)
    expect((await searchGroup(sandbox, token, {}, 5)).status).toBe(404)
    expect((await searchGroup(sandbox, token, {}, 'x')).status).toBe(422)
  })
})

describe('detail', () => {
  test('is the bare event with data of its type and times without a zone', async () => {
    const sandbox = await start()
    const { uid } = sandbox.addEvent({ type: 'stealer_log' })
    const { json } = await detailOf(sandbox, await tokenOf(sandbox), uid)
    const event = wireFullEvent.parse(json)
    expect(event).toMatchObject({ event_type: 'stealer_log', metadata: { uid } })
    expect(event.data).toHaveProperty('malware_information.malware_family')
    expect(event.metadata?.['estimated_created_at']).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+$/)
  })

  test('of a type without a model is refused as unsupported', async () => {
    const sandbox = await start()
    const { uid } = sandbox.addEvent({ type: 'forum_topic' })
    expect(await detailOf(sandbox, await tokenOf(sandbox), uid)).toMatchObject({
      status: 400,
      json: { error: { code: 'UNSUPPORTED' } },
    })
  })

  test('of an unknown uid is 404, without a uid 422', async () => {
    const sandbox = await start()
    const token = await tokenOf(sandbox)
    expect((await detailOf(sandbox, token, 'paste/no/1')).status).toBe(404)
    const headers = { authorization: `Bearer ${token}` }
    expect((await ask(`${sandbox.url}/firework/v4/events/`, { headers })).status).toBe(422)
  })
})

describe('limits', () => {
  // a window that lasts however long a busy machine takes for it
  const limits = { search: 0.01, basic: 4 }

  test('a second search within the window is refused, and counted', async () => {
    const keys = [{ key: 'fw_sandbox', tenants: [42] }]
    const organizations = [{ id: 7, limits, keys }]
    const sandbox = await start({ enforceLimits: true, organizations })
    const token = await tokenOf(sandbox)
    expect((await searchGroup(sandbox, token)).status).toBe(200)
    const refused = await searchGroup(sandbox, token)
    expect(refused).toMatchObject({
      status: 429,
      json: { error: { code: 'RATELIMIT_REACHED', data: null } },
    })
    expect(refused.headers.has('retry-after')).toBe(false)
    expect(sandbox.violations().rate).toBe(1)
    expect(sandbox.requests.at(-1)).toMatchObject({
      method: 'POST',
      path: '/firework/v4/events/identifier_groups/1042/_search',
      status: 429,
      organization: 7,
      tier: 'search',
      isOverLimit: true,
    })
  })

  test('the limit is the organization’s, whatever the key, and the tiers are apart', async () => {
    const keys = ['one', 'two'].map((key) => ({ key, tenants: [42] }))
    const organizations = [{ id: 7, limits: { search: 1, basic: 0.01 }, keys }]
    const sandbox = await start({ enforceLimits: false, organizations })
    const { uid } = sandbox.addEvent({ type: 'paste' })
    const [one, two] = [await tokenOf(sandbox, 'one'), await tokenOf(sandbox, 'two')]
    for (const token of [one, two]) await detailOf(sandbox, token, uid)
    await searchGroup(sandbox, two)
    const judged = sandbox.requests.map(({ tier, isOverLimit }) => [tier, isOverLimit])
    expect(judged).toEqual([
      ['basic', false],
      ['basic', true],
      ['basic', true],
      ['basic', true],
      ['search', false],
    ])
    expect(sandbox.violations().rate).toBe(3)
  })
})

describe('events that come by themselves', () => {
  test('a backlog is spread over the last 24 hours and the groups, the same for the same seed', async () => {
    const now = (): number => Date.UTC(2026, 10, 1)
    const [one, two] = [await start({ backlog: 200, now }), await start({ backlog: 200, now })]
    expect(one.events()).toEqual(two.events())
    const ages = one.events().map(({ createdAtMs }) => now() - createdAtMs)
    expect(Math.max(...ages)).toBeLessThanOrEqual(86_400_000)
    expect(Math.max(...ages)).toBeGreaterThan(80_000_000)
    expect(new Set(one.events().flatMap(({ groupIds }) => groupIds))).toEqual(new Set([1042, 1043]))
  })

  test('arrivals go on, and some are late', async () => {
    const sandbox = await start({ eventsPerSecond: 400, lateShare: 0.2 })
    await expect.poll(() => sandbox.events().length).toBeGreaterThan(50)
    const lateness = sandbox.events().map((event) => event.arrivedAtMs - event.createdAtMs)
    expect(lateness.some((ms) => ms >= 60_000)).toBe(true)
    expect(lateness.filter((ms) => ms < 30_000).length).toBeGreaterThan(lateness.length / 2)
  })
})

test('events and state can be had over HTTP, and control requests are not logged', async () => {
  const sandbox = await start()
  await post(`${sandbox.url}/_sandbox/events`, { count: 3 })
  expect((await post(`${sandbox.url}/_sandbox/events`, { count: 'x' })).status).toBe(400)
  const state = await ask(`${sandbox.url}/_sandbox/state`)
  expect(state.json).toMatchObject({
    events: 3,
    requests: 0,
    received: { slack: 0, webhook: 0, email: 0 },
    violations: { rate: 0, changedScans: 0 },
  })
})
