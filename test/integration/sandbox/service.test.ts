import { afterEach, describe, expect, test } from 'vitest'
import type { EndMode, SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireFullEvent } from '../../../src/upstream/resources/events.ts'
import { wireTokenGrant, wireTokenTest } from '../../../src/upstream/resources/page.ts'
import { ask, detailOf, searchGroup, tokenOf, walkGroup } from './client.ts'

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
