/** What waits while its sink, its digest, its recipient or its account is changed or goes. */
import { expect, test } from 'vitest'
import { createSchedule } from '../../../src/lib/cron-schedule.ts'
import { type Sink, SinkError } from '../../../src/sinks/sink.ts'
import { aDigestRig, dayMs } from '../../support/digest-rig.ts'
import { aGatheringRig, around, aSlackRig, uids, type SlackRig } from '../../support/grouping.ts'
import {
  aStanding,
  expectConservation,
  redisForTests,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'
import { aDeliveryRig } from '../../support/delivery.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { until } from '../../support/rehearsal.ts'

const given = redisForTests()

async function aWaitingGroup(count: number): Promise<SlackRig> {
  const rig = await aSlackRig(given)
  await takeIn(
    rig.ledger,
    uids(count).map((event) => rig.event(event)),
  )
  rig.clock.aheadMs = 11_000
  return rig
}

test('groups of a removed sink wait until it is back, and go as one message then', async () => {
  const waiting = await aWaitingGroup(30)
  const { keys, ledger } = waiting
  const without = aGatheringRig({ redis: given.redis, keys, ledgers: [ledger], sinks: [] })
  without.clock.aheadMs = 60_000
  for (let pass = 0; pass < 2; pass += 1) await without.flush()
  const { soc } = (await expectConservation(waiting.ledger)).sinks
  expect(waitingIn(soc)).toEqual({ group: 30 })
  waiting.clock.aheadMs = 80_000
  expect(await waiting.flush()).toBe(1)
  expect(waiting.soc.received[0]!.summary).toMatchObject({ total: 30 })
})

test('a configuration that is not the newest one leaves groups of sinks that it does not know to the other, and sends its own', async () => {
  const rig = await aSlackRig(given)
  const { keys, ledger } = rig
  const inGroup = (n: number) =>
    rig.event({ uid: `a/b/${n}` }, { grouping: { labels: { type: `t${n}` }, waitMs: 5_000 } })
  await takeIn(
    ledger,
    Array.from({ length: 250 }, (_none, n) => inGroup(n)),
  )
  const pager = aRehearsedSink('pager', { type: 'slack' })
  const standing = aStanding({ isActive: true, isNewest: false })
  const sinks = { redis: given.redis, keys, ledgers: [ledger], sinks: [pager] }
  const passive = aGatheringRig({ ...sinks, standing })
  const its = uids(3).map((one) => passive.event(one))
  await takeIn(ledger, its)
  passive.clock.aheadMs = 11_000
  expect(await passive.flush()).toBe(1)
  expect(pager.received[0]!.members).toHaveLength(3)
  expect(waitingIn((await expectConservation(ledger)).sinks['soc'])).toEqual({ group: 250 })
})

test.each([
  ['has no digest there', null, 1],
  ['has not its recipient', {}, 0],
])(
  'a configuration that is not the newest and %s leaves a digest to those that have it',
  async (_why, digest, recipients) => {
    const newer = await aDigestRig(given)
    const { keys, ledgers } = newer
    await newer.show(ledgers[0]!, ...uids(2))
    newer.toMorning(1)
    const { aheadMs } = newer.clock
    const standing = aStanding({ isNewest: false })
    const place = { keys, ledgers, standing, aheadMs, recipients }
    const older = await aDigestRig(given, { ...place, digest })
    const timers = ledgers[0]!.key('timers')
    const before = await given.redis.zrange(timers, '0', '-1', 'WITHSCORES')
    const scripts: string[] = []
    around(ledgers[0]!, (script, run) => (scripts.push(script), run()))
    expect([await older.flush(), await older.flush()]).toEqual([0, 0])
    const look = ['claim-timer', 'postpone-timers'] // once a pass
    expect(scripts.filter((script) => script !== 'wake-held')).toEqual([...look, ...look])
    expect(older.oncall.received).toEqual([])
    expect(await given.redis.zrange(timers, '0', '-1', 'WITHSCORES')).toEqual(before)
    expect(await newer.flush()).toBe(1)
    expect(newer.oncall.received[0]!.summary).toMatchObject({ kind: 'digest', total: 2 })
  },
)

test('digests are left to the active configuration: another may have another schedule', async () => {
  const active = await aDigestRig(given)
  const { keys, ledgers } = active
  await active.show(ledgers[0]!, ...uids(2))
  active.toMorning(1)
  const { aheadMs } = active.clock
  const standing = aStanding({ isActive: false, isNewest: false })
  const older = await aDigestRig(given, { keys, ledgers, aheadMs, standing })
  expect(await older.flush()).toBe(0)
  expect(await active.flush()).toBe(1)
})

test('what a mute holds comes when the mute is gone from the configuration, or ends sooner', async () => {
  const hold = (untilMs: number) => () => ({ act: 'hold', rule: 'weekend', untilMs }) as const
  const nowMs = Date.now()
  const muted = await aSlackRig(given, { gate: hold(nowMs + 3 * dayMs) })
  await takeIn(
    muted.ledger,
    uids(4).map((event) => muted.event(event)),
  )
  muted.clock.aheadMs = 11_000
  expect(await muted.flush()).toBe(0)
  const place = { keys: muted.keys, ledgers: [muted.ledger] }
  const passive = await aSlackRig(given, {
    ...place,
    standing: aStanding({ isActive: false }),
  })
  expect(await passive.flush()).toBe(0) // it is the active one whose mutes count
  const shorter = await aSlackRig(given, { ...place, gate: hold(nowMs + dayMs) })
  expect(await shorter.flush()).toBe(0)
  const [, atMs] = await given.redis.zrange(muted.ledger.key('timers'), '0', '-1', 'WITHSCORES')
  expect(Number(atMs)).toBe(nowMs + dayMs)
  const without = await aSlackRig(given, place)
  expect(await without.flush()).toBe(1)
  expect(without.soc.received[0]!.summary).toMatchObject({ kind: 'held', total: 4 })
})

test('a message that was frozen before its sink became a webhook goes one by one, too, and none of it dies', async () => {
  const waiting = await aWaitingGroup(30)
  const { keys, ledger } = waiting
  expect(await waiting.seal()).toHaveLength(1)
  const refuse = (): Promise<void> => Promise.reject(new SinkError('invalid', 'one by one'))
  const hook = aRehearsedSink('soc')
  const send: Sink['send'] = async (delivery, options) => {
    if (delivery.summary) await refuse()
    return hook.send(delivery, options)
  }
  const { drains } = aDeliveryRig({
    redis: given.redis,
    keys,
    ledger: ledger,
    sinks: [{ ...hook, send }],
  })
  drains.start()
  await drains.reconcileOnce()
  await until('all of it is settled', async () => {
    const { soc } = (await expectConservation(ledger)).sinks
    return Object.keys(waitingIn(soc)).length === 0
  })
  await drains.stop(1_000)
  expect((await expectConservation(ledger)).sinks['soc']).toMatchObject({ delivered: 30, dead: 0 })
  expect(hook.received).toHaveLength(30)
})

test('a digest that is made daily comes at the next morning, not at the end of its old week', async () => {
  const weekday = new Date().getUTCDay()
  const schedule = createSchedule({ cron: `0 8 * * ${weekday}`, timeZone: 'UTC' })
  const weekly = await aDigestRig(given, { digest: { schedule } })
  const endMs = schedule.next(Date.now())
  weekly.clock.aheadMs = endMs + 2_000 - Date.now()
  await weekly.ensureDigests()
  await weekly.flush()
  const { keys, ledgers } = weekly
  const aheadMs = endMs + 2.5 * dayMs - Date.now()
  const daily = await aDigestRig(given, { keys, ledgers: ledgers, aheadMs })
  expect(await daily.flush()).toBe(0)
  daily.clock.aheadMs = endMs + 3 * dayMs + 2_000 - Date.now()
  expect(await daily.flush()).toBe(1)
  expect(daily.oncall.received[0]!.summary!.digest!.dueAtMs).toBeLessThan(endMs + 2 * dayMs)
})

test('a recipient who was taken off the list gets no more digests, the others theirs', async () => {
  const { keys, ledgers } = await aDigestRig(given, { recipients: 2 })
  const rig = await aDigestRig(given, { keys, ledgers: ledgers })
  const made: number[] = []
  for (let morning = 1; morning <= 4; morning += 1) {
    rig.toMorning(morning)
    made.push(await rig.flush())
  }
  expect(made).toEqual([1, 1, 1, 1])
  expect(rig.oncall.received.map(({ destination }) => destination.id)).toEqual(
    Array.from({ length: 4 }, () => 'oncall:0'),
  )
  expect((await expectConservation(ledgers[0]!)).sinks['oncall']?.dead ?? 0).toBe(0)
})

test('a digest whose second account is gone is sent, and settles that account when it is back', async () => {
  const both = await aDigestRig(given, { accounts: 2 })
  const { keys, ledgers } = both
  await both.show(ledgers[0]!, ...uids(20))
  await both.show(ledgers[1]!, ...uids(4))
  both.toMorning(1)
  const [ref] = await both.seal()
  const one = await aDigestRig(given, { keys, ledgers: [ledgers[0]!] })
  Object.assign(one.oncall, { canAttach: true })
  await one.deliver(ref!, ledgers[0])
  const [sent] = one.oncall.received
  expect(sent!.summary!.total).toBe(24)
  expect(sent!.attachment).toBeDefined()
  expect((await expectConservation(ledgers[0]!)).sinks['oncall']!.delivered).toBe(20)
  expect(waitingIn((await expectConservation(ledgers[1]!)).sinks['oncall'])).toEqual({ batch: 4 })
  const againAtMs = Number(await given.redis.zscore(ledgers[0]!.key('due', 'oncall'), ref!))
  expect(againAtMs).toBeGreaterThan(Date.now() + 3_500_000) // an hour: nobody asks for it all the time
  await both.deliver(ref!, ledgers[0])
  expect(both.oncall.received).toEqual([])
  expect(await given.redis.exists(ledgers[0]!.key('batch', ref!.split(':')[1]!))).toBe(0)
  expect((await expectConservation(ledgers[1]!)).sinks['oncall']!.delivered).toBe(4)
})
