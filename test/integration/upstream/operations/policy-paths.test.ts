import { describe, expect, test } from 'vitest'
import { secretFromText } from '../../../../src/lib/secret.ts'
import type { PolicyPaths } from '../../../../src/sandbox/options.ts'
import { startSandbox } from '../../../../src/sandbox/sandbox.ts'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { ScriptedAnswer } from '../../../support/http-server.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aReplica, aScene, aScriptedScene, asked, failureOf, type Scene } from './scene.ts'

const tests = redisForTests()

const underscore = '/firework/v4/matching_policies'
const hyphen = '/firework/v4/matching-policies'

function create(client: UpstreamClient): ReturnType<UpstreamClient['createPolicy']> {
  const value = { keywords: ['acme'] }
  return client.createPolicy({
    policy: { name: 'x', type: 'INCLUDED_KEYWORDS', value },
    ...asked(),
  })
}

const policiesOf = (client: UpstreamClient): ReturnType<UpstreamClient['listIdentifierPolicies']> =>
  client.listIdentifierPolicies({ identifier: 77, ...asked() })

const linesOf = (scene: Scene): string[] =>
  scene.sent().map(({ method, path }) => `${method} ${path}`)

async function rememberedKeys(): Promise<string[]> {
  return (await tests.redis.keys('*:capability:*')).toSorted()
}

describe('where the configuration leaves the spelling open', () => {
  test.each([
    ['underscore', [`GET ${underscore}`, `POST ${underscore}`]],
    [
      'hyphen',
      [
        `GET ${underscore}`,
        `GET ${underscore}/by_identifier_id/1`,
        `GET ${hyphen}`,
        `POST ${hyphen}`,
      ],
    ],
    ['both', [`GET ${underscore}`, `POST ${underscore}`]],
  ] as [PolicyPaths, string[]][])(
    'a server of %s is found out by GETs alone, before the first write',
    async (policyPaths, lines) => {
      const scene = await aScene(tests, { sandbox: { policyPaths } })
      const before = await rememberedKeys()
      await create(scene.client)
      expect(linesOf(scene)).toEqual(lines)
      expect(await rememberedKeys()).toHaveLength(before.length + 1)
      expect(scene.sandbox.monitoring.policies.all()).toHaveLength(1)
    },
  )

  test('it is asked for once, also by the next process, and for this server and key alone', async () => {
    const { sandbox, sent } = await aScene(tests, { sandbox: { policyPaths: 'hyphen' } })
    const account = { baseUrl: sandbox.url, apiKey: secretFromText(sandbox.apiKeys[0]!) }
    const shared = { prefix: 'policy-paths' }
    await policiesOf(aReplica(tests, account, shared).client)
    const probed = sent().length
    const next = aReplica(tests, account, shared)
    await policiesOf(next.client)
    await create(next.client)
    expect(
      sent()
        .slice(probed)
        .map(({ path }) => path),
    ).toEqual([`${hyphen}/by_identifier_id/77`, hyphen])
    const other = await startSandbox({ enforceLimits: false, policyPaths: 'underscore' })
    try {
      await policiesOf(aReplica(tests, { ...account, baseUrl: other.url }, shared).client)
      const paths = other.requests.map(({ path }) => path)
      expect(paths.filter((path) => path.startsWith('/firework'))).toEqual([
        underscore,
        `${underscore}/by_identifier_id/77`,
      ])
    } finally {
      await other.close()
    }
  })

  test('a server that moves to the other spelling is found again, and nothing is done twice', async () => {
    const before = await aScene(tests)
    await create(before.client)
    await before.sandbox.close()
    const port = Number(new URL(before.sandbox.url).port)
    const moved = await startSandbox({ enforceLimits: false, port, policyPaths: 'hyphen' })
    try {
      await create(before.client)
      await create(before.client)
      const lines = moved.requests
        .filter(({ path, status }) => path.startsWith('/firework') && status !== 401)
        .map(({ method, path }) => `${method} ${path}`)
      expect(lines).toEqual([
        `POST ${underscore}`,
        `GET ${underscore}`,
        `GET ${underscore}/by_identifier_id/1`,
        `GET ${hyphen}`,
        `POST ${hyphen}`,
        `POST ${hyphen}`,
      ])
      expect(moved.monitoring.policies.all()).toHaveLength(2)
    } finally {
      await moved.close()
    }
  })

  const gone: [string, ScriptedAnswer][] = [
    ['a web page', { status: 404, body: '<!doctype html><title>404</title>' }],
    ['the words of a framework', json(404, { detail: 'Not Found' })],
    ['a gateway that forbids it', json(403, { message: 'Missing Authentication Token' })],
  ]
  test.each(gone)('an unknown path may be told by %s', async (_title, answer) => {
    const { service, client, sent } = await aScriptedScene(tests)
    service.answer(({ path }) => (path.startsWith(underscore) ? answer : json(200, [])))
    expect(await policiesOf(client)).toEqual([])
    expect(sent()).toEqual([
      `GET ${underscore}?size=1`,
      `GET ${underscore}/by_identifier_id/1`,
      `GET ${hyphen}?size=1`,
      `GET ${hyphen}/by_identifier_id/77`,
    ])
  })

  test.each(gone.slice(0, 2))(
    'a path that is known and then gone may be told by %s',
    async (_title, answer) => {
      const { service, client, sent } = await aScriptedScene(tests)
      service.answer(() => json(200, []))
      await policiesOf(client)
      const asks = sent().length
      service.answer(({ path }) => (path.startsWith(underscore) ? answer : json(200, [])))
      await policiesOf(client)
      expect(sent().slice(asks)).toEqual([
        `GET ${underscore}/by_identifier_id/77`,
        `GET ${underscore}?size=1`,
        `GET ${underscore}/by_identifier_id/1`,
        `GET ${hyphen}?size=1`,
        `GET ${hyphen}/by_identifier_id/77`,
      ])
    },
  )

  test('a server that lists no policies is known by what it says of an identifier', async () => {
    const { service, client, sent } = await aScriptedScene(tests)
    const noIdentifier = json(404, { error: { code: 'NOT_FOUND', message: 'no identifier 1' } })
    service.answer(({ path }) => {
      if (path.startsWith(hyphen)) return json(200, [])
      if (path.includes('size=1')) return json(404, { detail: 'Not Found' })
      return path.endsWith('/1') ? noIdentifier : json(200, [])
    })
    await policiesOf(client)
    expect(sent().at(-1)).toBe(`GET ${underscore}/by_identifier_id/77`)
  })

  test.each([
    { error: { code: 'NOT_FOUND', message: 'Not found' } },
    { message: 'Not Found', code: 'NOT_FOUND' },
    { detail: 'no such policy' },
  ])('what the service says of a policy, as %j, is not said of the path', async (body) => {
    const { service, client, sent } = await aScriptedScene(tests)
    service.answer(() => json(200, []))
    await policiesOf(client)
    const asks = sent().length
    service.answer(() => json(404, body))
    expect(await failureOf(client.getPolicy({ uuid: 'u', ...asked() }))).toMatchObject({
      status: 404,
    })
    expect(sent().slice(asks)).toEqual([`GET ${underscore}/u`])
  })

  test('a policy that is not there is no reason to look for another path', async () => {
    const scene = await aScene(tests)
    await policiesOf(scene.client)
    const asks = scene.sent().length
    const uuid = '00000000-0000-4000-8000-000000000000'
    await failureOf(scene.client.getPolicy({ uuid, ...asked() }))
    await failureOf(scene.client.deletePolicy({ uuid, ...asked() }))
    expect(linesOf(scene).slice(asks)).toEqual([
      `GET ${underscore}/${uuid}`,
      `DELETE ${underscore}/${uuid}`,
    ])
  })

  test.each([
    [401, 'auth'],
    [302, 'contract'],
    [408, 'timeout'],
    [429, 'rate_limited'],
    [503, 'unavailable'],
  ])(
    'an answer of %i says nothing about it, and is remembered by nobody',
    async (status, reason) => {
      const { service, client, sent } = await aScriptedScene(tests)
      const before = await rememberedKeys()
      service.answer(() => json(status, {}, { 'retry-after': '0' }))
      expect(await failureOf(create(client))).toMatchObject({ reason, status })
      expect(sent().filter((line) => line.startsWith('POST'))).toEqual([])
      expect(await rememberedKeys()).toEqual(before)
    },
  )

  test('nothing is remembered where neither is there', async () => {
    const { service, client, sent } = await aScriptedScene(tests)
    service.answer(() => json(404, {}))
    expect(await failureOf(policiesOf(client))).toMatchObject({ status: 404 })
    const once = sent().length
    await failureOf(policiesOf(client))
    expect(sent()).toHaveLength(2 * once)
  })
})

describe('where the configuration says the spelling', () => {
  test.each([
    ['underscore', underscore],
    ['hyphen', hyphen],
  ] as const)('%s is used without a look', async (policyPaths, path) => {
    const scene = await aScene(tests, { sandbox: { policyPaths }, account: { policyPaths } })
    await create(scene.client)
    await policiesOf(scene.client)
    expect(linesOf(scene)).toEqual([`POST ${path}`, `GET ${path}/by_identifier_id/77`])
  })

  test('the other one is not tried where the service does not have it', async () => {
    const scene = await aScene(tests, { account: { policyPaths: 'hyphen' } })
    expect(await failureOf(create(scene.client))).toMatchObject({ reason: 'rejected', status: 404 })
    expect(linesOf(scene)).toEqual([`POST ${hyphen}`])
  })
})
