import { expect, test } from 'vitest'
import { createOverflow } from '../../../src/delivery/failover.ts'
import { createRetryNow } from '../../../src/delivery/reroute.ts'
import { listDeadLetters, makeRetriesDue } from '../../../src/store/pending-items.ts'
import { replayDeadLetter } from '../../support/acts.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import {
  expectConservation,
  redisForTests,
  routed,
  silent,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'
import { aReliefRig, fallbackAfterMs, type ReliefRig, relievedAs } from '../../support/failover.ts'

const tests = redisForTests()

function events(sink: string, ...severities: string[]) {
  return severities.map((severity, n) => routed({ uid: `paste/site/${n}`, severity }, [sink]))
}

test('after a minute without a way, what came singly for people comes as one message, the worst first', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.ledger, events('soc', 'low', 'critical', 'high'))
  rig.sinks.soc.next('timeout', 'timeout', 'timeout')
  await rig.deliverDue('soc')
  const before = rig.sinks.soc.received.length
  await rig.down('soc', 30_000)
  await rig.relieve()
  expect(waitingIn((await expectConservation(rig.ledger)).sinks['soc'])).not.toHaveProperty('group')
  await takeIn(rig.ledger, [routed({ uid: 'paste/site/7', severity: 'medium' }, ['soc'])])
  await takeIn(rig.ledger, [routed({ uid: 'paste/site/8', severity: 'critical' }, ['soc'])])
  await rig.down('soc', 61_000)
  await rig.relieve()
  expect(waitingIn((await expectConservation(rig.ledger)).sinks['soc'])).toEqual({ group: 5 })
  await rig.up('soc')
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(1)
  const [message] = rig.sinks.soc.received.slice(before)
  expect(message).toMatchObject({ mayBeRepeat: true, summary: { total: 5 } })
  const severities = message!.members.map(({ event }) => event.severity)
  expect(severities).toEqual(['critical', 'critical', 'high', 'medium', 'low'])
})

async function showCritical({ ledger }: ReliefRig, n: number): Promise<void> {
  await takeIn(ledger, [routed({ uid: `paste/site/${n}`, severity: 'critical' }, ['soc'])])
}

/** The time of the next probe has come. */
async function halfOpen({ keys }: ReliefRig, sink: string): Promise<void> {
  await tests.redis.hset(keys.shared('circuit', sink), 'until', 1)
}

test('what is gathered after a message has tried in vain does not wait for the interval once the sink is back', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await showCritical(rig, 0)
  await rig.down('soc', 61_000)
  await rig.relieve()
  await halfOpen(rig, 'soc')
  rig.clock.aheadMs += 16_000
  rig.sinks.soc.next('timeout')
  expect(await rig.flush()).toBe(1)
  await rig.down('soc', 90_000)
  await showCritical(rig, 1)
  await rig.relieve()
  await rig.up('soc')
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(1)
  expect(rig.sinks.soc.received.at(-1)?.members.map(({ event }) => event.uid)).toEqual([
    'paste/site/1',
  ])
})

test('in a long outage one message tries, again and again, and the rest comes together', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  for (let n = 0; n < 6; n += 1) {
    await rig.down('soc', 61_000 + n * 900_000)
    await showCritical(rig, n)
    await rig.relieve()
    rig.clock.aheadMs += 900_000
    await halfOpen(rig, 'soc')
    rig.sinks.soc.next('timeout')
    await rig.flush()
    await rig.deliverDue('soc')
  }
  await rig.up('soc')
  for (let n = 0; n < 2; n += 1) {
    rig.clock.aheadMs += 3_600_000
    await rig.deliverDue('soc')
    await rig.flush()
  }
  const ids = new Set(rig.sinks.soc.received.map(({ id }) => id))
  expect(ids.size).toBe(2)
  const { sinks } = await expectConservation(rig.ledger)
  expect(sinks['soc']).toMatchObject({ delivered: 6 })
})

/** Tries as far apart as the table says, until the next one is half an hour away. */
async function tryInVain(rig: ReliefRig, sink: 'soc' | 'lake'): Promise<void> {
  for (const waitMs of [6_000, 36_000, 144_000, 720_000, 0]) {
    rig.sinks[sink].next('timeout')
    await rig.deliverDue(sink)
    rig.clock.aheadMs += waitMs
  }
}

test('once a circuit has closed, nothing waits that failed while it was open', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.ledger, events('lake', 'high', 'high'))
  rig.sinks.lake.next('timeout')
  await tryInVain(rig, 'lake')
  await halfOpen(rig, 'lake')
  await takeIn(rig.ledger, [routed({ uid: 'paste/site/7' }, ['lake'])])
  await rig.deliverDue('lake')
  await rig.deliverDue('lake')
  expect((await expectConservation(rig.ledger)).sinks['lake']).toMatchObject({ delivered: 3 })
})

test('a fallback of which each recipient is in trouble gets nothing', async () => {
  const places = ['oncall:a', 'oncall:b']
  const rig = await aReliefRig(tests, { destinations: { oncall: places } })
  await showCritical(rig, 0)
  await rig.down('soc', fallbackAfterMs + 1_000)
  for (const place of places) await rig.down(place, 61_000)
  await rig.relieve()
  expect(rig.said).toEqual([])
  await rig.up('oncall:b')
  await rig.relieve()
  expect(rig.said).toMatchObject([{ sink: 'soc', fallback: 'oncall', items: 1 }])
})

test('while one recipient is down what is for it is gathered, and what is for others goes', async () => {
  const places = ['oncall:a', 'oncall:b']
  const rig = await aReliefRig(tests, { fallbacks: {}, destinations: { oncall: places } })
  for (const uid of ['a/site/0', 'a/site/1']) await takeIn(rig.ledger, [routed({ uid }, places)])
  await rig.down('oncall:a', 30_000)
  await rig.relieve()
  expect(waitingIn((await expectConservation(rig.ledger)).sinks['oncall'])).toEqual({ queued: 4 })
  await rig.down('oncall:a', 61_000)
  await rig.relieve()
  const { sinks } = await expectConservation(rig.ledger)
  expect(waitingIn(sinks['oncall'])).toEqual({ group: 2, queued: 2 })
  await takeIn(rig.ledger, [rig.event({ uid: 'a/site/2' }, { sinks: ['oncall:b'] })])
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(1)
  await rig.up('oncall:a')
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(1)
  const received = rig.sinks.oncall.received.map(({ destination, members }) => [
    destination.id,
    members.length,
  ])
  expect(received).toEqual([
    ['oncall:b', 1],
    ['oncall:b', 1],
    ['oncall:b', 1],
    ['oncall:a', 2],
  ])
})

test('a configuration diverts and gives up nothing for a recipient that only another one knows', async () => {
  const places = ['oncall:a', 'oncall:b']
  const options = { fallbacks: { oncall: 'lake' }, destinations: { oncall: places } }
  const rig = await aReliefRig(tests, options)
  const both = ['oncall:a', 'oncall:new']
  const single = [routed({ uid: 'a/site/0' }, both)]
  const gathered = [rig.event({ uid: 'a/site/1' }, { sinks: ['oncall:a'] })]
  await takeIn(rig.ledger, [...single, ...gathered])
  const newer = await aReliefRig(tests, {
    ...options,
    destinations: { oncall: ['oncall:new'] },
    keys: rig.keys,
    ledgers: [rig.ledger],
  })
  await takeIn(rig.ledger, [newer.event({ uid: 'a/site/2' }, { sinks: ['oncall:new'] })])
  await takeIn(rig.ledger, [newer.event({ uid: 'a/site/3' }, { sinks: ['oncall:new'] })])
  newer.clock.aheadMs = 11_000
  await newer.seal() // a message of two
  await takeIn(rig.ledger, [newer.event({ uid: 'a/site/4' }, { sinks: ['oncall:new'] })])
  for (const place of places) await rig.down(place, fallbackAfterMs + 1_000)
  rig.clock.aheadMs = 320_000
  await rig.relieve()
  expect(rig.said).toMatchObject([{ sink: 'oncall', fallback: 'lake', items: 2 }])
  const before = waitingIn((await expectConservation(rig.ledger)).sinks['oncall'])
  expect(before).toEqual({ queued: 1, group: 1, batch: 2 })
  const strict = await aReliefRig(tests, {
    ...options,
    pendingMax: 1,
    keys: rig.keys,
    ledgers: [rig.ledger],
  })
  await strict.relieve()
  expect(waitingIn((await expectConservation(rig.ledger)).sinks['oncall'])).toEqual(before)
})

test('a group waits while a message is about to test the only recipient of its sink', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {}, destinations: { oncall: ['oncall:a'] } })
  await takeIn(rig.ledger, [routed({ uid: 'a/site/0' }, ['oncall:a'])])
  await rig.down('oncall:a', 61_000)
  await rig.relieve()
  await rig.up('oncall:a')
  await takeIn(rig.ledger, [routed({ uid: 'a/site/1' }, ['oncall:a'])])
  await rig.down('oncall:a', 1_000)
  await halfOpen(rig, 'oncall:a')
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(0)
  await rig.up('oncall:a')
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(1)
})

test('all that failed is tried once a circuit has closed, however much it is', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.ledger, events('lake', ...Array.from({ length: 1_001 }, () => 'high')))
  const due = rig.ledger.key('due', 'lake')
  const later = Date.now() + 3_600_000 // put off untried
  for (const ref of await tests.redis.zrange(due, '0', '-1'))
    await tests.redis.zadd(due, later, ref)
  const drains = { announce: () => Promise.resolve(), ledgersFor: () => [rig.ledger] }
  const wake = createRetryNow({ circuit: rig.circuit, drains, clock: rig.clock, logger: silent })
  await wake.retryAll('lake')
  expect(await tests.redis.zcount(due, later, '+inf')).toBe(0)
})

test('what the sink itself refused, or put off, keeps its time', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.ledger, events('lake', 'high', 'high', 'high'))
  rig.sinks.lake.next('rejected', 'rate_limited', 'unavailable')
  await rig.deliverDue('lake')
  expect(await makeRetriesDue(rig.ledger, 'lake', 9)).toHaveLength(1)
})

test('two replicas that count the same excess give it up once', async () => {
  const options = { fallbacks: {}, pendingMax: 2 }
  const rig = await aReliefRig(tests, options)
  await takeIn(rig.ledger, events('lake', 'low', 'low', 'high', 'high'))
  const redis = Object.create(rig.ledger.redis) as typeof rig.ledger.redis
  redis.hgetall = async (name: string) => {
    const counters = await tests.redis.hgetall(name)
    await rig.relieve() // between the other's count and its scan
    return counters
  }
  const { rerouter: diverter, clock } = rig
  const ledgers = [{ ...rig.ledger, redis }]
  const other = createOverflow({
    drains: { ledgersFor: () => ledgers },
    rerouter: diverter,
    clock,
    logger: silent,
    onOverflow: () => undefined,
  })
  const paging = { mayContinue: () => Promise.resolve(true), alive: () => undefined }
  await other.enforceLimit(relievedAs([rig.sinks.lake], options).get('lake')!, paging)
  const { sinks } = await expectConservation(rig.ledger)
  expect(sinks['lake']).toMatchObject({ dead: 2 })
})

test('hundreds above pending_max are given up a hundred at a time, as long as there is time', async () => {
  const options = { fallbacks: {}, pendingMax: 1 }
  const rig = await aReliefRig(tests, options)
  await takeIn(rig.ledger, events('lake', ...Array.from({ length: 231 }, () => 'low')))
  let steps = 0
  const givenUp: number[] = []
  const overflow = createOverflow({
    drains: { ledgersFor: () => [rig.ledger] },
    rerouter: rig.rerouter,
    clock: rig.clock,
    logger: silent,
    onOverflow: (_sink, items) => void givenUp.push(items),
  })
  const lake = relievedAs([rig.sinks.lake], options).get('lake')!
  const mayContinue = (): Promise<boolean> => Promise.resolve((steps += 1) !== 2)
  const paging = { mayContinue, alive: () => undefined }
  await overflow.enforceLimit(lake, paging)
  expect(givenUp).toEqual([100])
  rig.clock.aheadMs += 60_000
  await overflow.enforceLimit(lake, paging)
  expect(givenUp).toEqual([100, 130])
  expect(waitingIn((await expectConservation(rig.ledger)).sinks['lake'])).toEqual({ queued: 1 })
})

/** As if the item had been made so many minutes ago. */
async function madeBefore({ ledger }: ReliefRig, n: number, minutes: number): Promise<void> {
  const name = ledger.key('rec', ledger.fingerprints.recordId(`paste/site/${n}`))
  const record = JSON.parse((await tests.redis.get(name)) ?? '') as { i: { c: number }[] }
  record.i[0]!.c -= minutes * 60_000
  await tests.redis.set(name, JSON.stringify(record), 'KEEPTTL')
}

test('beyond pending_max the least severe die, of those the oldest, and can be replayed', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {}, pendingMax: 3 })
  await takeIn(rig.ledger, events('lake', 'low', 'critical', 'low', 'high', 'low'))
  for (const [n, minutes] of [20, 60, 10, 50, 30].entries()) await madeBefore(rig, n, minutes)
  await rig.relieve()
  const { letters } = await listDeadLetters(rig.ledger, 'lake', { offset: 0, count: 9 })
  const died = letters.map(({ record, item }) => `${record.uid} ${item.history.at(-1)?.reason}`)
  expect(died.toSorted()).toEqual(['paste/site/0 overflow', 'paste/site/4 overflow'])
  expect(rig.givenUp).toEqual(['lake 2'])
  expect(rig.said).toEqual([{ sink: 'lake', pendingMax: 3, items: 2 }])
  expect(waitingIn((await expectConservation(rig.ledger)).sinks['lake'])).toEqual({ queued: 3 })
  for (const { ref } of letters) await replayDeadLetter(rig.ledger, ref, undefined)
  await rig.deliverDue('lake')
  expect(rig.sinks.lake.received).toHaveLength(5)
})

test('with a fallback they go there, whatever the circuit', async () => {
  const rig = await aReliefRig(tests, { fallbacks: { siem: 'lake' }, pendingMax: 1 })
  await takeIn(rig.ledger, events('siem', 'low', 'high'), { batchWaitMs: 1_000 })
  await rig.relieve()
  const { sinks } = await expectConservation(rig.ledger)
  expect(sinks['siem']).toMatchObject({ diverted: 1, dead: 0 })
  expect(sinks['lake']).toMatchObject({ created: 1 })
})

test('what goes to a fallback is named the worst first, and one of a type called canary goes as well', async () => {
  const rig = await aReliefRig(tests, { fallbacks: { lake: 'siem' } })
  const all = events('lake', 'low', 'critical', 'high')
  await takeIn(rig.ledger, [all[0]!, all[1]!, all[2]!])
  await takeIn(rig.ledger, [routed({ uid: 'paste/site/9', type: 'canary' }, ['lake'])])
  const refOf = (n: number): string =>
    `i:${rig.ledger.fingerprints.recordId(`paste/site/${n}`)}:0:lake`
  expect(await rig.rerouter.rerouteItems(rig.ledger, [0, 1, 2].map(refOf))).toEqual(
    [1, 2, 0].map(refOf),
  )
  expect(await rig.rerouter.rerouteItems(rig.ledger, [refOf(9)])).toEqual([refOf(9)])
})

test('what is to be gathered or diverted is found behind any number that stays, in a few passes', async () => {
  const rig = await aReliefRig(tests, { fallbacks: { siem: 'lake' } })
  for (const sink of ['soc', 'siem']) {
    const others = Array.from({ length: 10_300 }, (_none, n) => [1 + n, `i:gone${n}:0:${sink}`])
    await tests.redis.zadd(rig.ledger.key('due', sink), ...others.flat())
    await takeIn(rig.ledger, [routed({ uid: `to/${sink}/0` }, [sink])])
    await rig.down(sink, fallbackAfterMs + 1_000)
  }
  for (let passes = 0; passes < 2; passes += 1) await rig.relieve()
  const { sinks } = await readAccounting(rig.ledger)
  expect(waitingIn(sinks['soc'])).toEqual({ group: 1 })
  expect(sinks['siem']).toMatchObject({ diverted: 1 })
})
