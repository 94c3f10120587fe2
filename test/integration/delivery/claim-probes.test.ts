/** Which message a claim takes as a probe, and what it leaves to those who know its recipient. */
import { expect, test } from 'vitest'
import { claimDue, type ClaimRequest, type ClaimResult } from '../../../src/delivery/claims.ts'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import { createRetryNow } from '../../../src/delivery/relief/reroute.ts'
import { SinkDrain } from '../../../src/delivery/sink-drain.ts'
import { defaultTimings, systemClock } from '../../../src/lib/clock.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { drainOptions } from '../../support/delivery.ts'
import { around } from '../../support/grouping.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'

const tests = redisForTests()

function claim(ledger: AccountLedger, asked: Partial<ClaimRequest>): Promise<ClaimResult> {
  const request = { sink: 'soc', max: 8, leastRank: 1, ...asked }
  return claimDue(ledger, { owner: 'r1', leaseMs: 60_000 }, request)
}

/** Events `<name>/of/<n>`, taken in together. */
async function bring(
  ledger: AccountLedger,
  {
    to,
    count,
    name = 'a',
    severity = 'low',
  }: {
    to: string
    count: number
    name?: string
    severity?: string
  },
): Promise<void> {
  const uids = Array.from({ length: count }, (_, n) => `${name}/of/${n}`)
  await takeIn(
    ledger,
    uids.map((uid) => routed({ uid, severity }, [to])),
  )
  await pastThisMillisecond(tests.redis)
}

function uidsOf({ claims }: ClaimResult): string[] {
  return claims.flatMap((one) => (one.kind === 'item' ? one.members.map(({ uid }) => uid) : []))
}

test('the probe of a sink is for a healthy recipient, and for one in trouble where there is no other', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, { to: 'soc:full', count: 5, name: 'sick', severity: 'critical' })
  await bring(ledger, { to: 'soc:well', count: 1, name: 'well' })
  const waits = { 'soc:full': 600_000 }
  expect(uidsOf(await claim(ledger, { probe: 'any', waits }))).toEqual(['well/of/0'])
  const last = await claim(ledger, { probe: 'any', waits })
  expect(uidsOf(last)).toEqual([expect.stringMatching('^sick/')])
  expect(last.claims[0]).not.toMatchObject({ probesDestination: true })
  expect(last).toMatchObject({ left: 4, putOffMs: undefined })
})

test('however many recipients wait for a probe, a claim looks at two hundred messages to find them all', async () => {
  const ledger = await tests.ledger()
  for (const severity of ['critical', 'high', 'medium', 'low', 'info'])
    await bring(ledger, { to: 'soc:well', count: 150, name: severity, severity })
  if (!('monitor' in tests.redis)) throw new Error('not a single Redis')
  const monitor = await tests.redis.monitor()
  let count = 0
  const end = Promise.withResolvers<void>()
  monitor.on('monitor', (_time: string, [command, name = '']: string[]) => {
    if (command?.toLowerCase() === 'get' && name.startsWith(ledger.key('rec'))) count += 1
    if (name === ledger.key('end')) end.resolve()
  })
  for (let calls = 0; calls < 4; calls += 1) await claim(ledger, { max: 1 })
  count = 0
  const ids = Array.from({ length: 10 }, (_, n) => [`soc:idle${n}`, 0])
  await claim(ledger, { max: 1, waits: Object.fromEntries(ids) })
  await ledger.redis.get(ledger.key('end'))
  await end.promise
  monitor.disconnect()
  expect(count).toBeGreaterThan(100)
  expect(count).toBeLessThan(250)
})

test('a probe that finds nothing it may take looks again a second later, not at once', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  await bring(ledger, { to: 'soc:new', count: 50 })
  for (let n = 0; n < 40; n += 1)
    await ledger.redis.zadd(ledger.key('ready', 'soc'), 1, `i:gone${n}:0:soc`)
  const circuit = createCircuit(tests.redis, keys, () => '', {
    ...defaultTimings,
    circuitOpenMs: 1,
  })
  await circuit.report('soc', 'broken', { reason: 'unavailable' })
  await pastThisMillisecond(tests.redis)
  await pastThisMillisecond(tests.redis)
  const probes: unknown[] = []
  around(ledger, async (script, run) => {
    if (script === 'claim-due') probes.push(script)
    return run()
  })
  const nowMs = Date.now()
  const sink = aRehearsedSink('soc', { destinations: [{ id: 'soc:old', label: 'old' }] })
  const standing = {
    isActive: false,
    isNewest: false,
    checkNewest: async () => false,
    isForeign: () => false,
  }
  const clock = { ...systemClock, now: () => nowMs, monotonic: () => 0 }
  const options = drainOptions({ redis: tests.redis, keys, ledgers: [ledger], clock })
  const drain = new SinkDrain(sink, { ...options, circuit, standing })
  drain.nudge('main')
  for (let steps = 0; steps < 40; steps += 1) {
    await drain.tick()
    await pastThisMillisecond(tests.redis)
  }
  expect(probes).toHaveLength(1)
})

/** A half-open circuit of soc:a, what it is tried with, and how often the ledger was asked. */
async function aHalfOpenRecipient() {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  const circuit = createCircuit(tests.redis, keys)
  let aheadMs = 0
  const clock = { ...systemClock, now: () => Date.now() + aheadMs }
  const halfOpen = async (): Promise<void> => {
    const until = Date.now() - 1_000 - aheadMs
    await tests.redis.hset(keys.shared('circuit', 'soc:a'), { until, opened_at: until - 30_000 })
  }
  await halfOpen()
  const drains = { announce: () => undefined, ledgersFor: () => [ledger] }
  const wake = createRetryNow({ circuit, drains, clock })
  let asked = 0
  around(ledger, (script, run) => {
    asked += Number(script === 'wake-retries')
    return run()
  })
  return {
    ledger,
    circuit,
    halfOpen,
    pass: (ms: number) => void (aheadMs += ms),
    asked: () => asked,
    ensure: () => wake.ensureProbe('soc', [{ id: 'soc:a' }], 'soc:a'),
    retryAll: () => wake.retryAll('soc'),
    atOf: async (uid: string) =>
      Number(await tests.redis.zscore(ledger.key('due', 'soc'), refOf(ledger, uid))),
  }
}

/** Put off untried, in the order of the events. */
async function putOff(ledger: AccountLedger, name: string, count: number, atMs: number) {
  const refs = Array.from({ length: count }, (_, n) => refOf(ledger, `${name}/of/${n}`))
  await tests.redis.zadd(ledger.key('due', 'soc'), ...refs.flatMap((ref, n) => [atMs + n, ref]))
  await tests.redis.zrem(ledger.key('ready', 'soc'), ...refs)
}

test('a half-open recipient is tried, however much is put off for others before it', async () => {
  const { ledger, ensure, atOf } = await aHalfOpenRecipient()
  const laterMs = Date.now() + 600_000
  for (let n = 0; n < 11; n += 1) {
    await bring(ledger, { to: 'soc:b', count: 460, name: `b${n}` })
    await putOff(ledger, `b${n}`, 460, laterMs)
  }
  await bring(ledger, { to: 'soc:a', count: 2 })
  await putOff(ledger, 'a', 2, laterMs + 600_000)
  expect(await ensure()).toBe(true)
  expect(await atOf('a/of/0')).toBeLessThanOrEqual(Date.now())
  expect(await atOf('a/of/1')).toBeGreaterThan(laterMs)
})

test('while the probe of a recipient hangs no other try is brought forward', async () => {
  const { ledger, ensure, atOf } = await aHalfOpenRecipient()
  await bring(ledger, { to: 'soc:a', count: 3 })
  const laterMs = Date.now() + 600_000
  await putOff(ledger, 'a', 3, laterMs)
  for (let passes = 0; passes < 3; passes += 1) {
    expect(await ensure()).toBe(true)
    // as long as its lease is renewed
    await claimDue(ledger, { owner: 'r1', leaseMs: 10_000 }, { sink: 'soc', max: 8, leastRank: 1 })
  }
  expect(await atOf('a/of/0')).toBeLessThan(laterMs)
  expect(await atOf('a/of/1')).toBe(laterMs + 1)
  expect(await atOf('a/of/2')).toBe(laterMs + 2)
})

test('what waits for a recipient is looked for once for each opening where nothing does', async () => {
  const { ledger, ensure, asked, pass, halfOpen } = await aHalfOpenRecipient()
  await bring(ledger, { to: 'soc:b', count: 3 })
  for (let passes = 0; passes < 3; passes += 1) {
    expect(await ensure()).toBe(false)
    pass(5_000)
  }
  expect(asked()).toBe(1)
  await halfOpen()
  await ensure()
  expect(asked()).toBe(2)
  pass(900_000)
  await ensure()
  expect(asked()).toBe(3)
})

function refOf(ledger: AccountLedger, uid: string): string {
  return `i:${ledger.fingerprints.recordId(uid)}:0:soc`
}
