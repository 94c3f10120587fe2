/** Turns that a crash cuts off, or that a process sleeps through. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { aDigestRig } from '../../support/digest-rig.ts'
import { around, aSlackRig, dieAt, uids } from '../../support/grouping.ts'
import { expectConservation, redisForTests, takeIn, waitingIn } from '../../support/ledger.ts'

const given = redisForTests()

async function expectAllDelivered(ledger: AccountLedger, count: number): Promise<void> {
  const { soc } = (await expectConservation(ledger)).sinks
  expect(soc!.delivered).toBe(count)
  expect(waitingIn(soc)).toEqual({})
}

test.each([
  [1, 'group'],
  [2, 'storm'],
])('a message of %i groups that was cut off is finished as a %s', async (count, kind) => {
  const rig = await aSlackRig(given)
  const { ledger } = rig
  const types = Array.from({ length: count }, (_, i) => `t${i}`)
  const inGroup = (type: string, n: number) =>
    rig.event({ uid: `a/b/${type}${n}` }, { grouping: { labels: { type } } })
  await takeIn(
    ledger,
    types.flatMap((type) => [inGroup(type, 1), inGroup(type, 2)]),
  )
  // of its burst the destination has one message left
  await given.redis.set(ledger.key('flushes', 'soc'), Date.now() + 69_000)
  rig.clock.aheadMs = 11_000
  dieAt(ledger, 'close-flush', 1)
  await expect(rig.seal()).rejects.toThrow('killed')
  rig.clock.aheadMs = 60_000
  expect(await rig.flush()).toBe(1)
  expect(rig.soc.received[0]!.summary).toMatchObject({ kind, total: 2 * count })
})

test('a storm of a replica that slept leaves a group alone that another one is sealing', async () => {
  const rig = await aSlackRig(given)
  const { ledger } = rig
  const inGroup = (type: string, uid = `a/b/${type}`) =>
    rig.event({ uid }, { grouping: { labels: { type } } })
  await takeIn(
    ledger,
    Array.from({ length: 10 }, (_, i) => inGroup(`t${i}`)),
  )
  rig.clock.aheadMs = 11_000
  const other = await aSlackRig(given, { ledgers: [ledger], sinks: [rig.soc] })
  other.clock.aheadMs = 50_000
  let sealedByOther: string[] = []
  let isFirst = true
  around(ledger, async (script, run) => {
    if (script === 'freeze-members' && isFirst) {
      isFirst = false
      // the lease is over; another replica takes the last of the ten groups, and is cut off
      const timers = await given.redis.zrange(ledger.key('timers'), '0', '-2')
      for (const timer of timers) {
        await given.redis.zadd(ledger.key('timers'), 'XX', String(Date.now() + 900_000), timer)
      }
      dieAt(ledger, 'close-flush', 1)
      await other.seal().catch(() => undefined)
      sealedByOther = await given.redis.keys(ledger.key('members', '*'))
    }
    return run()
  })
  await rig.flush()
  expect(sealedByOther).toHaveLength(1)
  for (let pass = 1; pass <= 4; pass += 1) {
    rig.clock.aheadMs = 1_000_000 * pass
    await rig.flush()
  }
  await expectAllDelivered(ledger, 10)
})

test('a digest of two accounts that was cut off between their ledgers is finished, and what came since is in the next', async () => {
  const rig = await aDigestRig(given, { accounts: 2 })
  const [first, second] = rig.ledgers
  await rig.show(first!, ...uids(2))
  await rig.show(second!, ...uids(3))
  rig.toMorning(1)
  dieAt(first!, 'close-flush', 1)
  await expect(rig.flush()).rejects.toThrow('killed')
  await rig.show(second!, ...uids(1, 50))
  rig.clock.aheadMs += 40_000
  expect(await rig.flush()).toBe(1)
  rig.toMorning(2)
  await rig.flush()
  expect(rig.oncall.received.map(({ summary }) => summary!.total)).toEqual([5, 1])
  for (const [ledger, delivered] of [
    [first!, 2],
    [second!, 4],
  ] as const) {
    const { oncall } = (await expectConservation(ledger)).sinks
    expect(oncall!.delivered).toBe(delivered)
    expect(waitingIn(oncall)).toEqual({})
  }
})
