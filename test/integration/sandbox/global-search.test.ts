import { afterEach, describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireSearchItem } from '../../../src/upstream/resources/events.ts'
import { post, tokenOf, uidOf, type Answer } from './client.ts'

const open: Sandbox[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false, ...options })
  open.push(sandbox)
  return sandbox
}

function searchAll(sandbox: Sandbox, token: string, body: unknown): Promise<Answer> {
  const url = `${sandbox.url}/firework/v4/events/global/_search`
  return post(url, body, { authorization: `Bearer ${token}` })
}

interface WirePage {
  items: unknown[]
  next?: string | null
}

/** What a search finds, over all its pages. */
async function found(sandbox: Sandbox, token: string, body: object): Promise<string[]> {
  const uids: string[] = []
  let from: string | null | undefined
  do {
    const answer = await searchAll(sandbox, token, { ...body, ...(from && { from }) })
    if (answer.status !== 200) throw new Error(`no page: ${answer.status} ${answer.text}`)
    const page = answer.json as WirePage
    uids.push(...page.items.map(uidOf))
    from = page.next
  } while (from)
  return uids
}

const everything = { type: 'query_string', query_string: '*' }

const twoTenants: SandboxOptions = {
  groups: [
    { id: 1, name: 'Own', tenantId: 42, identifiers: [{ id: 5, name: 'own.example' }] },
    { id: 2, name: 'Other', tenantId: 43, identifiers: [{ id: 6, name: 'other.example' }] },
  ],
}

describe('the global search', () => {
  test('goes over all events, whoever has them, in either order and without identifiers', async () => {
    const sandbox = await start({ ...twoTenants, backlog: 60 })
    const token = await tokenOf(sandbox)
    const inOrder = sandbox
      .events()
      .toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.uid < b.uid ? -1 : 1))
      .map(({ uid }) => uid)
    expect(await found(sandbox, token, { query: everything, order: 'asc' })).toEqual(inOrder)
    expect(await found(sandbox, token, { query: everything })).toEqual(inOrder.toReversed())
    const { json } = await searchAll(sandbox, token, { query: everything })
    for (const item of (json as WirePage).items) {
      expect(wireSearchItem.parse(item)).not.toHaveProperty('identifiers')
    }
  })

  test('shows what a tenant noted to that tenant alone, and filters by it for that tenant alone', async () => {
    const sandbox = await start(twoTenants)
    const noted = { severity: 'low', override: 'critical', tags: ['vip'], notes: 'ours' }
    const own = sandbox.addEvent({ ...noted, groupIds: [1] })
    const other = sandbox.addEvent({ ...noted, groupIds: [2], ignoredAtMs: 5 })
    const token = await tokenOf(sandbox)
    const { json } = await searchAll(sandbox, token, { query: everything })
    const metadataOf = (uid: string): unknown =>
      (json as { items: Record<string, unknown>[] }).items.find((item) => uidOf(item) === uid)?.[
        'tenant_metadata'
      ]
    expect(metadataOf(own.uid)).toMatchObject({ severity: { override: 'critical' }, notes: 'ours' })
    expect(metadataOf(other.uid)).toEqual({
      severity: null,
      tags: [],
      notes: null,
      ignored_at: null,
      remediated_at: null,
    })
    const critical = { query: everything, filters: { severity: ['critical'] } }
    expect(await found(sandbox, token, critical)).toEqual([own.uid])
  })
})

describe('the quota', () => {
  const searchQuota = { prefix: 'X-Test-', searches: 5 }

  async function remaining(sandbox: Sandbox, token: string, body: object): Promise<unknown[]> {
    const { headers } = await searchAll(sandbox, token, body)
    return ['remaining', 'batch-reached'].map((name) =>
      headers.get(`x-test-global-searches-${name}`),
    )
  }

  test('a unit pays for a hundred results; refining the search costs nothing more', async () => {
    const sandbox = await start({ searchQuota })
    sandbox.addEvents(101, { severity: 'low' })
    const token = await tokenOf(sandbox)
    const seen: unknown[] = []
    let from: string | null | undefined
    do {
      const body = { query: everything, order: 'asc', ...(from && { from }) }
      const { headers, json } = await searchAll(sandbox, token, body)
      const left = headers.get('x-test-global-searches-remaining')
      seen.push([left, headers.get('x-test-global-searches-batch-reached')])
      from = (json as WirePage).next
    } while (from)
    expect(seen).toEqual([
      ...Array.from({ length: 9 }, () => ['4', null]),
      ['4', 'true'],
      ['3', null],
    ])
    const refined = { query: everything, filters: { severity: 'low' } }
    expect(await remaining(sandbox, token, refined)).toEqual(['3', null])
    const other = { type: 'keyword', keyword: 'x' }
    expect(await remaining(sandbox, token, { query: other })).toEqual(['2', null])
    expect(sandbox.quota.remaining()).toBe(2)
  })
})
