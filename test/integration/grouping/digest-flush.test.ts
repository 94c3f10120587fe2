import { expect, test } from 'vitest'
import { noteDigestSent, readDigestTimes } from '../../../src/grouping/digest-times.ts'
import { endWindowNow, type DigestSink } from '../../../src/grouping/digest-flush.ts'
import { digestGroupId } from '../../../src/grouping/placement.ts'
import type { Delivery } from '../../../src/sinks/sink.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { findDeliveryItems } from '../../../src/store/deliveries.ts'
import { aDigestRig, dayMs, everyMorning } from '../../support/digest-rig.ts'
import { uids } from '../../support/grouping.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'

const given = redisForTests()

test('a digest carries what its window collected, once, and the next one what came after', async () => {
  const rig = await aDigestRig(given)
  const [ledger] = rig.ledgers
  await rig.show(ledger!, ...uids(3))
  expect(await rig.flush()).toBe(0)
  rig.toMorning(1)
  expect(await rig.flush()).toBe(1)
  await rig.show(ledger!, ...uids(2, 10))
  rig.toMorning(2)
  expect(await rig.flush()).toBe(1)
  expect(rig.oncall.received.map(({ summary }) => summary!.total)).toEqual([3, 2])
  const [first, second] = rig.oncall.received.map(({ summary }) => summary!.digest!)
  expect(second!.fromMs).toBe(first!.toMs)
  expect(first).toMatchObject({ isLate: false, timeZone: 'UTC', held: 0, dead: 0 })
  const [{ id, pageUrl }] = rig.oncall.received as [Delivery]
  expect(pageUrl).toBe(`https://tocsin.test/messages/${id}?at=${first!.toMs}`)
  expect((await expectConservation(ledger!)).sinks['oncall']!.delivered).toBe(5)
})

test('an empty digest comes too, unless it is not wanted', async () => {
  const rig = await aDigestRig(given)
  rig.toMorning(1)
  expect(await rig.flush()).toBe(1)
  expect(rig.oncall.received[0]!.summary!.total).toBe(0)
  expect(rig.oncall.received[0]!.pageUrl).toBeUndefined() // the page knows a message by its events
  const quiet = await aDigestRig(given, { digest: { sendsEmpty: false } })
  quiet.toMorning(1)
  expect(await quiet.flush()).toBe(0)
  await quiet.show(quiet.ledgers[0]!, ...uids(1))
  quiet.toMorning(2)
  expect(await quiet.flush()).toBe(1)
})

test.each([
  ['of nothing', [], 4],
  ['of what is low', ['info', 'low'], 2],
])('a digest %s is told of by the rank of its worst severity', async (_what, severities, rank) => {
  const rig = await aDigestRig(given)
  const told: unknown[] = []
  await rig.show(
    rig.ledgers[0]!,
    ...severities.map((severity) => ({ uid: `a/b/${severity}`, severity })),
  )
  rig.options.announce = (account, work) => void told.push(account, ...work)
  rig.toMorning(1)
  expect(await rig.flush()).toBe(1)
  expect(told).toEqual(['a0', { sink: 'oncall', rank }])
})

test('what goes at once is counted by severity, and in nothing else', async () => {
  const rig = await aDigestRig(given)
  const [ledger] = rig.ledgers
  await rig.show(
    ledger!,
    { uid: 'a/b/worst', severity: 'critical' },
    { uid: 'a/b/odd', severity: 'dire' },
  )
  await rig.show(ledger!, ...uids(1))
  expect(rig.oncall.received.map(({ members }) => members[0]!.event.uid)).toEqual([
    'a/b/worst',
    'a/b/odd',
  ])
  rig.oncall.next('recipient_refused')
  await rig.show(ledger!, { uid: 'a/b/refused', severity: 'critical' })
  rig.toMorning(1)
  await rig.flush()
  const { summary } = rig.oncall.received[3]!
  expect(summary!.digest!.dead).toBe(1)
  expect(summary!.total).toBe(1)
  expect(summary!.digest!.alreadySent).toEqual([
    { severity: 'dire', count: 1 },
    { severity: 'critical', count: 1 },
  ])
  rig.toMorning(2)
  await rig.flush()
  expect(rig.oncall.received[4]!.summary!.digest!.alreadySent).toEqual([])
})

/** As if so much had happened to items of the sink meanwhile. */
async function countIn(ledger: AccountLedger, counts: Record<string, number>): Promise<void> {
  await given.redis.sadd(ledger.key('sinks'), 'oncall') // as the commit of any item does
  for (const [word, by] of Object.entries(counts)) {
    await given.redis.hincrby(ledger.key('counters'), `s|oncall|${word}`, by)
  }
}

test('what was suppressed or diverted counts once for all recipients, and since the digest before', async () => {
  const rig = await aDigestRig(given, { accounts: 2, recipients: 2 })
  for (const ledger of rig.ledgers) await countIn(ledger, { suppressed: 3, diverted: 2 })
  rig.toMorning(1)
  await rig.flush()
  await countIn(rig.ledgers[0]!, { suppressed: 1, diverted: 5 })
  rig.toMorning(2)
  await rig.flush()
  const [first, second] = [0, 1].map((at) => rig.oncall.received[2 * at]!)
  expect(first!.summary!.digest).toMatchObject({ suppressed: 3, diverted: 2 })
  expect(second!.summary!.digest).toMatchObject({ suppressed: 1, diverted: 3 })
  expect([first!.mayBeRepeat, second!.mayBeRepeat]).toEqual([false, false])
})

test.each([
  [14, false],
  [16, true],
])(
  'a digest that comes %i minutes after its time says that it is late: %s',
  async (minutes, isLate) => {
    const rig = await aDigestRig(given)
    rig.toMorning(1)
    rig.clock.aheadMs += minutes * 60_000
    await rig.flush()
    expect(rig.oncall.received[0]!.summary!.digest).toMatchObject({ isLate })
  },
)

test('a digest that is wanted now was due now, and the next one begins with it', async () => {
  const rig = await aDigestRig(given)
  const [ledger] = rig.ledgers
  await rig.show(ledger!, ...uids(2))
  const sink = rig.options.sinks.get('oncall') as DigestSink
  const asked = { destination: 'oncall:0', nowMs: rig.clock.now() }
  await endWindowNow(rig.ledgers, sink, asked)
  expect(await rig.flush()).toBe(1)
  const [{ summary }] = rig.oncall.received as [Delivery]
  expect(summary).toMatchObject({ total: 2, digest: { isLate: false } })
  expect(summary!.digest!.dueAtMs).toBeLessThanOrEqual(summary!.digest!.toMs)
  rig.toMorning(1)
  expect(await rig.flush()).toBe(1)
  expect(rig.oncall.received[1]!.summary!.digest!.fromMs).toBe(summary!.digest!.toMs)
})

test('two accounts share one digest, each ledger settles its own, and its id finds all of both', async () => {
  const rig = await aDigestRig(given, { accounts: 2 })
  const [one, two] = rig.ledgers
  await rig.show(one!, ...uids(2))
  await rig.show(two!, ...uids(3))
  rig.toMorning(1)
  expect(await rig.flush()).toBe(1)
  expect(rig.oncall.received[0]!.summary!.total).toBe(5)
  const counts = [0, 0]
  for (const [at, ledger] of rig.ledgers.entries()) {
    for await (const _found of findDeliveryItems([ledger], rig.oncall.received[0]!.id))
      counts[at]! += 1
  }
  expect(counts).toEqual([2, 3])
  expect((await expectConservation(one!)).sinks['oncall']!.delivered).toBe(2)
  expect((await expectConservation(two!)).sinks['oncall']!.delivered).toBe(3)
  await rig.show(two!, ...uids(1, 20))
  await rig.show(one!, { uid: 'a/b/worst', severity: 'critical' })
  rig.toMorning(2)
  expect(await rig.flush()).toBe(1)
  expect(rig.oncall.received[2]!.summary).toMatchObject({
    total: 1,
    digest: { alreadySent: [{ severity: 'critical', count: 1 }] },
  })
})

test('where there are two accounts and the sink gets nothing of the other, the digest names its own once', async () => {
  const rig = await aDigestRig(given, { accounts: 2 })
  const [one] = rig.ledgers
  await rig.show(one!, { uid: 'a/b/worst', severity: 'critical' }, ...uids(1))
  rig.toMorning(1)
  await rig.flush()
  const { digest } = rig.oncall.received.at(-1)!.summary!
  expect(digest!.account).toBe(one!.account)
  expect(digest!.alreadySent).toEqual([{ severity: 'critical', count: 1 }])
})

test('more than it shows is counted, and a sink that can attach gets all of it as a file', async () => {
  const rig = await aDigestRig(given)
  Object.assign(rig.oncall, { canAttach: true })
  await rig.show(rig.ledgers[0]!, ...uids(310))
  rig.toMorning(2)
  const day = new Date(rig.clock.now()).toISOString().slice(0, 10)
  await rig.flush()
  const [message] = rig.oncall.received
  expect(message!.members).toHaveLength(5)
  expect(message!.attachment!.fileName).toBe(`tocsin-digest-${day}.csv`)
  const lines = Buffer.from(message!.attachment!.content).toString().trim().split('\r\n')
  expect(lines).toHaveLength(311)
  expect(new Set(lines).size).toBe(311)
})

test('what a mute holds waits for the next digest', async () => {
  let isMuted = true
  const rig = await aDigestRig(given, {
    gate: () => (isMuted ? { act: 'hold', rule: 'night', untilMs: 0 } : { act: 'send' }),
  })
  await rig.show(rig.ledgers[0]!, ...uids(2))
  rig.toMorning(1)
  await rig.flush()
  expect(rig.oncall.received[0]!.summary).toMatchObject({ total: 0, digest: { held: 2 } })
  isMuted = false
  rig.toMorning(2)
  await rig.flush()
  expect(rig.oncall.received[1]!.summary!.total).toBe(2)
})

test('operators see when a digest is due and when the last one went', async () => {
  const rig = await aDigestRig(given, { recipients: 2 })
  const { ledgers, keys } = rig
  const state = () =>
    readDigestTimes(
      { lead: ledgers[0]!, redis: given.redis, keys },
      rig.options.sinks.get('oncall')!,
      Date.now(),
    )
  const dueMs = everyMorning.schedule.next(Date.now())
  expect(await state()).toEqual({ lastSentMs: undefined, nextDueMs: dueMs })
  await rig.show(ledgers[0]!, ...uids(2))
  await noteDigestSent(given.redis, keys, { sink: 'oncall', atMs: 1234.5 })
  expect(await state()).toEqual({ lastSentMs: 1234, nextDueMs: dueMs })
  rig.toMorning(1)
  await rig.flush()
  expect(await state()).toMatchObject({ nextDueMs: dueMs + dayMs })
  const window = ledgers[0]!.key('group', digestGroupId('oncall:0'))
  await given.redis.hset(window, 'from', dueMs + dayMs) // that recipient's next one has gone
  expect(await state()).toMatchObject({ nextDueMs: dueMs + dayMs })
})
