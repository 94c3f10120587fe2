import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { resendAct } from '../../../src/delivery/item-acts.ts'
import { scanItems } from '../../../src/store/items.ts'
import { resendItem } from '../../../src/store/pending-items.ts'
import { type Item, readRecord } from '../../../src/store/records.ts'
import { peekBatch, sealBatch } from '../../support/attempts.ts'
import { everyMorning } from '../../support/digest-rig.ts'
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

async function show(rig: ReliefRig, sink: string, count: number, severity = 'high'): Promise<void> {
  const events = uids(count).map((event) => routed({ ...event, severity }, [sink]))
  await takeIn(rig.ledger, events, sink === 'siem' ? { batchWaitMs: 1_000 } : {})
}

async function sealedBatch({ ledger }: ReliefRig): Promise<string> {
  const waiting = await peekBatch(ledger, 'siem', 100)
  const batch = { sink: 'siem', destination: 'siem', waitMs: 1_000 }
  return (await sealBatch(
    ledger,
    batch,
    waiting.map(({ ref }) => ref),
  ))!
}

async function itemsOf(ledger: AccountLedger, n = 0): Promise<Item[]> {
  const record = await readRecord(ledger, ledger.fingerprints.recordId(`paste/site/${n}`))
  return record!.items
}

/** Every pending item of a sink that nothing in Redis would ever bring up again. */
async function expectNothingWaits(rig: ReliefRig, sink: string): Promise<void> {
  const { sinks } = await expectConservation(rig.ledger)
  expect(waitingIn(sinks[sink])).toEqual({})
  expect(await rig.ledger.redis.zrange(rig.ledger.key('due', sink), '0', '-1')).toEqual([])
}

async function resendAll({ ledger }: ReliefRig, sink: string): Promise<number> {
  let count = 0
  for await (const item of scanItems(ledger, { sink })) {
    const { ref } = item
    if (!resendAct([], 'ann').takes(item)) continue
    const outcome = await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'test' })
    count += outcome === 'done' ? 1 : 0
  }
  return count
}

test('what waits for a machine goes to its fallback item by item, once its circuit is open for long', async () => {
  const rig = await aReliefRig(tests)
  await show(rig, 'siem', 3)
  await rig.down('siem', fallbackAfterMs - 5_000)
  await rig.relieve()
  expect((await expectConservation(rig.ledger)).sinks['lake']).toBeUndefined()
  await rig.down('siem', fallbackAfterMs)
  await rig.relieve()
  await expectNothingWaits(rig, 'siem')
  await rig.deliverDue('lake')
  expect(rig.sinks.lake.received.flatMap(({ members }) => members)).toHaveLength(3)
  const [item, other] = await itemsOf(rig.ledger)
  expect(item).toMatchObject({ state: 'diverted', rule: 'fallback to lake' })
  expect(other).toMatchObject({ sink: 'lake', state: 'delivered' })
  await rig.up('siem')
  await rig.relieve()
  await rig.deliverDue('siem')
  expect(rig.sinks.siem.received).toEqual([])
})

test('nothing goes elsewhere while an operator pauses the sink, a message tries it, or the fallback is down', async () => {
  const rig = await aReliefRig(tests)
  await show(rig, 'siem', 1)
  await rig.down('siem', fallbackAfterMs)
  const stays = async (): Promise<void> => {
    await rig.relieve()
    expect((await itemsOf(rig.ledger))[0]).toMatchObject({ state: 'queued' })
  }
  await rig.circuit.pause('siem', { reason: 'x', sinceMs: 1 })
  await stays()
  await rig.circuit.pause('siem', undefined)
  await rig.down('lake', 1_000)
  await stays()
  await rig.up('lake')
  await tests.redis.hset(rig.keys.shared('circuit', 'siem'), 'until', 1)
  await stays()
})

test('a sink that is gone hands over at once', async () => {
  const rig = await aReliefRig(tests)
  await show(rig, 'siem', 2)
  await rig.circuit.report('siem', 'gone', { answer: 'answered 410' })
  await rig.relieve()
  await expectNothingWaits(rig, 'siem')
  expect((await expectConservation(rig.ledger)).sinks['lake']).toMatchObject({ created: 2 })
  expect(rig.said).toEqual([{ sink: 'siem', fallback: 'lake', items: 2 }])
  const { body } = await rig.metrics.render()
  expect(body).toContain('tocsin_sink_fallbacks_total{sink="siem"} 2\n')
  expect(body).toContain('tocsin_items_settled_total{sink="siem",outcome="diverted"} 2\n')
  expect(body).toContain('tocsin_items_created_total{sink="lake"} 2\n')
})

test('people get one message: how many could not be delivered where', async () => {
  const rig = await aReliefRig(tests)
  await takeIn(
    rig.ledger,
    uids(3).map((event) => rig.event(event, { grouping: { waitMs: 10_000 } })),
  )
  await takeIn(
    rig.ledger,
    uids(2, 3).map((event) => routed(event, ['soc'])),
  )
  await rig.down('soc', fallbackAfterMs)
  await rig.relieve()
  expect(rig.said).toEqual([{ sink: 'soc', fallback: 'oncall', items: 5 }])
  await expectNothingWaits(rig, 'soc')
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(1)
  expect(rig.sinks.oncall.received).toMatchObject([
    { summary: { kind: 'group', total: 5, divertedFrom: 'soc' } },
  ])
})

test('a destination that has the event gets no second one', async () => {
  const rig = await aReliefRig(tests)
  await takeIn(rig.ledger, [routed({ uid: 'paste/site/0' }, ['siem', 'lake'])])
  await rig.deliverDue('lake')
  await rig.circuit.report('siem', 'gone')
  await rig.relieve()
  await rig.deliverDue('lake')
  expect(rig.sinks.lake.received).toHaveLength(1)
  expect((await expectConservation(rig.ledger)).sinks['siem']).toMatchObject({ diverted: 1 })
})

test('the message about one event that could not be delivered is kept as it was sent', async () => {
  const rig = await aReliefRig(tests)
  await takeIn(rig.ledger, [routed({ uid: 'paste/site/0' }, ['soc'])])
  await rig.down('soc', fallbackAfterMs)
  await rig.relieve()
  rig.clock.aheadMs += 16_000
  expect(await rig.flush()).toBe(1)
  expect(await tests.redis.keys(rig.ledger.key('told', '*'))).toHaveLength(1)
})

test('a sealed batch is opened: its items go, and a later send says that it may be a repeat', async () => {
  const rig = await aReliefRig(tests)
  await show(rig, 'siem', 3)
  rig.sinks.siem.next('timeout')
  await rig.deliver(await sealedBatch(rig))
  await rig.down('siem', fallbackAfterMs)
  await rig.relieve()
  await expectNothingWaits(rig, 'siem')
  expect((await itemsOf(rig.ledger))[0]).toMatchObject({
    state: 'diverted',
    attempts: 1,
    repeatRisks: 1,
  })
  await rig.up('siem')
  await resendAll(rig, 'siem')
  await rig.deliverDue('siem')
  expect(rig.sinks.siem.received.map(({ mayBeRepeat }) => mayBeRepeat)).toEqual([
    false,
    true,
    true,
    true,
  ])
})

test('a digest of two accounts is opened in both', async () => {
  const keys = tests.keys()
  const ledgers = [await tests.ledger({ keys }), await tests.ledger({ keys, account: 'other' })]
  const fallbacks = { oncall: 'lake' }
  const rig = await aReliefRig(tests, {
    keys,
    ledgers: ledgers,
    fallbacks,
    digests: { oncall: everyMorning },
  })
  for (const [n, ledger] of ledgers.entries()) {
    await takeIn(
      ledger,
      uids(2, 10 * n).map((event) => rig.event(event, { sinks: ['oncall'] })),
    )
  }
  await rig.ensureDigests()
  rig.clock.aheadMs = everyMorning.schedule.next(Date.now()) + 2_000 - Date.now()
  const [ref = ''] = await rig.seal()
  rig.sinks.oncall.next('timeout')
  await rig.deliver(ref)
  await rig.down('oncall', fallbackAfterMs)
  await rig.relieve()
  await rig.relieve()
  for (const ledger of ledgers) await expectNothingWaits({ ...rig, ledger: ledger }, 'oncall')
  await rig.deliverDue('lake')
  expect(rig.sinks.lake.received).toHaveLength(4)
  expect(rig.sinks.oncall.received).toMatchObject([{ summary: { total: 4 } }])
})

test.each([
  ['unfreeze-message', 1],
  ['unfreeze-message', 2],
  ['drop-message', 1],
  ['redirect-item', 1],
  ['redirect-item', 3],
])(
  'killed before %s number %i it loses nothing, and the next pass goes on',
  async (script, nth) => {
    const rig = await aReliefRig(tests)
    await takeIn(
      rig.ledger,
      uids(4).map((event) => rig.event(event)),
    )
    rig.clock.aheadMs += 16_000
    const [ref = ''] = await rig.seal()
    await rig.circuit.report('soc', 'gone')
    dieAt(rig.ledger, script, nth)
    await expect(rig.relieve()).rejects.toThrow('killed')
    await expectConservation(rig.ledger)
    await rig.relieve()
    await expectNothingWaits(rig, 'soc')
    rig.clock.aheadMs += 16_000
    await rig.flush()
    expect(rig.sinks.oncall.received).toMatchObject([{ summary: { total: 4 } }])
    expect(ref).not.toBe('')
  },
)

test('members of a turn that was cut off while it sealed go too', async () => {
  const rig = await aReliefRig(tests)
  await takeIn(
    rig.ledger,
    uids(3).map((event) => rig.event(event)),
  )
  rig.clock.aheadMs += 16_000
  dieAt(rig.ledger, 'close-flush', 1)
  await expect(rig.seal()).rejects.toThrow('killed')
  rig.clock.aheadMs += 31_000
  await rig.circuit.report('soc', 'gone')
  await rig.relieve()
  await expectNothingWaits(rig, 'soc')
})

test('what the retry table gives up goes to the fallback instead of dying', async () => {
  const rig = await aReliefRig(tests)
  await show(rig, 'siem', 1)
  rig.sinks.siem.next('invalid')
  await rig.deliver(await sealedBatch(rig))
  await expectNothingWaits(rig, 'siem')
  await rig.deliverDue('lake')
  const [item] = await itemsOf(rig.ledger)
  expect(item).toMatchObject({ state: 'diverted', history: [{ reason: 'invalid' }] })
  expect(rig.sinks.lake.received).toHaveLength(1)
  const { sinks } = await expectConservation(rig.ledger)
  expect(sinks['siem']).toMatchObject({ dead: 0, diverted: 1 })
})

test('the test event of a sink tells nothing at its fallback: it stays, and tries the sink', async () => {
  const rig = await aReliefRig(tests)
  const events = [routed({ uid: 'canary/tocsin/1', type: 'canary' }, ['lake', 'siem'])]
  await takeIn(rig.ledger, events, { feed: '_tocsin' })
  await rig.circuit.report('siem', 'gone')
  await rig.relieve()
  expect((await expectConservation(rig.ledger)).sinks['siem']).toMatchObject({ diverted: 0 })
})

test('a test event that its sink refuses for good is a dead letter: nobody sends it again and again', async () => {
  const rig = await aReliefRig(tests)
  const events = [routed({ uid: 'canary/tocsin/1', type: 'canary' }, ['soc'])]
  await takeIn(rig.ledger, events, { feed: '_tocsin' })
  rig.sinks.soc.next('invalid')
  await rig.deliverDue('soc')
  rig.clock.aheadMs += 5_000
  await rig.deliverDue('soc')
  expect(rig.sinks.soc.received).toHaveLength(1)
  expect((await expectConservation(rig.ledger)).sinks['soc']).toMatchObject({ dead: 1 })
})
