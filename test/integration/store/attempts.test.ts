import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  countDeadLetters,
  type Group,
  withholdItems,
  listDeadLetters,
  readDueRefs,
  releaseDetail,
  readSinkNames,
  makeRetriesDue,
} from '../../../src/store/pending-items.ts'
import { discardDeadLetter, replayDeadLetter } from '../../support/acts.ts'
import { readPayload, readRecord } from '../../../src/store/records.ts'
import {
  attemptOf,
  beginAttempt,
  type Outcome,
  peekBatch,
  sealBatch,
  settleAttempt,
} from '../../support/attempts.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const lease = 30_000

async function madeBy(
  ledger: AccountLedger,
  uid: string,
  destinations = ['soc'],
  batchWaitMs?: number,
): Promise<string[]> {
  const page = batchWaitMs === undefined ? {} : { batchWaitMs }
  const accepted = await takeIn(ledger, [routed({ uid }, destinations)], page)
  return accepted.status === 'committed' ? accepted.changes.map(({ ref }) => ref) : []
}

function settle(ledger: AccountLedger, ref: string, token: string, outcome: Outcome) {
  return settleAttempt(ledger, { ref, token, replica: 'r1' }, outcome)
}

async function itemOf(ledger: AccountLedger, uid: string, index = 0) {
  const record = await readRecord(ledger, ledger.fingerprints.recordId(uid))
  return record!.items[index]!
}

async function dueAt(ledger: AccountLedger, atMs: number): Promise<string[]> {
  const page = { offset: 0, count: 100 }
  const bySink = (await readSinkNames(ledger)).map((sink) => readDueRefs(ledger, sink, atMs, page))
  return (await Promise.all(bySink)).flat()
}

test('an item is sent once: a second job finds it delivered', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  const begun = await beginAttempt(ledger, ref, 't1', lease)
  expect(begun).toMatchObject({
    status: 'send',
    attempt: 1,
    mayBeRepeat: false,
    tries: 0,
    destination: 'soc',
  })
  expect(await settle(ledger, ref, 't1', { outcome: 'delivered', answer: '204' })).toEqual({
    status: 'settled',
  })
  expect(await beginAttempt(ledger, ref, 't2', lease)).toEqual({ status: 'missing' })
  expect(await dueAt(ledger, Number.MAX_SAFE_INTEGER)).toEqual([])
  const accounting = await expectConservation(ledger)
  expect(accounting.sinks['soc']).toMatchObject({ created: 1, delivered: 1 })
  expect(await itemOf(ledger, 'a/b/1')).toMatchObject({
    state: 'delivered',
    history: [{ number: 1, outcome: 'delivered', answer: '204', replica: 'r1' }],
  })
})

test('an attempt has all that a message says of the event, as the feed that brought it to the sink saw it', async () => {
  const ledger = await tests.ledger()
  const event = { uid: 'a/b/1', severity: 'medium' }
  await takeIn(ledger, [routed(event, ['siem'])], { feed: 'first', labels: { team: 'other' } })
  const labels = { team: 'vip' }
  await takeIn(ledger, [routed({ ...event, ignoredAtMs: 1 })], { feed: 'brand', labels })
  const ref = `i:${ledger.fingerprints.recordId('a/b/1')}:1:soc`
  const begun = await beginAttempt(ledger, ref, 't1', lease)
  if (begun.status !== 'send') throw new Error('nothing to send')
  expect(begun.members).toEqual([
    {
      id: (await itemOf(ledger, 'a/b/1', 1)).id,
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

test('an attempt that finds another one open may be a repeat and says so, under the same id', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  const first = await beginAttempt(ledger, ref, 't1', lease)
  const second = await beginAttempt(ledger, ref, 't2', lease)
  expect(second).toMatchObject({ attempt: 2, mayBeRepeat: true })
  const ids = [first, second].map((begun) => begun.status === 'send' && begun.members[0]?.id)
  expect(ids[0]).toBe(ids[1])
})

test('an outcome of an overtaken attempt changes nothing, unless it was delivered', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  await beginAttempt(ledger, ref, 't1', lease)
  await beginAttempt(ledger, ref, 't2', lease)
  expect(await settle(ledger, ref, 't1', { outcome: 'dead', reason: 'x' })).toEqual({
    status: 'stale',
  })
  expect(await settle(ledger, ref, 't1', { outcome: 'delivered' })).toEqual({ status: 'settled' })
  expect(await settle(ledger, ref, 't2', { outcome: 'retry', inMs: 0 })).toEqual({
    status: 'already',
  })
  await expectConservation(ledger)
})

test('a lost answer makes the next attempt a possible repeat; a refusal does not', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  await beginAttempt(ledger, ref, 't1', lease)
  await settle(ledger, ref, 't1', {
    outcome: 'retry',
    inMs: 0,
    counts: true,
    reason: 'unavailable',
  })
  expect(await itemOf(ledger, 'a/b/1')).toMatchObject({ state: 'retrying' })
  expect(await beginAttempt(ledger, ref, 't2', lease)).toMatchObject({
    mayBeRepeat: false,
    tries: 1,
  })
  await settle(ledger, ref, 't2', {
    outcome: 'retry',
    inMs: 0,
    answerLost: true,
    reason: 'timeout',
  })
  expect(await beginAttempt(ledger, ref, 't3', lease)).toMatchObject({
    mayBeRepeat: true,
    tries: 1,
  })
  await expectConservation(ledger)
})

test('the history keeps the last five attempts and counts all', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  for (let n = 1; n <= 7; n += 1) {
    await beginAttempt(ledger, ref, `t${n}`, lease)
    await settle(ledger, ref, `t${n}`, { outcome: 'retry', inMs: 0, reason: 'unavailable' })
  }
  const item = await itemOf(ledger, 'a/b/1')
  expect(item.attempts).toBe(7)
  expect(item.history.map(({ number }) => number)).toEqual([3, 4, 5, 6, 7])
})

test('of an answer the history keeps 200 characters, however much a sink says', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  await beginAttempt(ledger, ref, 't1', lease)
  await settle(ledger, ref, 't1', { outcome: 'delivered', answer: 'x'.repeat(10_000) })
  expect((await itemOf(ledger, 'a/b/1')).history[0]!.answer).toBe('x'.repeat(200))
})

test('settled records expire with history and payload; unsettled ones never', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1', ['soc', 'siem'])
  const id = ledger.fingerprints.recordId('a/b/1')
  const ttl = (): Promise<number[]> =>
    Promise.all([tests.redis.pttl(ledger.key('rec', id)), tests.redis.pttl(ledger.key('pay', id))])
  await beginAttempt(ledger, ref, 't', lease)
  await settle(ledger, ref, 't', { outcome: 'delivered' })
  expect(await ttl()).toEqual([-1, -1])
  await beginAttempt(ledger, ref.replace(':0:soc', ':1:siem'), 't', lease)
  await settle(ledger, ref.replace(':0:soc', ':1:siem'), 't', { outcome: 'delivered' })
  const [history = 0, payload = 0] = await ttl()
  expect(history).toBeGreaterThan(payload)
  expect(payload).toBeGreaterThan(0)
})

test('a settled event that is to go to one more destination keeps history and payload until it went', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  const id = ledger.fingerprints.recordId('a/b/1')
  await beginAttempt(ledger, ref, 't', lease)
  await settle(ledger, ref, 't', { outcome: 'delivered' })
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['siem'])], { feed: 'another' })
  const names = [ledger.key('rec', id), ledger.key('pay', id)]
  expect(await Promise.all(names.map((name) => tests.redis.pttl(name)))).toEqual([-1, -1])
})

test('a dead letter is listed, shown, replayed and counted as both', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  await beginAttempt(ledger, ref, 't', lease)
  await settle(ledger, ref, 't', { outcome: 'dead', reason: 'invalid', answer: 'HTTP 422' })
  const { total, letters } = await listDeadLetters(ledger, 'soc', { offset: 0, count: 10 })
  expect(total).toBe(1)
  expect(letters[0]).toMatchObject({
    record: { uid: 'a/b/1' },
    item: { history: [{ reason: 'invalid' }] },
  })
  expect(await replayDeadLetter(ledger, ref, undefined)).toBe('done')
  expect(await replayDeadLetter(ledger, ref, undefined)).toBe('busy')
  expect(await dueAt(ledger, Number.MAX_SAFE_INTEGER)).toEqual([ref])
  const accounting = await expectConservation(ledger)
  expect(accounting.sinks['soc']).toMatchObject({
    created: 1,
    replayed: 1,
    dead: 1,
    pending: { queued: 1 },
  })
})

test('a discarded letter stays counted as dead', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  await beginAttempt(ledger, ref, 't', lease)
  await settle(ledger, ref, 't', { outcome: 'dead' })
  expect(await discardDeadLetter(ledger, ref)).toBe('done')
  expect((await listDeadLetters(ledger, 'soc', { offset: 0, count: 1 })).total).toBe(0)
  const accounting = await expectConservation(ledger)
  expect(accounting.sinks['soc']).toMatchObject({ dead: 1 })
})

test('a letter whose history has expired is no longer counted', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  await beginAttempt(ledger, ref, 't', lease)
  await settle(ledger, ref, 't', { outcome: 'dead' })
  const endsMs = Date.now() - ledger.retention.history
  await tests.redis.zadd(ledger.key('dead', 'soc'), endsMs - 60_000, ref)
  expect(await countDeadLetters(ledger, 'soc')).toBe(1) // another item may keep its record
  await tests.redis.del(ledger.key('rec', ledger.fingerprints.recordId('a/b/1')))
  expect(await countDeadLetters(ledger, 'soc')).toBe(0)
})

test('a letter whose payload has expired cannot be replayed, and says why', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await madeBy(ledger, 'a/b/1')
  await beginAttempt(ledger, ref, 't', lease)
  await settle(ledger, ref, 't', { outcome: 'dead' })
  await tests.redis.del(ledger.key('pay', ledger.fingerprints.recordId('a/b/1')))
  expect(await replayDeadLetter(ledger, ref, undefined)).toBe('no_payload')
  await expectConservation(ledger)
})

test('only what waits to be sent is kept back: nothing that ended, was tried, or waits for something else', async () => {
  const ledger = await tests.ledger()
  const [ended = ''] = await madeBy(ledger, 'a/b/ended', ['soc'], 1_000)
  const [tried = ''] = await madeBy(ledger, 'a/b/tried')
  const [single = ''] = await madeBy(ledger, 'a/b/single')
  const [inBatch = ''] = await madeBy(ledger, 'a/b/in-batch', ['soc'], 1_000)
  const about = { destination: 'soc', route: 'root', labels: {}, feed: null }
  const gathering: Group = { id: 'g', kind: 'group', waitMs: 9_000, isUrgent: false, about }
  const plan = routed({ uid: 'a/b/grouped' }, ['soc'])
  await takeIn(ledger, [
    { ...plan, items: plan.items.map((item) => ({ ...item, group: gathering })) },
  ])
  const grouped = `i:${ledger.fingerprints.recordId('a/b/grouped')}:0:soc`
  await attemptOf(ledger, ended, { outcome: 'delivered' })
  await tests.redis.zadd(ledger.key('collect', 'soc'), 1, ended, 1, 'i:gone:0:soc')
  await attemptOf(ledger, tried, { outcome: 'retry', inMs: 1_000, counts: true })
  const keep = (ref: string, collection?: string): Promise<string[]> =>
    withholdItems(ledger, [{ ref, act: 'suppress', reason: 'silence', rule: 's1' }], collection)
  for (const ref of [ended, 'i:gone:0:soc', single]) expect(await keep(ref, 'soc')).toEqual([])
  for (const ref of [tried, grouped, ended, 'i:gone:0:soc']) {
    expect(await keep(ref)).toEqual([])
  }
  expect(await keep(single)).toEqual([single])
  expect(await keep(inBatch, 'soc')).toEqual([inBatch])
  const uids = ['ended', 'tried', 'grouped', 'single', 'in-batch']
  const items = await Promise.all(uids.map((uid) => itemOf(ledger, `a/b/${uid}`)))
  const states = ['delivered', 'retrying', 'group', 'suppressed', 'suppressed']
  expect(items.map(({ state }) => state)).toEqual(states)
})

test('items held for their detail are sent on together when it is there', async () => {
  const ledger = await tests.ledger()
  const accepted = await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc', 'siem'], true)])
  expect(accepted.status === 'committed' && accepted.changes.map(({ kind }) => kind)).toEqual([
    'detail',
    'detail',
  ])
  expect(await itemOf(ledger, 'a/b/1')).toMatchObject({ state: 'held', heldFor: 'detail' })
  const payload = { event: routed({ uid: 'a/b/1' }).event, fetchedAtMs: 1, detail: { name: 'x' } }
  const recordId = ledger.fingerprints.recordId('a/b/1')
  const made = await releaseDetail(ledger, recordId, { soc: false, siem: 1_000 }, { payload })
  expect(made.map(({ kind }) => kind)).toEqual(['single', 'collect'])
  expect(await releaseDetail(ledger, recordId, { soc: false, siem: 1_000 }, { payload })).toEqual(
    [],
  )
  const begun = await beginAttempt(ledger, made[0]!.ref, 't', lease)
  expect(begun).toMatchObject({ members: [{ payload: { detail: { name: 'x' } } }] })
  expect(await peekBatch(ledger, 'siem', 10)).toMatchObject([
    { found: { payload: { detail: { name: 'x' } } } },
  ])
  await expectConservation(ledger)
})

test('a full event that comes when nobody waits for it any more changes nothing of what is sent', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc'])])
  const recordId = ledger.fingerprints.recordId('a/b/1')
  const late = { event: routed({ uid: 'a/b/1' }).event, fetchedAtMs: 1, detail: { name: 'late' } }
  expect(await releaseDetail(ledger, recordId, { soc: false }, { payload: late })).toEqual([])
  expect((await readPayload(ledger, recordId))?.detail).toBeUndefined()
})

async function sealedBatch(ledger: AccountLedger, uids: string[]): Promise<string> {
  for (const uid of uids) await madeBy(ledger, uid, ['siem'], 1_000)
  const waiting = await peekBatch(ledger, 'siem', 10)
  const refs = waiting.map(({ ref }) => ref)
  return (await sealBatch(ledger, { sink: 'siem', destination: 'siem', waitMs: 1_000 }, refs))!
}

test('a batch is sealed: its members and their order stay over attempts, and settle together', async () => {
  const ledger = await tests.ledger()
  const ref = await sealedBatch(ledger, ['a/b/1', 'a/b/2', 'a/b/3'])
  await madeBy(ledger, 'a/b/4', ['siem'], 1_000)
  const first = await beginAttempt(ledger, ref, 't1', lease)
  await settle(ledger, ref, 't1', {
    outcome: 'retry',
    inMs: 0,
    counts: true,
    reason: 'unavailable',
  })
  const second = await beginAttempt(ledger, ref, 't2', lease)
  const uids = [first, second].map((b) => b.status === 'send' && b.members.map(({ uid }) => uid))
  expect(uids).toEqual([
    ['a/b/1', 'a/b/2', 'a/b/3'],
    ['a/b/1', 'a/b/2', 'a/b/3'],
  ])
  expect(second).toMatchObject({ mayBeRepeat: false }) // its answer was there: it was refused
  await settle(ledger, ref, 't2', { outcome: 'delivered' })
  const accounting = await expectConservation(ledger)
  expect(accounting.sinks['siem']).toMatchObject({
    created: 4,
    delivered: 3,
    pending: { queued: 1 },
  })
})

test('a batch that an overtaken attempt did deliver is delivered; its other outcomes change nothing', async () => {
  const ledger = await tests.ledger()
  const ref = await sealedBatch(ledger, ['a/b/1', 'a/b/2'])
  await beginAttempt(ledger, ref, 't1', lease)
  await beginAttempt(ledger, ref, 't2', lease)
  expect(await settle(ledger, ref, 't1', { outcome: 'dead', reason: 'x' })).toEqual({
    status: 'stale',
  })
  expect(await settle(ledger, ref, 't1', { outcome: 'delivered' })).toEqual({ status: 'settled' })
  expect(await settle(ledger, ref, 't2', { outcome: 'retry', inMs: 0 })).toEqual({
    status: 'already',
  })
  expect((await expectConservation(ledger)).sinks['siem']).toMatchObject({ delivered: 2, dead: 0 })
})

test('letters of a batch whose answer was lost say when they are replayed that they may be repeats', async () => {
  const ledger = await tests.ledger()
  const ref = await sealedBatch(ledger, ['a/b/1', 'a/b/2'])
  await beginAttempt(ledger, ref, 't1', lease)
  await settle(ledger, ref, 't1', {
    outcome: 'retry',
    inMs: 0,
    answerLost: true,
    reason: 'timeout',
  })
  await beginAttempt(ledger, ref, 't2', lease)
  await settle(ledger, ref, 't2', { outcome: 'dead', reason: 'invalid' })
  const { letters } = await listDeadLetters(ledger, 'siem', { offset: 0, count: 5 })
  expect(letters).toHaveLength(2)
  for (const letter of letters) {
    await replayDeadLetter(ledger, letter.ref, undefined)
    const again = await beginAttempt(ledger, letter.ref, 't3', lease)
    expect(again).toMatchObject({ status: 'send', mayBeRepeat: true })
  }
})

test('a sealed batch says of a member what it said when sealed, though it was raised meanwhile', async () => {
  const ledger = await tests.ledger()
  const ref = await sealedBatch(ledger, ['a/b/1'])
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'critical' }, ['siem'])], { feed: 'two' })
  const begun = await beginAttempt(ledger, ref, 't', lease)
  expect(begun).toMatchObject({ members: [{ payload: { event: { severity: 'high' } } }] })
})

test('a refused batch is halved down to the one bad item', async () => {
  const ledger = await tests.ledger()
  const ref = await sealedBatch(ledger, ['a/b/1', 'a/b/2', 'a/b/bad'])
  const open = [ref]
  const sizes: number[] = []
  for (let next = open.shift(); next; next = open.shift()) {
    const begun = await beginAttempt(ledger, next, 't', lease)
    if (begun.status !== 'send') throw new Error('nothing to send')
    sizes.push(begun.members.length)
    const isBad = begun.members.some(({ uid }) => uid === 'a/b/bad')
    const refusal = begun.members.length > 1 ? 'split' : 'dead'
    const settled = await settle(ledger, next, 't', {
      outcome: isBad ? refusal : 'delivered',
      reason: 'invalid',
    })
    open.push(...(settled.halves ?? []))
  }
  expect(sizes).toEqual([3, 2, 1])
  const accounting = await expectConservation(ledger)
  expect(accounting.sinks['siem']).toMatchObject({ created: 3, delivered: 2, dead: 1 })
  expect(
    (await listDeadLetters(ledger, 'siem', { offset: 0, count: 5 })).letters[0]?.record.uid,
  ).toBe('a/b/bad')
})

test('a feed and a sink may have a name that every object knows', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['constructor'])], { feed: 'constructor' })
  const accounting = await expectConservation(ledger)
  expect(accounting.feeds['constructor']).toMatchObject({ fetched: 1, new: 1 })
  expect(accounting.sinks['constructor']).toMatchObject({ created: 1, pending: { queued: 1 } })
})

test('once its sink is back so many tries are due at once as asked for, and what it refused is not among them', async () => {
  const ledger = await tests.ledger()
  const refs: string[] = []
  for (const uid of ['a/b/1', 'a/b/2', 'a/b/3']) refs.push(...(await madeBy(ledger, uid)))
  for (const [at, ref] of refs.entries()) {
    await beginAttempt(ledger, ref, 't1', lease)
    const reason = at === 0 ? 'rejected' : 'unavailable'
    await settle(ledger, ref, 't1', {
      outcome: 'retry',
      inMs: 3_600_000 + at,
      counts: true,
      reason,
    })
  }
  expect(await makeRetriesDue(ledger, 'soc', 1)).toEqual([refs[1]])
  expect(await makeRetriesDue(ledger, 'soc', 9)).toEqual([refs[2]])
  expect((await dueAt(ledger, Date.now() + 1000)).toSorted()).toEqual(refs.slice(1).toSorted())
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
    const [single] = await madeBy(ledger, 'a/b/0', ['siem'])
    const batch = await sealedBatch(ledger, ['a/b/1', 'a/b/2'])
    const laterMs = Date.now() + 3_600_000
    for (const [at, ref] of [single!, batch].entries()) {
      await beginAttempt(ledger, ref, 't1', lease)
      await settle(ledger, ref, 't1', {
        outcome: 'retry',
        inMs: 3_600_000 + at,
        counts: true,
        reason,
      })
    }
    const woken = isDue ? [single, batch] : []
    expect(await makeRetriesDue(ledger, 'siem', 9)).toEqual(woken)
    expect(new Set(await dueAt(ledger, Date.now() + 1_000))).toEqual(new Set(woken))
    const { atMs } = await itemOf(ledger, 'a/b/0')
    expect(isDue ? Date.now() - atMs! < 60_000 : atMs! >= laterMs).toBe(true)
    await tests.redis.del(ledger.key('batch', batch.split(':')[1]!)) // it was settled meanwhile
    expect(await makeRetriesDue(ledger, 'siem', 9)).toEqual([])
  },
)

test('once its sink is back, hundreds that keep their time hide no other try', async () => {
  const ledger = await tests.ledger()
  const laterMs = Date.now() + 3_600_000
  const refs = [...(await madeBy(ledger, 'a/b/1')), ...(await madeBy(ledger, 'a/b/2'))]
  for (const [at, ref] of refs.entries()) {
    await beginAttempt(ledger, ref, 't1', lease)
    const outcome = { outcome: 'retry', counts: true, reason: 'unavailable' } as const
    await settle(ledger, ref, 't1', { ...outcome, inMs: 3_601_000 + at })
  }
  const others = Array.from({ length: 499 }, (_, n) => [String(laterMs + n), `i:gone:${n}:soc`])
  await tests.redis.zadd(ledger.key('due', 'soc'), ...others.flat())
  expect(await makeRetriesDue(ledger, 'soc', 9)).toEqual(refs)
})

test('a message whose members are being taken out of it is not sent', async () => {
  const ledger = await tests.ledger()
  const ref = await sealedBatch(ledger, ['a/b/1', 'a/b/2'])
  const name = ledger.key('batch', ref.split(':')[1] ?? '')
  const batch = JSON.parse((await ledger.redis.get(name)) ?? '') as object
  await ledger.redis.set(name, JSON.stringify({ ...batch, un: true }))
  expect(await beginAttempt(ledger, ref, 't1', lease)).toEqual({ status: 'unfreezing' })
})

test('what was delivered meanwhile is in no batch, though it still stands among those that wait', async () => {
  const ledger = await tests.ledger()
  await madeBy(ledger, 'a/b/1', ['siem'], 1_000)
  const [done = ''] = await madeBy(ledger, 'a/b/2', ['siem'])
  await beginAttempt(ledger, done, 't', lease)
  await settle(ledger, done, 't', { outcome: 'delivered' })
  const refs = (await peekBatch(ledger, 'siem', 10)).map(({ ref }) => ref)
  await ledger.redis.zadd(ledger.key('collect', 'siem'), 1, done)
  const siem = { sink: 'siem', destination: 'siem', waitMs: 1_000 }
  const batch = await sealBatch(ledger, siem, [done, ...refs])
  const begun = await beginAttempt(ledger, batch!, 't', lease)
  expect(begun).toMatchObject({ members: [{ uid: 'a/b/1' }] })
  await expectConservation(ledger)
})
