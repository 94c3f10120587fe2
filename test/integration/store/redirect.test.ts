/** Items that take another way, and answers of sends that were under way when they did. */
import { mutedGroup } from '../../../src/grouping/placement.ts'
import { expect, test } from 'vitest'
import { beginAttempt, settleAttempt, type Outcome } from '../../support/attempts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord, type Item } from '../../../src/store/records.ts'
import {
  discardItem,
  moveItem,
  rerouteItem,
  resendItem,
  suppressItems,
} from '../../../src/store/pending-items.ts'
import {
  changeRecord,
  expectConservation,
  redisForTests,
  routed,
  takeIn,
} from '../../support/ledger.ts'

const tests = redisForTests()
const uid = 'a/b/1'

function settle(ledger: AccountLedger, ref: string, token: string, outcome: Outcome) {
  return settleAttempt(ledger, { ref, token, replica: 'r1' }, outcome)
}

async function itemsOf(ledger: AccountLedger): Promise<Item[]> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(uid)))!.items
}

/** Taken in for `soc`, a send to it under way under the token `t1`, then diverted to `lake`. */
async function divertedWhileSent(): Promise<{ ledger: AccountLedger; ref: string }> {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid })])
  const recordId = ledger.fingerprints.recordId(uid)
  const ref = `i:${recordId}:0:soc`
  await beginAttempt(ledger, ref, 't1', 30_000)
  const [item] = await itemsOf(ledger)
  const diverted = await rerouteItem(
    ledger,
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
  return { ledger: ledger, ref }
}

test('what was diverted while it was sent, and is sent again, does not die of the answer to the first send', async () => {
  const { ledger, ref } = await divertedWhileSent()
  expect(await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'ann' })).toBe('done')
  expect(await settle(ledger, ref, 't1', { outcome: 'dead', reason: 'invalid' })).toEqual({
    status: 'stale',
  })
  const [again, atLake] = await itemsOf(ledger)
  expect(again).toMatchObject({ state: 'queued', rule: 'ann', repeatRisks: 1, replays: 1 })
  expect(again!.history).toMatchObject([
    { number: 1, outcome: 'answer lost', reason: 'interrupted' },
  ])
  expect(atLake).toMatchObject({ state: 'queued', sink: 'lake', attempts: 0, repeatRisks: 0 })
  expect(await beginAttempt(ledger, ref, 't2', 30_000)).toMatchObject({ mayBeRepeat: true })
  await expectConservation(ledger)
})

test('what a fallback got is not sent to it again when it is diverted once more', async () => {
  const { ledger, ref } = await divertedWhileSent()
  await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'ann' })
  const [item] = await itemsOf(ledger)
  const targets = [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }]
  const where = { ref, record: { uid }, item: item! }
  expect(await rerouteItem(ledger, where, { to: 'lake', targets, staleMs: 0 })).toEqual({
    status: 'done',
    made: [],
  })
  expect(await itemsOf(ledger)).toHaveLength(2)
  expect((await expectConservation(ledger)).sinks['lake']).toMatchObject({ created: 1 })
})

test('what a fallback gets is told as the item that it stands for: its route, its feed, and what it was raised from', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid, severity: 'low' })])
  await takeIn(ledger, [routed({ uid, severity: 'critical' })], { feed: 'second' })
  const recordId = ledger.fingerprints.recordId(uid)
  const [, waiting] = await itemsOf(ledger)
  const ref = `i:${recordId}:1:soc`
  const targets = [{ sink: 'lake', destination: 'lake:ab', batchWaitMs: undefined }]
  const where = { ref, record: { uid }, item: waiting! }
  await rerouteItem(ledger, where, { to: 'lake', targets, staleMs: 0 })
  const [, diverted, atLake] = await itemsOf(ledger)
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
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid }, ['soc', 'lake'])])
  await changeRecord<{ i: object[] }>(ledger, ledger.fingerprints.recordId(uid), ({ i }) => i.pop())
  const [item] = await itemsOf(ledger)
  const targets = [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }]
  const where = {
    ref: `i:${ledger.fingerprints.recordId(uid)}:0:soc`,
    record: { uid },
    item: item!,
  }
  const diverted = await rerouteItem(ledger, where, { to: 'lake', targets, staleMs: 0 })
  expect(diverted).toEqual({ status: 'done', made: [] })
  expect((await itemsOf(ledger)).map(({ state }) => state)).toEqual(['diverted'])
})

test('what is not there any more is neither moved, nor diverted, nor sent again', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid })])
  const [item] = await itemsOf(ledger)
  for (const ref of ['i:gone:0:soc', `i:${ledger.fingerprints.recordId(uid)}:1:soc`]) {
    const where = { ref, record: { uid }, item: item! }
    expect(await moveItem(ledger, where, [], 'ann')).toBe('other')
    expect(await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'ann' })).toBe('other')
    expect(await rerouteItem(ledger, where, { to: 'lake', targets: [], staleMs: 0 })).toEqual({
      status: 'other',
      made: [],
    })
  }
  expect(await itemsOf(ledger)).toEqual([item])
})

const hourMs = 3_600_000
const lake = { sink: 'lake', destination: 'lake', batchWaitMs: undefined }

/** One item of `soc`, brought into its state. */
async function waitingAs(state: string, ledger: AccountLedger): Promise<string> {
  await takeIn(ledger, [routed({ uid })])
  const ref = `i:${ledger.fingerprints.recordId(uid)}:0:soc`
  const untilMs = Date.now() + (state === 'held until a moment ago' ? -hourMs : hourMs)
  if (state === 'retrying') {
    await beginAttempt(ledger, ref, 't', 30_000)
    await settle(ledger, ref, 't', { outcome: 'retry', inMs: hourMs, reason: 'unavailable' })
  } else if (state !== 'queued') {
    const group = mutedGroup('soc', 'night', untilMs)
    await suppressItems(ledger, [{ ref, rule: 'night', act: 'hold', untilMs, group }])
  }
  return ref
}

test.each(['queued', 'retrying', 'held'])(
  'what is %s is moved or given up by hand, and is due no more where it was',
  async (state) => {
    for (const verb of ['move', 'discard']) {
      const ledger = await tests.ledger()
      const ref = await waitingAs(state, ledger)
      const [item] = await itemsOf(ledger)
      expect(item!.state).toBe(state)
      const where = { ref, record: { uid }, item: item! }
      const moving = verb === 'move'
      const ended = moving
        ? moveItem(ledger, where, [lake], 'ann')
        : discardItem(ledger, ref, 'ann')
      expect(await ended).toBe('done')
      const states = (await itemsOf(ledger)).map((one) => one.state)
      expect(states).toEqual(moving ? ['diverted', 'queued'] : ['discarded'])
      expect(await tests.redis.zrange(ledger.key('due', 'soc'), '0', '-1')).toEqual([])
      await expectConservation(ledger)
    }
  },
)

test.each([
  ['retrying', 'done'],
  ['held', 'busy'],
  ['held until a moment ago', 'done'],
])('a fallback gets what is %s: %s', async (state, status) => {
  const ledger = await tests.ledger()
  const ref = await waitingAs(state, ledger)
  const [item] = await itemsOf(ledger)
  const where = { ref, record: { uid }, item: item! }
  const answer = await rerouteItem(ledger, where, { to: 'lake', targets: [lake], staleMs: 0 })
  expect(answer.status).toBe(status)
  expect(await itemsOf(ledger)).toHaveLength(status === 'done' ? 2 : 1)
})

test('what a fallback got is not sent to it again once the history of the event has ended', async () => {
  const { ledger } = await divertedWhileSent()
  await tests.redis.del(ledger.key('rec', ledger.fingerprints.recordId(uid)))
  const again = await takeIn(ledger, [routed({ uid }, ['soc', 'lake'])], { feed: 'second' })
  expect(again).toMatchObject({ counts: { new: 1 }, changes: [] })
})
