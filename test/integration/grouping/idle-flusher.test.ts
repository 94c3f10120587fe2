/** What the loops of groups and digests ask Redis: while nothing is due, and when all digests are. */
import { expect, test } from 'vitest'
import { aGatheringRig, clockToSet, type GatheringRig } from '../../support/grouping.ts'
import { digestGroupId } from '../../../src/grouping/placement.ts'
import { dayMs, everyMorning } from '../../support/digest-rig.ts'
import { aStanding, redisForTests, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'

const given = redisForTests()
const control = { signal: new AbortController().signal, alive: () => undefined, restMs: 10_000 }

interface FleetRig extends GatheringRig {
  ledgers: AccountLedger[]
  /** One pass of both loops, a second later than the last. */
  tick(): Promise<number>
}

async function aFleet(count: number, { hasDigests = true } = {}): Promise<FleetRig> {
  const keys = given.keys()
  const names = Array.from({ length: count }, (_none, at) => `tenant${at}`)
  const ledgers = await Promise.all(names.map((account) => given.ledger({ keys, account })))
  const sinks = names.map((name) => aRehearsedSink(name, { type: 'email' }))
  const clock = clockToSet()
  clock.monotonic = () => clock.aheadMs // however long a pass takes
  // no digest is due in the next hours
  if (hasDigests) clock.aheadMs = everyMorning.schedule.next(Date.now()) + 3_600_000 - Date.now()
  const digests = Object.fromEntries(
    names.map((name) => [name, hasDigests ? everyMorning : undefined]),
  )
  const rig = aGatheringRig({ redis: given.redis, keys, ledgers, sinks, digests, clock })
  return Object.assign(rig, {
    ledgers,
    async tick() {
      clock.aheadMs += 1_000
      await rig.flusher.ensureDigestsOnce()
      const { messages } = await rig.flusher.flushDigestsOnce(control)
      return messages + (await rig.flusher.flushGroupsOnce(control)).messages
    },
  })
}

/** Commands and scripts that Redis ran for clients. */
async function countCommands(): Promise<number> {
  const info = await given.redis.info('stats')
  return Number(/total_commands_processed:(\d+)/.exec(info)?.[1])
}

async function countPerPass(rig: FleetRig, passes: number): Promise<number> {
  await rig.tick()
  const before = await countCommands()
  for (let pass = 0; pass < passes; pass += 1) await rig.tick()
  return ((await countCommands()) - before - 1) / passes
}

test('an idle second asks Redis one question and a tenth for each account, however many digests there are', async () => {
  const [few, many] = [await aFleet(2), await aFleet(40)]
  expect(await countPerPass(few, 10)).toBeLessThan(1 + 2 / 5)
  const each = await countPerPass(many, 10)
  expect(each).toBeGreaterThan(1)
  expect(each).toBeLessThan(1 + 40 / 5)
})

test('the timers of digests are looked for at the first pass and once a minute, by the active configuration', async () => {
  const rig = await aFleet(2)
  const timers = rig.ledgers[0]!.key('timers')
  rig.options.standing = aStanding({ isActive: false })
  await rig.tick()
  expect(await given.redis.zcard(timers)).toBe(0)
  rig.options.standing = aStanding()
  await rig.tick()
  expect(await given.redis.zcard(timers)).toBe(2)
  await given.redis.del(timers)
  for (let second = 0; second < 30; second += 1) await rig.tick()
  expect(await given.redis.zcard(timers)).toBe(0)
  for (let second = 0; second < 31; second += 1) await rig.tick()
  expect(await given.redis.zcard(timers)).toBe(2)
})

test('a group is flushed at its time if this process took its event in, and within the rest after it otherwise', async () => {
  const rig = await aFleet(2, { hasDigests: false })
  const [mine, others] = rig.ledgers
  await rig.tick()
  const place = { grouping: { waitMs: 3_000 } }
  await takeIn(mine!, [rig.event({ uid: 'a/b/1' }, { ...place, sinks: ['tenant0'] })])
  await takeIn(others!, [rig.event({ uid: 'a/b/2' }, { ...place, sinks: ['tenant1'] })])
  rig.flusher.noteGroups('tenant0')
  const flushedAt: number[] = []
  for (let second = 1; second <= 12; second += 1) if ((await rig.tick()) > 0) flushedAt.push(second)
  expect(flushedAt).toHaveLength(2)
  expect(flushedAt[0]).toBeLessThanOrEqual(4)
  expect(flushedAt[1]).toBeGreaterThan(4) // nobody noted it here
  expect(flushedAt[1]).toBeLessThanOrEqual(11)
})

test('a shared reading covers each window to its end: windows end when it began', async () => {
  const rig = await aFleet(2)
  await rig.tick()
  rig.clock.aheadMs += dayMs
  rig.clock.monotonic = () => 0
  const beganMs = rig.clock.now()
  const { readCoverage } = rig.options
  rig.options.readCoverage = () => {
    rig.clock.aheadMs += 60_000 // it takes its time
    return readCoverage()
  }
  await rig.flusher.flushDigestsOnce(control)
  const [lead] = rig.ledgers
  for (const name of ['tenant0', 'tenant1']) {
    const window = lead!.key('group', digestGroupId(name))
    const fromMs = Number(await given.redis.hget(window, 'from'))
    expect(fromMs).toBeGreaterThanOrEqual(beganMs)
    expect(fromMs - beganMs).toBeLessThan(60_000)
  }
})
