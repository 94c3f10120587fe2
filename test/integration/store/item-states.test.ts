/** Orders of steps that the random runs of ledger-model.test.ts come upon only now and then, one by one. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  firstDueMs,
  type Group,
  groupItems,
  withholdItems,
  postponeDue,
  readMemberRefs,
  releaseDetail,
} from '../../../src/store/pending-items.ts'
import { replayDeadLetter } from '../../support/acts.ts'
import { type Item, readPayload, readRecord } from '../../../src/store/records.ts'
import {
  beginAttempt,
  type Outcome,
  peekBatch,
  sealBatch,
  settleAttempt,
} from '../../support/attempts.ts'
import {
  expectConservation,
  expectNothingStranded,
  redisForTests,
  routed,
  takeIn,
} from '../../support/ledger.ts'

const tests = redisForTests()
const lease = 30_000
const uid = 'a/b/1'

async function aLedger(destination = 'siem'): Promise<{ ledger: AccountLedger; ref: string }> {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid }, [destination])])
  return { ledger: ledger, ref: `i:${ledger.fingerprints.recordId(uid)}:0:${destination}` }
}

function settle(ledger: AccountLedger, ref: string, token: string, outcome: Outcome) {
  return settleAttempt(ledger, { ref, token, replica: 'r1' }, outcome)
}

async function itemIn(ledger: AccountLedger): Promise<Item> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(uid)))!.items[0]!
}

function due(ledger: AccountLedger, sink: string): Promise<string[]> {
  return tests.redis.zrange(ledger.key('due', sink), '0', '-1')
}

test('a try that was cut off makes every later one a possible repeat, whatever the next was answered', async () => {
  const { ledger, ref } = await aLedger('soc')
  await beginAttempt(ledger, ref, 'cut off', lease)
  await beginAttempt(ledger, ref, 't2', lease)
  await settle(ledger, ref, 't2', {
    outcome: 'retry',
    inMs: 0,
    counts: true,
    reason: 'unavailable',
  })
  expect(await beginAttempt(ledger, ref, 't3', lease)).toMatchObject({ mayBeRepeat: true })
})

test('an event whose group ended while its details were fetched opens it again', async () => {
  const ledger = await tests.ledger()
  const about = { destination: 'soc', route: 'root', labels: {}, feed: null }
  const gathering: Group = { id: 'g', kind: 'group', waitMs: 9, isUrgent: false, about }
  const plan = routed({ uid }, ['soc'], true)
  await takeIn(ledger, [
    { ...plan, items: plan.items.map((item) => ({ ...item, group: gathering })) },
  ])
  await tests.redis.del(ledger.key('group', 'g')) // nothing waited in it any more
  const recordId = ledger.fingerprints.recordId(uid)
  const [made] = await releaseDetail(ledger, recordId, { soc: false }, undefined)
  expect(made).toMatchObject({ kind: 'group' })
  expect(await itemIn(ledger)).toMatchObject({ state: 'group', heldFor: undefined })
  expect(await tests.redis.zrange(ledger.key('timers'), '0', '-1')).toEqual(['c:g:soc'])
  await expectConservation(ledger)
  await expectNothingStranded(ledger)
})

test('an event that waited for its details goes in its batch, and not by itself as well', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid }, ['siem'], true)])
  await releaseDetail(ledger, ledger.fingerprints.recordId(uid), { siem: 1_000 }, undefined)
  expect(await due(ledger, 'siem')).toEqual(['c:siem'])
})

test('a batch does not wait longer because more comes', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/0' }, ['siem'])], { batchWaitMs: 1_000 })
  await tests.redis.zincrby(ledger.key('due', 'siem'), -500, 'c:siem') // as if it had come earlier
  const before = await tests.redis.zscore(ledger.key('due', 'siem'), 'c:siem')
  await takeIn(ledger, [routed({ uid }, ['siem'])], { batchWaitMs: 1_000 })
  expect(await tests.redis.zscore(ledger.key('due', 'siem'), 'c:siem')).toBe(before)
})

test('what a rule keeps from being sent is due no more', async () => {
  const { ledger, ref } = await aLedger('soc')
  expect(await due(ledger, 'soc')).toEqual([ref])
  await withholdItems(ledger, [{ ref, act: 'suppress', reason: 'silence', rule: 's1' }])
  expect(await due(ledger, 'soc')).toEqual([])
  await expectConservation(ledger)
})

test('work that is postponed is due that much later, and what is not due does not become so', async () => {
  const { ledger, ref } = await aLedger('soc')
  await postponeDue(ledger, ref, 3_600_000)
  const dueInMs = (await firstDueMs(ledger, 'soc'))! - Date.now()
  expect(Math.abs(dueInMs - 3_600_000)).toBeLessThan(60_000)
  await postponeDue(ledger, 'i:gone:0:soc', 1)
  expect(await due(ledger, 'soc')).toEqual([ref])
})

test('a letter that is replayed has not ended, until it is delivered', async () => {
  const { ledger, ref } = await aLedger('soc')
  await beginAttempt(ledger, ref, 't1', lease)
  await settle(ledger, ref, 't1', { outcome: 'dead', reason: 'invalid' })
  expect((await itemIn(ledger)).endedAtMs).toBeGreaterThan(0)
  await replayDeadLetter(ledger, ref, undefined)
  expect(await itemIn(ledger)).toMatchObject({ state: 'queued', endedAtMs: undefined })
})

test('the halves of a refused batch hold its members, and none is left behind', async () => {
  const ledger = await tests.ledger()
  const uids = ['a/b/1', 'a/b/2', 'a/b/3']
  const page = { batchWaitMs: 1_000 }
  await takeIn(
    ledger,
    uids.map((one) => routed({ uid: one }, ['siem'])),
    page,
  )
  const refs = (await peekBatch(ledger, 'siem', 9)).map((waiting) => waiting.ref)
  const batch = await sealBatch(ledger, { sink: 'siem', destination: 'siem', waitMs: 1_000 }, refs)
  await beginAttempt(ledger, batch!, 't', lease)
  const { halves } = await settle(ledger, batch!, 't', { outcome: 'split', reason: 'invalid' })
  const begun = await Promise.all(
    (halves ?? []).map((half) => beginAttempt(ledger, half, 't', lease)),
  )
  const members = begun.map((half) =>
    half.status === 'send' ? half.members.map((member) => member.uid) : [],
  )
  expect(begun).toMatchObject([{ attempt: 1 }, { attempt: 1 }])
  expect(members).toEqual([['a/b/1', 'a/b/2'], ['a/b/3']])
  for (const [at, half] of (halves ?? []).entries()) {
    const record = await readRecord(ledger, ledger.fingerprints.recordId(members[at]![0]!))
    expect(`b:${record!.items[0]!.messageId}:siem`).toBe(half)
    await settle(ledger, half, 't', { outcome: 'delivered' })
  }
  const history = (await itemIn(ledger)).history.map(({ outcome, reason }) => [outcome, reason])
  expect(history).toEqual([
    ['split', 'invalid'],
    ['delivered', undefined],
  ])
})

test('a full event that comes when its message went leaves what was told as it is', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid }, ['soc'], true)])
  const recordId = ledger.fingerprints.recordId(uid)
  const payload = await readPayload(ledger, recordId)
  const told = { ...payload!, detail: { id: 7 } }
  const [made] = await releaseDetail(ledger, recordId, { soc: false }, { payload: told })
  await beginAttempt(ledger, made!.ref, 't', lease)
  await settle(ledger, made!.ref, 't', { outcome: 'delivered' })
  expect(await readPayload(ledger, recordId)).toEqual(told)
  expect(
    await releaseDetail(
      ledger,
      recordId,
      { soc: false },
      { payload: { ...told, detail: 'unavailable' } },
    ),
  ).toEqual([])
  expect(await readPayload(ledger, recordId)).toEqual(told)
})

test('items that still go singly are gathered and counted, and listed a page at a time', async () => {
  const ledger = await tests.ledger()
  const uids = ['a/b/1', 'a/b/2', 'a/b/3', 'a/b/delivered']
  await takeIn(
    ledger,
    uids.map((one) => routed({ uid: one }, ['soc'])),
  )
  const [delivered, ...refs] = uids
    .map((one) => `i:${ledger.fingerprints.recordId(one)}:0:soc`)
    .toReversed()
  for (const ref of [delivered!, refs[0]!]) await beginAttempt(ledger, ref, 't', lease)
  await settle(ledger, delivered!, 't', { outcome: 'delivered' })
  await settle(ledger, refs[0]!, 't', { outcome: 'retry', inMs: 9_000, counts: true })
  const about = { destination: 'soc', route: 'root', labels: {}, feed: null }
  const group: Group = { id: 'g', kind: 'group', waitMs: 9, isUrgent: false, about }
  expect(await groupItems(ledger, [], { soc: group })).toBe(0)
  expect(await groupItems(ledger, [delivered!, ...refs], { soc: group })).toBe(3)
  expect(await groupItems(ledger, refs, { soc: group })).toBe(0)
  expect(await readMemberRefs(ledger, 'g', { offset: 0, count: 2 })).toEqual(refs.slice(0, 2))
  expect(await readMemberRefs(ledger, 'g', { offset: 2, count: 2 })).toEqual(refs.slice(2))
  await expectConservation(ledger)
})

test.each([
  [['a/b/1'], 1],
  [['a/b/1', 'a/b/2'], 0],
])(
  'a batch is due as long as anything of it is left: %j of two are suppressed',
  async (uids, due) => {
    const ledger = await tests.ledger()
    const both = ['a/b/1', 'a/b/2'].map((one) => routed({ uid: one }, ['siem']))
    await takeIn(ledger, both, { batchWaitMs: 1 })
    const refs = uids.map((one) => `i:${ledger.fingerprints.recordId(one)}:0:siem`)
    const silenced = refs.map((ref) => {
      return { ref, act: 'suppress', reason: 'silence', rule: 's1' } as const
    })
    expect(await withholdItems(ledger, silenced, 'siem')).toEqual(refs)
    expect(await tests.redis.zcard(ledger.key('due', 'siem'))).toBe(due)
    await expectConservation(ledger)
  },
)
