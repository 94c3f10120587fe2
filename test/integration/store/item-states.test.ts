/** Orders of steps that the random runs of conservation.test.ts come upon only now and then, one by one. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  type Group,
  holdOrphan,
  withholdItems,
  listDeadLetters,
  overflowItems,
  releaseDetail,
  returnOrphans,
} from '../../../src/store/pending-items.ts'
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

test('an item that a late answer delivered stays delivered when the batch it was put into dies', async () => {
  const { ledger, ref } = await aLedger()
  await beginAttempt(ledger, ref, 'late', lease)
  await holdOrphan(ledger, ref)
  await returnOrphans(ledger, { sink: 'siem', batchWait: 1_000, groups: {} }, 10)
  const refs = (await peekBatch(ledger, 'siem', 9)).map((waiting) => waiting.ref)
  const batch = await sealBatch(ledger, { sink: 'siem', destination: 'siem', waitMs: 1_000 }, refs)
  await beginAttempt(ledger, batch!, 't', lease)
  await settle(ledger, ref, 'late', { outcome: 'delivered' })
  await settle(ledger, batch!, 't', { outcome: 'dead', reason: 'invalid' })
  expect((await itemIn(ledger)).state).toBe('delivered')
  expect((await listDeadLetters(ledger, 'siem', { offset: 0, count: 9 })).total).toBe(0)
  expect((await expectConservation(ledger)).sinks['siem']).toMatchObject({ delivered: 1, dead: 0 })
})

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

test('an item that a late answer delivered while its sink was gone does not come back with the sink', async () => {
  const { ledger, ref } = await aLedger()
  await beginAttempt(ledger, ref, 'late', lease)
  await holdOrphan(ledger, ref)
  await settle(ledger, ref, 'late', { outcome: 'delivered' })
  expect(await itemIn(ledger)).toMatchObject({ state: 'delivered', heldFor: undefined })
  expect(await tests.redis.smembers(ledger.key('orphans', 'siem'))).toEqual([])
  expect(await returnOrphans(ledger, { sink: 'siem', batchWait: false, groups: {} }, 10)).toBe(0)
  await expectConservation(ledger)
})

test('an item whose sink is gone is neither due, nor in its batch, nor on its way', async () => {
  const { ledger, ref } = await aLedger()
  await beginAttempt(ledger, ref, 't1', lease)
  expect(await due(ledger, 'siem')).toEqual([ref])
  await holdOrphan(ledger, ref)
  expect(await due(ledger, 'siem')).toEqual([])
  expect(await itemIn(ledger)).toMatchObject({
    state: 'held',
    heldFor: 'orphaned',
    atMs: undefined,
    messageId: undefined,
    repeatRisks: 1,
  })
  expect(await settle(ledger, ref, 't1', { outcome: 'dead' })).toEqual({ status: 'stale' })
  await expectConservation(ledger)
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

test('a message whose outcome is known keeps its members when its sink is gone: they are to be settled', async () => {
  const { ledger, ref } = await aLedger('soc')
  const name = ledger.key('batch', 'm1')
  const message = JSON.stringify({ k: 'soc', d: 'soc', kind: 'group', n: 1, o: 'delivered' })
  await tests.redis.set(name, message)
  await tests.redis.zadd(ledger.key('members', 'm1'), 1, ref)
  await holdOrphan(ledger, 'b:m1:soc')
  expect(await tests.redis.get(name)).toBe(message)
  expect(await tests.redis.zrange(ledger.key('members', 'm1'), '0', '-1')).toEqual([ref])
  expect((await itemIn(ledger)).state).toBe('queued')
})

test('of what waits for a sink that is gone one step holds five hundred: Redis answers others in between', async () => {
  const ledger = await tests.ledger()
  const refs = Array.from({ length: 510 }, (_none, n) => [n, `i:${n}:0:soc`] as const)
  await tests.redis.zadd(ledger.key('collect', 'g'), ...refs.flat())
  expect(await ledger.run('orphan-item', 'c:g:soc', 'hold', 0)).toBe(0)
  expect(await tests.redis.zcard(ledger.key('collect', 'g'))).toBe(10)
  expect(await ledger.run('orphan-item', 'c:g:soc', 'hold', 0)).toBe(1)
})

/** An item for `soc` in each state in which it waits, and in each in which it is on its way. */
async function inEachState(ledger: AccountLedger): Promise<Map<string, string>> {
  const about = { destination: 'soc', route: 'root', labels: {}, feed: null }
  const placed = (kind: Group['kind'], n: number) => {
    const plan = routed({ uid: `a/b/${n}` }, ['soc'])
    const gathering = {
      id: kind,
      kind,
      waitMs: 9,
      atMs: Date.now() + 9_000,
      isUrgent: false,
      about,
    }
    return { ...plan, items: plan.items.map((item) => ({ ...item, group: gathering })) }
  }
  const alone = [0, 1, 2, 6].map((n) => routed({ uid: `a/b/${n}` }, ['soc'], n === 6))
  await takeIn(ledger, [...alone, placed('group', 3), placed('digest', 4), placed('held', 5)])
  const refOf = (n: number): string => `i:${ledger.fingerprints.recordId(`a/b/${n}`)}:0:soc`
  for (const n of [1, 2]) await beginAttempt(ledger, refOf(n), 't1', lease)
  const retry = { outcome: 'retry', inMs: 9_000, counts: true } as const
  await settle(ledger, refOf(1), 't1', { ...retry, reason: 'unavailable' })
  await takeIn(ledger, [routed({ uid: 'a/b/7' }, ['soc'])], { batchWaitMs: 1_000 })
  await sealBatch(ledger, { sink: 'soc', destination: 'soc' }, [refOf(7)])
  const names = ['queued', 'retrying', 'sending', 'group', 'digest', 'held', 'detail', 'batch']
  return new Map(names.map((name, n) => [name, refOf(n)]))
}

test.each(['queued', 'retrying', 'group', 'digest', 'held', 'detail'])(
  'of too many that wait one that is %s is given up, and one that is on its way is not',
  async (state) => {
    const ledger = await tests.ledger()
    const refs = await inEachState(ledger)
    const asked = ['sending', 'batch', state].map((name) => refs.get(name)!)
    expect(await overflowItems(ledger, asked, { sink: 'soc', keep: 8 })).toBe(0)
    expect(await overflowItems(ledger, asked, { sink: 'soc', keep: 7 })).toBe(1)
    expect(await overflowItems(ledger, [...refs.values()], { sink: 'soc', keep: 7 })).toBe(0)
    const { letters } = await listDeadLetters(ledger, 'soc', { offset: 0, count: 9 })
    expect(letters.map(({ ref }) => ref)).toEqual([refs.get(state)])
    expect(letters[0]!.item).toMatchObject({ state: 'dead', atMs: undefined, heldFor: undefined })
    expect(letters[0]!.item.history.at(-1)).toMatchObject({ outcome: 'dead', reason: 'overflow' })
    await expectConservation(ledger)
  },
)

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
