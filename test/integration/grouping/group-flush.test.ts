import { describe, expect, test } from 'vitest'
import { readAccounting } from '../../../src/store/accounts.ts'
import { findDeliveryItems } from '../../../src/store/deliveries.ts'
import { readRecord } from '../../../src/store/records.ts'
import { ownFeed, type ThreatEvent } from '../../../src/event.ts'
import { claimRef } from '../../support/attempts.ts'
import {
  around,
  aSlackRig,
  uids,
  type GatheringRigOptions,
  type SlackRig,
} from '../../support/grouping.ts'
import {
  expectConservation,
  redisForTests,
  redisMs,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'

const given = redisForTests()

interface Rig extends SlackRig {
  show(...events: Partial<ThreatEvent>[]): Promise<void>
}

async function aRig(options: Partial<GatheringRigOptions> = {}): Promise<Rig> {
  const rig = await aSlackRig(given, options)
  return {
    ...rig,
    async show(...events: Partial<ThreatEvent>[]) {
      await takeIn(
        rig.ledger,
        events.map((event) => rig.event(event)),
      )
    },
  }
}

describe('a group', () => {
  test('waits, then leaves as one message that settles every member, and whose id finds them all', async () => {
    const rig = await aRig()
    await rig.show(...uids(3))
    expect(await rig.flush()).toBe(0)
    expect((await readAccounting(rig.ledger)).sinks['soc']!.pending).toEqual({ group: 3 })
    rig.clock.aheadMs = 11_000
    expect(await rig.flush()).toBe(1)
    expect(rig.soc.received).toHaveLength(1)
    expect(rig.soc.received[0]!.summary).toMatchObject({ kind: 'group', total: 3 })
    expect(rig.soc.received[0]!.members.map(({ event }) => event.uid).toSorted()).toEqual(
      uids(3).map(({ uid }) => uid),
    )
    const { sinks } = await expectConservation(rig.ledger)
    expect(sinks['soc']).toMatchObject({ created: 3, delivered: 3 })
    const listed: string[] = []
    for await (const { record } of findDeliveryItems([rig.ledger], rig.soc.received[0]!.id)) {
      listed.push(record.uid)
    }
    expect(listed.toSorted()).toEqual(uids(3).map(({ uid }) => uid))
  })

  test('that is disturbed each time is left to its timer after three tries, and loses nothing', async () => {
    const rig = await aRig()
    await rig.show(...uids(3))
    rig.clock.aheadMs = 11_000
    let closes = 0
    let isDisturbed = true
    around(rig.ledger, async (script, run) => {
      if (script !== 'close-flush') return run()
      closes += 1
      return isDisturbed ? 'again' : run()
    })
    expect([await rig.flush(), closes]).toEqual([0, 3])
    isDisturbed = false
    rig.clock.aheadMs = 42_000
    expect([await rig.flush(), closes]).toEqual([1, 4])
    expect(rig.soc.received[0]!.summary).toMatchObject({ total: 3 })
    await expectConservation(rig.ledger)
  })

  test('is told of and claimed by the rank of its worst severity', async () => {
    const rig = await aRig()
    const told: unknown[] = []
    rig.options.announce = (account, work) => void told.push(account, ...work)
    await rig.show({ uid: 'a/b/1', severity: 'low' }, { uid: 'a/b/2', severity: 'medium' })
    rig.clock.aheadMs = 11_000
    expect(await rig.flush()).toBe(1)
    expect(told).toEqual(['main', { sink: 'soc', rank: 3 }])
    const [ref] = await given.redis.zrange(rig.ledger.key('due', 'soc'), '0', '-1')
    expect(await claimRef(rig.ledger, ref!, 'r')).toMatchObject({ kind: 'summary', rank: 3 })
  })

  test('listens for its interval after its message, and a summary of a first poll for half a minute', async () => {
    const rig = await aRig({ intervalMs: 300_000 })
    await rig.show({ uid: 'a/b/1' })
    await takeIn(rig.ledger, [rig.event({ uid: 'a/b/2' }, { isBacklog: true })])
    rig.clock.aheadMs = 16_000
    const beforeMs = rig.clock.now()
    expect(await rig.flush()).toBe(2)
    const timers = await given.redis.zrange(rig.ledger.key('timers'), '0', '-1', 'WITHSCORES')
    const waitsMs = timers.filter((_one, at) => at % 2 === 1).map((atMs) => Number(atMs) - beforeMs)
    expect(waitsMs.map((ms) => Math.floor(ms / 10_000))).toEqual([3, 30])
  })

  test.each([
    ['canaries that waited together is a test, which pages nobody', ['canary', 'canary'], true],
    ['a single canary is a test as well', ['canary'], true],
    ['a canary and a self-alert is none', ['canary', 'notice'], undefined],
  ])('of %s', async (_what, types, isTest) => {
    const rig = await aRig()
    const own = types.map((type, n) => rig.event({ uid: `canary/tocsin/${n}`, type }))
    await takeIn(rig.ledger, own, { feed: ownFeed })
    rig.clock.aheadMs = 11_000
    expect(await rig.flush()).toBe(1)
    expect(rig.soc.received.map((delivery) => delivery.isTest)).toEqual([isTest])
  })

  test('of events of a type called canary is no test', async () => {
    const rig = await aRig()
    await rig.show(...uids(2).map((one) => ({ ...one, type: 'canary' })))
    rig.clock.aheadMs = 11_000
    expect(await rig.flush()).toBe(1)
    expect(rig.soc.received[0]).not.toHaveProperty('isTest')
  })

  test('of one event is that event, as if it had come alone', async () => {
    const rig = await aRig()
    await rig.show(...uids(1))
    rig.clock.aheadMs = 11_000
    await rig.flush()
    expect(rig.soc.received[0]!.summary).toBeUndefined()
    expect(rig.soc.received[0]!.members).toHaveLength(1)
  })

  test('ends when an interval passes with nothing new, and leaves no key behind', async () => {
    const rig = await aRig()
    await rig.show(...uids(2))
    rig.clock.aheadMs = 11_000
    await rig.flush()
    const left = (): Promise<string[]> => given.redis.keys(`${rig.ledger.key()}:*`)
    expect((await left()).some((name) => name.includes(':group:'))).toBe(true)
    rig.clock.aheadMs = 400_000
    expect(await rig.flush()).toBe(0)
    const names = await left()
    expect(names.filter((name) => /:(gather|collect|timers|sealed|batch)/.test(name))).toEqual([])
  })

  test('shows the worst first, of those the newest, and says of which route and labels it is', async () => {
    const rig = await aRig()
    const grouping = { route: 'night', labels: { type: 'paste' } }
    for (const [n, severity] of ['low', 'high', 'low', 'high'].entries()) {
      const event = rig.event({ uid: `a/b/${n}`, severity }, { grouping })
      await takeIn(rig.ledger, [event], { requestedAtMs: 1_000 * n + 1 })
    }
    rig.clock.aheadMs = 11_000
    expect(await rig.flush()).toBe(1)
    const [message] = rig.soc.received
    const shown = message!.members.map(({ event }) => event.uid)
    expect(shown).toEqual(['a/b/3', 'a/b/1', 'a/b/2', 'a/b/0'])
    expect(message!.summary).toMatchObject({ kind: 'group', total: 4, ...grouping })
  })

  test('of a blocked sink is looked at again after a while, not at every pass', async () => {
    let asked = 0
    const rig = await aRig({ isBlocked: () => (asked += 1) > 0 })
    await rig.show(...uids(2))
    rig.clock.aheadMs = 11_000
    for (let pass = 0; pass < 3; pass += 1) expect(await rig.flush()).toBe(0)
    expect(asked).toBe(1)
  })

  test.each([
    [8, 8, 'group'],
    [9, 1, 'storm'],
  ])('of %i at once make %i messages: a ninth would be too many', async (groups, made, kind) => {
    const rig = await aRig()
    const types = Array.from({ length: groups }, (_, i) => `type${i}`)
    const inGroup = (type: string, n: number) =>
      rig.event({ uid: `a/b/${type}${n}` }, { grouping: { labels: { type } } })
    await takeIn(
      rig.ledger,
      types.flatMap((type) => [inGroup(type, 1), inGroup(type, 2)]),
    )
    rig.clock.aheadMs = 11_000
    expect(await rig.flush()).toBe(made)
    const names = kind === 'storm' ? { labels: {} } : {} // it names none of its groups
    const summary = { kind, total: (2 * groups) / made, ...names }
    expect(rig.soc.received.map((one) => one.summary)).toMatchObject(
      Array.from({ length: made }, () => summary),
    )
    expect((await expectConservation(rig.ledger)).sinks['soc']!.delivered).toBe(2 * groups)
  })
})

describe('what a feed finds at first', () => {
  test('is one summary once nothing more comes', async () => {
    const rig = await aRig()
    await takeIn(
      rig.ledger,
      uids(5).map((event) => rig.event(event, { isBacklog: true })),
      { isCaughtUp: false },
    )
    rig.clock.aheadMs = 10_000
    expect(await rig.flush()).toBe(0)
    rig.clock.aheadMs = 16_000
    expect(await rig.flush()).toBe(1)
    expect(rig.soc.received[0]!.summary).toMatchObject({ kind: 'backlog', total: 5 })
  })

  test('is told after a quarter of an hour, though the reading does not end', async () => {
    const rig = await aRig()
    const page = (from: number) =>
      takeIn(
        rig.ledger,
        uids(2, from).map((event) => rig.event(event, { isBacklog: true })),
        { isCaughtUp: false },
      )
    await page(0)
    const [name = ''] = await given.redis.keys(rig.ledger.key('group', '*'))
    await given.redis.hset(name, 'opened', Date.now() - 898_000) // as if it had begun then
    await page(10)
    rig.clock.aheadMs = 3_000 // less than the wait for the next page
    expect(await rig.flush()).toBe(1)
    expect(rig.soc.received[0]!.summary).toMatchObject({ kind: 'backlog', total: 4 })
  })
})

test('a critical event of a re-reading is told within seconds, however many more it finds', async () => {
  const rig = await aRig()
  const page = (uid: string) =>
    takeIn(rig.ledger, [rig.event({ uid, severity: 'critical' }, { isBacklog: true })])
  const dueMs = async () =>
    Number((await given.redis.zrange(rig.ledger.key('timers'), '0', '0', 'WITHSCORES'))[1])
  await page('a/b/1')
  const firstMs = await dueMs()
  await expect.poll(() => redisMs(given.redis)).toBeGreaterThan(firstMs - 15_000)
  await page('a/b/2')
  expect(await dueMs()).toBe(firstMs)
})

describe('what rules suppress or hold', () => {
  test('is final and named where a silence holds, and never enters the message', async () => {
    const silence = { act: 'suppress', reason: 'silence', rule: 'c12345678' } as const
    const rig = await aRig({
      gate: (uid) => (uid.endsWith('1') ? silence : { act: 'send' }),
    })
    await rig.show(...uids(3))
    let tries = 0
    around(rig.ledger, (script, run) => {
      tries += script === 'close-flush' ? 1 : 0
      return run()
    })
    rig.clock.aheadMs = 11_000
    await rig.flush()
    expect(rig.soc.received[0]!.summary!.total).toBe(2)
    expect(tries).toBe(1)
    const record = await readRecord(rig.ledger, rig.ledger.fingerprints.recordId('paste/site/1'))
    expect(record!.items[0]).toMatchObject({
      state: 'suppressed',
      heldFor: 'silence',
      rule: 'c12345678',
    })
    expect(rig.suppressed).toEqual(['soc high silence'])
    await expectConservation(rig.ledger)
  })

  test('is held through a mute and comes as one summary when it ends', async () => {
    let isMuted = true
    const untilMs = Date.now() + 3_600_000
    const rig = await aRig({
      gate: () => (isMuted ? { act: 'hold', rule: 'night', untilMs } : { act: 'send' }),
    })
    await rig.show(...uids(4))
    rig.clock.aheadMs = 11_000
    expect(await rig.flush()).toBe(0)
    const held = await readRecord(rig.ledger, rig.ledger.fingerprints.recordId('paste/site/0'))
    expect(held!.items[0]).toMatchObject({ state: 'held', heldFor: 'mute', rule: 'night' })
    await expectConservation(rig.ledger)
    isMuted = false
    rig.clock.aheadMs = 3_601_000
    expect(await rig.flush()).toBe(1)
    expect(rig.soc.received[0]!.summary).toMatchObject({ kind: 'held', total: 4 })
    await expectConservation(rig.ledger)
  })
})

describe('a message of a group', () => {
  test('that is refused for good goes on as its events, each on its own', async () => {
    const rig = await aRig()
    rig.soc.next('invalid')
    await rig.show(...uids(3))
    rig.clock.aheadMs = 11_000
    await rig.flush()
    const { soc } = (await expectConservation(rig.ledger)).sinks
    expect(soc).toMatchObject({ created: 3, dead: 0, delivered: 0 })
    expect(waitingIn(soc)).toEqual({ queued: 3 })
    expect(rig.soc.received.map(({ summary }) => summary!.total)).toEqual([3])
  })
})
