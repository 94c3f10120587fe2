/** Which account comes first in the file changes nothing for digests. */
import { expect, test } from 'vitest'
import { digestGroupId } from '../../../src/grouping/placement.ts'
import { type AccountLedger, claimLead, findLead } from '../../../src/store/account-ledger.ts'
import { aDigestRig, dayMs, type DigestRig } from '../../support/digest-rig.ts'
import { uids } from '../../support/grouping.ts'
import { redisForTests, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

/** Two accounts, of which the first leads; a digest has gone out, and the next one collects in both. */
async function aScene(): Promise<{
  rig: DigestRig
  north: AccountLedger
  south: AccountLedger
  sentMs: number
}> {
  const rig = await aDigestRig(tests, { accounts: 2 })
  const [north, south] = rig.ledgers as [AccountLedger, AccountLedger]
  await claimLead({ redis: tests.redis, keys: rig.keys }, [north, south])
  await rig.show(north, ...uids(1))
  rig.toMorning(1)
  expect(await rig.flush()).toBe(1)
  const sentMs = rig.oncall.received[0]!.summary!.digest!.toMs
  await rig.show(north, ...uids(2, 10))
  await rig.show(south, ...uids(3, 20))
  return { rig, north, south, sentMs }
}

/** The same Redis a while later, with accounts in another order or fewer of them. */
async function after({ keys, clock }: DigestRig, ledgers: AccountLedger[]): Promise<DigestRig> {
  await claimLead({ redis: tests.redis, keys }, ledgers)
  const next = await aDigestRig(tests, {
    keys,
    ledgers: ledgers,
    aheadMs: clock.aheadMs + 3_600_000,
  })
  next.clock.aheadMs = clock.aheadMs + dayMs
  return next
}

test('a new account on top of the file neither resets the window of a digest nor repeats one', async () => {
  const { rig, north, south, sentMs } = await aScene()
  const onTop = await tests.ledger({ keys: rig.keys, account: 'on-top' })
  const next = await after(rig, [onTop, south, north])
  expect(await next.flush()).toBe(1)
  const [digest, ...others] = next.oncall.received
  expect(others).toEqual([])
  expect(digest!.summary!.total).toBe(5)
  expect(digest!.summary!.digest!.fromMs).toBe(sentMs)
})

test('when the account that led is gone, its digests go on where they were', async () => {
  const { rig, north, south, sentMs } = await aScene()
  const noteIn = (ledger: AccountLedger) =>
    ledger.redis.hget(ledger.key('group', digestGroupId('oncall:0')), 'note')
  const next = await after(rig, [south])
  expect(JSON.parse((await noteIn(north)) ?? '')).toEqual({ suppressed: 0, diverted: 0 })
  expect(await noteIn(south)).toBe(await noteIn(north))
  expect(await next.flush()).toBe(1)
  const [digest] = next.oncall.received
  expect(digest!.summary!.total).toBe(3)
  expect(digest!.summary!.digest!.fromMs).toBe(sentMs)
})

test('who takes the lead over gets the digests of the one before, at their times, and nothing else of it', async () => {
  const { rig, north, south } = await aScene()
  const waiting = rig.event({ uid: 'a/b/group' }, { sinks: ['oncall:0'] })
  const gathering = { ...waiting.items[0]!.group!, id: 'group1', kind: 'group' } as const
  await takeIn(north, [{ ...waiting, items: [{ ...waiting.items[0]!, group: gathering }] }])
  const id = digestGroupId('oncall:0')
  const [timer, soonMs] = [`c:${id}:oncall`, Date.now() + 3_600_000]
  await tests.redis.zadd(north.key('timers'), soonMs, timer)
  const windowIn = (ledger: AccountLedger) =>
    tests.redis.hmget(ledger.key('group', id), 'kind', 'about', 'from', 'note')
  for (const _again of [1, 2]) {
    await claimLead({ redis: tests.redis, keys: rig.keys }, [south])
    expect(await tests.redis.get(rig.keys.shared('lead'))).toBe(south.account)
    const timers = await tests.redis.zrange(south.key('timers'), '0', '-1', 'WITHSCORES')
    expect(timers).toEqual([timer, String(soonMs)])
    expect(await windowIn(south)).toEqual(await windowIn(north))
    await tests.redis.set(rig.keys.shared('lead'), north.account) // as if it had been cut off before
  }
})

test('commands look where the daemon does, and choose nobody', async () => {
  const { rig, north, south } = await aScene()
  const ledgers = [south, north]
  await findLead({ redis: tests.redis, keys: rig.keys }, ledgers)
  expect(ledgers).toEqual([north, south])
  const elsewhere = { redis: tests.redis, keys: tests.keys() }
  await findLead(elsewhere, ledgers)
  expect(await tests.redis.exists(elsewhere.keys.shared('lead'))).toBe(0)
})
