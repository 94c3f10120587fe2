/** What changes something is sent once, and where its answer is lost the error says what that means. */
import { describe, expect, test } from 'vitest'
import type { FaultInput } from '../../../../src/sandbox/server.ts'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import { redisForTests } from '../../../support/ledger.ts'
import type { ScriptedAnswer } from '../../../support/http-server.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asked, failureOf, type Scene } from './scene.ts'

const tests = redisForTests()

const uuid = '00000000-0000-4000-8000-000000000000'
const doubt = 'it may have been done all the same: look before you repeat it'
const asset = {
  name: 'Acme',
  type: 'domain',
  search_types: ['leak'],
  data: { fqdn: 'a.test' },
} as const
const value = { keywords: ['acme'] }

type Write = (client: UpstreamClient, given?: { maxWaitMs: number }) => Promise<unknown>

const writes: Record<string, Write> = {
  createAsset: (client, more) =>
    client.createAsset({ asset: { ...asset, search_types: ['leak'] }, ...asked(), ...more }),
  replaceAsset: (client, more) =>
    client.replaceAsset({
      id: 77,
      asset: { ...asset, search_types: ['leak'] },
      ...asked(),
      ...more,
    }),
  toggleAsset: (client, more) =>
    client.toggleAsset({ id: 77, isDisabled: true, ...asked(), ...more }),
  deleteAsset: (client, more) => client.deleteAsset({ id: 77, ...asked(), ...more }),
  createPolicy: (client, more) =>
    client.createPolicy({
      policy: { name: 'x', type: 'INCLUDED_KEYWORDS', value },
      ...asked(),
      ...more,
    }),
  updatePolicy: (client, more) =>
    client.updatePolicy({ uuid, name: 'x', value, ...asked(), ...more }),
  deletePolicy: (client, more) => client.deletePolicy({ uuid, ...asked(), ...more }),
  assignPolicy: (client, more) =>
    client.assignPolicy({ uuid, assignment: { identifier_ids: [77] }, ...asked(), ...more }),
  unassignPolicy: (client, more) =>
    client.unassignPolicy({ uuid, assignment: { identifier_ids: [77] }, ...asked(), ...more }),
  createTenant: (client, more) =>
    client.createTenant({ organizationId: 7, tenant: { name: 'x' }, ...asked(), ...more }),
}

const each = Object.entries(writes)
const settled = { policyPaths: 'underscore' } as const

async function aRestoredScene(): Promise<Scene> {
  const scene = await aScene(tests, { sandbox: { undescribed: true }, account: settled })
  const { policies } = scene.sandbox.monitoring
  const made = { uuid, tenantId: 42, name: 'old', type: 'INCLUDED_KEYWORDS', value }
  policies.restore([{ ...made, createdAtMs: 0, updatedAtMs: 0 }])
  return scene
}

describe.each(each)('%s', (_name, write) => {
  const unanswered: FaultInput['effect'][] = ['lose-answer', 'cut', 'refuse']
  test.each(unanswered)(
    'that meets %s says that it may have been done, and is sent once',
    async (effect) => {
      const { sandbox, client, sent } = await aRestoredScene()
      for (const method of ['POST', 'PUT', 'DELETE']) {
        sandbox.faults.add({ on: '/firework/*', effect, method, times: 1 })
      }
      const error = await failureOf(write(client))
      expect(error).toMatchObject({ reason: 'unavailable', fault: 'cut' })
      expect(error.message).toContain(doubt)
      expect(sent().filter(({ method }) => method !== 'GET')).toHaveLength(1)
    },
  )

  test.each([400, 401, 403, 404, 422, 429])(
    'that is refused by %i was not done',
    async (status) => {
      const { sandbox, client } = await aRestoredScene()
      const headers = { 'retry-after': '0' }
      sandbox.faults.add({ on: '/firework/*', effect: 'status', status, headers })
      const error = await failureOf(write(client))
      expect(error.status).toBe(status)
      expect(error.message).not.toContain('may have been done')
    },
  )
})

test('a lost answer means what it says: the asset, the policy and the tenant are there', async () => {
  const { sandbox, client } = await aRestoredScene()
  const { assets, policies } = sandbox.monitoring
  const counts = (): number[] => [assets.all().length, policies.all().length]
  const [assetsBefore = 0, policiesBefore = 0] = counts()
  sandbox.faults.add({ on: '/firework/*', effect: 'lose-answer' })
  for (const name of ['createAsset', 'createPolicy']) await failureOf(writes[name]!(client))
  expect(counts()).toEqual([assetsBefore + 1, policiesBefore + 1])
})

describe('a write', () => {
  const open: [string, ScriptedAnswer][] = [
    ['a failure of the service', json(500, { message: 'oops' })],
    ['a gateway that gave up', { status: 504, body: 'upstream request timeout' }],
    ['a gateway’s web page', { status: 502, body: '<html><title>502</title></html>' }],
    ['an answer that is no JSON', { status: 200, body: 'done' }],
    ['an answer of another shape', json(201, { ok: true })],
  ]
  test.each(open)('that gets %s may have been done', async (_title, answer) => {
    const { service, client, sent } = await aScriptedScene(tests)
    service.answer(() => answer)
    expect((await failureOf(writes['createAsset']!(client))).message).toContain(doubt)
    expect(sent()).toHaveLength(1)
  })

  test('that gets no answer in time may have been done', async () => {
    const { sandbox, client } = await aScene(tests, {
      more: { transportLimits: { totalMs: 2_000 } },
    })
    sandbox.faults.add({ on: '/firework/*', effect: 'hang' })
    const error = await failureOf(writes['createTenant']!(client))
    expect(error).toMatchObject({ reason: 'timeout', status: undefined })
    expect(error.message).toContain(doubt)
  })

  test('whose turn did not come was not done', async () => {
    const limits = { search: 50, basic: 0.2 }
    const account = { limits, organizationId: 7 }
    const { sandbox, client } = await aScene(tests, { account })
    const error = await failureOf(writes['createTenant']!(client, { maxWaitMs: 100 }))
    expect(error).toMatchObject({ reason: 'timeout' })
    expect(error.message).not.toContain('may have been done')
    expect(sandbox.requests.filter(({ path }) => path.startsWith('/firework'))).toEqual([])
  })

  test('for which there was no token was not done', async () => {
    const { sandbox, client, sent } = await aScene(tests, { account: { organizationId: 7 } })
    sandbox.faults.add({ on: '/tokens/generate', effect: 'lose-answer' })
    const error = await failureOf(writes['createAsset']!(client))
    expect(error).toMatchObject({ reason: 'unavailable', fault: 'cut' })
    expect(error.message).not.toContain('may have been done')
    expect(sent()).toEqual([])
  })

  test('that nobody was there to take was not done', async () => {
    const { server, client } = await aScriptedScene(tests)
    await client.testToken()
    await server.refuse()
    const error = await failureOf(writes['toggleAsset']!(client))
    expect(error).toMatchObject({ reason: 'unavailable', fault: 'refused' })
    expect(error.message).not.toContain('may have been done')
  })

  test('whose token had run out is sent again, and done once', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const before = sandbox.monitoring.assets.all().length
    await writes['createAsset']!(client)
    sandbox.tokens.revokeAll()
    await writes['createAsset']!(client)
    expect(sent()).toHaveLength(3)
    expect(sandbox.monitoring.assets.all()).toHaveLength(before + 2)
  })
})

test('a reading whose answer is lost leaves no doubt behind', async () => {
  const { sandbox, client } = await aScene(tests)
  sandbox.faults.add({ on: '/firework/*', effect: 'lose-answer' })
  const error = await failureOf(client.groupAlerts({ groupId: 1042, ...asked() }))
  expect(error).toMatchObject({ reason: 'unavailable', fault: 'cut' })
  expect(error.message).not.toContain('may have been done')
})
