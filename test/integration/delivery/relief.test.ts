import { expect, test } from 'vitest'
import { listDeadLetters, replayDeadLetter } from '../../../src/ledger/dead-letters.ts'
import { scanRecords } from '../../../src/ledger/records.ts'
import {
  expectConservation,
  redisForTests,
  routed,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'
import { aReliefRig } from '../../support/relief.ts'

const tests = redisForTests()

function events(sink: string, ...severities: string[]) {
  return severities.map((severity, n) => routed({ uid: `paste/site/${n}`, severity }, [sink]))
}

test('after a minute without a way, what came singly for people comes as one message, the worst first', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.book, events('soc', 'low', 'critical', 'high'))
  rig.sinks.soc.next('timeout', 'timeout', 'timeout')
  await rig.deliverDue('soc')
  const before = rig.sinks.soc.received.length
  await rig.down('soc', 30_000)
  await rig.relieve()
  expect(waitingIn((await expectConservation(rig.book)).sinks['soc'])).not.toHaveProperty('group')
  await takeIn(rig.book, [routed({ uid: 'paste/site/7', severity: 'medium' }, ['soc'])])
  await takeIn(rig.book, [routed({ uid: 'paste/site/8', severity: 'critical' }, ['soc'])])
  await rig.down('soc', 61_000)
  await rig.relieve()
  expect(waitingIn((await expectConservation(rig.book)).sinks['soc'])).toEqual({ group: 5 })
  await rig.up('soc')
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(1)
  const [message] = rig.sinks.soc.received.slice(before)
  expect(message).toMatchObject({ mayBeRepeat: true, summary: { total: 5 } })
  const severities = message!.members.map(({ event }) => event.severity)
  expect(severities).toEqual(['critical', 'critical', 'high', 'medium', 'low'])
})

test('the same holds while an operator pauses the sink; machines get each', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  await takeIn(rig.book, events('soc', 'low', 'low'))
  await takeIn(rig.book, [routed({ uid: 'paste/site/9' }, ['lake'])])
  const pause = { reason: 'x', sinceMs: Date.now() - 61_000 }
  await rig.circuit.pause('soc', pause)
  await rig.circuit.pause('lake', pause)
  await rig.relieve()
  const { sinks } = await expectConservation(rig.book)
  expect(waitingIn(sinks['soc'])).toEqual({ group: 2 })
  expect(waitingIn(sinks['lake'])).toEqual({ queued: 1 })
})

test('a test event is not gathered: it goes by itself, as a test', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {} })
  const canary = [routed({ uid: 'canary/tocsin/1', type: 'canary' }, ['soc'])]
  await takeIn(rig.book, canary, { feed: '_tocsin' })
  await rig.down('soc', 61_000)
  await rig.relieve()
  expect(waitingIn((await expectConservation(rig.book)).sinks['soc'])).toEqual({ queued: 1 })
})

test('beyond pending_max the least severe die, of those the oldest, and can be replayed', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {}, pendingMax: 3 })
  await takeIn(rig.book, events('lake', 'low', 'critical', 'low', 'high', 'low'))
  await rig.relieve()
  const { total, letters } = await listDeadLetters(rig.book, 'lake', { offset: 0, count: 9 })
  expect(total).toBe(2)
  for (const { item } of letters) {
    expect(item).toMatchObject({ severity: 'low', history: [{ reason: 'overflow' }] })
  }
  expect(waitingIn((await expectConservation(rig.book)).sinks['lake'])).toEqual({ queued: 3 })
  for (const { ref } of letters) await replayDeadLetter(rig.book, ref, undefined)
  await rig.deliverDue('lake')
  expect(rig.sinks.lake.received).toHaveLength(5)
})

test('what collects for a batch is given up without leaving a batch of nothing', async () => {
  const rig = await aReliefRig(tests, { fallbacks: {}, pendingMax: 1 })
  await takeIn(rig.book, events('siem', 'low', 'low', 'high'), { batchWaitMs: 1_000 })
  await rig.relieve()
  expect(await tests.redis.zcard(rig.book.key('collect', 'siem'))).toBe(1)
  const states: string[] = []
  for await (const { items } of scanRecords(rig.book)) states.push(...items.map((i) => i.state))
  expect(states.toSorted()).toEqual(['dead', 'dead', 'queued'])
})

test('with a fallback they go there, whatever the circuit', async () => {
  const rig = await aReliefRig(tests, { fallbacks: { siem: 'lake' }, pendingMax: 1 })
  await takeIn(rig.book, events('siem', 'low', 'high'), { batchWaitMs: 1_000 })
  await rig.relieve()
  const { sinks } = await expectConservation(rig.book)
  expect(sinks['siem']).toMatchObject({ diverted: 1, dead: 0 })
  expect(sinks['lake']).toMatchObject({ created: 1 })
})
