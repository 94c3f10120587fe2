/** What attempts, operators and rules make of items, one by one; traces of several are in ledger-traces.ts. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  firstDueMs,
  type Group,
  groupItems,
  makeRetriesDue,
  postponeDue,
  readMemberRefs,
  releaseDetail,
  suppressItems,
} from '../../../src/store/pending-items.ts'
import { type Item, readPayload, readRecord } from '../../../src/store/records.ts'
import { discardDeadLetter, replayDeadLetter } from '../../support/acts.ts'
import {
  attemptOf,
  beginAttempt,
  claimRef,
  type Outcome,
  peekBatch,
  sealBatch,
  settleAttempt,
} from '../../support/attempts.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const lease = 30_000
const about = { destination: 'soc', route: 'root', labels: {}, feed: null }
const group: Group = { id: 'g', kind: 'group', waitMs: 9_000, isUrgent: false, about }

function refOf(ledger: AccountLedger, n: number, sink = 'soc', index = 0): string {
  return `i:${ledger.fingerprints.recordId(`a/b/${n}`)}:${index}:${sink}`
}

async function show(ledger: AccountLedger, n: number, to = ['soc'], batchWaitMs?: number) {
  const page = batchWaitMs === undefined ? {} : { batchWaitMs }
  await takeIn(ledger, [routed({ uid: `a/b/${n}` }, to)], page)
}

async function showInGroup(ledger: AccountLedger, n: number, wantsDetail = false): Promise<void> {
  const plan = routed({ uid: `a/b/${n}` }, ['soc'], wantsDetail)
  await takeIn(ledger, [{ ...plan, items: plan.items.map((item) => ({ ...item, group })) }])
}

/** Events 1 to `count` in one frozen batch for `siem`. */
async function aBatch(ledger: AccountLedger, count: number): Promise<string> {
  for (let n = 1; n <= count; n += 1) await show(ledger, n, ['siem'], 1_000)
  const refs = (await peekBatch(ledger, 'siem', 10)).map(({ ref }) => ref)
  return (await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs))!
}

function settle(ledger: AccountLedger, ref: string, token: string, outcome: Outcome) {
  return settleAttempt(ledger, { ref, token, replica: 'r1' }, outcome)
}

async function itemOf(ledger: AccountLedger, n: number, index = 0): Promise<Item> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(`a/b/${n}`)))!.items[index]!
}

function dueOf(ledger: AccountLedger, sink: string): Promise<string[]> {
  return tests.redis.zrange(ledger.key('due', sink), '0', '-1')
}

/** How long record and payload of an event are kept, ms; -1: for good. */
function livesOf(ledger: AccountLedger, n: number): Promise<number[]> {
  const id = ledger.fingerprints.recordId(`a/b/${n}`)
  return Promise.all(['rec', 'pay'].map((kind) => tests.redis.pttl(ledger.key(kind, id))))
}

const retry = { outcome: 'retry', inMs: 0, counts: true, reason: 'unavailable' } as const
const lost = { outcome: 'retry', inMs: 0, answerLost: true, reason: 'timeout' } as const
const dead = { outcome: 'dead', reason: 'invalid' } as const

test('an attempt has all that a message says of the event, as the feed that brought it to the sink saw it', async () => {
  const ledger = await tests.ledger()
  const event = { uid: 'a/b/1', severity: 'medium' }
  const labels = { team: 'vip' }
  await takeIn(ledger, [routed(event, ['siem'])], { feed: 'first', labels: { team: 'other' } })
  await takeIn(ledger, [routed({ ...event, ignoredAtMs: 1 })], { feed: 'brand', labels })
  const begun = await beginAttempt(ledger, refOf(ledger, 1, 'soc', 1), 't1', lease)
  if (begun.status !== 'send') throw new Error('nothing to send')
  expect(begun.members).toEqual([
    {
      id: (await itemOf(ledger, 1, 1)).id,
      recordId: ledger.fingerprints.recordId('a/b/1'),
      uid: 'a/b/1',
      severity: 'medium',
      routes: ['root'],
      feed: 'brand',
      labels,
      raisedFrom: undefined,
      destination: 'soc',
      otherDestinations: ['siem'],
      seenBefore: [],
      closed: 'ignored',
      payload: { event: expect.objectContaining(event), fetchedAtMs: expect.any(Number) },
    },
  ])
  expect(Math.abs(Date.now() - begun.createdAtMs)).toBeLessThan(60_000)
})

test.each<[string, (Outcome | 'cut off')[], boolean, number]>([
  ['a refusal', [retry], false, 1],
  ['a lost answer', [lost], true, 0],
  ['a lost answer after a refusal', [retry, lost], true, 1],
  ['a refusal after a lost answer', [lost, retry], true, 1],
  ['an attempt that was cut off', ['cut off'], true, 0],
  ['a refusal after an attempt that was cut off', ['cut off', retry], true, 1],
])(
  'after %s the next attempt has the same id, and may be a repeat or not',
  async (_what, past, mayBeRepeat, tries) => {
    const ledger = await tests.ledger()
    await show(ledger, 1)
    const batch = await aBatch(ledger, 2)
    for (const ref of [refOf(ledger, 1), batch]) {
      const begun = []
      for (const [n, outcome] of [...past, 'cut off' as const].entries()) {
        begun.push(await beginAttempt(ledger, ref, `t${n}`, lease))
        if (outcome !== 'cut off') await settle(ledger, ref, `t${n}`, outcome)
      }
      expect(begun.at(-1)).toMatchObject({ attempt: past.length + 1, mayBeRepeat, tries })
      const ids = begun.map((one) => one.status === 'send' && one.members.map(({ id }) => id))
      expect(ids.every((one) => String(one) === String(ids[0]))).toBe(true)
    }
    await expectConservation(ledger)
  },
)

test('what was delivered meanwhile is in no batch, though it still stands among those that wait', async () => {
  const ledger = await tests.ledger()
  await show(ledger, 1, ['siem'], 1_000)
  await show(ledger, 2, ['siem'])
  const [waiting, done] = [refOf(ledger, 1, 'siem'), refOf(ledger, 2, 'siem')]
  await attemptOf(ledger, done, { outcome: 'delivered' })
  await tests.redis.zadd(ledger.key('collect', 'siem'), 1, done)
  const batch = await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, [done, waiting])
  expect(await beginAttempt(ledger, batch!, 't', lease)).toMatchObject({
    members: [{ uid: 'a/b/1' }],
  })
  await expectConservation(ledger)
})

test('items that still go singly are gathered and counted, and listed a page at a time', async () => {
  const ledger = await tests.ledger()
  for (const n of [1, 2, 3, 4]) await show(ledger, n)
  const [delivered, ...refs] = [4, 3, 2, 1].map((n) => refOf(ledger, n))
  await attemptOf(ledger, delivered!, { outcome: 'delivered' })
  await attemptOf(ledger, refs[0]!, { ...retry, inMs: 9_000 })
  expect(await groupItems(ledger, [], { soc: group })).toBe(0)
  expect(await groupItems(ledger, [delivered!, ...refs], { soc: group })).toBe(3)
  expect(await groupItems(ledger, refs, { soc: group })).toBe(0)
  expect(await readMemberRefs(ledger, 'g', { offset: 0, count: 2 })).toEqual(refs.slice(0, 2))
  expect(await readMemberRefs(ledger, 'g', { offset: 2, count: 2 })).toEqual(refs.slice(2))
  await expectConservation(ledger)
})

test('work that is postponed is due that much later, and what is not due does not become so', async () => {
  const ledger = await tests.ledger()
  await show(ledger, 1)
  await postponeDue(ledger, refOf(ledger, 1), 3_600_000)
  const dueInMs = (await firstDueMs(ledger, 'soc'))! - Date.now()
  expect(Math.abs(dueInMs - 3_600_000)).toBeLessThan(60_000)
  await postponeDue(ledger, 'i:gone:0:soc', 1)
  expect(await dueOf(ledger, 'soc')).toEqual([refOf(ledger, 1)])
})

test('the history keeps the last five attempts, of each 200 characters of the answer, and counts all', async () => {
  const ledger = await tests.ledger()
  await show(ledger, 1)
  const long = { ...retry, answer: 'x'.repeat(10_000) }
  for (let n = 1; n <= 7; n += 1) await attemptOf(ledger, refOf(ledger, 1), long)
  const { attempts, history } = await itemOf(ledger, 1)
  expect([attempts, ...history.map(({ number }) => number)]).toEqual([7, 3, 4, 5, 6, 7])
  expect(history.every(({ answer }) => answer === 'x'.repeat(200))).toBe(true)
})

test('settled records expire with history and payload; unsettled ones never, nor those for one more destination', async () => {
  const ledger = await tests.ledger()
  await show(ledger, 1, ['soc', 'siem'])
  await attemptOf(ledger, refOf(ledger, 1), { outcome: 'delivered' })
  expect(await livesOf(ledger, 1)).toEqual([-1, -1])
  await attemptOf(ledger, refOf(ledger, 1, 'siem', 1), { outcome: 'delivered' })
  const [history = 0, payload = 0] = await livesOf(ledger, 1)
  expect(history).toBeGreaterThan(payload)
  expect(payload).toBeGreaterThan(0)
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['lake'])], { feed: 'another' })
  expect(await livesOf(ledger, 1)).toEqual([-1, -1])
})

test('a batch does not wait longer because more comes, nor is it due once nothing of it is left', async () => {
  const ledger = await tests.ledger()
  const dueMs = () => tests.redis.zscore(ledger.key('due', 'siem'), 'c:siem')
  await show(ledger, 1, ['siem'], 1_000)
  await tests.redis.zincrby(ledger.key('due', 'siem'), -500, 'c:siem') // as if it had come earlier
  const before = await dueMs()
  await show(ledger, 2, ['siem'], 1_000)
  expect(await dueMs()).toBe(before)
  for (const [n, left] of [
    [1, before],
    [2, null],
  ] as const) {
    const ref = refOf(ledger, n, 'siem')
    const silenced = { ref, act: 'suppress', reason: 'silence', rule: 's1' } as const
    expect(await suppressItems(ledger, [silenced], 'siem')).toEqual([ref])
    expect(await dueMs()).toBe(left)
  }
  await expectConservation(ledger)
})

test('only what waits to be sent is suppressed: nothing that ended, was tried, or waits for something else', async () => {
  const ledger = await tests.ledger()
  const [ended, tried, single, inBatch, grouped] = [1, 2, 3, 4, 5].map((n) => refOf(ledger, n)) as [
    string,
    string,
    string,
    string,
    string,
  ]
  for (const n of [1, 4]) await show(ledger, n, ['soc'], 1_000)
  for (const n of [2, 3]) await show(ledger, n)
  await showInGroup(ledger, 5)
  const gone = 'i:gone:0:soc'
  await attemptOf(ledger, ended, { outcome: 'delivered' })
  await tests.redis.zadd(ledger.key('collect', 'soc'), 1, ended, 1, gone)
  await attemptOf(ledger, tried, { ...retry, inMs: 1_000 })
  const keep = (ref: string, collection?: string): Promise<string[]> =>
    suppressItems(ledger, [{ ref, act: 'suppress', reason: 'silence', rule: 's1' }], collection)
  for (const ref of [ended, gone, single]) expect(await keep(ref, 'soc')).toEqual([])
  for (const ref of [tried, grouped, ended, gone]) expect(await keep(ref)).toEqual([])
  expect(await keep(single)).toEqual([single])
  expect(await keep(inBatch, 'soc')).toEqual([inBatch])
  const items = await Promise.all([1, 2, 3, 4, 5].map((n) => itemOf(ledger, n)))
  const states = ['delivered', 'retrying', 'suppressed', 'suppressed', 'group']
  expect(items.map(({ state }) => state)).toEqual(states)
  expect(await dueOf(ledger, 'soc')).toEqual([tried])
})

test('items held for their detail are sent on together when it is there, alone or in a batch, and once', async () => {
  const ledger = await tests.ledger()
  const plan = routed({ uid: 'a/b/1' }, ['soc', 'siem'], true)
  const accepted = await takeIn(ledger, [plan])
  expect(accepted).toMatchObject({ changes: [{ kind: 'detail' }, { kind: 'detail' }] })
  expect(await itemOf(ledger, 1)).toMatchObject({ state: 'held', heldFor: 'detail' })
  const release = (name: string) =>
    releaseDetail(
      ledger,
      ledger.fingerprints.recordId('a/b/1'),
      { soc: false, siem: 1_000 },
      { detail: { name } },
    )
  const made = await release('x')
  expect(made.map(({ kind }) => kind)).toEqual(['single', 'collect'])
  expect(await release('late')).toEqual([])
  const found = { payload: { detail: { name: 'x' } } }
  expect(await beginAttempt(ledger, made[0]!.ref, 't', lease)).toMatchObject({ members: [found] })
  expect(await peekBatch(ledger, 'siem', 10)).toMatchObject([{ found }])
  expect(await dueOf(ledger, 'siem')).toEqual(['c:siem'])
  await expectConservation(ledger)
})

test('a full event that comes late, or when nobody waits for it, changes nothing of what is sent', async () => {
  const ledger = await tests.ledger()
  await show(ledger, 1)
  const recordId = ledger.fingerprints.recordId('a/b/1')
  const payload = (await readPayload(ledger, recordId))!
  const late = { detail: { name: 'late' } }
  for (const outcome of [retry, { outcome: 'delivered' }] as const) {
    expect(await releaseDetail(ledger, recordId, { soc: false }, late)).toEqual([])
    expect(await readPayload(ledger, recordId)).toEqual(payload)
    await attemptOf(ledger, refOf(ledger, 1), outcome)
  }
})

test('a feed and a sink may have a name that every object knows', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['constructor'])], { feed: 'constructor' })
  const { feeds, sinks } = await expectConservation(ledger)
  expect(feeds['constructor']).toMatchObject({ fetched: 1, new: 1 })
  expect(sinks['constructor']).toMatchObject({ created: 1, pending: { queued: 1 } })
})

test.each([
  ['unavailable', true],
  ['timeout', true],
  ['connection_lost', true],
  ['rejected', false],
  ['rate_limited', false],
])(
  'a try that failed with %s is due at once when its sink is back, alone or as a batch: %s',
  async (reason, isDue) => {
    const ledger = await tests.ledger()
    await show(ledger, 0, ['siem'])
    const [single, batch] = [refOf(ledger, 0, 'siem'), await aBatch(ledger, 2)]
    const laterMs = Date.now() + 3_600_000
    for (const [at, ref] of [single, batch].entries()) {
      await attemptOf(ledger, ref, { ...retry, inMs: 3_600_000 + at, reason })
    }
    const woken = isDue ? [single, batch] : []
    expect(await makeRetriesDue(ledger, 'siem', { max: 1 })).toEqual(woken.slice(0, 1))
    expect(await makeRetriesDue(ledger, 'siem', { max: 9 })).toEqual(woken.slice(1))
    const { atMs } = await itemOf(ledger, 0)
    expect(isDue ? Date.now() - atMs! < 60_000 : atMs! >= laterMs).toBe(true)
    await tests.redis.del(ledger.key('batch', batch.split(':')[1]!)) // it was settled meanwhile
    expect(await makeRetriesDue(ledger, 'siem', { max: 9 })).toEqual([])
  },
)

test('once its sink is back, hundreds that keep their time hide no other try', async () => {
  const ledger = await tests.ledger()
  for (const n of [1, 2]) {
    await show(ledger, n)
    await attemptOf(ledger, refOf(ledger, n), { ...retry, inMs: 3_601_000 + n })
  }
  const laterMs = Date.now() + 3_600_000
  const others = Array.from({ length: 499 }, (_, n) => [String(laterMs + n), `i:gone:${n}:soc`])
  await tests.redis.zadd(ledger.key('due', 'soc'), ...others.flat())
  expect(await makeRetriesDue(ledger, 'soc', { max: 9 })).toEqual(
    [1, 2].map((n) => refOf(ledger, n)),
  )
})

/** Letters 0 to `count` − 1, the n-th of which died n minutes ago. */
async function letters(ledger: AccountLedger, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await show(ledger, n)
    await attemptOf(ledger, refOf(ledger, n), dead)
    await tests.redis.zadd(ledger.key('dead', 'soc'), Date.now() - n * 60_000, refOf(ledger, n))
  }
}

test('a letter that is discarded stays counted as dead, says by whom, and is kept as long as its history', async () => {
  const ledger = await tests.ledger()
  await letters(ledger, 1)
  const recordId = ledger.fingerprints.recordId('a/b/0')
  for (const kind of ['rec', 'pay']) await tests.redis.persist(ledger.key(kind, recordId))
  expect(await discardDeadLetter(ledger, refOf(ledger, 0))).toBe('done')
  expect(await itemOf(ledger, 0)).toMatchObject({ state: 'discarded', rule: 'by ann' })
  expect(await tests.redis.zcard(ledger.key('dead', 'soc'))).toBe(0)
  expect((await expectConservation(ledger)).sinks['soc']).toMatchObject({ dead: 1 })
  const { history, payload } = ledger.retention
  const [recordMs = 0, payloadMs = 0] = await livesOf(ledger, 0)
  expect(history - recordMs).toBeLessThan(60_000)
  expect(payload - payloadMs).toBeLessThan(60_000)
  expect(payloadMs).toBeLessThanOrEqual(payload)
})

test('what is replayed begins anew with all its tries, as often as it is, in its batch or alone', async () => {
  const ledger = await tests.ledger()
  await show(ledger, 0, ['soc'], 60_000)
  const ref = refOf(ledger, 0)
  const die = async (): Promise<void> => {
    const batch = (await sealBatch(ledger, { sink: 'soc', destination: 'soc' }, [ref]))!
    await attemptOf(ledger, batch, retry)
    await attemptOf(ledger, batch, dead)
  }
  await die()
  const { createdAtMs: firstMs, endedAtMs } = await itemOf(ledger, 0)
  expect(endedAtMs).toBeGreaterThan(0)
  expect(await replayDeadLetter(ledger, ref, 60_000)).toBe('done')
  const anew = { state: 'queued', replays: 1, messageId: undefined, endedAtMs: undefined }
  expect(await itemOf(ledger, 0)).toMatchObject(anew)
  expect((await itemOf(ledger, 0)).createdAtMs).toBeGreaterThanOrEqual(firstMs)
  expect(await dueOf(ledger, 'soc')).toEqual(['c:soc'])
  expect(await livesOf(ledger, 0)).toEqual([-1, -1])
  await die()
  expect(await replayDeadLetter(ledger, ref, undefined)).toBe('done')
  expect(await replayDeadLetter(ledger, ref, undefined)).toBe('busy')
  expect(await dueOf(ledger, 'soc')).toEqual([ref])
  expect(await claimRef(ledger, ref, 'r', 1)).toMatchObject({ tries: 0 })
  const { sinks } = await expectConservation(ledger)
  expect(sinks['soc']).toMatchObject({ created: 1, replayed: 2, dead: 2, pending: { queued: 1 } })
})

test('what is no letter, or lost its payload, is not replayed, and nothing happens to it', async () => {
  const ledger = await tests.ledger()
  await letters(ledger, 2)
  await show(ledger, 2)
  const [delivered, empty, waiting, gone] = [0, 1, 2, 7].map((n) => refOf(ledger, n)) as [
    string,
    string,
    string,
    string,
  ]
  const before = await itemOf(ledger, 2)
  await tests.redis.zadd(ledger.key('dead', 'soc'), Date.now(), waiting, Date.now(), gone)
  await tests.redis.del(ledger.key('pay', ledger.fingerprints.recordId('a/b/1')))
  expect(await replayDeadLetter(ledger, delivered, undefined)).toBe('done')
  await attemptOf(ledger, delivered, { outcome: 'delivered' })
  const words = { [delivered]: 'other', [empty]: 'no_payload', [waiting]: 'busy', [gone]: 'other' }
  for (const [ref, word] of Object.entries(words)) {
    expect(await replayDeadLetter(ledger, ref, undefined)).toBe(word)
  }
  expect(await discardDeadLetter(ledger, gone)).toBe('other')
  expect(await itemOf(ledger, 2)).toEqual(before)
  await expectConservation(ledger)
})
