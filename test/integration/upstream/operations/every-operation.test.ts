/** Every row of the table of operations: against the sandbox, and against a service that fails. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { startSandbox, type Sandbox } from '../../../../src/sandbox/sandbox.ts'
import type { FaultInput } from '../../../../src/sandbox/server.ts'
import type { UpstreamReason } from '../../../../src/upstream/error.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { Fields, Operation } from '../../../../src/upstream/resources/operation.ts'
import { operations } from '../../../../src/upstream/resources/operations.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { requestsOf, type KnownThings } from '../../../support/operation-requests.ts'
import { aReplica, asked, failureOf } from './scene.ts'

const tests = redisForTests()

const callable = operations.filter(({ onlyBy }) => onlyBy === undefined)

interface World {
  sandbox: Sandbox
  client: UpstreamClient
  requests: Record<string, readonly Fields[]>
}

/** A sandbox with one of each thing that operations name. */
async function aWorld(transportLimits?: { totalMs: number }): Promise<World> {
  const sandbox = await startSandbox({ enforceLimits: false })
  onTestFinished(() => sandbox.close())
  const uid = 'stealer_log/stealer_logs_live/1'
  const identifiers = [{ id: 77, name: 'example.com' }]
  sandbox.addEvent({ uid, type: 'stealer_log', groupIds: [1042], identifiers })
  sandbox.addCredentials([{ hash: 'pa55', identityName: 'a@example.com', identifierIds: [77] }])
  const { reportId, id } = sandbox.addReportRequest({ readyAtMs: 0 })
  const account = { baseUrl: sandbox.url, apiKey: secretFromText(sandbox.apiKeys[0]!) }
  const { client } = aReplica(tests, account, transportLimits && { transportLimits })
  const known: KnownThings = {
    uid,
    asset: 77,
    doomed: 78,
    report: reportId,
    reportRequest: id,
    policy: '7e5f1c70-0000-4000-8000-000000000001',
    credentialHash: 'x',
  }
  return { sandbox, client, requests: requestsOf(known) }
}

function call(client: UpstreamClient, row: Operation, request: Fields): Promise<unknown> {
  return client.call(row as Operation<Fields>, request, asked())
}

test('every operation that can be called is answered by the sandbox, each in the shape of its row', async () => {
  const { client, requests } = await aWorld()
  const by = (name: string): Operation => operations.find((row) => row.name === name)!
  const made = (await call(client, by('policies.create'), requests['policies.create']![0]!)) as {
    uuid: string
  }
  const feed = (await call(client, by('credentials.tenant-feed'), {})) as {
    page: { items: { credential_hash: string }[] }
  }
  const hash = feed.page.items[0]!.credential_hash
  const known = JSON.parse(
    JSON.stringify(requests)
      .replaceAll('7e5f1c70-0000-4000-8000-000000000001', made.uuid)
      .replaceAll('"credential_hash":"x"', `"credential_hash":"${hash}"`),
  ) as typeof requests
  expect(Object.keys(known).toSorted()).toEqual(callable.map(({ name }) => name).toSorted())
  for (const [name, given] of Object.entries(known)) {
    const row = by(name)
    const answer = await call(client, row, given[0]!).catch((error: unknown) => error)
    expect([name, answer instanceof Error ? answer.message : 'answered']).toEqual([
      name,
      'answered',
    ])
    const items = row.paging ? (answer as { page: { items: unknown[] } }).page.items : []
    for (const item of items)
      expect([name, row.item?.safeParse(item).error]).toEqual([name, undefined])
  }
})

/** What a service may do to a request, what the client says of it, and whether a write may be done. */
const troubles: [string, Omit<FaultInput, 'on'>, UpstreamReason, boolean][] = [
  ['403', { effect: 'status', status: 403 }, 'auth', false],
  ['404', { effect: 'status', status: 404 }, 'rejected', false],
  ['429', { effect: 'status', status: 429 }, 'rate_limited', false],
  ['503', { effect: 'status', status: 503 }, 'unavailable', true],
  ['cut', { effect: 'cut' }, 'unavailable', true],
  ['lost', { effect: 'lose-answer' }, 'unavailable', true],
  ['hangs', { effect: 'hang' }, 'timeout', true],
]

describe.each(troubles)('a service whose answer is %s', (_title, fault, reason, mayBeDone) => {
  test('fails every operation with its reason, and says of writes alone that they may be done', async () => {
    const limits = fault.effect === 'hang' ? { totalMs: 3_000 } : undefined
    const worlds: World[] = []
    for (const _row of callable) {
      const world = await aWorld(limits)
      await world.client.findOrganization(AbortSignal.timeout(20_000))
      for (const on of ['/firework/*', '/astp/*', '/tokens/test']) {
        world.sandbox.faults.add({ on, ...fault })
      }
      worlds.push(world)
    }
    const failures = await Promise.all(
      callable.map((row, at) => {
        const { client, requests } = worlds[at]!
        return failureOf(call(client, row, requests[row.name]![0]!))
      }),
    )
    for (const [at, row] of callable.entries()) {
      const error = failures[at]!
      const isOpen = mayBeDone && row.changes === true
      expect([row.name, error.reason, error.mayBeDone]).toEqual([row.name, reason, isOpen])
    }
  })
})
