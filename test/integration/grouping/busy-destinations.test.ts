/** Very many groups at once, and what must not wait for them. */
import { expect, test } from 'vitest'
import { readDueRefs } from '../../support/due-refs.ts'
import {
  aGatheringRig,
  around,
  aSlackRig,
  type GatheringRigOptions,
  type SlackRig,
} from '../../support/grouping.ts'
import { redisForTests, takeIn, whileFull } from '../../support/ledger.ts'
import { aRehearsedSink, type RehearsedSink } from '../../support/rehearsed-sink.ts'
import { runScriptAt } from '../../support/script-clock.ts'

const given = redisForTests()

interface Rig extends SlackRig {
  pager: RehearsedSink
  /** So many groups of one event each. */
  showGroups(count: number): Promise<void>
  /** Passes a second apart, until the event is there. */
  passesUntil(sink: RehearsedSink, uid: string, most: number): Promise<number>
}

async function aRig(options: Partial<GatheringRigOptions> = {}): Promise<Rig> {
  const soc = aRehearsedSink('soc', { type: 'slack' })
  const pager = aRehearsedSink('pager', { type: 'slack' })
  const rig = await aSlackRig(given, { sinks: [soc, pager], ...options })
  const { ledger } = rig
  return {
    ...rig,
    soc,
    pager,
    async showGroups(count: number) {
      for (let from = 0; from < count; from += 500) {
        const page = Array.from({ length: Math.min(500, count - from) }, (_, i) => `t${from + i}`)
        await takeIn(
          ledger,
          page.map((type) => rig.event({ uid: `a/b/${type}` }, { grouping: { labels: { type } } })),
        )
      }
    },
    async passesUntil(sink: RehearsedSink, uid: string, most: number) {
      const has = () =>
        sink.received.some(({ members }) => members.some(({ event }) => event.uid === uid))
      for (let passes = 1; passes <= most; passes += 1) {
        await rig.flush()
        if (has()) return passes
        rig.clock.aheadMs += 1_000
      }
      return Infinity
    },
  }
}

test('ten thousand groups of a blocked sink do not delay another one', async () => {
  const asked: string[] = []
  const rig = await aRig({ isBlocked: (sink) => asked.push(sink) > 0 && sink === 'soc' })
  await rig.showGroups(10_000)
  rig.clock.aheadMs = 300_000
  await rig.flush()
  expect(asked).toEqual(['soc'])
  await takeIn(rig.ledger, [
    rig.event({ uid: 'x/y/worst', severity: 'critical' }, { sinks: ['pager'] }),
  ])
  rig.clock.aheadMs += 11_000
  expect(await rig.passesUntil(rig.pager, 'x/y/worst', 5)).toBe(1)
})

test('a summary of a backlog waits for no full event, and asks for none; a machine does', async () => {
  const sinks = [aRehearsedSink('soc', { type: 'slack' }), aRehearsedSink('siem')]
  const rig = await aSlackRig(given, { sinks })
  const ofFirstPoll = (uid: string) => rig.event({ uid }, { isBacklog: true })
  const ofBoth = rig.event({ uid: 'a/b/3' }, { isBacklog: true, sinks: ['soc', 'siem'] })
  const accepted = await takeIn(rig.ledger, [
    ofFirstPoll('a/b/1'),
    { ...ofFirstPoll('a/b/2'), wantsDetail: true },
    { ...ofBoth, wantsDetail: true },
  ])
  if (accepted.status !== 'committed') throw new Error(accepted.status)
  expect(accepted.changes.filter(({ kind }) => kind === 'detail').map(({ k }) => k)).toEqual([
    'siem',
  ])
  rig.clock.aheadMs = 16_000
  expect(await rig.flush()).toBe(1)
  expect(sinks[0]!.received.at(-1)!.summary).toMatchObject({ kind: 'backlog', total: 3 })
})

test('a restart on a full Redis lets groups leave, also while a mute holds some', async () => {
  const gate: GatheringRigOptions['gate'] = (uid) =>
    uid.startsWith('muted')
      ? { act: 'hold', rule: 'night', untilMs: Date.now() + 8 * 3_600_000 }
      : { act: 'send' }
  const first = await aRig({ gate })
  await takeIn(first.ledger, [first.event({ uid: 'muted/by/night' })])
  first.clock.aheadMs = 11_000
  expect(await first.flush()).toBe(0)
  await takeIn(first.ledger, [first.event({ uid: 'a/b/1' })])
  const again = await aRig({ gate, keys: first.keys, ledgers: [first.ledger] })
  again.clock.aheadMs = 400_000
  expect(await whileFull(given.redis, () => again.flush())).toBe(1)
  expect(again.soc.received[0]!.members.map(({ event }) => event.uid)).toEqual(['a/b/1'])
})

test('an account whose groups cannot be flushed keeps no other account from its own', async () => {
  const keys = given.keys()
  const ledgers = [
    await given.ledger({ keys, account: 'broken' }),
    await given.ledger({ keys, account: 'whole' }),
  ]
  const sinks = [aRehearsedSink('soc', { type: 'slack' })]
  const rig = aGatheringRig({ redis: given.redis, keys, ledgers: ledgers, sinks })
  for (const ledger of ledgers) await takeIn(ledger, [rig.event({ uid: `${ledger.account}/b/1` })])
  rig.clock.aheadMs = 11_000
  around(ledgers[0]!, () => Promise.reject(new Error('unreadable')))
  await expect(rig.flusher.flushGroupsOnce()).rejects.toThrow('unreadable')
  const due = await readDueRefs(ledgers[1]!, 'soc', Date.now(), { offset: 0, count: 10 })
  expect(due).toHaveLength(1)
})

test('a destination gets eight messages at once, and then one in ten seconds', async () => {
  const ledger = await given.ledger()
  const at = { redis: given.redis, nowMs: Date.now() }
  const take = (wanted: number) =>
    runScriptAt(at, 'take-flush', [ledger.key()], ['soc', wanted, 8, 10_000])
  expect(await take(5)).toEqual([5, 0])
  expect(await take(4)).toEqual([1, 0]) // all four in one
  expect(await take(2)).toEqual([2, 0])
  expect(await take(1)).toEqual([0, 10_000])
  const keptMs = await given.redis.pttl(ledger.key('flushes', 'soc'))
  expect(keptMs).toBeGreaterThan(80_000)
  expect(keptMs).toBeLessThanOrEqual(90_000)
  // as if a clock that was an hour ahead had been set back: no more than a full bucket is awaited
  await given.redis.set(ledger.key('flushes', 'soc'), at.nowMs + 3_600_000)
  expect(await take(1)).toEqual([0, 10_000])
})

test('a group for which its destination has no place left is looked at again when there is one', async () => {
  const rig = await aRig()
  await rig.showGroups(1)
  rig.clock.aheadMs = 11_000
  const name = rig.ledger.key('flushes', 'soc')
  await given.redis.set(name, Date.now() + 80_000) // all eight are used up
  const beforeMs = rig.clock.now()
  expect(await rig.flush()).toBe(0)
  const [, atMs] = await given.redis.zrange(rig.ledger.key('timers'), '0', '-1', 'WITHSCORES')
  expect(Number(atMs) - beforeMs).toBeGreaterThan(5_000)
  expect(Number(atMs) - rig.clock.now()).toBeLessThanOrEqual(10_000)
  await given.redis.set(name, Date.now() + 70_000)
  rig.clock.aheadMs += 10_000
  expect(await rig.flush()).toBe(1)
  expect(rig.soc.received).toHaveLength(1)
})
