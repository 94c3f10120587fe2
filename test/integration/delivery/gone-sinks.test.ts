/** What waits for a sink that left the configuration, and what becomes of it when the sink is back. */
import { expect, test } from 'vitest'
import { createGoneSinks, type GoneSinks } from '../../../src/delivery/relief/gone-sinks.ts'
import { type ClaimResult, claimDue } from '../../../src/delivery/claims.ts'
import type { Outlet } from '../../../src/grouping/placement.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import { discardItem } from '../../../src/store/pending-items.ts'
import { beginAttempt, makeDue, sealBatch } from '../../support/attempts.ts'
import { aDeliveryRig } from '../../support/delivery.ts'
import { aDigestRig } from '../../support/digest-rig.ts'
import { outletOf } from '../../support/grouping.ts'
import {
  aStanding,
  expectConservation,
  scanPendingItems,
  expectNothingStranded,
  redisForTests,
  routed,
  silent,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'

import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { until } from '../../support/rehearsal.ts'

const tests = redisForTests()

const people = new Map([['soc', outletOf(aRehearsedSink('soc', { type: 'slack' }))]])

interface Given {
  ledgers?: AccountLedger[]
  outlets?: ReadonlyMap<string, Outlet>
  standing?: Partial<ReturnType<typeof aStanding>>
}

function goneSinksOf(ledger: AccountLedger, given: Given = {}): GoneSinks {
  const { ledgers = [ledger], outlets = new Map(), standing } = given
  return createGoneSinks({ ledgers, outlets, standing: aStanding(standing), logger: silent })
}

async function bring(ledger: AccountLedger, count: number, sink = 'soc'): Promise<void> {
  const events = Array.from({ length: count }, (_, i) => routed({ uid: `${sink}/${i}` }, [sink]))
  await takeIn(ledger, events)
}

async function waiting(ledger: AccountLedger, sink = 'soc'): Promise<Record<string, number>> {
  return waitingIn((await readAccounting(ledger)).sinks[sink])
}

function claim(ledger: AccountLedger, sink = 'soc'): Promise<ClaimResult> {
  return claimDue(ledger, { owner: 'r1', leaseMs: 10_000 }, { sink, max: 10, leastRank: 1 })
}

test('nobody claims for a sink that is gone, its items stay as they are, and they go on when it is back', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 3)
  const goneSinks = goneSinksOf(ledger)
  for (let pass = 0; pass < 2; pass += 1) await goneSinks.note(ledger, 'soc')
  expect(await claim(ledger)).toMatchObject({ claims: [], left: 0, nextInMs: undefined })
  expect(await waiting(ledger)).toEqual({ queued: 3 })
  await expectNothingStranded(ledger)
  expect(await goneSinks.takeBack(ledger, 'soc')).toBe(true)
  expect((await claim(ledger)).claims).toHaveLength(3)
})

test('the slow pass notes a sink that is gone, and sends its items once it is back', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys })
  await bring(ledger, 2)
  const place = { redis: tests.redis, keys, ledger }
  const soc = aRehearsedSink('soc')
  const older = aDeliveryRig({ ...place, sinks: [soc], standing: aStanding({ isActive: false }) })
  const newest = aDeliveryRig({ ...place, sinks: [] })
  const again = aDeliveryRig({ ...place, sinks: [soc] })
  for (const { drains } of [older, newest, again]) drains.start()
  await newest.drains.reconcileOnce()
  await older.drains.reconcileOnce()
  await older.drains.stop(1_000)
  expect(soc.received).toEqual([])
  await again.drains.reconcileOnce()
  await until('they are sent', () => soc.received.length === 2)
  for (const { drains } of [newest, again]) await drains.stop(1_000)
  await expectConservation(ledger)
})

test('only the newest configuration notes a sink as gone, and only the active one takes it back', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 1)
  for (const isActive of [false, true])
    await goneSinksOf(ledger, { standing: { isActive, isNewest: false } }).note(ledger, 'soc')
  expect(await tests.redis.smembers(ledger.key('gone'))).toEqual([])
  await goneSinksOf(ledger).note(ledger, 'soc')
  const passive = goneSinksOf(ledger, { standing: { isActive: false } })
  expect(await passive.takeBack(ledger, 'soc')).toBe(false)
  expect((await claim(ledger)).claims).toEqual([])
})

test('people get what they missed in one message, hundreds of it too', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 450)
  const goneSinks = goneSinksOf(ledger, { outlets: people })
  await goneSinks.note(ledger, 'soc')
  await goneSinks.takeBack(ledger, 'soc')
  expect(await waiting(ledger)).toEqual({ group: 450 })
  expect(await tests.redis.zcard(ledger.key('timers'))).toBe(1)
  await expectNothingStranded(ledger)
})

test('a batch of a sink that is gone is taken apart, so that an operator can end its items', async () => {
  const ledger = await tests.ledger()
  await takeIn(
    ledger,
    ['a/b/1', 'a/b/2'].map((uid) => routed({ uid }, ['siem'])),
    { batchWaitMs: 1 },
  )
  const refs = await tests.redis.zrange(ledger.key('collect', 'siem'), '0', '-1')
  await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs)
  await goneSinksOf(ledger).note(ledger, 'siem')
  expect(await waiting(ledger, 'siem')).toEqual({ queued: 2 })
  for await (const { ref } of scanPendingItems(ledger))
    expect(await discardItem(ledger, ref, 'ann')).toBe('done')
  await expectConservation(ledger)
})

test('a message whose outcome is known is settled though its sink is gone', async () => {
  const ledger = await tests.ledger()
  const message = { k: 'soc', d: 'soc', kind: 'group', n: 1, o: 'delivered' }
  await bring(ledger, 1)
  await tests.redis.set(ledger.key('batch', 'm1'), JSON.stringify(message))
  await tests.redis.zadd(ledger.key('due', 'soc'), 1, 'b:m1:soc')
  await goneSinksOf(ledger).note(ledger, 'soc')
  expect(await tests.redis.exists(ledger.key('batch', 'm1'))).toBe(0)
})

test.each(['lost', 'awaited'])(
  'a digest whose answer was %s when its sink went comes back as a possible repeat in every account',
  async (answer) => {
    const rig = await aDigestRig(tests, { accounts: 2 })
    const { ledgers } = rig
    for (const ledger of ledgers) await rig.show(ledger, { uid: 'a/b/1' })
    rig.toMorning(1)
    const [ref = ''] = await rig.seal()
    rig.oncall.next('timeout')
    if (answer === 'lost') await rig.deliver(ref)
    else await beginAttempt(ledgers[0]!, ref, 'token', 1_000)
    await makeDue(ledgers[0]!, ref)
    const name = ledgers[0]!.key('batch', ref.split(':')[1] ?? '')
    const head = JSON.parse((await tests.redis.get(name)) ?? '') as { at: number }
    await tests.redis.set(name, JSON.stringify({ ...head, at: head.at - 120_000 })) // its process is dead
    await goneSinksOf(ledgers[0]!, { ledgers }).note(ledgers[0]!, 'oncall')
    rig.oncall.received.length = 0
    for (const ledger of ledgers) {
      expect(await waiting(ledger, 'oncall')).toEqual({ group: 1 })
      await goneSinksOf(ledger).takeBack(ledger, 'oncall')
    }
    rig.clock.aheadMs += 60_000
    await rig.flush()
    expect(rig.oncall.received.map(({ mayBeRepeat }) => mayBeRepeat)).toEqual([true, true])
  },
)
