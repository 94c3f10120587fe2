/** What the circuits are told of a send, and what is woken once one closes. */
import { expect, test } from 'vitest'
import { Admission } from '../../../src/delivery/admission.ts'
import { type Circuit, createCircuit } from '../../../src/delivery/circuit.ts'
import { defaultTimings, systemClock } from '../../../src/lib/clock.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { SinkError } from '../../../src/sinks/sink.ts'
import { pastThisMillisecond, redisForTests, silent } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'

const tests = redisForTests()
const destinations = ['mail:a', 'mail:b'].map((id) => ({ id, label: id }))

interface Rig {
  keys: Keys
  circuit: Circuit
  admission: Admission
  /** Of a replica whose configuration has only the first recipient. */
  older: Admission
}

function aRig(circuitOpenMs = 1): Rig {
  const keys = tests.keys()
  const circuit = createCircuit(tests.redis, keys, () => '', { ...defaultTimings, circuitOpenMs })
  const admissionTo = (own: typeof destinations): Admission => {
    const sink = aRehearsedSink('mail', { type: 'email', destinations: own })
    return new Admission(sink, { circuit, logger: silent, clock: systemClock })
  }
  const [admission, older] = [admissionTo(destinations), admissionTo(destinations.slice(0, 1))]
  return { keys, circuit, admission, older }
}

const deferred = new SinkError('recipient_deferred', 'full', { scope: 'destination' })

function aFailure(error: SinkError, failedAtMs?: number) {
  return {
    isProbe: true,
    sinkResult: error as SinkError | 'ok',
    outcome: { outcome: 'retry' as const, inMs: 5_000, counts: true, reason: error.reason },
    message: { destination: 'mail:a', failedAtMs },
  }
}

test('a sink that answers its probe with the fault of a recipient is back', async () => {
  const { circuit, admission } = aRig()
  await circuit.report('mail', 'broken', { reason: 'unavailable' })
  await pastThisMillisecond(tests.redis)
  await pastThisMillisecond(tests.redis)
  expect(await admission.ask(5)).toMatchObject({ isProbe: true })
  const error = new SinkError('recipient_deferred', 'full', { scope: 'destination' })
  expect(await admission.report(aFailure(error))).toBe('back')
})

test('a single recipient that is deferred keeps nobody waiting whom only a newer configuration has', async () => {
  const { circuit, admission, older } = aRig(60_000)
  for (let n = 0; n < 5; n += 1) await older.report({ ...aFailure(deferred), isProbe: false })
  expect(await admission.ask(5)).toMatchObject({ count: 5 })
  expect(Object.keys(admission.waits)).toEqual(['mail:a'])
  expect(await circuit.read('mail', Date.now(), destinations)).toMatchObject({ state: 'closed' })
})

test('a sink whose only recipient is in trouble says so, from the first failure until it takes a message', async () => {
  const { circuit, older } = aRig(60_000)
  const read = () => circuit.read('mail', Date.now(), destinations.slice(0, 1))
  const trouble = { reason: 'recipient_deferred', answer: 'full' }
  for (let n = 0; n < 4; n += 1) await older.report({ ...aFailure(deferred), isProbe: false })
  expect(await read()).toMatchObject({ state: 'closed', trouble })
  expect((await read()).openedAtMs).toBeUndefined()
  await older.report({ ...aFailure(deferred), isProbe: false })
  expect(await read()).toMatchObject({ state: 'open', openedAtMs: expect.any(Number), trouble })
  await circuit.pause('mail', undefined, destinations.slice(0, 1))
  await pastThisMillisecond(tests.redis)
  await older.ask(1)
  const message = { destination: 'mail:a', failedAtMs: undefined, probesDestination: true }
  expect(await older.takeProbes([{ message }])).toEqual([])
  await older.report({ ...aFailure(deferred), sinkResult: 'ok', message, isProbe: false })
  expect(await read()).toMatchObject({ state: 'closed', openedAtMs: undefined })
  expect(await read()).not.toHaveProperty('trouble')
})

test('one message that is refused again and again may be to blame, two are not', async () => {
  const error = new SinkError('unavailable', 'HTTP 500', { status: 500 })
  const blamed = async (failedAtMs: (number | undefined)[]): Promise<boolean> => {
    const { circuit, admission } = aRig()
    for (const at of failedAtMs) await admission.report({ ...aFailure(error, at), isProbe: false })
    return (await circuit.read('mail', Date.now())).untriedAtMs !== undefined
  }
  expect(await blamed([undefined, 1, 1, 1, 1])).toBe(true)
  expect(await blamed([undefined, undefined, 1, 1, 1])).toBe(false)
})

test('what a sink accepted before it opened does not clear a message that fails as its probe', async () => {
  const { circuit, admission } = aRig(200)
  const failedAtMs = Date.now() - 60_000
  await circuit.report('mail', 'ok')
  await pastThisMillisecond(tests.redis)
  await circuit.report('mail', 'broken', { reason: 'unavailable' })
  expect(await admission.ask(1)).toMatchObject({ count: 0 })
  expect(admission.hasAcceptedSince({ failedAtMs })).toBe(false)
  await circuit.pause('mail', undefined)
  await pastThisMillisecond(tests.redis)
  expect(await admission.ask(1)).toMatchObject({ isProbe: true })
  expect(admission.hasAcceptedSince({ failedAtMs })).toBe(false)
})

test('the circuit of a recipient is forgotten a week after its last report, and that of a sink is kept', async () => {
  const { keys, circuit, admission } = aRig()
  await circuit.report('mail', 'broken', { reason: 'unavailable' })
  const error = new SinkError('recipient_deferred', 'full', { scope: 'destination' })
  await admission.report(aFailure(error))
  expect(await tests.redis.pttl(keys.shared('circuit', 'mail:a'))).toBeGreaterThan(6 * 86_400_000)
  expect(await tests.redis.pttl(keys.shared('circuit', 'mail'))).toBe(-1)
})
