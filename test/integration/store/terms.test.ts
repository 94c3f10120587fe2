/** Terms: which records concern an identifier, a login or a host, and what a new record learns of before. */
import { expect, test } from 'vitest'
import { ownFeed, type Victims } from '../../../src/event.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import type { RoutedEvent } from '../../../src/store/intake.ts'
import { releaseDetail } from '../../../src/store/pending-items.ts'
import { type LedgerRecord, readRecord } from '../../../src/store/records.ts'
import { listByTerm, lookUpTerm, type Term } from '../../../src/store/history/terms.ts'
import { redisForTests, redisMs, routed, takeIn } from '../../support/ledger.ts'
import { ledgerInTime } from '../../support/script-clock.ts'

const tests = redisForTests()

const dayMs = 86_400_000
const joe = { kind: 'login', value: 'joe@acme.com' } as const
const acme = { kind: 'identifier', value: 'acme.com' } as const

function naming(uid: string, victims: Partial<Victims>): RoutedEvent {
  return { ...routed({ uid }), victims: { logins: [], hosts: [], ...victims } }
}

async function recordOf(ledger: AccountLedger, uid: string): Promise<LedgerRecord> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(uid)))!
}

async function listUids(ledger: AccountLedger, term: Term, limit = 2): Promise<string[][]> {
  const pages: string[][] = []
  let before: string | undefined
  do {
    const { records, next } = await listByTerm(ledger, term, { limit, before })
    pages.push(records.map(({ uid }) => uid))
    before = next
  } while (before !== undefined)
  return pages
}

test('a new record keeps how often its login was seen before, when last and in which record', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [naming('a/b/1', { logins: ['joe@acme.com'] })])
  await takeIn(ledger, [
    naming('a/b/2', { logins: [' JOE@acme.com', 'ann@acme.com', 'joe@acme.com'] }),
  ])
  await takeIn(ledger, [
    naming('a/b/3', { logins: ['joe@acme.com', 'ann@acme.com'], hosts: ['PC'] }),
  ])
  const [first, second, third] = await Promise.all(
    ['a/b/1', 'a/b/2', 'a/b/3'].map((uid) => recordOf(ledger, uid)),
  )
  expect(first!.seenBefore).toEqual([])
  const before = { kind: 'login', digest: expect.any(String) }
  expect(second!.seenBefore).toMatchObject([{ ...before, times: 1, recordId: first!.recordId }])
  expect(third!.seenBefore).toMatchObject([
    { ...before, times: 2, recordId: second!.recordId },
    { ...before, times: 1, recordId: second!.recordId },
  ])
  const sinceMs = second!.firstSeenMs - third!.seenBefore[0]!.lastMs
  expect(sinceMs).toBeGreaterThanOrEqual(0)
  expect(sinceMs).toBeLessThan(1_000) // whole seconds are kept
  expect(await lookUpTerm(ledger, joe)).toMatchObject({ times: 3, recordId: third!.recordId })
  expect(await lookUpTerm(ledger, { kind: 'host', value: 'pc' })).toMatchObject({ times: 1 })
  expect(await lookUpTerm(ledger, { kind: 'host', value: 'joe@acme.com' })).toBeUndefined()
  expect(await listUids(ledger, joe)).toEqual([['a/b/3', 'a/b/2'], ['a/b/1']])
  expect(await listUids(ledger, { kind: 'login', value: 'ann@acme.com' })).toEqual([
    ['a/b/3', 'a/b/2'],
  ])
})

test('only new records count: neither a second feed, nor a raise, nor a baseline, nor what Tocsin tells', async () => {
  const ledger = await tests.ledger()
  const event = { identifiers: [{ id: 1, name: 'Acme.com' }] }
  const shown = (severity: string): RoutedEvent => ({
    ...routed({ ...event, uid: 'a/b/1', severity }),
    victims: { logins: ['joe@acme.com'], hosts: [] },
  })
  await takeIn(ledger, [shown('low')])
  await takeIn(ledger, [shown('low')], { feed: 'leaks' })
  await takeIn(ledger, [shown('high')])
  await takeIn(ledger, [
    { ...shown('low'), ...routed({ ...event, uid: 'a/b/2' }), isBaseline: true },
  ])
  await takeIn(ledger, [routed({ ...event, uid: 'canary/tocsin/1' })], { feed: ownFeed })
  expect(await lookUpTerm(ledger, joe)).toMatchObject({ times: 1 })
  expect(await listUids(ledger, acme)).toEqual([['a/b/1']])
  expect((await recordOf(ledger, 'a/b/1')).seenBefore).toEqual([])
})

test('the full event names the machine, however often it is stored', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [naming('a/b/1', { hosts: ['DESKTOP-7'] }), routed({ uid: 'a/b/2' })])
  const { recordId } = await recordOf(ledger, 'a/b/2')
  const full = { detail: {}, victims: { logins: [], hosts: ['desktop-7'] } }
  for (const _twice of [1, 2]) await releaseDetail(ledger, recordId, {}, full)
  expect((await recordOf(ledger, 'a/b/2')).seenBefore).toMatchObject([{ kind: 'host', times: 1 }])
  expect(await lookUpTerm(ledger, { kind: 'host', value: 'DESKTOP-7' })).toMatchObject({
    times: 2,
    recordId,
  })
})

test('events of an identifier are listed newest first, and pages survive new ones', async () => {
  const ledger = await tests.ledger()
  const show = (id: number, ...names: string[]): Promise<unknown> => {
    const identifiers = names.map((name) => ({ id: 1, name }))
    return takeIn(ledger, [routed({ uid: `a/b/${id}`, identifiers })])
  }
  for (const id of [1, 2, 3]) await show(id, 'acme.com', 'Acme Inc')
  const { records, next } = await listByTerm(ledger, acme, { limit: 2 })
  await show(4, 'acme.com')
  expect(records.map(({ uid }) => uid)).toEqual(['a/b/3', 'a/b/2'])
  const rest = await listByTerm(ledger, acme, { limit: 2, before: next })
  expect(rest.records.map(({ uid }) => uid)).toEqual(['a/b/1'])
  expect(rest.next).toBeUndefined()
  await tests.redis.del(ledger.key('rec', ledger.fingerprints.recordId('a/b/2')))
  expect(await listUids(ledger, { kind: 'identifier', value: 'ACME INC ' }, 9)).toEqual([
    ['a/b/3', 'a/b/1'],
  ])
  const tooLong = 'x'.repeat(321)
  await show(5, tooLong)
  for (const value of ['', '  ', tooLong])
    expect(await listUids(ledger, { kind: 'identifier', value })).toEqual([[]])
})

test.each([1, 2, 3, 20])(
  'pages of %i list each event of an identifier once, newest first',
  async (limit) => {
    const ledger = await tests.ledger()
    const about = (n: number): RoutedEvent =>
      routed({ uid: `a/b/${n}`, identifiers: [{ id: 1, name: 'acme.com' }] })
    for (let n = 1; n <= 5; n += 1) await takeIn(ledger, [about(n)])
    await takeIn(ledger, [6, 7, 8].map(about))
    const pages = await listUids(ledger, acme, limit)
    expect(pages.flat()).toEqual([8, 7, 6, 5, 4, 3, 2, 1].map((n) => `a/b/${n}`))
    expect(pages.every((page, at) => page.length === limit || at === pages.length - 1)).toBe(true)
  },
)

test('a login that was seen longer ago than the history is not known any more', async () => {
  const ledger = await tests.ledger()
  const nowMs = await redisMs(tests.redis)
  const event = naming('a/b/1', { logins: ['joe@acme.com'] })
  const longAgoMs = nowMs - ledger.retention.history - 2_000
  await takeIn(
    ledgerInTime(ledger, () => longAgoMs),
    [event],
  )
  expect(await lookUpTerm(ledger, joe)).toBeUndefined()
})

test('what is older than the history is forgotten, and its keys expire', async () => {
  const stored = await tests.ledger()
  const { history } = stored.retention
  let nowMs = 10 * history + dayMs
  const ledger = ledgerInTime(stored, () => nowMs)
  const seen = async (uid: string): Promise<number[]> => {
    await takeIn(ledger, [naming(uid, { logins: ['joe@acme.com'] })])
    return (await recordOf(ledger, uid)).seenBefore.map(({ times }) => times)
  }
  expect(await seen('a/b/1')).toEqual([])
  nowMs += history - dayMs - 1_000 // the end of a generation
  expect(await seen('a/b/2')).toEqual([1])
  nowMs += history - dayMs
  expect(await seen('a/b/3')).toEqual([2])
  nowMs += history + dayMs
  expect(await seen('a/b/4')).toEqual([])
  const names = await tests.redis.keys(stored.key('seen', '*'))
  const livesMs = await Promise.all(names.map((name) => tests.redis.pttl(name)))
  expect(names).toHaveLength(3)
  for (const lifeMs of livesMs) {
    expect(lifeMs).toBeGreaterThan(2 * history - dayMs)
    expect(lifeMs).toBeLessThanOrEqual(2 * history)
  }
})

test('the stream of an identifier drops what the history, or room, has dropped', async () => {
  const ledger = await tests.ledger()
  const { history } = ledger.retention
  const event = { identifiers: [{ id: 1, name: 'acme.com' }] }
  await takeIn(ledger, [routed({ ...event, uid: 'a/b/1' })])
  const [name] = await tests.redis.keys(ledger.key('of', '*'))
  expect(await tests.redis.pttl(name!)).toBeGreaterThan(history - dayMs)
  await tests.redis.del(name!)
  const nowMs = await redisMs(tests.redis)
  const fill = async (atMs: number): Promise<void> => {
    for (let n = 0; n < 200; n += 1) await tests.redis.xadd(name!, `${atMs}-${n}`, 'r', 'gone')
  }
  await fill(nowMs - history - 1_000)
  await fill(nowMs - dayMs)
  await takeIn(ledger, [routed({ ...event, uid: 'a/b/2' })])
  expect(await tests.redis.xlen(name!)).toBe(201)
  await tests.redis.set(ledger.key('trimmed'), nowMs - 1_000)
  await takeIn(ledger, [routed({ ...event, uid: 'a/b/3' })])
  expect(await tests.redis.xlen(name!)).toBe(2)
})

test('Redis holds no term in clear but in the event itself', async () => {
  const ledger = await tests.ledger()
  const identifiers = [{ id: 1, name: 'acme.com' }]
  const victims = { logins: ['joe@acme.com'], hosts: ['DESKTOP-7'] }
  await takeIn(ledger, [{ ...routed({ uid: 'a/b/1', identifiers }), victims }])
  const names = await tests.redis.keys(ledger.key('*'))
  const terms = names.filter((name) => /:(?:of|seen):/.test(name))
  expect(terms).toHaveLength(3)
  for (const name of terms) {
    const dump = (await tests.redis.dumpBuffer(name))!.toString('latin1')
    expect(`${name} ${dump}`).not.toMatch(/acme|joe|desktop/iu)
  }
})

test('a record whose full event names its login again is in the chain of that login once', async () => {
  const ledger = await tests.ledger()
  const named = (uid: string): Promise<unknown> =>
    takeIn(ledger, [naming(uid, { logins: [joe.value] })])
  await named('a/b/1')
  await named('a/b/2')
  const { recordId } = await recordOf(ledger, 'a/b/1')
  const full = { detail: {}, victims: { logins: [joe.value], hosts: [] } }
  await releaseDetail(ledger, recordId, {}, full)
  await named('a/b/3')
  for (const limit of [1, 2, 9]) {
    const pages = await listUids(ledger, joe, limit)
    expect(pages.flat()).toEqual(['a/b/3', 'a/b/1', 'a/b/2'])
  }
})

test('a host that a later event named is no word of what was before, and stays seen then', async () => {
  const stored = await tests.ledger()
  const startMs = 1_000 * Math.floor((await redisMs(tests.redis)) / 1_000) - 60_000
  const at = (afterMs: number): AccountLedger => ledgerInTime(stored, () => startMs + afterMs)
  await takeIn(at(0), [{ ...routed({ uid: 'a/b/1' }, ['siem']), wantsDetail: true }])
  await takeIn(at(10_000), [naming('a/b/2', { hosts: ['PC'] })])
  const { recordId } = await recordOf(stored, 'a/b/1')
  const full = { detail: {}, victims: { logins: [], hosts: ['PC'] } }
  await releaseDetail(at(20_000), recordId, { siem: false }, full)
  expect((await recordOf(stored, 'a/b/1')).seenBefore).toMatchObject([{ times: 1, isLate: true }])
  const seen = await lookUpTerm(stored, { kind: 'host', value: 'pc' })
  expect(seen).toEqual({ times: 2, lastMs: startMs + 10_000, recordId })
})
