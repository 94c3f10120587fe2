/** Items that take another way, and answers of sends that were under way when they did. */
import { expect, test } from 'vitest'
import { beginAttempt, settleAttempt, type Outcome } from '../../support/attempts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord, type Item } from '../../../src/store/records.ts'
import { rerouteItem, moveItem, resendItem } from '../../../src/store/pending-items.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const uid = 'a/b/1'

function settle(book: AccountLedger, ref: string, token: string, outcome: Outcome) {
  return settleAttempt(book, { ref, token, replica: 'r1' }, outcome)
}

async function itemsOf(book: AccountLedger): Promise<Item[]> {
  return (await readRecord(book, book.fingerprints.recordId(uid)))!.items
}

/** Taken in for `soc`, a send to it under way under the token `t1`, then diverted to `lake`. */
async function divertedWhileSent(): Promise<{ ledger: AccountLedger; ref: string }> {
  const book = await tests.book()
  await takeIn(book, [routed({ uid })])
  const recordId = book.fingerprints.recordId(uid)
  const ref = `i:${recordId}:0:soc`
  await beginAttempt(book, ref, 't1', 30_000)
  const [item] = await itemsOf(book)
  const diverted = await rerouteItem(
    book,
    { ref, record: { uid }, item: item! },
    {
      to: 'lake',
      targets: [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }],
      staleMs: -1,
    },
  )
  expect(diverted).toEqual({
    status: 'done',
    made: [{ ref: `i:${recordId}:1:lake`, k: 'lake', sv: 'high', rk: 4, kind: 'single' }],
  })
  return { ledger: book, ref }
}

test('what was diverted while it was sent, and is sent again, does not die of the answer to the first send', async () => {
  const { ledger: book, ref } = await divertedWhileSent()
  expect(await resendItem(book, ref, { batchWaitMs: undefined, by: 'ann' })).toBe('done')
  expect(await settle(book, ref, 't1', { outcome: 'dead', reason: 'invalid' })).toEqual({
    status: 'stale',
  })
  const [again, atLake] = await itemsOf(book)
  expect(again).toMatchObject({ state: 'queued', rule: 'ann', repeatRisks: 1, replays: 1 })
  expect(again!.history).toMatchObject([
    { number: 1, outcome: 'answer lost', reason: 'interrupted' },
  ])
  expect(atLake).toMatchObject({ state: 'queued', sink: 'lake', attempts: 0, repeatRisks: 0 })
  expect(await beginAttempt(book, ref, 't2', 30_000)).toMatchObject({ mayBeRepeat: true })
  await expectConservation(book)
})

test('what a fallback got is not sent to it again when it is diverted once more', async () => {
  const { ledger: book, ref } = await divertedWhileSent()
  await resendItem(book, ref, { batchWaitMs: undefined, by: 'ann' })
  const [item] = await itemsOf(book)
  const targets = [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }]
  const where = { ref, record: { uid }, item: item! }
  expect(await rerouteItem(book, where, { to: 'lake', targets, staleMs: 0 })).toEqual({
    status: 'done',
    made: [],
  })
  expect(await itemsOf(book)).toHaveLength(2)
  expect((await expectConservation(book)).sinks['lake']).toMatchObject({ created: 1 })
})

test('what a fallback gets is told as the item that it stands for: its route, its feed, and what it was raised from', async () => {
  const book = await tests.book()
  await takeIn(book, [routed({ uid, severity: 'low' })])
  await takeIn(book, [routed({ uid, severity: 'critical' })], { feed: 'second' })
  const recordId = book.fingerprints.recordId(uid)
  const [, waiting] = await itemsOf(book)
  const ref = `i:${recordId}:1:soc`
  const targets = [{ sink: 'lake', destination: 'lake:ab', batchWaitMs: undefined }]
  const where = { ref, record: { uid }, item: waiting! }
  await rerouteItem(book, where, { to: 'lake', targets, staleMs: 0 })
  const [, diverted, atLake] = await itemsOf(book)
  expect(diverted).toMatchObject({ state: 'diverted', rule: 'fallback to lake', atMs: undefined })
  expect(atLake).toEqual({
    ...waiting,
    index: 2,
    id: expect.stringMatching(/^e[0-9a-f]{32}$/u),
    sink: 'lake',
    destination: 'lake:ab',
    createdAtMs: expect.any(Number),
  })
  expect(atLake).toMatchObject({ sighting: 1, raisedFrom: 'low', routes: ['root'] })
  expect(atLake!.id).not.toBe(waiting!.id)
})

test('what a destination had by an earlier record is not sent to it again', async () => {
  const book = await tests.book()
  await takeIn(book, [routed({ uid }, ['soc', 'lake'])])
  const name = book.key('rec', book.fingerprints.recordId(uid))
  const record = JSON.parse((await tests.redis.get(name))!) as { i: unknown[] }
  record.i.pop()
  await tests.redis.set(name, JSON.stringify(record))
  const [item] = await itemsOf(book)
  const targets = [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }]
  const where = { ref: `i:${book.fingerprints.recordId(uid)}:0:soc`, record: { uid }, item: item! }
  const diverted = await rerouteItem(book, where, { to: 'lake', targets, staleMs: 0 })
  expect(diverted).toEqual({ status: 'done', made: [] })
  expect((await itemsOf(book)).map(({ state }) => state)).toEqual(['diverted'])
})

test('what is not there any more is neither moved, nor diverted, nor sent again', async () => {
  const book = await tests.book()
  await takeIn(book, [routed({ uid })])
  const [item] = await itemsOf(book)
  for (const ref of ['i:gone:0:soc', `i:${book.fingerprints.recordId(uid)}:1:soc`]) {
    const where = { ref, record: { uid }, item: item! }
    expect(await moveItem(book, where, [], 'ann')).toBe('other')
    expect(await resendItem(book, ref, { batchWaitMs: undefined, by: 'ann' })).toBe('other')
    expect(await rerouteItem(book, where, { to: 'lake', targets: [], staleMs: 0 })).toEqual({
      status: 'other',
      made: [],
    })
  }
  expect(await itemsOf(book)).toEqual([item])
})
