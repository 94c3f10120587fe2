import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createDelivery, type DeliveryParts } from '../../../src/delivery/send/attempt.ts'
import { advanceClaims, type Message } from '../../../src/delivery/claims.ts'
import { type MemberOptions, toStoredMember } from '../../../src/delivery/send/delivery-member.ts'
import { freezeBatches, type FreezeOptions } from '../../../src/delivery/sendable.ts'
import type { Verdict } from '../../../src/routing/suppression.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { aDelivery } from '../../support/deliveries.ts'
import { bareMembers } from '../../support/delivery.ts'
import { attemptOf, beginAttempt, claimRef, sealBatch } from '../../support/attempts.ts'
import { readItems, readRecord } from '../../../src/store/records.ts'
import { measureMember, renderBody } from '../../../src/sinks/webhook/body.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'

const tests = redisForTests()

/** One pass over what a sink collected, at a time of one's own; the batches are let go. */
async function flushOnce(
  ledger: AccountLedger,
  sink: Sink,
  { nowMs, ...judging }: { nowMs: number } & Partial<FreezeOptions>,
): Promise<{ next: 'done' | 'later'; batches: string[]; frozen: Message[] }> {
  const claim = await claimRef(ledger, 'c:siem', `r${nowMs}`)
  const options: FreezeOptions = {
    holder: { owner: `r${nowMs}`, leaseMs: 10_000 },
    replica: 'r',
    ...bareMembers,
    ...judging,
  }
  const asked = { ledger: ledger, sink, claim: claim ?? { ref: 'c:siem', rank: 4 }, max: 100 }
  const collection = ledger.key('collect', 'siem')
  for (const ref of await ledger.redis.zrange(collection, '0', '-1')) {
    await ledger.redis.zincrby(collection, Date.now() - nowMs, ref) // so much longer ago
  }
  const { frozen } = await freezeBatches(options, asked)
  const isLeft = (await ledger.redis.exists(ledger.key('collect', 'siem'))) === 1
  return { next: isLeft ? 'later' : 'done', batches: frozen.map(({ ref }) => ref), frozen }
}

function siem(given: Partial<Sink> = {}): Sink {
  const batch = { max: 3, waitMs: 60_000, maxBytes: 100_000 }
  return aRehearsedSink('siem', { batch, measure: () => 1_000, ...given })
}

async function collected(count: number): Promise<AccountLedger> {
  const ledger = await tests.ledger()
  for (let i = 0; i < count; i += 1) {
    await takeIn(ledger, [routed({ uid: `a/b/${i}` }, ['siem'])], { batchWaitMs: 60_000 })
  }
  return ledger
}

async function sizes(ledger: AccountLedger, batches: string[]): Promise<number[]> {
  const begun = await Promise.all(batches.map((ref) => beginAttempt(ledger, ref, 't', 1_000)))
  return begun.map((attempt) => (attempt.status === 'send' ? attempt.members.length : 0))
}

test('full batches go at once, the rest when its time has come', async () => {
  const ledger = await collected(7)
  const full = await flushOnce(ledger, siem(), { nowMs: Date.now() })
  expect(full).toMatchObject({ next: 'later' })
  expect(await sizes(ledger, full.batches)).toEqual([3, 3])
  expect(await tests.redis.zscore(ledger.key('due', 'siem'), 'c:siem')).not.toBeNull()
  const rest = await flushOnce(ledger, siem(), { nowMs: Date.now() + 61_000 })
  expect(rest.next).toBe('done')
  expect(await sizes(ledger, rest.batches)).toEqual([1])
  expect(await tests.redis.zscore(ledger.key('due', 'siem'), 'c:siem')).toBeNull()
  await expectConservation(ledger)
})

test('an event that came back more severe before its batch left is in it twice, and both are under way', async () => {
  const ledger = await tests.ledger()
  for (const severity of ['low', 'critical']) {
    await takeIn(ledger, [routed({ uid: 'a/b/1', severity }, ['siem'])], { batchWaitMs: 60_000 })
  }
  const { batches } = await flushOnce(ledger, siem(), { nowMs: Date.now() + 61_000 })
  expect(batches).toHaveLength(1)
  const record = await readRecord(ledger, ledger.fingerprints.recordId('a/b/1'))
  expect(record!.items.map(({ state }) => state)).toEqual(['batch', 'batch'])
})

test('an event that comes back more severe while its batch is put together changes nothing in it', async () => {
  const ledger = await collected(1)
  const raised = routed({ uid: 'a/b/0', severity: 'critical' }, ['siem'])
  const rules: FreezeOptions['rules'] = {
    allowsAll: () => false,
    async decide(_ledger, items) {
      await takeIn(ledger, [raised], { batchWaitMs: 60_000 })
      return items.map(() => ({ act: 'send' }))
    },
  }
  const { frozen } = await flushOnce(ledger, siem(), { nowMs: Date.now() + 61_000, rules })
  const [batch] = frozen
  const again = await beginAttempt(ledger, batch!.ref, 't', 1_000)
  const { payload } = batch!.members[0]!
  expect(again).toMatchObject({ status: 'send', members: [{ payload }] })
  expect(payload!.event.severity).not.toBe('critical')
})

test('a process that lost what a sink collects while it put a batch together freezes nothing of it', async () => {
  const ledger = await collected(1)
  const raised = routed({ uid: 'a/b/0', severity: 'critical' }, ['siem'])
  const other = { owner: 'other', leaseMs: 10_000, by: 'other' }
  const rules: FreezeOptions['rules'] = {
    allowsAll: () => false,
    async decide(_ledger, items) {
      const taken = await claimRef(ledger, 'c:siem', other.owner)
      await advanceClaims(ledger, other, { giveBack: [taken!] })
      await takeIn(ledger, [raised], { batchWaitMs: 60_000 })
      return items.map(() => ({ act: 'send' }))
    },
  }
  const { frozen, next } = await flushOnce(ledger, siem(), { nowMs: Date.now() + 61_000, rules })
  expect({ frozen, next }).toEqual({ frozen: [], next: 'later' })
  expect((await flushOnce(ledger, siem(), { nowMs: Date.now() + 61_000 })).frozen).toHaveLength(1)
})

test('a batch goes where its sink sent when it was frozen, whoever takes it over, and so do its halves, which are no younger', async () => {
  const ledger = await collected(2)
  const refs = await tests.redis.zrange(ledger.key('collect', 'siem'), '0', '-1')
  const batch = (await sealBatch(ledger, { sink: 'siem', destination: 'siem:new' }, refs))!
  expect(await beginAttempt(ledger, batch, 't', 1_000)).toMatchObject({ destination: 'siem:new' })
  const keyOf = (ref: string): string => ledger.key('batch', ref.split(':')[1] ?? '')
  const stored = async (ref: string) => JSON.parse((await tests.redis.get(keyOf(ref))) ?? '{}')
  await tests.redis.set(keyOf(batch), JSON.stringify({ ...(await stored(batch)), c: 1_000 }))
  const { halves } = await attemptOf(ledger, batch, { outcome: 'split', reason: 'invalid' })
  for (const half of halves!) {
    expect(await beginAttempt(ledger, half, 't', 1_000)).toMatchObject({ destination: 'siem:new' })
    expect(await stored(half)).toMatchObject({ c: 1_000 })
  }
})

test('a batch says of each of its events what that alone says, the same when another process takes it up', async () => {
  const ledger = await tests.ledger()
  const events = ['low', 'high', 'low'].map((severity, i) => {
    const identifiers = [{ id: i, name: `brand-${i}.example` }]
    return routed({ uid: `a/b/${i}`, severity, identifiers }, ['siem'])
  })
  await takeIn(ledger, events, { batchWaitMs: 60_000 })
  const sink = siem({ measure: measureMember })
  const { frozen } = await flushOnce(ledger, sink, { nowMs: Date.now() })
  const options = { ...bareMembers, findLedger: () => ledger }
  const bodyOf = async (message: DeliveryParts): Promise<string> => {
    const delivery = await createDelivery({ ledger, sink }, message, options)
    return typeof delivery === 'string' ? delivery : renderBody(delivery)
  }
  const [first] = frozen
  const body = await bodyOf({ ...first!, attempt: 1 })
  const { items } = (JSON.parse(body) as { data: { items: { uid: string; title: string }[] } }).data
  const said = events.map(({ event, title }) => ({ uid: event.uid, title }))
  expect(items.map(({ uid, title }) => ({ uid, title }))).toEqual(said)
  const again = await beginAttempt(ledger, first!.ref, 't', 1_000)
  expect(again.status === 'send' && (await bodyOf(again))).toBe(body)
})

test('a batch keeps within its size, and never carries less than one item', async () => {
  const ledger = await collected(4)
  const batch = { max: 3, waitMs: 0, maxBytes: 2_500 }
  const bySize = await flushOnce(ledger, siem({ batch }), { nowMs: Date.now() + 1 })
  expect(await sizes(ledger, bySize.batches)).toEqual([2, 2])
  const huge = await collected(2)
  const each = await flushOnce(huge, siem({ batch, measure: () => 9_000 }), {
    nowMs: Date.now() + 1,
  })
  expect(await sizes(huge, each.batches)).toEqual([1, 1])
})

test('what the routes and the configuration say of an event counts for the size of its batch', async () => {
  const ledger = await collected(6)
  const notes = [randomBytes(600).toString('hex')]
  const options: MemberOptions = {
    ...bareMembers,
    findTenant: () => 17,
    findGuidance: () => ({ notes, runbookUrls: [], mentions: [], nextStep: notes[0] ?? '' }),
  }
  const [ref = ''] = await tests.redis.zrange(ledger.key('collect', 'siem'), '0', '-1')
  const [found] = await readItems(ledger, [ref])
  const member = toStoredMember({}, found!, options)
  const eachBytes = measureMember(member!)
  const maxBytes = 3 * eachBytes + 300
  const sink = siem({ batch: { max: 6, waitMs: 0, maxBytes }, measure: measureMember })
  const { batches } = await flushOnce(ledger, sink, { nowMs: Date.now() + 1, ...options })
  expect(await sizes(ledger, batches)).toEqual([3, 3])
  const delivery = aDelivery(sink, { members: Array.from({ length: 3 }, () => member!) })
  expect(Buffer.byteLength(renderBody(delivery))).toBeLessThanOrEqual(maxBytes)
})

test('what a rule suppresses or holds leaves the batch: for good with its reason, or until its time', async () => {
  const ledger = await tests.ledger()
  const uids = ['a/b/goes', 'a/b/silenced', 'a/b/muted']
  await takeIn(
    ledger,
    uids.map((uid) => routed({ uid }, ['siem'])),
    { batchWaitMs: 1 },
  )
  const verdicts: Record<string, Verdict> = {
    'a/b/silenced': { act: 'suppress', reason: 'silence', rule: 's1' },
    'a/b/muted': { act: 'hold', rule: 'night', untilMs: Date.now() + 3_600_000 },
  }
  const told: string[] = []
  const { batches } = await flushOnce(ledger, siem(), {
    nowMs: Date.now() + 61_000,
    rules: {
      decide: (_ledger, items) =>
        Promise.resolve(items.map(({ event }) => verdicts[event.event.uid] ?? { act: 'send' })),
      allowsAll: () => false,
    },
    onSuppressed: (sink, severity, reason) => void told.push(`${sink} ${severity} ${reason}`),
  })
  expect(batches).toHaveLength(1)
  expect(told).toEqual(['siem high silence'])
  const states = await Promise.all(
    uids.map(async (uid) => {
      const record = await readRecord(ledger, ledger.fingerprints.recordId(uid))
      return [record!.items[0]!.state, record!.items[0]!.heldFor, record!.items[0]!.rule]
    }),
  )
  expect(states).toEqual([
    ['batch', undefined, undefined],
    ['suppressed', 'silence', 's1'],
    ['held', 'mute', 'night'],
  ])
  await expectConservation(ledger)
})
