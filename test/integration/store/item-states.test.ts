/** Orders of steps that the random runs of conservation.test.ts come upon only now and then, one by one. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  firstDueMs,
  type Group,
  groupItems,
  holdOrphan,
  withholdItems,
  listDeadLetters,
  overflowItems,
  postponeDue,
  readMemberRefs,
  releaseDetail,
  replayDeadLetter,
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
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const lease = 30_000
const uid = 'a/b/1'

async function aBook(destination = 'siem'): Promise<{ ledger: AccountLedger; ref: string }> {
  const book = await tests.book()
  await takeIn(book, [routed({ uid }, [destination])])
  return { ledger: book, ref: `i:${book.fingerprints.recordId(uid)}:0:${destination}` }
}

function settle(book: AccountLedger, ref: string, token: string, outcome: Outcome) {
  return settleAttempt(book, { ref, token, replica: 'r1' }, outcome)
}

async function itemIn(book: AccountLedger): Promise<Item> {
  return (await readRecord(book, book.fingerprints.recordId(uid)))!.items[0]!
}

function due(book: AccountLedger, sink: string): Promise<string[]> {
  return tests.redis.zrange(book.key('due', sink), '0', '-1')
}

test('an item that a late answer delivered stays delivered when the batch it was put into dies', async () => {
  const { ledger: book, ref } = await aBook()
  await beginAttempt(book, ref, 'late', lease)
  await holdOrphan(book, ref)
  await returnOrphans(book, { sink: 'siem', batchWait: 1_000, groups: {} }, 10)
  const refs = (await peekBatch(book, 'siem', 9)).map((waiting) => waiting.ref)
  const batch = await sealBatch(book, { sink: 'siem', destination: 'siem', waitMs: 1_000 }, refs)
  await beginAttempt(book, batch!, 't', lease)
  await settle(book, ref, 'late', { outcome: 'delivered' })
  await settle(book, batch!, 't', { outcome: 'dead', reason: 'invalid' })
  expect((await itemIn(book)).state).toBe('delivered')
  expect((await listDeadLetters(book, 'siem', { offset: 0, count: 9 })).total).toBe(0)
  expect((await expectConservation(book)).sinks['siem']).toMatchObject({ delivered: 1, dead: 0 })
})

test('a try that was cut off makes every later one a possible repeat, whatever the next was answered', async () => {
  const { ledger: book, ref } = await aBook('soc')
  await beginAttempt(book, ref, 'cut off', lease)
  await beginAttempt(book, ref, 't2', lease)
  await settle(book, ref, 't2', { outcome: 'retry', inMs: 0, counts: true, reason: 'unavailable' })
  expect(await beginAttempt(book, ref, 't3', lease)).toMatchObject({ mayBeRepeat: true })
})

test('an item that a late answer delivered while its sink was gone does not come back with the sink', async () => {
  const { ledger: book, ref } = await aBook()
  await beginAttempt(book, ref, 'late', lease)
  await holdOrphan(book, ref)
  await settle(book, ref, 'late', { outcome: 'delivered' })
  expect(await itemIn(book)).toMatchObject({ state: 'delivered', heldFor: undefined })
  expect(await tests.redis.smembers(book.key('orphans', 'siem'))).toEqual([])
  expect(await returnOrphans(book, { sink: 'siem', batchWait: false, groups: {} }, 10)).toBe(0)
  await expectConservation(book)
})

test('an item whose sink is gone is neither due, nor in its batch, nor on its way', async () => {
  const { ledger: book, ref } = await aBook()
  await beginAttempt(book, ref, 't1', lease)
  expect(await due(book, 'siem')).toEqual([ref])
  await holdOrphan(book, ref)
  expect(await due(book, 'siem')).toEqual([])
  expect(await itemIn(book)).toMatchObject({
    state: 'held',
    heldFor: 'orphaned',
    atMs: undefined,
    messageId: undefined,
    repeatRisks: 1,
  })
  expect(await settle(book, ref, 't1', { outcome: 'dead' })).toEqual({ status: 'stale' })
  await expectConservation(book)
})

test('an item of a batch that is sealed leaves with it when its sink is gone', async () => {
  const book = await tests.book()
  const page = { batchWaitMs: 1_000 }
  await takeIn(book, [routed({ uid }, ['siem']), routed({ uid: 'a/b/2' }, ['siem'])], page)
  const refs = (await peekBatch(book, 'siem', 9)).map((waiting) => waiting.ref)
  const batch = await sealBatch(book, { sink: 'siem', destination: 'siem', waitMs: 1_000 }, refs)
  await tests.redis.zadd(book.key('due', 'siem'), Date.now(), refs[0]!) // of an older version
  await holdOrphan(book, batch!)
  expect(await due(book, 'siem')).toEqual([])
  expect(await tests.redis.smembers(book.key('orphans', 'siem'))).toHaveLength(2)
  await expectConservation(book)
})

test('an event whose group ended while its details were fetched is sent by itself', async () => {
  const book = await tests.book()
  const about = { destination: 'soc', route: 'root', labels: {}, feed: null }
  const gathering: Group = { id: 'g', kind: 'group', waitMs: 9, isUrgent: false, about }
  const plan = routed({ uid }, ['soc'], true)
  await takeIn(book, [
    { ...plan, items: plan.items.map((item) => ({ ...item, group: gathering })) },
  ])
  await tests.redis.del(book.key('gather', 'g')) // nothing waited in it any more
  const recordId = book.fingerprints.recordId(uid)
  const [made] = await releaseDetail(book, recordId, { soc: false }, undefined)
  expect(made).toMatchObject({ kind: 'single' })
  expect(await itemIn(book)).toMatchObject({ state: 'queued', heldFor: undefined })
  expect(await beginAttempt(book, made!.ref, 't', lease)).toMatchObject({ status: 'send' })
  await expectConservation(book)
})

test('an event that waited for its details goes in its batch, and not by itself as well', async () => {
  const book = await tests.book()
  await takeIn(book, [routed({ uid }, ['siem'], true)])
  await releaseDetail(book, book.fingerprints.recordId(uid), { siem: 1_000 }, undefined)
  expect(await due(book, 'siem')).toEqual(['c:siem'])
})

test('a batch does not wait longer because more comes', async () => {
  const book = await tests.book()
  await takeIn(book, [routed({ uid: 'a/b/0' }, ['siem'])], { batchWaitMs: 1_000 })
  await tests.redis.zincrby(book.key('due', 'siem'), -500, 'c:siem') // as if it had come earlier
  const before = await tests.redis.zscore(book.key('due', 'siem'), 'c:siem')
  await takeIn(book, [routed({ uid }, ['siem'])], { batchWaitMs: 1_000 })
  expect(await tests.redis.zscore(book.key('due', 'siem'), 'c:siem')).toBe(before)
})

test('what a rule keeps from being sent is due no more', async () => {
  const { ledger: book, ref } = await aBook('soc')
  expect(await due(book, 'soc')).toEqual([ref])
  await withholdItems(book, [{ ref, act: 'suppress', reason: 'silence', rule: 's1' }])
  expect(await due(book, 'soc')).toEqual([])
  await expectConservation(book)
})

test('work that is postponed is due that much later, and what is not due does not become so', async () => {
  const { ledger: book, ref } = await aBook('soc')
  await postponeDue(book, ref, 3_600_000)
  const dueInMs = (await firstDueMs(book, 'soc'))! - Date.now()
  expect(Math.abs(dueInMs - 3_600_000)).toBeLessThan(60_000)
  await postponeDue(book, 'i:gone:0:soc', 1)
  expect(await due(book, 'soc')).toEqual([ref])
})

test('a letter that is replayed has not ended, until it is delivered', async () => {
  const { ledger: book, ref } = await aBook('soc')
  await beginAttempt(book, ref, 't1', lease)
  await settle(book, ref, 't1', { outcome: 'dead', reason: 'invalid' })
  expect((await itemIn(book)).endedAtMs).toBeGreaterThan(0)
  await replayDeadLetter(book, ref, undefined)
  expect(await itemIn(book)).toMatchObject({ state: 'queued', endedAtMs: undefined })
})

test('the halves of a refused batch hold its members, and none is left behind', async () => {
  const book = await tests.book()
  const uids = ['a/b/1', 'a/b/2', 'a/b/3']
  const page = { batchWaitMs: 1_000 }
  await takeIn(
    book,
    uids.map((one) => routed({ uid: one }, ['siem'])),
    page,
  )
  const refs = (await peekBatch(book, 'siem', 9)).map((waiting) => waiting.ref)
  const batch = await sealBatch(book, { sink: 'siem', destination: 'siem', waitMs: 1_000 }, refs)
  await beginAttempt(book, batch!, 't', lease)
  const { halves } = await settle(book, batch!, 't', { outcome: 'split', reason: 'invalid' })
  const begun = await Promise.all(
    (halves ?? []).map((half) => beginAttempt(book, half, 't', lease)),
  )
  const members = begun.map((half) =>
    half.status === 'send' ? half.members.map((member) => member.uid) : [],
  )
  expect(begun).toMatchObject([{ attempt: 1 }, { attempt: 1 }])
  expect(members).toEqual([['a/b/1', 'a/b/2'], ['a/b/3']])
  for (const [at, half] of (halves ?? []).entries()) {
    const record = await readRecord(book, book.fingerprints.recordId(members[at]![0]!))
    expect(`b:${record!.items[0]!.messageId}:siem`).toBe(half)
    await settle(book, half, 't', { outcome: 'delivered' })
  }
  const history = (await itemIn(book)).history.map(({ outcome, reason }) => [outcome, reason])
  expect(history).toEqual([
    ['split', 'invalid'],
    ['delivered', undefined],
  ])
})

test('a full event that comes when its message went leaves what was told as it is', async () => {
  const book = await tests.book()
  await takeIn(book, [routed({ uid }, ['soc'], true)])
  const recordId = book.fingerprints.recordId(uid)
  const payload = await readPayload(book, recordId)
  const told = { ...payload!, detail: { id: 7 } }
  const [made] = await releaseDetail(book, recordId, { soc: false }, told)
  await beginAttempt(book, made!.ref, 't', lease)
  await settle(book, made!.ref, 't', { outcome: 'delivered' })
  expect(await readPayload(book, recordId)).toEqual(told)
  expect(
    await releaseDetail(book, recordId, { soc: false }, { ...told, detail: 'unavailable' }),
  ).toEqual([])
  expect(await readPayload(book, recordId)).toEqual(told)
})

test('a message whose outcome is known keeps its members when its sink is gone: they are to be settled', async () => {
  const { ledger: book, ref } = await aBook('soc')
  const name = book.key('batch', 'm1')
  const message = JSON.stringify({ k: 'soc', d: 'soc', kind: 'group', n: 1, o: 'delivered' })
  await tests.redis.set(name, message)
  await tests.redis.zadd(book.key('sealed', 'm1'), 1, ref)
  await holdOrphan(book, 'b:m1:soc')
  expect(await tests.redis.get(name)).toBe(message)
  expect(await tests.redis.zrange(book.key('sealed', 'm1'), '0', '-1')).toEqual([ref])
  expect((await itemIn(book)).state).toBe('queued')
})

test('of what waits for a sink that is gone one step holds five hundred: Redis answers others in between', async () => {
  const book = await tests.book()
  const refs = Array.from({ length: 510 }, (_none, n) => [n, `i:${n}:0:soc`] as const)
  await tests.redis.zadd(book.key('collect', 'g'), ...refs.flat())
  expect(await book.run('orphan-item', 'c:g:soc', 'hold', 0)).toBe(0)
  expect(await tests.redis.zcard(book.key('collect', 'g'))).toBe(10)
  expect(await book.run('orphan-item', 'c:g:soc', 'hold', 0)).toBe(1)
})

test('items that still go singly are gathered and counted, and listed a page at a time', async () => {
  const book = await tests.book()
  const uids = ['a/b/1', 'a/b/2', 'a/b/3', 'a/b/delivered']
  await takeIn(
    book,
    uids.map((one) => routed({ uid: one }, ['soc'])),
  )
  const [delivered, ...refs] = uids
    .map((one) => `i:${book.fingerprints.recordId(one)}:0:soc`)
    .toReversed()
  for (const ref of [delivered!, refs[0]!]) await beginAttempt(book, ref, 't', lease)
  await settle(book, delivered!, 't', { outcome: 'delivered' })
  await settle(book, refs[0]!, 't', { outcome: 'retry', inMs: 9_000, counts: true })
  const about = { destination: 'soc', route: 'root', labels: {}, feed: null }
  const group: Group = { id: 'g', kind: 'group', waitMs: 9, isUrgent: false, about }
  expect(await groupItems(book, [], { soc: group })).toBe(0)
  expect(await groupItems(book, [delivered!, ...refs], { soc: group })).toBe(3)
  expect(await groupItems(book, refs, { soc: group })).toBe(0)
  expect(await readMemberRefs(book, 'g', { offset: 0, count: 2 })).toEqual(refs.slice(0, 2))
  expect(await readMemberRefs(book, 'g', { offset: 2, count: 2 })).toEqual(refs.slice(2))
  await expectConservation(book)
})

/** An item for `soc` in each state in which it waits, and in each in which it is on its way. */
async function inEachState(book: AccountLedger): Promise<Map<string, string>> {
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
  await takeIn(book, [...alone, placed('group', 3), placed('digest', 4), placed('held', 5)])
  const refOf = (n: number): string => `i:${book.fingerprints.recordId(`a/b/${n}`)}:0:soc`
  for (const n of [1, 2]) await beginAttempt(book, refOf(n), 't1', lease)
  const retry = { outcome: 'retry', inMs: 9_000, counts: true } as const
  await settle(book, refOf(1), 't1', { ...retry, reason: 'unavailable' })
  await takeIn(book, [routed({ uid: 'a/b/7' }, ['soc'])], { batchWaitMs: 1_000 })
  await sealBatch(book, { sink: 'soc', destination: 'soc' }, [refOf(7)])
  const names = ['queued', 'retrying', 'sending', 'group', 'digest', 'held', 'detail', 'batch']
  return new Map(names.map((name, n) => [name, refOf(n)]))
}

test.each(['queued', 'retrying', 'group', 'digest', 'held', 'detail'])(
  'of too many that wait one that is %s is given up, and one that is on its way is not',
  async (state) => {
    const book = await tests.book()
    const refs = await inEachState(book)
    const asked = ['sending', 'batch', state].map((name) => refs.get(name)!)
    expect(await overflowItems(book, asked, { sink: 'soc', keep: 8 })).toBe(0)
    expect(await overflowItems(book, asked, { sink: 'soc', keep: 7 })).toBe(1)
    expect(await overflowItems(book, [...refs.values()], { sink: 'soc', keep: 7 })).toBe(0)
    const { letters } = await listDeadLetters(book, 'soc', { offset: 0, count: 9 })
    expect(letters.map(({ ref }) => ref)).toEqual([refs.get(state)])
    expect(letters[0]!.item).toMatchObject({ state: 'dead', atMs: undefined, heldFor: undefined })
    expect(letters[0]!.item.history.at(-1)).toMatchObject({ outcome: 'dead', reason: 'overflow' })
    await expectConservation(book)
  },
)

test.each([
  [['a/b/1'], 1],
  [['a/b/1', 'a/b/2'], 0],
])(
  'a batch is due as long as anything of it is left: %j of two are suppressed',
  async (uids, due) => {
    const book = await tests.book()
    const both = ['a/b/1', 'a/b/2'].map((one) => routed({ uid: one }, ['siem']))
    await takeIn(book, both, { batchWaitMs: 1 })
    const refs = uids.map((one) => `i:${book.fingerprints.recordId(one)}:0:siem`)
    const silenced = refs.map((ref) => {
      return { ref, act: 'suppress', reason: 'silence', rule: 's1' } as const
    })
    expect(await withholdItems(book, silenced, 'siem')).toEqual(refs)
    expect(await tests.redis.zcard(book.key('due', 'siem'))).toBe(due)
    await expectConservation(book)
  },
)
