import { beforeEach, expect, test } from 'vitest'
import { createCircuit, type Circuit } from '../../../src/delivery/circuit.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { redisForTests } from '../../support/ledger.ts'
import { runScriptAt } from '../../support/script-clock.ts'

const tests = redisForTests()

function fresh(): { circuit: Circuit; keys: Keys } {
  const keys = tests.keys()
  return { circuit: createCircuit(tests.redis, keys), keys }
}

/** How long until it may send, ms; 0: it may. */
async function waitToSend(circuit: Circuit, sink: string): Promise<number> {
  return (await circuit.admit(sink, 1)).waitMs
}

let beganMs = 0
beforeEach(() => void (beganMs = Date.now()))

/** As `waitToSend`, from the beginning of the test on: however slow the machine is, no less than was set. */
async function waitInAll(circuit: Circuit, sink: string): Promise<number> {
  const waitMs = await waitToSend(circuit, sink)
  return waitMs + Date.now() - beganMs
}

/** Lets the time of an open circuit pass without waiting for it. */
async function pass(keys: Keys): Promise<void> {
  await tests.redis.hset(keys.shared('circuit', 'soc'), 'until', 1)
}

test('stays closed below five faults in a row, whatever happens between them', async () => {
  const { circuit } = fresh()
  for (const word of ['fault', 'fault', 'fault', 'fault', 'answered', 'fault', 'none'] as const) {
    await circuit.report('soc', word)
  }
  expect(await circuit.admit('soc', 9)).toMatchObject({ count: 9, waitMs: 0, isProbe: false })
})

test('opens at the fifth fault, and at once where only an operator can help', async () => {
  const { circuit } = fresh()
  for (let i = 0; i < 4; i += 1) expect(await circuit.report('soc', 'fault')).toBeUndefined()
  expect(await circuit.report('soc', 'fault')).toBe('opened')
  expect(await waitInAll(circuit, 'soc')).toBeGreaterThan(29_000)
  expect(await circuit.report('siem', 'broken')).toBe('opened')
})

test('lets one probe through when its time is over; its success closes it for all', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  await pass(keys)
  expect(await waitToSend(circuit, 'soc')).toBe(0)
  expect(await waitToSend(circuit, 'soc')).toBe(1_000)
  expect(await circuit.report('soc', 'ok', { isProbe: true })).toBe('closed')
  expect(await waitToSend(circuit, 'soc')).toBe(0)
  expect(await waitToSend(circuit, 'soc')).toBe(0)
})

test('a probe that fails keeps it open twice as long, up to a quarter of an hour', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  const waits: number[] = []
  for (let i = 0; i < 7; i += 1) {
    await pass(keys)
    await waitToSend(circuit, 'soc')
    const failed = { reason: 'unavailable', answer: 'away', nextTryInMs: 1 } as const
    await circuit.report('soc', 'fault', { ...failed, isProbe: true })
    const { untilMs = 0, trouble } = await circuit.read('soc', 0)
    waits.push((untilMs - trouble!.lastMs) / 1_000)
  }
  expect(waits).toEqual([60, 120, 240, 480, 900, 900, 900])
})

test('a probe that had nothing to send leaves its place to the next', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  await pass(keys)
  expect(await waitToSend(circuit, 'soc')).toBe(0)
  await circuit.releaseProbe('soc')
  expect(await waitToSend(circuit, 'soc')).toBe(0)
})

test('a fault of before it opened neither opens it anew nor takes the place of the probe', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  await pass(keys)
  expect(await circuit.report('soc', 'fault')).toBe('open')
  expect(await circuit.admit('soc', 8)).toMatchObject({ count: 1, isProbe: true })
  for (const word of ['fault', 'broken'] as const) {
    expect(await circuit.report('soc', word)).toBe('open')
  }
  expect(await circuit.read('soc', Date.now())).toMatchObject({ state: 'half_open', untilMs: 1 })
  expect(await waitToSend(circuit, 'soc')).toBe(1_000)
  expect(await circuit.report('soc', 'fault', { isProbe: true })).toBe('opened')
})

test('an answer to a send of before it opened does not close it: the next send is one probe, and not all at once', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  expect(await circuit.report('soc', 'ok')).toBe('open')
  expect(await circuit.report('soc', 'answered')).toBe('open')
  expect(await waitInAll(circuit, 'soc')).toBeGreaterThan(29_000)
  expect((await circuit.read('soc', 0)).lastSuccessMs).toBeGreaterThan(0)
  await pass(keys)
  expect(await circuit.admit('soc', 8)).toMatchObject({ count: 1, isProbe: true })
  expect(await circuit.report('soc', 'ok')).toBe('open')
  await circuit.report('soc', 'fault', { isProbe: true })
  expect(await waitInAll(circuit, 'soc')).toBeGreaterThan(59_000) // it doubles
})

test('a pause that the sink asked for holds everybody, whatever else it answers meanwhile', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'none', { pauseMs: 40_000 })
  await circuit.report('soc', 'fault', { pauseMs: 1_000 })
  await circuit.report('soc', 'ok')
  for (const pauseMs of [1_000, 50_000]) await circuit.report('lake', 'none', { pauseMs })
  expect(await waitInAll(circuit, 'lake')).toBeGreaterThan(40_000)
  await circuit.report('siem', 'fault') // asked for none
  expect(await tests.redis.hexists(keys.shared('circuit', 'siem'), 'retry_after')).toBe(0)
  expect(await waitInAll(circuit, 'soc')).toBeGreaterThan(39_000)
  expect(await circuit.read('soc', Date.now())).toMatchObject({ state: 'closed' })
})

test('a sink that an operator paused is asked again every five seconds, and goes on once it is resumed', async () => {
  const { circuit } = fresh()
  await circuit.pause('soc', { reason: 'x', sinceMs: 1 })
  expect(await circuit.admit('soc', 9)).toMatchObject({ count: 0, waitMs: 5_000, isProbe: false })
  await circuit.pause('soc', undefined)
  expect(await circuit.admit('soc', 9)).toMatchObject({ count: 9, waitMs: 0, isProbe: false })
  expect((await circuit.read('soc', 0)).paused).toBeUndefined()
})

test('an operator who resumes a sink that is down has it tried at once, by one probe', async () => {
  const { circuit } = fresh()
  await circuit.report('soc', 'broken')
  const { openedAtMs } = await circuit.read('soc', Date.now())
  expect(await waitInAll(circuit, 'soc')).toBeGreaterThan(29_000)
  await circuit.pause('soc', undefined)
  expect(await circuit.admit('soc', 9)).toMatchObject({ count: 1, waitMs: 0, isProbe: true })
  expect(await waitToSend(circuit, 'soc')).toBe(1_000)
  await circuit.report('soc', 'fault', { isProbe: true })
  expect(await waitInAll(circuit, 'soc')).toBeGreaterThan(59_000)
  expect((await circuit.read('soc', Date.now())).openedAtMs).toBe(openedAtMs)
})

test('a pause that the sink asked for outlasts a resume', async () => {
  const { circuit } = fresh()
  await circuit.report('soc', 'fault', { pauseMs: 60_000 })
  await circuit.pause('soc', undefined)
  expect(await waitInAll(circuit, 'soc')).toBeGreaterThan(59_000)
})

test('knows since when nothing gets through, over all its openings, until it closes', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  const { openedAtMs } = await circuit.read('soc', 0)
  await tests.redis.hset(keys.shared('circuit', 'soc'), 'opened_at', openedAtMs! - 1_000)
  await pass(keys)
  await waitToSend(circuit, 'soc')
  expect(await circuit.report('soc', 'fault', { isProbe: true })).toBe('opened')
  expect(openedAtMs).toBeGreaterThanOrEqual(beganMs)
  expect((await circuit.read('soc', 0)).openedAtMs).toBe(openedAtMs! - 1_000)
  await circuit.report('soc', 'ok', { isProbe: true })
  expect((await circuit.read('soc', 0)).openedAtMs).toBeUndefined()
})

test('a sink that is gone is disabled: nothing tries it, whatever was in the air, until it is resumed', async () => {
  const { circuit } = fresh()
  await circuit.report('soc', 'fault')
  expect(await circuit.report('soc', 'gone', { answer: 'slack answered 404 no_service' })).toBe(
    'disabled',
  )
  expect(await circuit.report('soc', 'gone', { answer: 'again' })).toBeUndefined()
  await circuit.report('soc', 'ok')
  await circuit.report('soc', 'fault')
  expect(await waitToSend(circuit, 'soc')).toBe(5_000)
  expect(await circuit.read('soc', Date.now() + 3_600_000)).toMatchObject({
    state: 'disabled',
    disabled: { reason: 'slack answered 404 no_service', sinceMs: expect.any(Number) },
  })
  await circuit.pause('soc', undefined)
  expect(await waitToSend(circuit, 'soc')).toBe(0)
  expect(await circuit.read('soc', 0)).toMatchObject({ state: 'closed', disabled: undefined })
})

test('another address is not the one that is gone; a replica with the old one still leaves it alone', async () => {
  const { keys } = fresh()
  const [old, changed] = ['a1', 'b2'].map((print) => createCircuit(tests.redis, keys, () => print))
  await old!.report('soc', 'gone', { answer: 'x' })
  expect(await waitToSend(changed!, 'soc')).toBe(0)
  expect(await changed!.read('soc', 0)).toMatchObject({ state: 'closed', disabled: undefined })
  expect(await waitToSend(old!, 'soc')).toBe(5_000)
  await changed!.report('soc', 'gone', { answer: 'this one, too' })
  expect(await waitToSend(changed!, 'soc')).toBe(5_000)
  expect((await changed!.read('soc', 0)).disabled?.reason).toBe('this one, too')
  await old!.pause('soc', undefined)
  await old!.report('soc', 'gone', { answer: 'x' })
  await changed!.report('soc', 'ok')
  expect(await waitToSend(old!, 'soc')).toBe(0)
})

test('in the very millisecond in which its time is over, one probe goes and not everything', async () => {
  const { circuit, keys } = fresh()
  const names = [keys.shared('circuit', 'soc'), keys.shared('circuit', 'soc', 'probe')]
  await circuit.report('soc', 'broken')
  await tests.redis.hset(names[0]!, 'until', 1_000_000)
  const at = { redis: tests.redis, nowMs: 1_000_000 }
  expect(await runScriptAt(at, 'circuit-admit', names, [60_000, '', 'r1'])).toEqual([-1, 0, 0, 0])
  const failed = await runScriptAt(at, 'circuit-report', names, [
    'fault',
    '',
    '',
    30_000,
    'r1',
    0,
    '',
    '',
  ])
  expect(failed).toBe('opened 1060000')
})

test('keeps the last failure, since when and how often in a row, until something is accepted', async () => {
  const { circuit, keys } = fresh()
  const troubleOf = async (nowMs = 0) => (await circuit.read('soc', nowMs)).trouble
  expect(await troubleOf()).toBeUndefined()
  const failed = { reason: 'unavailable', answer: 'x'.repeat(10_000), nextTryInMs: 5_000 } as const
  await circuit.report('soc', 'fault', failed)
  const first = await troubleOf()
  const [sinceMs, answer] = [first!.sinceMs, 'x'.repeat(200)]
  const same = { reason: 'unavailable', answer, sinceMs, count: 1, nextTryMs: sinceMs + 5_000 }
  expect(first).toEqual({ ...same, lastMs: sinceMs })
  await circuit.report('soc', 'none', { reason: 'rate_limited', answer: 'slower' })
  const slowed = { reason: 'rate_limited', answer: 'slower', sinceMs, count: 2 }
  expect(await troubleOf()).toMatchObject({ ...slowed, nextTryMs: undefined })
  await circuit.report('soc', 'broken', { reason: 'unauthorized', answer: 'who?', nextTryInMs: 1 })
  const { untilMs } = await circuit.read('soc', Date.now())
  expect(await troubleOf(Date.now())).toMatchObject({ count: 3, sinceMs, nextTryMs: untilMs })
  await circuit.report('soc', 'ok') // sent before it opened
  expect(await troubleOf()).toMatchObject({ reason: 'unauthorized' })
  await pass(keys)
  await circuit.admit('soc', 1)
  await circuit.report('soc', 'ok', { isProbe: true })
  expect(await troubleOf()).toBeUndefined()
})

test("a refused message is no trouble of its sink, and leaves the sink's own as it is", async () => {
  const { circuit } = fresh()
  const troubleOf = async () => (await circuit.read('soc', Date.now())).trouble
  for (const reason of ['invalid', 'recipient_refused'] as const) {
    await circuit.report('soc', 'answered', { reason, answer: 'not this one' })
  }
  expect(await troubleOf()).toBeUndefined()
  await circuit.report('soc', 'fault', { reason: 'timeout', answer: 'nothing' })
  await circuit.report('soc', 'answered', { reason: 'invalid', answer: 'not this one' })
  expect(await troubleOf()).toMatchObject({ reason: 'timeout', answer: 'nothing', count: 1 })
})

test('a sink that is gone has no next try, and says what it answered', async () => {
  const { circuit } = fresh()
  await circuit.report('soc', 'gone', { reason: 'gone', answer: 'no_service', nextTryInMs: 30_000 })
  const { trouble } = await circuit.read('soc', Date.now())
  expect(trouble).toMatchObject({ reason: 'gone', answer: 'no_service', nextTryMs: undefined })
})

test('a probe whose replica dies blocks the next one for half a minute, one that is renewed for longer', async () => {
  const { circuit, keys } = fresh()
  const probe = keys.shared('circuit', 'soc', 'probe')
  await circuit.report('soc', 'broken')
  await pass(keys)
  await waitToSend(circuit, 'soc')
  expect(await tests.redis.pttl(probe)).toBeLessThanOrEqual(30_000)
  await tests.redis.pexpire(probe, 10_000)
  const soonMs = await tests.redis.pexpiretime(probe)
  await circuit.renewProbe('soc')
  expect(await tests.redis.pexpiretime(probe)).toBeGreaterThanOrEqual(soonMs + 20_000)
  expect(await tests.redis.pttl(probe)).toBeLessThanOrEqual(30_000)
  await circuit.releaseProbe('soc')
  await tests.redis.set(probe, 'other', 'PX', 10_000)
  await circuit.renewProbe('soc') // another replica's
  expect(await tests.redis.get(probe)).toBe('other')
  expect(await tests.redis.pttl(probe)).toBeLessThanOrEqual(10_000)
})

test('reads as open until its time is over, to the millisecond', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  await tests.redis.hset(keys.shared('circuit', 'soc'), 'until', 5000)
  expect(await circuit.read('soc', 4999)).toMatchObject({ state: 'open', untilMs: 5000 })
  expect(await circuit.read('soc', 5000)).toMatchObject({ state: 'half_open' })
  expect(await circuit.read('siem', 5000)).toMatchObject({ state: 'closed' })
})

test('a circuit that opened, or a pause that began, before the clock was set back by an hour counts as over', async () => {
  const { circuit, keys } = fresh()
  const name = keys.shared('circuit', 'soc')
  const hourMs = 3_600_000
  await circuit.report('soc', 'broken', { pauseMs: 60_000 })
  const stored = await tests.redis.hmget(name, 'until', 'retry_after', 'opened_at')
  const [until, retryAfter, openedAt] = stored.map((text) => Number(text) + hourMs)
  await tests.redis.hset(name, { until, retry_after: retryAfter, opened_at: openedAt })
  expect((await circuit.read('soc', Date.now())).state).toBe('half_open')
  expect(await circuit.admit('soc', 5)).toMatchObject({ count: 1, waitMs: 0, isProbe: true })
  expect(await circuit.report('soc', 'fault', { isProbe: true, pauseMs: 90_000 })).toBe('opened')
  const { state, openedAtMs } = await circuit.read('soc', Date.now())
  expect(state).toBe('open')
  expect(openedAtMs).toBeLessThanOrEqual(Date.now())
  const waitMs = await waitToSend(circuit, 'soc')
  expect(waitMs + Date.now() - beganMs).toBeGreaterThan(85_000) // the pause that was asked for just now
  expect(waitMs).toBeLessThanOrEqual(90_000)
})

/** Opens it by five failures of one message, which may be to blame. */
async function openByOne(circuit: Circuit): Promise<void> {
  for (const blame of ['first', 'again', 'again', 'again', 'again'] as const)
    await circuit.report('soc', 'fault', { blame })
}

/** The times of its wait, as if it had opened so much earlier. */
async function ageBy(keys: Keys, ms: number): Promise<void> {
  const name = keys.shared('circuit', 'soc')
  const [until, untried] = await tests.redis.hmget(name, 'until', 'untried_at')
  await tests.redis.hset(name, { until: Number(until) - ms, untried_at: Number(untried) - ms })
}

test('while the same message fails again, what was never tried may go after the first opening time', async () => {
  const { circuit, keys } = fresh()
  await openByOne(circuit)
  expect(await waitToSend(circuit, 'soc')).toBeGreaterThan(29_000)
  await ageBy(keys, 30_000)
  expect(await circuit.admit('soc', 9)).toMatchObject({
    count: 1,
    isProbe: true,
    isForUntried: false,
  })
  await circuit.report('soc', 'fault', { isProbe: true, blame: 'again' })
  const { waitMs, ...admitted } = await circuit.admit('soc', 9)
  expect(admitted).toMatchObject({ count: 1, isProbe: true, isForUntried: true })
  expect(waitMs).toBeGreaterThan(59_000) // for all others
  await circuit.report('soc', 'fault', { isProbe: true, blame: 'first' })
  const next = await circuit.admit('soc', 9)
  expect(next.count).toBe(0)
  expect(next.waitMs).toBeGreaterThan(29_000)
  expect(next.waitMs).toBeLessThanOrEqual(30_000)
})

test('says from when on another message may go only while a single one failed', async () => {
  const { circuit } = fresh()
  await openByOne(circuit)
  const { untriedAtMs, untilMs } = await circuit.read('soc', Date.now())
  expect(untriedAtMs).toBe(untilMs)
  await circuit.report('soc', 'fault', { blame: 'first' })
  expect((await circuit.read('soc', Date.now())).untriedAtMs).toBeUndefined()
})

const both = [{ id: 'mail:a' }, { id: 'mail:b' }]

test('says of each destination whether it waits, may be tested, failed last, or nothing', async () => {
  const { circuit, keys } = fresh()
  expect(await circuit.admit('mail', 3, both)).toMatchObject({ count: 3, waits: {}, failing: [] })
  await circuit.report('mail:a', 'broken', { reason: 'unauthorized' })
  await circuit.report('mail:b', 'fault', { reason: 'recipient_deferred' })
  const { waits, failing } = await circuit.admit('mail', 3, both)
  expect(Object.keys(waits!)).toEqual(['mail:a'])
  expect(waits!['mail:a']).toBeGreaterThan(29_000)
  expect(failing).toEqual(['mail:a', 'mail:b'])
  await tests.redis.hset(keys.shared('circuit', 'mail:a'), 'until', 1)
  expect((await circuit.admit('mail', 3, both)).waits).toEqual({ 'mail:a': 0 })
  await circuit.admit('mail:a', 1) // another one tests it
  await tests.redis.pexpire(keys.shared('circuit', 'mail:a', 'probe'), 3_600_000) // the probe hangs
  expect((await circuit.admit('mail', 3, both)).waits!['mail:a']).toBeGreaterThan(3_000_000)
})

test('a sink of which each destination is in trouble is read as open, and resumed with them', async () => {
  const { circuit } = fresh()
  const read = () => circuit.read('mail', Date.now(), both)
  await circuit.report('mail:a', 'broken', { reason: 'unauthorized', answer: 'no relay' })
  expect((await read()).state).toBe('closed')
  await circuit.report('mail:b', 'broken', { reason: 'unauthorized', answer: 'no relay' })
  const { openedAtMs } = await circuit.read('mail:b', Date.now())
  expect(await read()).toMatchObject({ state: 'open', openedAtMs, trouble: { answer: 'no relay' } })
  await circuit.pause('mail', undefined, both)
  expect((await read()).state).toBe('half_open')
  expect((await circuit.admit('mail', 3, both)).waits).toEqual({ 'mail:a': 0, 'mail:b': 0 })
})
