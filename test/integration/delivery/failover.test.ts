import { expect, test } from 'vitest'
import type { WorkAnnouncer } from '../../../src/delivery/due-accounts.ts'
import { createRetryNow, forEachPage } from '../../../src/delivery/relief/reroute.ts'
import { makeRetriesDue } from '../../../src/store/pending-items.ts'
import { dieAt, uids } from '../../support/grouping.ts'
import {
  expectConservation,
  redisForTests,
  routed,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'
import { aReliefRig, fallbackAfterMs, type ReliefRig } from '../../support/failover.ts'

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

test('a half-open circuit is tried with what waits for a try far away, where nothing else is there', async () => {
  const rig = await aReliefRig(tests)
  await showCritical(rig, 0)
  await tryInVain(rig, 'soc')
  await halfOpen(rig, 'soc')
  await rig.deliverDue('soc')
  expect(rig.sinks.soc.received).toHaveLength(5)
  await rig.relieve()
  await rig.deliverDue('soc')
  expect(rig.sinks.soc.received).toHaveLength(6)
  expect((await expectConservation(rig.ledger)).sinks['soc']).toMatchObject({ delivered: 1 })
})

test('who sends is told of a single try that is brought forward, and of none where there is none', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.ledger, events('lake', 'high'))
  rig.sinks.lake.next('unavailable')
  await rig.deliverDue('lake')
  const told: string[] = []
  const tell: WorkAnnouncer['announce'] = (account, work) => {
    told.push(...work.map(({ sink }) => `${account} ${sink}`))
  }
  const drains = { announce: tell, ledgersFor: () => [rig.ledger] }
  const wake = createRetryNow({ circuit: rig.circuit, drains, clock: rig.clock })
  await wake.retryAll('lake')
  await wake.retryAll('lake')
  expect(told).toEqual([`${rig.ledger.account} lake`])
})

test('what the sink itself refused, or put off, keeps its time', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.ledger, events('lake', 'high', 'high', 'high'))
  rig.sinks.lake.next('rejected', 'rate_limited', 'unavailable')
  await rig.deliverDue('lake')
  expect(await makeRetriesDue(rig.ledger, 'lake', { max: 9 })).toHaveLength(1)
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

test('all that failed is tried once a circuit has closed, however much it is', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.ledger, events('lake', ...Array.from({ length: 1_001 }, () => 'high')))
  const due = rig.ledger.key('due', 'lake')
  const later = Date.now() + 3_600_000 // put off untried
  for (const ref of await tests.redis.zrange(due, '0', '-1'))
    await tests.redis.zadd(due, later, ref)
  const drains = { announce: () => undefined, ledgersFor: () => [rig.ledger] }
  const wake = createRetryNow({ circuit: rig.circuit, drains, clock: rig.clock })
  await wake.retryAll('lake')
  expect(await tests.redis.zcount(due, later, '+inf')).toBe(0)
})

test('what one sink is refused keeps no other from its relief', async () => {
  const rig = await aReliefRig(tests, { fallbacks: { lake: 'siem' } })
  await takeIn(
    rig.ledger,
    uids(3).map((event) => routed(event, ['soc', 'lake'])),
  )
  await rig.down('soc', 61_000)
  await rig.down('lake', fallbackAfterMs)
  dieAt(rig.ledger, 'group-items', 1)
  await expect(rig.relieve()).rejects.toThrow('killed')
  const { sinks } = await expectConservation(rig.ledger)
  expect(sinks).toMatchObject({ lake: { diverted: 3 } })
})

test('the same holds while an operator pauses the sink; machines get each', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.ledger, events('soc', 'low', 'low'))
  await takeIn(rig.ledger, [routed({ uid: 'paste/site/9' }, ['lake'])])
  const pause = { reason: 'x', sinceMs: Date.now() - 61_000 }
  await rig.circuit.pause('soc', pause)
  await rig.circuit.pause('lake', pause)
  await rig.relieve()
  const { sinks } = await expectConservation(rig.ledger)
  expect(waitingIn(sinks['soc'])).toEqual({ group: 2 })
  expect(waitingIn(sinks['lake'])).toEqual({ queued: 1 })
})

test('a test event is not gathered: it goes by itself, as a test', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  const canary = [routed({ uid: 'canary/tocsin/1', type: 'canary' }, ['soc'])]
  await takeIn(rig.ledger, canary, { feed: '_tocsin' })
  await rig.down('soc', 61_000)
  await rig.relieve()
  expect(waitingIn((await expectConservation(rig.ledger)).sinks['soc'])).toEqual({ queued: 1 })
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

test('a pass over a list goes on behind what stays, however many pages of it there are', async () => {
  const list = Array.from({ length: 650 }, (_none, n) => String(n))
  const seen: string[] = []
  await forEachPage(
    ({ offset, count }) => Promise.resolve(list.slice(offset, offset + count)),
    (refs) => {
      seen.push(...refs)
      return Promise.resolve(0)
    },
    { mayContinue: () => Promise.resolve(true), alive: () => undefined },
  )
  expect(seen).toEqual(list)
})
