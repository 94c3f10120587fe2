/** Who is about to change something is told when it leaves, and not before. */
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../../src/lib/clock.ts'
import { startSandbox } from '../../../../src/sandbox/sandbox.ts'
import {
  createApiSlots,
  createPacer,
  createTierLimiter,
} from '../../../../src/upstream/rate-limits.ts'
import { notBegun, type Transport } from '../../../../src/upstream/transport.ts'
import { anAccount } from '../../../support/replica.ts'
import type { PolicyCreation } from '../../../../src/upstream/resources/policies.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { aReplica, aScene, asked, failureOf } from './scene.ts'

const tests = redisForTests()

const policy: PolicyCreation = {
  name: 'x',
  type: 'INCLUDED_KEYWORDS',
  value: { keywords: ['acme'] },
}

test('a write that leaves says so once, after the questions that find out its path', async () => {
  const { client, sent } = await aScene(tests)
  const seen: string[][] = []
  const onSend = (): void => void seen.push(sent().map(({ method }) => method))
  await client.createPolicy({ policy, ...asked(), onSend })
  expect(seen).toEqual([['GET']])
  expect(sent().map(({ method }) => method)).toEqual(['GET', 'POST'])
})

test('a write whose turn does not come does not say so', async () => {
  const account = {
    limits: { search: 50, basic: 0.2 },
    organizationId: 7,
    policyPaths: 'underscore',
  } as const
  const { client, sent } = await aScene(tests, { account })
  let isSent = false
  const onSend = (): void => void (isSent = true)
  const waiting = client.createPolicy({ policy, ...asked(), onSend, maxWaitMs: 100 })
  expect(await failureOf(waiting)).toMatchObject({ reason: 'timeout', mayBeDone: false })
  expect({ isSent, sent: sent() }).toEqual({ isSent: false, sent: [] })
})

test('what it throws stops the write', async () => {
  const { client, sent } = await aScene(tests, { account: { policyPaths: 'underscore' } })
  const full = new Error('the disk is full')
  const onSend = (): never => {
    throw full
  }
  await expect(client.createPolicy({ policy, ...asked(), onSend })).rejects.toBe(full)
  expect(sent()).toEqual([])
})

test('a write that is repeated with another token says so again, and may be in doubt only then', async () => {
  const { client, sandbox } = await aScene(tests)
  await client.createPolicy({ policy, ...asked() })
  sandbox.tokens.revokeAll()
  let times = 0
  await client.createPolicy({ policy, ...asked(), onSend: () => void (times += 1) })
  expect(times).toBe(2)
})

test.each(['refuse', 'cut'] as const)(
  'a write that is refused for its token, and gets no other (%s), was not done',
  async (effect) => {
    const { client, sandbox, sent } = await aScene(tests, {
      account: { policyPaths: 'underscore' },
    })
    await client.createPolicy({ policy, ...asked() })
    sandbox.tokens.revokeAll()
    sandbox.faults.add({ on: '/tokens/*', effect })
    const error = await failureOf(client.createPolicy({ policy, ...asked() }))
    expect(error).toMatchObject({ reason: 'unavailable', mayBeDone: false })
    expect(sent().filter(({ method }) => method === 'POST')).toHaveLength(2)
  },
)

test('the question after the health of a service stops waiting for its slot', async () => {
  const sandbox = await startSandbox({ enforceLimits: false })
  onTestFinished(() => sandbox.close())
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) =>
      ms === 10_000 ? Promise.resolve() : systemClock.sleep(ms, signal),
  }
  const replica = aReplica(tests, { baseUrl: sandbox.url }, { clock })
  await replica.slots.pause(replica.organizations.laneFor('main', 'basic'), 60_000)
  const signal = AbortSignal.timeout(20_000)
  const error = await failureOf(replica.client.checkHealth(signal))
  expect({ reason: error.reason, isAborted: signal.aborted }).toEqual({
    reason: 'timeout',
    isAborted: false,
  })
})

test('a write that misses its slot ends with its deadline, and was not done', async () => {
  let nowMs = 0
  const account = { limits: { search: 50, basic: 1 }, organizationId: 7 }
  const { redis, keys, organizations } = aReplica(tests, account)
  const clock = { ...systemClock, monotonic: () => nowMs }
  const limiter = createTierLimiter({ redis, keys, clock, limitFor: () => 50 })
  const slots = createApiSlots({ limiter, clock })
  let begins = 0
  const transport: Transport = {
    request({ mayBegin }) {
      if ((begins += 1) > 5) throw new Error('it goes on for ever')
      nowMs += 60_000
      return Promise.reject(mayBegin?.() === false ? notBegun : new Error('it began'))
    },
    close: () => Promise.resolve(),
  }
  const own = anAccount(account)
  const parts = { account: own, organizations, slots, transport, clock, secrets: () => [] }
  let isSent = false
  const paced = { ...asked(), tier: 'basic', onSend: () => void (isSent = true) } as const
  const sending = createPacer(parts).send(
    { method: 'POST', path: '/' },
    { ...paced, maxWaitMs: 90_000 },
  )
  expect(await failureOf(sending)).toMatchObject({ reason: 'timeout' })
  expect({ begins, isSent }).toEqual({ begins: 2, isSent: false })
})
