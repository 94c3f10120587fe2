/** What a claim takes, keeps and gives back, on a real Redis. */
import { expect, test } from 'vitest'
import {
  advanceClaims,
  claimDue,
  type Claim,
  type ClaimRequest,
  type ClaimResult,
  type ClaimUpdate,
} from '../../../src/delivery/claims.ts'
import { defaultTimings } from '../../../src/lib/clock.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord, type Item } from '../../../src/store/records.ts'
import { makeDue, peekBatch, sealBatch, type Outcome } from '../../support/attempts.ts'
import {
  changeRecord,
  expectConservation,
  pastThisMillisecond,
  redisMs,
  redisForTests,
  routed,
  takeIn,
} from '../../support/ledger.ts'
import { around } from '../../support/grouping.ts'
import { ledgerInTime } from '../../support/script-clock.ts'

const tests = redisForTests()
const leaseMs = 60_000

/** Events `a/<severity>/<n>`, taken in together. */
async function bring(
  ledger: AccountLedger,
  count: number,
  severity = 'high',
  page: { batchWaitMs?: number } = {},
): Promise<string[]> {
  const events = Array.from({ length: count }, (_, i) =>
    routed({ uid: `a/${severity}/${i}`, severity }, ['soc']),
  )
  const accepted = await takeIn(ledger, events, page)
  await pastThisMillisecond(tests.redis)
  return accepted.status === 'committed' ? accepted.changes.map(({ ref }) => ref) : []
}

function claim(
  ledger: AccountLedger,
  asked: Partial<ClaimRequest> = {},
  owner = 'r1',
): Promise<ClaimResult> {
  return claimDue(ledger, { owner, leaseMs }, { sink: 'soc', max: 10, leastRank: 1, ...asked })
}

function advance(ledger: AccountLedger, round: ClaimUpdate, owner = 'r1', lease = leaseMs) {
  return advanceClaims(ledger, { owner, leaseMs: lease, by: owner }, round)
}

async function settle(ledger: AccountLedger, ref: string, token: string, outcome: Outcome) {
  return (await advance(ledger, { settle: [{ ref, token, outcome }] })).settled[0]!
}

/** Opens and settles what is claimed, or made due. */
async function attempt(ledger: AccountLedger, ref: string, outcome: Outcome, token = 't') {
  await makeDue(ledger, ref)
  await claim(ledger, { ref })
  await advance(ledger, { begin: [{ ref, token }] })
  return settle(ledger, ref, token, outcome)
}

function severitiesOf(claims: readonly Claim[]): string[] {
  return claims.map((one) => (one.kind === 'item' ? one.members[0]!.severity : one.kind))
}

function uidsOf(claims: readonly Claim[]): string[] {
  return claims.flatMap((one) => (one.kind === 'item' ? one.members.map(({ uid }) => uid) : []))
}

async function itemOf(ledger: AccountLedger, uid: string): Promise<Item> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(uid)))!.items[0]!
}

async function frozen(ledger: AccountLedger, count: number, severity = 'high'): Promise<string> {
  await bring(ledger, count, severity, { batchWaitMs: 1 })
  const refs = (await peekBatch(ledger, 'soc', 100)).map(({ ref }) => ref)
  return (await sealBatch(ledger, { sink: 'soc', destination: 'soc' }, refs))!
}

test('the worst goes first, and one place in ten goes to what waits longest, of whatever severity', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 2, 'low')
  await bring(ledger, 3, 'info')
  await bring(ledger, 30, 'medium')
  await bring(ledger, 30, 'critical')
  const places: Claim[] = []
  for (let i = 0; i < 10; i += 1) places.push(...(await claim(ledger, { max: 4 })).claims)
  const severities = severitiesOf(places)
  const milderOf = (count: number): string[] =>
    severities.slice(0, count).filter((one) => one !== 'critical')
  expect(milderOf(8)).toEqual([])
  expect(milderOf(12)).toEqual(['low'])
  expect(milderOf(32)).toEqual(['low', 'low', 'info'])
  expect(severities.filter((one) => one === 'critical')).toHaveLength(30)
  expect(new Set(places.map(({ ref }) => ref)).size).toBe(40)
})

test('what all fits into one claim costs the longest waiting no turn, and comes in its order', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 2, 'low')
  await bring(ledger, 8, 'critical')
  const { claims, left } = await claim(ledger)
  expect(severitiesOf(claims)).toEqual([
    ...Array.from({ length: 8 }, () => 'critical'),
    'low',
    'low',
  ])
  expect(left).toBe(0)
  await bring(ledger, 3, 'info')
  await bring(ledger, 20, 'high')
  expect(severitiesOf((await claim(ledger, { max: 9 })).claims)).not.toContain('info')
  expect(severitiesOf((await claim(ledger, { max: 1 })).claims)).toEqual(['info'])
})

test('where others have something worse, only that severity is taken, and the turn of the longest waiting', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 5, 'low')
  await bring(ledger, 2, 'high')
  await bring(ledger, 1, 'critical')
  const first = await claim(ledger, { max: 5, leastRank: 4 })
  expect(severitiesOf(first.claims)).toEqual(['critical', 'high', 'high'])
  expect(first).toMatchObject({ left: 5, topRank: 2 })
  expect(severitiesOf((await claim(ledger, { max: 5, leastRank: 4 })).claims)).toEqual(['low'])
})

test('a claim keeps others away until its lease ends, and marks nothing', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 2)
  const dead = await claim(ledger, {}, 'dead')
  expect(dead.claims).toHaveLength(2)
  const other = await claim(ledger, {}, 'other')
  expect(other).toMatchObject({ claims: [], left: 0, topRank: undefined })
  expect(other.nextInMs).toBeGreaterThan(50_000)
  expect(other.nextInMs).toBeLessThanOrEqual(leaseMs)
  expect(await itemOf(ledger, 'a/high/0')).toMatchObject({ state: 'queued', attempts: 0 })
  await advance(ledger, { renew: dead.claims.map(({ ref }) => ref) }, 'dead', 0)
  await pastThisMillisecond(tests.redis)
  const taken = await claim(ledger, {}, 'other')
  expect(taken.claims).toMatchObject([{ mayBeRepeat: false }, { mayBeRepeat: false }])
})

test('what a daemon that died had claimed is free for others after 10 s of the time of Redis', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await bring(ledger, 1)
  const beganMs = await redisMs(tests.redis)
  let passedMs = 0
  const inTime = ledgerInTime(ledger, () => beganMs + passedMs)
  const asked = { sink: 'soc', max: 10, leastRank: 1 }
  const claimAs = (owner: string) =>
    claimDue(inTime, { owner, leaseMs: defaultTimings.claimLeaseMs }, asked)
  expect((await claimAs('dead')).claims).toMatchObject([{ ref }])
  passedMs = 9_999
  expect(await claimAs('other')).toMatchObject({ claims: [], nextInMs: 1 })
  passedMs = 10_000
  expect((await claimAs('other')).claims).toMatchObject([{ ref }])
})

test('a lease that is renewed lasts, and who lost it or sees it settled is told', async () => {
  const ledger = await tests.ledger()
  const [kept, lost, gone] = (await bring(ledger, 3)) as [string, string, string]
  await claim(ledger)
  await makeDue(ledger, lost)
  await claim(ledger, {}, 'other')
  await advance(ledger, { begin: [{ ref: gone, token: 't' }] })
  await settle(ledger, gone, 't', { outcome: 'delivered' })
  expect((await advance(ledger, { renew: [kept, lost, gone] }, 'r1', 3_600_000)).lost).toEqual([
    lost,
    gone,
  ])
  await advance(ledger, { giveBack: [{ ref: lost, rank: 4 }] }, 'other')
  await claim(ledger, {}, 'other')
  await advance(ledger, { renew: [lost] }, 'other', 3_600_000)
  expect((await claim(ledger)).nextInMs).toBeGreaterThan(3_500_000)
  expect(await ledger.redis.zscore(ledger.key('due', 'soc'), gone)).toBeNull()
})

test('what is given back keeps its place among its like, or waits as long as it was put off', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 3, 'low')
  await bring(ledger, 1, 'critical')
  const { claims } = await claim(ledger)
  const [worst, ...low] = claims
  await bring(ledger, 1, 'high')
  const putOff = { ...low[2]!, inMs: 1_800_000.5 }
  await advance(ledger, { giveBack: [low[1]!, worst!, low[0]!, putOff].map(asBack) })
  const again = await claim(ledger, {}, 'other')
  expect(severitiesOf(again.claims)).toEqual(['critical', 'high', 'low', 'low'])
  expect(again.claims.slice(2).map(({ ref }) => ref)).toEqual(low.slice(0, 2).map(({ ref }) => ref))
  const dueMs = Number(await ledger.redis.zscore(ledger.key('due', 'soc'), low[2]!.ref))
  expect(Math.abs(dueMs - Date.now() - 1_800_000)).toBeLessThan(60_000)
})

function asBack({ ref, rank, ...rest }: Claim & { inMs?: number }): {
  ref: string
  rank: number
  inMs?: number
} {
  return { ref, rank, ...('inMs' in rest && { inMs: rest.inMs }) }
}

test('what was due stays so though the clock was set back', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await bring(ledger, 1)
  await ledger.redis.zadd(ledger.key('due', 'soc'), Date.now() + 3_600_000, ref)
  expect((await claim(ledger)).claims).toMatchObject([{ ref }])
})

test('who lost a claim neither opens nor gives back what another one holds', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await bring(ledger, 1)
  await claim(ledger, {}, 'slow')
  await makeDue(ledger, ref)
  await claim(ledger, {}, 'other')
  const tried = { begin: [{ ref, token: 't' }], giveBack: [{ ref, rank: 4 }] }
  expect((await advance(ledger, tried, 'slow')).begun).toEqual([undefined])
  expect((await claim(ledger, {}, 'third')).claims).toEqual([])
  expect(await itemOf(ledger, 'a/high/0')).toMatchObject({ state: 'queued', attempts: 0 })
  expect((await advance(ledger, { begin: [{ ref, token: 't' }] }, 'other')).begun).toEqual([
    { attempt: 1, mayBeRepeat: false },
  ])
  expect((await claim(ledger, {}, 'third')).claims).toEqual([])
})

test('one answer carries a megabyte of events, and never less than one message', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 4)
  for (let i = 0; i < 4; i += 1) {
    const name = ledger.key('pay', ledger.fingerprints.recordId(`a/high/${i}`))
    const payload = JSON.parse((await ledger.redis.get(name))!) as object
    await ledger.redis.set(name, JSON.stringify({ ...payload, pad: 'x'.repeat(600_000) }))
  }
  const first = await claim(ledger)
  expect(first.claims).toHaveLength(2)
  expect(first.left).toBe(2)
  expect((await claim(ledger)).claims).toHaveLength(2)
})

test('what nobody can send any more is due no longer: without its record, its batch or its members', async () => {
  const ledger = await tests.ledger()
  const [done = ''] = await bring(ledger, 1)
  await attempt(ledger, done, { outcome: 'delivered' })
  const refs = ['i:gone:0:soc', 'b:gone:soc', 'c:soc', done]
  await ledger.redis.zadd(ledger.key('due', 'soc'), ...refs.flatMap((ref) => ['1', ref]))
  expect(await claim(ledger)).toEqual({
    claims: [],
    left: 0,
    topRank: undefined,
    nextInMs: undefined,
  })
  expect(await ledger.redis.exists(ledger.key('due', 'soc'), ledger.key('ready', 'soc'))).toBe(0)
})

test('a claim looks at two hundred of what became due, and the next one at those after them', async () => {
  const ledger = await tests.ledger()
  const refs = await bring(ledger, 450, 'low')
  const startMs = Date.now() - 1_000
  await ledger.redis.del(ledger.key('ready', 'soc'))
  await ledger.redis.hdel(ledger.key('readied'), 'soc')
  const times = refs.flatMap((ref, i) => [String(startMs + i), ref])
  await ledger.redis.zadd(ledger.key('due', 'soc'), ...times)
  const seen: number[] = []
  for (let i = 0; i < 3; i += 1) seen.push((await claim(ledger, { max: 1 })).left)
  // twice as many while what is ready lags behind what is due: from where it was, and from the start
  expect(seen).toEqual([199, 398, 447])
})

test('what becomes due in one millisecond is looked at some at a time, and all of it is claimed once', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 900, 'low')
  await bring(ledger, 100, 'critical')
  const due = ledger.key('due', 'soc')
  const refs = await tests.redis.zrange(due, '0', '-1')
  const atMs = Date.now() - 1_000
  await tests.redis.zadd(due, ...refs.flatMap((ref) => [atMs, ref]))
  await tests.redis.del(ledger.key('ready', 'soc'))
  await tests.redis.hset(ledger.key('readied'), 'soc', atMs - 1)
  const claimed: { ref: string; rank: number }[] = []
  const lookedAt: number[] = []
  for (let hasMore = true; hasMore;) {
    const known = claimed.length + (await tests.redis.zcard(ledger.key('ready', 'soc')))
    const { claims, left } = await claim(ledger, { max: 40 })
    claimed.push(...claims)
    lookedAt.push(claimed.length + left - known)
    hasMore = claims.length > 0
  }
  expect(Math.max(...lookedAt)).toBeLessThanOrEqual(400) // from two places
  expect(claimed.map(({ ref }) => ref).toSorted()).toEqual(refs.toSorted())
  expect(claimed.slice(0, 200).filter(({ rank }) => rank === 5)).toHaveLength(100)
})

test('what holds its wait for a full event, or collects for a batch, is claimed as such', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'low' }, ['soc'], true)])
  await takeIn(ledger, [routed({ uid: 'a/b/2' })], { batchWaitMs: 1 })
  const detail = `i:${ledger.fingerprints.recordId('a/b/1')}:0:soc`
  await makeDue(ledger, detail)
  await makeDue(ledger, 'c:soc')
  expect((await claim(ledger)).claims).toEqual([
    { kind: 'collection', ref: 'c:soc', rank: 4 },
    { kind: 'detail', ref: detail, rank: 2 },
  ])
})

test('a batch is as severe as its worst member', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 1, 'critical', { batchWaitMs: 1 })
  const batch = await frozen(ledger, 1, 'low')
  await bring(ledger, 1, 'high')
  const { claims } = await claim(ledger)
  expect(claims.map(({ ref, rank }) => [ref === batch, rank])).toEqual([
    [true, 5],
    [false, 4],
  ])
  expect(claims[0]).toMatchObject({ kind: 'batch', destination: 'soc', total: 2, attempts: 0 })
})

test('a batch that lost the record of a member goes with the others, and keeps nothing else from going', async () => {
  const ledger = await tests.ledger()
  const batch = await frozen(ledger, 4)
  const lost = ledger.fingerprints.recordId('a/high/1')
  await ledger.redis.del(ledger.key('rec', lost), ledger.key('pay', lost))
  await bring(ledger, 1, 'low')
  const { claims } = await claim(ledger)
  expect(claims).toMatchObject([
    { ref: batch, total: 3, members: [0, 2, 3].map((n) => ({ uid: `a/high/${n}` })) },
    { kind: 'item', members: [{ uid: 'a/low/0' }] },
  ])
  await advance(ledger, { begin: [{ ref: batch, token: 't' }] })
  const { status, halves = [] } = await settle(ledger, batch, 't', { outcome: 'split' })
  expect([status, halves.length]).toEqual(['settled', 2])
  for (const half of halves) await attempt(ledger, half, { outcome: 'delivered' })
  expect(await itemOf(ledger, 'a/high/3')).toMatchObject({ state: 'delivered' })
})

test('of what collects for a batch each is known by how long it waits', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 3, 'high', { batchWaitMs: 1 })
  const waiting = await peekBatch(ledger, 'soc', 3)
  const sinces = waiting.flatMap(({ ref }, n) => [n * 1_000, ref])
  await ledger.redis.zadd(ledger.key('collect', 'soc'), ...sinces)
  const [first, ...others] = (await peekBatch(ledger, 'soc', 3)).map(({ ageMs }) => ageMs)
  expect(others.map((ageMs) => Math.round(first! - ageMs))).toEqual([1_000, 2_000])
})

test('an attempt that left no process is none: it is due again at once, unmarked', async () => {
  const ledger = await tests.ledger()
  const [single = ''] = await bring(ledger, 1, 'low')
  const batch = await frozen(ledger, 2)
  for (const ref of [single, batch]) {
    expect(await attempt(ledger, ref, { outcome: 'unsent' })).toEqual({ status: 'settled' })
  }
  expect(await itemOf(ledger, 'a/low/0')).toMatchObject({
    state: 'queued',
    attempts: 0,
    history: [],
  })
  const again = await claim(ledger)
  expect(again.claims.map(({ ref }) => ref)).toEqual([batch, single])
  expect(again.claims).toMatchObject([
    { attempts: 0, tries: 0, mayBeRepeat: false },
    { attempts: 0, tries: 0, mayBeRepeat: false },
  ])
  for (const ref of [single, batch]) {
    await attempt(ledger, ref, { outcome: 'retry', inMs: 0, counts: true })
    await attempt(ledger, ref, { outcome: 'unsent' })
  }
  expect(await itemOf(ledger, 'a/low/0')).toMatchObject({ state: 'retrying', attempts: 1 })
  expect((await claim(ledger)).claims).toMatchObject([
    { attempts: 1, tries: 1, mayBeRepeat: false },
    { attempts: 1, tries: 1, mayBeRepeat: false },
  ])
  await expectConservation(ledger)
})

test('the halves of a batch are messages of their own: as old, as severe, and their members in order', async () => {
  const ledger = await tests.ledger()
  const batch = await frozen(ledger, 3, 'critical')
  const [whole] = (await claim(ledger)).claims
  await attempt(ledger, batch, { outcome: 'retry', inMs: 0, answerLost: true, reason: 'timeout' })
  const [milder = ''] = await bring(ledger, 1, 'high')
  const { halves } = await attempt(ledger, batch, { outcome: 'split', reason: 'invalid' }, 't2')
  const { claims } = await claim(ledger)
  if (whole?.kind !== 'batch') throw new Error('no batch')
  expect(halves).toHaveLength(2)
  expect(new Set(claims.slice(0, 2).map(({ ref }) => ref))).toEqual(new Set(halves))
  expect(claims[2]!.ref).toBe(milder)
  const parts = halves!.map((ref) => claims.find((one) => one.ref === ref)!)
  const about = { rank: 5, attempts: 0, tries: 0, createdAtMs: whole.createdAtMs }
  expect(parts).toMatchObject([
    { ...about, mayBeRepeat: true, destination: 'soc', members: whole.members.slice(0, 2) },
    { ...about, mayBeRepeat: true, destination: 'soc', members: whole.members.slice(2) },
  ])
  expect(await ledger.redis.exists(ledger.key('batch', batch.split(':')[1]!))).toBe(0)
  expect(await itemOf(ledger, 'a/critical/0')).toMatchObject({ state: 'batch' })
  await expectConservation(ledger)
})

test('what became of a batch is told of each member: its attempts, their reasons and who made them', async () => {
  const ledger = await tests.ledger()
  const batch = await frozen(ledger, 2)
  await attempt(ledger, batch, { outcome: 'retry', inMs: 0, answerLost: true, reason: 'timeout' })
  const answer = 'HTTP 404 '.padEnd(300, 'x')
  await attempt(ledger, batch, { outcome: 'dead', reason: 'rejected', answer }, 't2')
  for (const uid of ['a/high/0', 'a/high/1']) {
    expect(await itemOf(ledger, uid)).toMatchObject({
      state: 'dead',
      attempts: 2,
      repeatRisks: 1,
      history: [
        { number: 1, outcome: 'retry', reason: 'timeout', replica: 'r1' },
        { number: 2, outcome: 'dead', reason: 'rejected', answer: answer.slice(0, 200) },
      ],
    })
  }
})

test('a process that died while it sent leaves its attempt in the history, as one whose answer was lost', async () => {
  const ledger = await tests.ledger()
  const [ref = ''] = await bring(ledger, 1)
  await claim(ledger, {}, 'dead')
  await advance(ledger, { begin: [{ ref, token: 't1' }] }, 'dead')
  await makeDue(ledger, ref)
  const [taken] = (await claim(ledger)).claims
  expect(taken).toMatchObject({ attempts: 1, tries: 0, mayBeRepeat: true })
  const { begun } = await advance(ledger, { begin: [{ ref, token: 't2' }] })
  expect(begun).toEqual([{ attempt: 2, mayBeRepeat: true }])
  const { history, repeatRisks } = await itemOf(ledger, 'a/high/0')
  expect(history).toMatchObject([{ number: 1, outcome: 'answer lost', reason: 'interrupted' }])
  expect(repeatRisks).toBe(1)
})

test('what ended or went elsewhere between claim and send is not sent, and due no more', async () => {
  const ledger = await tests.ledger()
  const refs = await bring(ledger, 2)
  await claim(ledger)
  const held = { st: 'held', why: 'mute', y: 'g' }
  await changeRecord<{ i: object[] }>(ledger, ledger.fingerprints.recordId('a/high/0'), ({ i }) =>
    Object.assign(i[0]!, held),
  )
  await ledger.redis.del(ledger.key('rec', ledger.fingerprints.recordId('a/high/1')))
  const begin = refs.map((ref) => ({ ref, token: 't' }))
  expect((await advance(ledger, { begin })).begun).toEqual([undefined, undefined])
  expect(await ledger.redis.exists(ledger.key('due', 'soc'), ledger.key('claims'))).toBe(0)
})

/** Events for two destinations of the sink, the sick one's before. */
async function bringTo(ledger: AccountLedger, destination: string, uids: string[]): Promise<void> {
  const events = uids.map((uid) => routed({ uid, severity: 'critical' }, [destination]))
  await takeIn(ledger, events)
  await pastThisMillisecond(tests.redis)
}

test('an event that a claim finds for several destinations comes once, whatever its claims', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc:one', 'soc:two', 'soc:three'])])
  await takeIn(ledger, [routed({ uid: 'a/b/2' }, ['soc:one'])])
  let texts = 0
  around(ledger, async (_script, run) => {
    const answer = (await run()) as string[]
    texts = answer.length - 1
    return answer
  })
  const { claims } = await claim(ledger)
  const messages = claims.flatMap((one) =>
    one.kind === 'item' ? `${one.members[0]!.uid} to ${one.destination}` : [],
  )
  expect(messages.toSorted()).toEqual([
    'a/b/1 to soc:one',
    'a/b/1 to soc:three',
    'a/b/1 to soc:two',
    'a/b/2 to soc:one',
  ])
  expect(texts).toBe(4) // of two events record and payload
})

const failed: Outcome = { outcome: 'retry', inMs: 0, counts: true, reason: 'unavailable' }

test('what is for a destination in trouble is put off untouched, and takes nobody a place, however much it is', async () => {
  const ledger = await tests.ledger()
  const sick = Array.from({ length: 350 }, (_, n) => `sick/of/${n}`)
  await bringTo(ledger, 'soc:full', sick)
  await bringTo(ledger, 'soc:well', ['well/of/0', 'well/of/1'])
  const waits = { 'soc:full': 600_000 }
  const found = [await claim(ledger, { waits }), await claim(ledger, { waits })]
  expect(found.flatMap(({ claims }) => uidsOf(claims)).toSorted()).toEqual([
    'well/of/0',
    'well/of/1',
  ])
  expect(found[0]!.putOffMs).toBe(600_000)
  expect(found[1]!).toMatchObject({ left: 0 })
  expect(found[1]!.nextInMs).toBeGreaterThan(50_000)
  expect(await claim(ledger, { waits })).toMatchObject({ claims: [], putOffMs: undefined })
  expect(await itemOf(ledger, 'sick/of/9')).toMatchObject({ state: 'queued', attempts: 0 })
  await expectConservation(ledger)
})

test('one message tests a destination whose wait is over, and it is not the one that failed', async () => {
  const ledger = await tests.ledger()
  await bringTo(ledger, 'soc:full', ['sick/of/0', 'sick/of/1', 'sick/of/2'])
  await attempt(ledger, `i:${ledger.fingerprints.recordId('sick/of/0')}:0:soc`, failed)
  const { claims, putOffMs } = await claim(ledger, { waits: { 'soc:full': 0 } })
  expect(claims).toMatchObject([{ kind: 'item', probesDestination: true, attempts: 0 }])
  expect(putOffMs).toBe(5_000)
  expect((await claim(ledger, { waits: { 'soc:full': 0 } })).claims).toEqual([])
})

test('a probe is what was never tried, the newest of the worst, and then what was tried longest ago', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 2, 'critical')
  await bring(ledger, 2, 'low')
  await bringTo(ledger, 'soc', ['new/of/0'])
  const order: string[] = []
  const probe = async (kind: 'any' | 'untried'): Promise<string | undefined> => {
    const { claims } = await claim(ledger, { probe: kind, max: 1 })
    const [uid] = uidsOf(claims)
    if (claims[0]) await attempt(ledger, claims[0].ref, failed)
    await pastThisMillisecond(tests.redis)
    return uid
  }
  for (let n = 0; n < 8; n += 1) order.push((await probe('any'))!)
  expect(order.slice(0, 1)).toEqual(['new/of/0'])
  expect(order.slice(1, 3).toSorted()).toEqual(['a/critical/0', 'a/critical/1'])
  expect(order.slice(3, 5).toSorted()).toEqual(['a/low/0', 'a/low/1'])
  expect(order.slice(5)).toEqual(order.slice(0, 3))
  expect(await probe('untried')).toBeUndefined()
  await bring(ledger, 1, 'info')
  expect(await probe('untried')).toBe('a/info/0')
})
