/** One sink's drain, turn by turn: what it asks Redis for, what it sends when, and whom it tells. */
import { expect, test } from 'vitest'
import type { AdmitResult, Circuit } from '../../../src/delivery/circuit.ts'
import { claimDue } from '../../../src/delivery/claims.ts'
import { SinkDrain, type DrainOptions } from '../../../src/delivery/sink-drain.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord, type Item } from '../../../src/store/records.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type Sink, SinkError } from '../../../src/sinks/sink.ts'
import { beginAttempt, makeDue } from '../../support/attempts.ts'
import { drainOptions } from '../../support/delivery.ts'
import { around } from '../../support/grouping.ts'
import { redisForTests, redisMs, routed, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { until } from '../../support/rehearsal.ts'

const tests = redisForTests()

interface Asked {
  account: string
  script: string
  max?: number
  least?: number
  settle?: { ref: string }[]
  begin?: { ref: string }[]
  renew?: string[]
  back?: { ref: string; rank: number }[]
}

interface Rig {
  drain: SinkDrain
  ledgers: AccountLedger[]
  /** What was asked of the ledger, in order. */
  asked: Asked[]
  reports: string[]
  clock: { aheadMs: number }
  options: DrainOptions
}

interface Given {
  accounts?: string[]
  admit?: (sink: string, count: number) => Promise<AdmitResult>
  pace?: DrainOptions['pace']
}

async function aRig(sink: Sink, given: Given = {}): Promise<Rig> {
  const keys = tests.keys()
  const names = given.accounts ?? ['main']
  const ledgers = await Promise.all(names.map((account) => tests.ledger({ keys, account })))
  const asked: Asked[] = []
  for (const ledger of ledgers) {
    around(ledger, (script, run, ...args) => {
      if (script === 'claim-due' || script === 'advance-claims') {
        asked.push({ account: ledger.account, script, ...(JSON.parse(String(args[0])) as object) })
      }
      return run()
    })
  }
  const ahead = { aheadMs: 0 }
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead.aheadMs }
  const plain = drainOptions({ redis: tests.redis, keys, ledgers: ledgers, clock })
  const reports: string[] = []
  const circuit: Circuit = {
    ...plain.circuit,
    ...(given.admit && { admit: given.admit }),
    report: (name, word, sent) => (reports.push(word), plain.circuit.report(name, word, sent)),
  }
  const options = { ...plain, circuit, ...(given.pace && { pace: given.pace }) }
  const drain = new SinkDrain(sink, options)
  return { drain, ledgers: ledgers, asked, reports, clock: ahead, options }
}

async function bring(ledger: AccountLedger, count: number, severity = 'high'): Promise<void> {
  const events = Array.from({ length: count }, (_, i) =>
    routed({ uid: `${ledger.account}/${severity}/${i}`, severity }, ['soc']),
  )
  await takeIn(ledger, events)
}

async function itemOf(ledger: AccountLedger, uid: string): Promise<Item> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(uid)))!.items[0]!
}

/** Turn after turn, until it is so. */
async function turnsUntil(drain: SinkDrain, name: string, isSo: () => boolean): Promise<void> {
  const endMs = systemClock.monotonic() + 20_000
  while (!isSo()) {
    if (systemClock.monotonic() > endMs) throw new Error(`turned in vain: ${name}`)
    const ready = Promise.withResolvers<void>()
    drain.onReady(ready.resolve)
    const waitMs = await drain.tick()
    if (waitMs !== 0) await Promise.race([ready.promise, systemClock.sleep(20)])
  }
}

function claimsOf({ asked }: Rig): Asked[] {
  return asked.filter(({ script }) => script === 'claim-due')
}

/** A sink that keeps everything in the air until it is let go. */
function aHangingSink(given: Partial<Sink>): Sink & { letGo: () => void; sent: string[] } {
  const going = Promise.withResolvers<void>()
  const sent: string[] = []
  const send: Sink['send'] = async ({ members }) => {
    sent.push(members[0]!.event.uid)
    await going.promise
    return { answer: 'ok' }
  }
  return { ...aRehearsedSink('soc', { send, ...given }), letGo: () => going.resolve(), sent }
}

test.each([
  [{ concurrency: 2 }, 16],
  [{ concurrency: 50 }, 100],
  [{ concurrency: 2, limitPerSecond: 5 }, 10],
  [{ concurrency: 2, limitPerSecond: 1_000 }, 100],
  [{ concurrency: 2, limitPerSecond: 0.1 }, 1],
  [{ concurrency: 2, limitPerSecond: 0.7 }, 1],
])(
  'a claim takes what a sink can send within two seconds, as far as that is known: %o',
  async (given, max) => {
    const rig = await aRig(aHangingSink(given))
    await bring(rig.ledgers[0]!, 1)
    rig.drain.nudge('main')
    await turnsUntil(rig.drain, 'it claimed', () => claimsOf(rig).length > 0)
    expect(claimsOf(rig)[0]).toMatchObject({ max, least: 1 })
  },
)

test('while as much waits as a sink sends at once nothing more is claimed, and all of that room is used', async () => {
  const soc = aHangingSink({ concurrency: 2 })
  const rig = await aRig(soc)
  await bring(rig.ledgers[0]!, 60)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'two are sent', () => soc.sent.length === 2)
  for (let i = 0; i < 5; i += 1) await rig.drain.tick()
  expect(claimsOf(rig)).toHaveLength(1)
  expect(rig.drain.inHand).toBe(16)
  expect(soc.sent).toHaveLength(2)
})

test('accounts are served by turns, those with the worst first', async () => {
  const soc = aHangingSink({ concurrency: 2 })
  const rig = await aRig(soc, { accounts: ['a', 'b', 'c', 'd'] })
  for (const ledger of rig.ledgers) await bring(ledger, 20)
  rig.drain.nudge('d', { rank: 3 })
  for (const account of ['a', 'b', 'c']) rig.drain.nudge(account, { rank: 4 })
  soc.letGo()
  await turnsUntil(rig.drain, 'it claimed', () => claimsOf(rig).length > 4)
  expect(claimsOf(rig).map(({ account }) => account)).toEqual(['a', 'b', 'c', 'a', 'b'])
})

test('behind a shut circuit nothing is claimed, and it is asked again in five seconds', async () => {
  let admitted: AdmitResult = { count: 0, waitMs: 40_000, isProbe: false }
  const soc = aRehearsedSink('soc')
  const rig = await aRig(soc, { admit: () => Promise.resolve(admitted) })
  standStill(rig)
  await bring(rig.ledgers[0]!, 1)
  rig.drain.nudge('main')
  await rig.drain.tick()
  await until('it asked', () => rig.drain.inHand === 0)
  expect(await rig.drain.tick()).toBe(5_000)
  expect(claimsOf(rig)).toEqual([])
  admitted = { count: 9, waitMs: 0, isProbe: false }
  rig.clock.aheadMs += 5_000
  await turnsUntil(rig.drain, 'it is sent', () => soc.received.length === 1)
})

test('a circuit that is slow to hear of a send keeps no other account waiting', async () => {
  const soc = aRehearsedSink('soc')
  const rig = await aRig(soc, { accounts: ['a', 'b'] })
  rig.options.circuit.report = () => new Promise(() => undefined)
  await bring(rig.ledgers[0]!, 2, 'critical')
  await bring(rig.ledgers[1]!, 1, 'low')
  standStill(rig)
  rig.drain.nudge('a', { rank: 5 })
  await turnsUntil(rig.drain, 'all of the first are sent', () => soc.received.length === 2)
  rig.drain.nudge('b', { rank: 2 })
  await turnsUntil(rig.drain, 'that of the other is sent', () => soc.received.length === 3)
  expect(soc.received[2]!.members[0]!.account).toBe('b')
})

test.each([
  [249, 1],
  [250, 2],
])('after %i ms the circuit was asked %i times whether a message may go', async (ms, asked) => {
  const sending = Promise.withResolvers<void>()
  const soc = aRehearsedSink('soc')
  soc.next(() => sending.promise)
  let admits = 0
  const admit = (_sink: string, count: number): Promise<AdmitResult> => {
    admits += 1
    return Promise.resolve({ count, waitMs: 0, isProbe: false })
  }
  const rig = await aRig(soc, { admit })
  await bring(rig.ledgers[0]!, 2)
  standStill(rig)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'one is sent', () => soc.received.length === 1)
  rig.clock.aheadMs += ms
  sending.resolve()
  await turnsUntil(rig.drain, 'the other is sent', () => soc.received.length === 2)
  expect(admits).toBe(asked)
})

test.each([true, false])(
  'a process that stops gives its place as a probe back, where it has one: %s',
  async (isProbe) => {
    const soc = aRehearsedSink('soc')
    const one = { count: 1, waitMs: 0, isProbe }
    const rig = await aRig(soc, { admit: () => Promise.resolve(one) })
    const gaveBack: string[] = []
    rig.options.circuit.releaseProbe = async (sink) => void gaveBack.push(sink)
    await bring(rig.ledgers[0]!, 1)
    rig.drain.nudge('main')
    const ready = Promise.withResolvers<void>()
    rig.drain.onReady(ready.resolve)
    await rig.drain.tick()
    await ready.promise // it is claimed
    await rig.drain.finish()
    expect(gaveBack).toEqual(isProbe ? ['soc'] : [])
    expect(rig.drain.isIdle).toBe(true)
    expect(soc.received).toEqual([])
  },
)

test('what was claimed before a circuit shut goes back, the worst still first, and waits for nobody', async () => {
  let isShut = false
  const soc = aHangingSink({ concurrency: 1 })
  const rig = await aRig(soc, {
    admit: (_sink, count) =>
      Promise.resolve({
        ...(isShut ? { count: 0, waitMs: 9_000 } : { count, waitMs: 0 }),
        isProbe: false,
      }),
  })
  await bring(rig.ledgers[0]!, 3)
  await bring(rig.ledgers[0]!, 1, 'low')
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'one is sent', () => soc.sent.length === 1)
  isShut = true
  await rig.drain.finish()
  const backs = rig.asked.flatMap(({ back = [] }) => back)
  expect(backs.map(({ rank }) => rank)).toEqual([4, 4, 2])
  expect(rig.drain.inHand).toBe(1)
  expect(rig.drain.isIdle).toBe(false)
  rig.drain.abort()
  soc.letGo()
  await turnsUntil(rig.drain, 'it is settled', () => rig.drain.isIdle)
  expect(soc.sent).toHaveLength(1)
})

test('an account whose claim fails is asked again a second later, and its failure is told', async () => {
  const rig = await aRig(aRehearsedSink('soc'))
  standStill(rig)
  let isAway = true
  around(rig.ledgers[0]!, (script, run) =>
    isAway && script === 'claim-due' ? Promise.reject(new Error('away')) : run(),
  )
  await bring(rig.ledgers[0]!, 1)
  rig.drain.nudge('main')
  await rig.drain.tick()
  await until('it failed', () => rig.drain.inHand === 0)
  expect(rig.drain.takeFailure()).toEqual({ error: new Error('away') })
  isAway = false
  expect(await rig.drain.tick()).toBe(1_000)
})

/** A drain whose one message is the probe, and what it did with the circuit's probe. */
async function aProbeRig(soc: Sink, pace?: DrainOptions['pace']): Promise<Rig & { did: string[] }> {
  const probe = { count: 1, waitMs: 0, isProbe: true }
  const rig = await aRig(soc, { admit: () => Promise.resolve(probe), ...(pace && { pace }) })
  const did: string[] = []
  rig.options.circuit.renewProbe = async (sink) => void did.push(`renewed ${sink}`)
  rig.options.circuit.releaseProbe = async (sink) => void did.push(`released ${sink}`)
  await bring(rig.ledgers[0]!, 1)
  rig.drain.nudge('main')
  return { ...rig, did }
}

test.each([
  [true, 'untried'],
  [false, 'any'],
])('a probe that comes early is of what was never tried: %s, %s', async (isForUntried, probe) => {
  const admitted = { count: 1, waitMs: 0, isProbe: true, isForUntried }
  const rig = await aRig(aHangingSink({}), { admit: () => Promise.resolve(admitted) })
  await bring(rig.ledgers[0]!, 1)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'it claimed', () => claimsOf(rig).length > 0)
  expect(claimsOf(rig)[0]).toMatchObject({ max: 1, probe })
})

test('a probe is renewed while it waits and while it is sent', async () => {
  let [takes, isTaken] = [0, false]
  const take = () => Promise.resolve({ isTaken, nextInMs: (takes += 1) && 20 })
  const soc = aHangingSink({ concurrency: 1, limitPerSecond: 1 })
  const { drain, did } = await aProbeRig(soc, { take })
  await drain.renew()
  expect(did).toEqual([])
  await turnsUntil(drain, 'it waits', () => takes > 0)
  await drain.renew()
  expect(did).toEqual(['renewed soc'])
  isTaken = true
  await turnsUntil(drain, 'it is sent', () => soc.sent.length === 1)
  await drain.renew()
  expect(did).toEqual(['renewed soc', 'renewed soc'])
})

test('a probe that waits gives its place back once another process has its message', async () => {
  let takes = 0
  const take = () => Promise.resolve({ isTaken: false, nextInMs: (takes += 1) && 20 })
  const soc = aHangingSink({ concurrency: 1, limitPerSecond: 1 })
  const { drain, did, ledgers, clock } = await aProbeRig(soc, { take })
  await turnsUntil(drain, 'it waits', () => takes > 0)
  const ledger = ledgers[0]!
  const ref = `i:${ledger.fingerprints.recordId('main/high/0')}:0:soc`
  await beginAttempt(ledger, ref, 'other', 60_000)
  clock.aheadMs += 4_000
  await drain.renew()
  await turnsUntil(drain, 'nothing is in hand', () => drain.inHand === 0)
  expect(did).toContain('released soc')
})

test('an attempt that is being opened has a slot, which no other account gets', async () => {
  const opening = Promise.withResolvers<void>()
  const rig = await aRig(aHangingSink({ concurrency: 1 }), { accounts: ['one', 'other'] })
  const [one, other] = rig.ledgers
  let begun = 0
  for (const ledger of rig.ledgers) {
    around(ledger, async (script, run) => {
      if (script !== 'advance-claims') return run()
      begun += 1
      await opening.promise
      return run()
    })
  }
  await bring(one!, 1)
  rig.drain.nudge('one')
  await turnsUntil(rig.drain, 'one is being opened', () => begun === 1)
  await bring(other!, 1, 'critical')
  rig.drain.nudge('other', { rank: 5 })
  await turnsUntil(rig.drain, 'the other is claimed', () => claimsOf(rig).length === 2)
  for (let turns = 0; turns < 20; turns += 1) {
    await rig.drain.tick()
    await systemClock.sleep(1)
  }
  expect(begun).toBe(1)
  opening.resolve()
})

test('a lease is renewed once a fifth of it is over, and not before', async () => {
  const soc = aHangingSink({ concurrency: 1 })
  const rig = await aRig(soc)
  await bring(rig.ledgers[0]!, 3)
  standStill(rig)
  Object.assign(rig.options.holder, { leaseMs: 9_000 })
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'one is sent', () => soc.sent.length === 1)
  const renewed = (): number => rig.asked.flatMap(({ renew = [] }) => renew).length
  rig.clock.aheadMs += 1_799
  await rig.drain.renew()
  expect(renewed()).toBe(0)
  rig.clock.aheadMs += 1
  await rig.drain.renew()
  expect(renewed()).toBe(3) // what is sent, and what waits
  await rig.drain.renew()
  expect(renewed()).toBe(3)
})

test('a send whose claim was lost is cut off, and what waits is not sent by two', async () => {
  let cutOff = 0
  const soc = aRehearsedSink('soc', {
    send: (_delivery, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error(`cut off ${(cutOff += 1)}`)))
      }),
  })
  const rig = await aRig(soc)
  const ledger = rig.ledgers[0]!
  await bring(ledger, 2)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'one is sent', () =>
    rig.asked.some(({ begin = [] }) => begin.length > 0),
  )
  for (const uid of ['main/high/0', 'main/high/1']) {
    await beginAttempt(ledger, `i:${ledger.fingerprints.recordId(uid)}:0:soc`, 'other', 60_000)
  }
  rig.clock.aheadMs += 4_000
  await rig.drain.renew()
  expect(cutOff).toBe(1)
  await turnsUntil(rig.drain, 'nothing is in hand', () => rig.drain.inHand === 0)
  expect(cutOff).toBe(1)
})

test('a process that stood still for four seconds still sends, one that did for six does not', async () => {
  for (const [frozenMs, sent] of [
    [4_000, 1],
    [6_000, 0],
  ] as const) {
    const soc = aRehearsedSink('soc')
    const rig = await aRig(soc)
    await bring(rig.ledgers[0]!, 1)
    around(rig.ledgers[0]!, async (script, run, ...args) => {
      const answer = await run()
      const isBegin = script === 'advance-claims' && String(args[0]).includes('"begin":[{')
      if (isBegin && rig.clock.aheadMs === 0) rig.clock.aheadMs = frozenMs
      return answer
    })
    rig.drain.nudge('main')
    await turnsUntil(rig.drain, 'it was opened', () => rig.clock.aheadMs > 0)
    await until('it ended', () => rig.drain.inHand === 1)
    expect(soc.received).toHaveLength(sent)
  }
})

test('a process that was frozen while it connected writes nothing, one whose lease was renewed does', async () => {
  for (const [isRenewed, state] of [
    [false, 'queued'],
    [true, 'delivered'],
  ] as const) {
    const soc = aRehearsedSink('soc', {
      async send(_delivery, { mayBegin }) {
        rig.clock.aheadMs = 6_000
        if (isRenewed) await rig.drain.renew()
        if (mayBegin?.() !== true) throw new SinkError('unavailable', 'not sent')
        return { answer: 'taken' }
      },
    })
    const rig = await aRig(soc)
    Object.assign(rig.options.holder, { leaseMs: 10_000 })
    await bring(rig.ledgers[0]!, 1)
    rig.drain.nudge('main')
    await turnsUntil(rig.drain, 'it is settled', () =>
      rig.asked.some(({ settle = [] }) => settle.length > 0),
    )
    const item = await itemOf(rig.ledgers[0]!, 'main/high/0')
    expect(item).toMatchObject({ state, attempts: isRenewed ? 1 : 0, repeatRisks: 0 })
    expect(rig.reports).toEqual(isRenewed ? ['ok'] : [])
  }
})

test('a send that takes half a minute gives its slot to another, which keeps its own', async () => {
  const soc = aHangingSink({ concurrency: 1 })
  const rig = await aRig(soc)
  await bring(rig.ledgers[0]!, 3)
  standStill(rig)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'one is sent', () => soc.sent.length === 1)
  rig.clock.aheadMs += 29_000
  expect(await rig.drain.tick()).toBe(1_000)
  rig.clock.aheadMs += 1_000
  await turnsUntil(rig.drain, 'one more is sent', () => soc.sent.length === 2)
  rig.clock.aheadMs += 60_000
  for (let turns = 0; turns < 20; turns += 1) {
    await rig.drain.renew()
    await rig.drain.tick()
  }
  expect(rig.asked.flatMap(({ begin = [] }) => begin)).toHaveLength(2)
})

test('what no sink is to blame for is tried again after five seconds, and counts as no try', async () => {
  const rig = await aRig(aRehearsedSink('soc'))
  rig.options.serviceLink = () => {
    throw new Error('a defect')
  }
  await bring(rig.ledgers[0]!, 1)
  const beganMs = await redisMs(tests.redis)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'it is settled', () =>
    rig.asked.some(({ settle = [] }) => settle.length > 0),
  )
  const { state, atMs = 0, attempts, repeatRisks } = await itemOf(rig.ledgers[0]!, 'main/high/0')
  expect({ state, attempts, repeatRisks }).toEqual({
    state: 'retrying',
    attempts: 1,
    repeatRisks: 0,
  })
  expect(atMs).toBeGreaterThanOrEqual(beganMs + 5_000)
  expect(atMs).toBeLessThanOrEqual((await redisMs(tests.redis)) + 1 + 5_000)
})

test('a sink that takes everything is reported twice a second at most, one that fails each time', async () => {
  const soc = aRehearsedSink('soc')
  const rig = await aRig(soc)
  const sendOne = async (severity: string): Promise<void> => {
    await bring(rig.ledgers[0]!, 1, severity)
    const before = rig.asked.filter(({ settle = [] }) => settle.length > 0).length
    rig.drain.nudge('main')
    await turnsUntil(rig.drain, 'it is settled', () => {
      const settled = rig.asked.filter(({ settle = [] }) => settle.length > 0).length
      return settled > before && rig.drain.inHand === 0
    })
  }
  standStill(rig)
  for (const severity of ['info', 'low']) await sendOne(severity)
  expect(rig.reports).toEqual(['ok'])
  rig.clock.aheadMs += 499
  await sendOne('medium')
  expect(rig.reports).toEqual(['ok'])
  rig.clock.aheadMs += 1
  await sendOne('high')
  expect(rig.reports).toEqual(['ok', 'ok'])
  soc.next('unavailable', 'unavailable')
  for (const severity of ['critical', 'odd']) await sendOne(severity)
  expect(rig.reports).toEqual(['ok', 'ok', 'fault', 'fault'])
  await sendOne('odder')
  expect(rig.reports.at(-1)).toBe('ok')
})

test('a sink with a limit is sent to when its place has come, and is not asked for it before', async () => {
  const soc = aRehearsedSink('soc', { limitPerSecond: 0.1 })
  const places = [false, true]
  let asked = 0
  const take = () => Promise.resolve({ isTaken: places[asked++] ?? false, nextInMs: 10_000 })
  const rig = await aRig(soc, { pace: { take } })
  standStill(rig)
  await bring(rig.ledgers[0]!, 2)
  rig.drain.nudge('main')
  await rig.drain.tick()
  await until('it holds one', () => rig.drain.inHand === 1 && claimsOf(rig).length === 1)
  expect(await rig.drain.tick()).toBe(10_000)
  rig.clock.aheadMs += 9_999
  await rig.drain.tick()
  expect([soc.received.length, asked]).toEqual([0, 1])
  rig.clock.aheadMs += 1
  await turnsUntil(rig.drain, 'it is sent', () => soc.received.length === 1)
  expect(asked).toBe(2)
})

test('what waits for a shut circuit takes no place in the pace of its sink', async () => {
  let isShut = false
  const soc = aRehearsedSink('soc', { limitPerSecond: 5 })
  let taken = 0
  const rig = await aRig(soc, {
    pace: { take: () => Promise.resolve({ isTaken: (taken += 1) > 0, nextInMs: 1_000 }) },
    admit: (_sink, count) =>
      Promise.resolve({ count: isShut ? 0 : count, waitMs: isShut ? 9_000 : 0, isProbe: false }),
  })
  standStill(rig)
  await bring(rig.ledgers[0]!, 2)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'one is sent', () => rig.reports.length === 1)
  isShut = true
  rig.clock.aheadMs += 1_000
  const backs = (): number => rig.asked.flatMap(({ back = [] }) => back).length
  await turnsUntil(rig.drain, 'the other goes back', () => backs() === 1)
  expect([soc.received.length, taken]).toEqual([1, 1])
})

test('the success of a probe is told at once, though the sink took something a moment before it shut', async () => {
  let admitted: AdmitResult = { count: 1, waitMs: 0, isProbe: false }
  const rig = await aRig(aRehearsedSink('soc'), { admit: () => Promise.resolve(admitted) })
  standStill(rig)
  await bring(rig.ledgers[0]!, 1)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'it is told', () => rig.reports.length === 1)
  admitted = { count: 0, waitMs: 100, isProbe: false }
  await bring(rig.ledgers[0]!, 1, 'low')
  rig.drain.nudge('main')
  await rig.drain.tick()
  await until('it is shut', () => rig.drain.inHand === 0)
  admitted = { count: 1, waitMs: 0, isProbe: true }
  rig.clock.aheadMs += 100
  await turnsUntil(rig.drain, 'it is told', () => rig.reports.length === 2)
  expect(rig.reports).toEqual(['ok', 'ok'])
})

test('what waits goes back once a send has shut the sink: nothing is kept from others meanwhile', async () => {
  const soc = aRehearsedSink('soc')
  const rig = await aRig(soc)
  await bring(rig.ledgers[0]!, 5)
  soc.next('unauthorized')
  rig.drain.nudge('main')
  const backs = (): number => rig.asked.flatMap(({ back = [] }) => back).length
  await turnsUntil(rig.drain, 'the others go back', () => backs() === 3)
  expect(soc.received).toHaveLength(2) // the next one was opened by the tick that wrote the outcome
})

test('something worse that comes while others wait in hand is sent before them', async () => {
  const soc = aHangingSink({ concurrency: 2 })
  const rig = await aRig(soc)
  await bring(rig.ledgers[0]!, 3, 'low')
  rig.drain.nudge('main', { rank: 2 })
  await turnsUntil(rig.drain, 'two are sent', () => soc.sent.length === 2)
  await bring(rig.ledgers[0]!, 2, 'critical')
  rig.drain.nudge('main', { rank: 5 })
  await turnsUntil(rig.drain, 'they are claimed', () => claimsOf(rig).length === 2)
  await until('they are in hand', () => rig.drain.inHand === 5) // 4 while the claim itself goes on
  soc.letGo()
  await turnsUntil(rig.drain, 'all are sent', () => soc.sent.length === 5)
  expect(soc.sent.slice(2, 4).toSorted()).toEqual(['main/critical/0', 'main/critical/1'])
})

test('a send that this process breaks off says nothing of its sink, and counts as no try', async () => {
  const sending: string[] = []
  const soc = aRehearsedSink('soc', {
    concurrency: 5,
    send: ({ members }, { signal }) =>
      new Promise((_resolve, reject) => {
        sending.push(members[0]!.event.uid)
        const cut = (): void => reject(new SinkError('timeout', 'no answer came in time'))
        signal.addEventListener('abort', cut)
      }),
  })
  const rig = await aRig(soc)
  await bring(rig.ledgers[0]!, 5)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'all are being sent', () => sending.length === 5)
  await rig.drain.finish()
  rig.drain.abort()
  await turnsUntil(rig.drain, 'nothing is in hand', () => rig.drain.isIdle)
  expect(rig.reports).toEqual([])
  expect(await rig.options.circuit.admit('soc', 9)).toMatchObject({ count: 9 })
  const ledger = rig.ledgers[0]!
  const item = await itemOf(ledger, 'main/high/0')
  expect(item).toMatchObject({ state: 'retrying', attempts: 1, repeatRisks: 1 })
  await makeDue(ledger, `i:${ledger.fingerprints.recordId('main/high/0')}:0:soc`)
  const asked = { sink: 'soc', max: 1, leastRank: 1 }
  const { claims } = await claimDue(ledger, { owner: 'other', leaseMs: 1_000 }, asked)
  expect(claims).toMatchObject([{ attempts: 1, tries: 0 }])
})

test('what this process still has in hand is not sent twice because its lease ended', async () => {
  const soc = aHangingSink({ concurrency: 4 })
  const rig = await aRig(soc)
  const ledger = rig.ledgers[0]!
  await bring(ledger, 3)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'all are sent', () => soc.sent.length === 3)
  for (const { ref } of rig.asked.flatMap(({ begin = [] }) => begin)) await makeDue(ledger, ref)
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'it claimed again', () => claimsOf(rig).length === 2)
  await until('that is over', () => rig.drain.inHand === 3)
  soc.letGo()
  await turnsUntil(rig.drain, 'all is settled', () => rig.drain.inHand === 0)
  expect(soc.sent).toHaveLength(3)
  expect(await itemOf(ledger, 'main/high/0')).toMatchObject({ state: 'delivered', attempts: 1 })
})

test('the halves of a refused batch go at once, without a word from outside', async () => {
  const batch = { max: 10, waitMs: 1, maxBytes: 100_000 }
  const soc = aRehearsedSink('soc', { batch })
  const rig = await aRig(soc)
  const events = ['a/b/1', 'a/b/2'].map((uid) => routed({ uid }, ['soc']))
  await takeIn(rig.ledgers[0]!, events, { batchWaitMs: 1 })
  soc.next('invalid')
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'both halves are sent', () => soc.received.length === 3)
  expect(soc.received.map(({ members }) => members.length)).toEqual([2, 1, 1])
  await turnsUntil(rig.drain, 'all is settled', () => rig.drain.inHand === 0)
  const { body } = await rig.options.metrics.render()
  expect(body).toContain('tocsin_deliveries_total{sink="soc",outcome="split"} 1\n')
  expect(body).toContain('tocsin_items_settled_total{sink="soc",outcome="delivered"} 2\n')
  expect(body).not.toContain('tocsin_items_settled_total{sink="soc",outcome="split"}')
})

test('an outcome that cannot be written is written by a later turn, and what was to be opened is kept', async () => {
  const soc = aRehearsedSink('soc')
  const rig = await aRig(soc)
  await bring(rig.ledgers[0]!, 3)
  let failures = 0
  around(rig.ledgers[0]!, (script, run, ...args) => {
    const isFailing = String(args[0]).includes('"settle":[{') && failures === 0
    if (script !== 'advance-claims' || !isFailing) return run()
    failures += 1
    return Promise.reject(new Error('away'))
  })
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'it fails', () => rig.drain.takeFailure() !== undefined)
  await turnsUntil(rig.drain, 'all is settled', () => rig.drain.inHand === 0)
  expect(soc.received).toHaveLength(3)
  expect(await itemOf(rig.ledgers[0]!, 'main/high/0')).toMatchObject({
    state: 'delivered',
    attempts: 1,
    repeatRisks: 0,
  })
})

/** Time passes by the test's word alone. */
function standStill({ clock, options }: Rig): void {
  Object.assign(options.clock, { monotonic: () => 1_000_000 + clock.aheadMs })
}

test('an account without a ledger costs one look', async () => {
  const rig = await aRig(aRehearsedSink('soc'))
  rig.drain.nudge('gone')
  await rig.drain.tick()
  await until('nothing is in hand', () => rig.drain.inHand === 0)
  expect(rig.drain.isIdle).toBe(true)
})

test('what has left is counted: each message, each event in it, and how long it took', async () => {
  const rig = await aRig(aRehearsedSink('soc'))
  await bring(rig.ledgers[0]!, 2)
  Object.assign(rig.options.clock, { now: () => Date.now() + 50_000 })
  rig.drain.nudge('main')
  await turnsUntil(rig.drain, 'all is settled', () => {
    const settled = rig.asked.flatMap(({ settle = [] }) => settle).length
    return settled === 2 && rig.drain.inHand === 0
  })
  const { body } = await rig.options.metrics.render()
  expect(body).toContain('tocsin_deliveries_total{sink="soc",outcome="delivered"} 2\n')
  expect(body).toContain('tocsin_items_settled_total{sink="soc",outcome="delivered"} 2\n')
  const latency = 'tocsin_event_fetch_to_delivery_seconds'
  expect(body).toContain(`${latency}_count{audience="machines",severity="high"} 2\n`)
  expect(body).toContain(`${latency}_bucket{le="30",audience="machines",severity="high"} 0\n`)
  expect(body).toContain(`${latency}_bucket{le="60",audience="machines",severity="high"} 2\n`)
})
