/** Pages of what was not told: each item is on one, whatever comes and goes meanwhile. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Asker } from '../../../src/page/asker.ts'
import { itemsQuestion } from '../../../src/page/questions/not-told.ts'
import type { ViewData } from '../../../src/page/output/view-data.ts'
import { mutedGroup } from '../../../src/grouping/placement.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { resendItem, suppressItems } from '../../../src/store/pending-items.ts'
import { attemptOf } from '../../support/attempts.ts'
import {
  pastThisMillisecond,
  redisForTests,
  redisMs,
  routed,
  takeIn,
} from '../../support/ledger.ts'
import { cursorIn } from '../../support/page-rig.ts'
import { runs } from '../../support/runs.ts'

const tests = redisForTests()
const dayMs = 86_400_000

async function ledgersOf(...accounts: string[]): Promise<AccountLedger[]> {
  const keys = tests.keys()
  return Promise.all(accounts.map((account) => tests.ledger({ keys, account })))
}

function refOf(ledger: AccountLedger, uid: string): string {
  return `i:${ledger.fingerprints.recordId(uid)}:0:soc`
}

async function show(ledger: AccountLedger, uids: string[]): Promise<string[]> {
  await takeIn(
    ledger,
    uids.map((uid) => routed({ uid })),
  )
  await pastThisMillisecond(tests.redis)
  return uids.map((uid) => refOf(ledger, uid))
}

async function hold(ledger: AccountLedger, ...uids: string[]): Promise<void> {
  const refs = await show(ledger, uids)
  const until = { rule: 'night', untilMs: Date.now() + dayMs }
  const group = mutedGroup('soc', until.rule, until.untilMs)
  await suppressItems(
    ledger,
    refs.map((ref) => ({ ref, act: 'hold', ...until, group })),
  )
}

async function silence(ledger: AccountLedger, ...uids: string[]): Promise<void> {
  const refs = await show(ledger, uids)
  await suppressItems(
    ledger,
    refs.map((ref) => ({ ref, act: 'suppress', reason: 'silence', rule: 's1' })),
  )
  await pastThisMillisecond(tests.redis)
}

async function setAside(ledger: AccountLedger, ...uids: string[]): Promise<void> {
  const malformed = uids.map((uid) => ({
    raw: JSON.stringify({ uid }),
    problem: 'severity: no word',
    uid,
  }))
  await takeIn(ledger, [], { malformed })
}

/** Endings that a test writes may be so much ahead. */
const aheadMs = 600_000

type Answer = Omit<ViewData['not-told'], 'acts'>

/** As an operator sees it who may see all. */
async function askNotToldOf(ledgers: AccountLedger[], query: object = {}): Promise<Answer> {
  const store = { redis: tests.redis, keys: tests.keys(), ledgers }
  const config = { ledger: { historyRetentionMs: 90 * dayMs }, sinks: [], silences: [] }
  const user = { name: 'ann', role: 'read', accounts: 'all' }
  const nowMs = (await redisMs(tests.redis)) + aheadMs
  const asker = { store, config, user, ledgers, labels: new Map(), nowMs } as unknown as Asker
  return itemsQuestion.ask(asker, itemsQuestion.query.parse(query))
}

/** Uids page by page; `between` comes after each. */
async function pagesOf(
  ledgers: AccountLedger[],
  query: object,
  between = async (): Promise<void> => {},
): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const { items, next } = await askNotToldOf(ledgers, { ...query, cursor })
    pages.push(items.map(({ uid }) => uid))
    cursor = cursorIn(next)
    await between()
  } while (cursor !== undefined)
  return pages
}

test('what is held is a list of its own, account after account, that survives what comes and goes', async () => {
  const [one, two] = await ledgersOf('a', 'b')
  await hold(one!, 'a/b/1')
  await hold(one!, 'a/b/2', 'a/b/3')
  await show(one!, ['a/b/moving'])
  await hold(two!, 'a/b/4', 'a/b/5')
  let more = 0
  const pages = await pagesOf([two!, one!], { state: 'held', limit: 2 }, async () => {
    await hold(one!, `a/b/new${(more += 1)}`)
    await attemptOf(one!, refOf(one!, 'a/b/moving'), { outcome: 'delivered' })
  })
  expect(pages.map((page) => page.length)).toEqual([2, 2, 1])
  expect(pages.flat().slice(0, 3).toSorted()).toEqual(['a/b/1', 'a/b/2', 'a/b/3'])
  expect(pages.flat().toSorted()).toEqual([1, 2, 3, 4, 5].map((n) => `a/b/${n}`))
})

test('the first page leads to what waits in any account, and to nothing else', async () => {
  const [one, two] = await ledgersOf('a', 'b')
  await silence(one!, 'a/b/silenced')
  expect((await askNotToldOf([one!, two!])).waiting).toEqual([])
  await hold(two!, 'a/b/held')
  const { items, waiting } = await askNotToldOf([one!, two!], { reason: 'silence' })
  expect(items.map(({ uid }) => uid)).toEqual(['a/b/silenced'])
  expect(waiting).toEqual([{ state: 'held', url: '/not-told?reason=silence&limit=50&state=held' }])
  await setAside(one!, 'a/b/malformed')
  const states = (await askNotToldOf([one!, two!])).waiting.map(({ state }) => state)
  expect(states).toEqual(['quarantined', 'held'])
})

async function giveUp(ledger: AccountLedger, ...uids: string[]): Promise<void> {
  for (const ref of await show(ledger, uids))
    await attemptOf(ledger, ref, { outcome: 'dead', reason: 'gone' })
}

test('each item of a message that ended in parts is on one page, whatever its account', async () => {
  const ledgers = await ledgersOf('a', 'b')
  const ids = [1, 2, 3, 4, 5, 6]
  for (const ledger of ledgers)
    await giveUp(ledger, ...ids.map((id) => `${ledger.account}/b/${id}`))
  const endedMs = await redisMs(tests.redis)
  const part = fc.record({
    account: fc.nat(1),
    afterMs: fc.constantFrom(1, 2, 3, 70_000),
    items: fc.integer({ min: 1, max: 3 }),
    message: fc.constantFrom('', 'a'.repeat(40), 'b'.repeat(40)),
  })
  const given = { parts: fc.array(part, { maxLength: 8 }), limit: fc.integer({ min: 1, max: 5 }) }
  await fc.assert(
    fc.asyncProperty(fc.record(given), async ({ parts, limit }) => {
      for (const ledger of ledgers) await ledger.redis.del(ledger.key('ended'))
      const left = ledgers.map(({ account }) => ids.map((id) => `${account}/b/${id}`))
      const written: string[] = []
      for (const { account, afterMs, items, message } of parts.toSorted(
        (one, other) => one.afterMs - other.afterMs,
      )) {
        const uids = left[account]!.splice(0, items)
        if (uids.length === 0) continue
        const ledger = ledgers[account]!
        const places = uids.map((uid) => `${ledger.fingerprints.recordId(uid)}.0`).join(' ')
        const flags = message === '' ? '' : 'p'
        const entry = JSON.stringify(['x', 'soc', 4, places, '', 1, flags, message, 'gone'])
        await ledger.redis.xadd(ledger.key('ended'), `${endedMs + afterMs}-*`, 'e', entry)
        written.push(...uids)
      }
      const pages = await pagesOf(ledgers, { limit })
      for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit)
      expect(pages.flat().toSorted()).toEqual(written.toSorted())
    }),
    { numRuns: runs({ short: 50, long: 300 }), seed: 7 },
  )
})

test('an item that was sent again and given up anew is listed once, as it ended last', async () => {
  const [ledger] = await ledgersOf('a')
  const [ref] = await show(ledger!, ['a/b/1'])
  await attemptOf(ledger!, ref!, { outcome: 'dead', reason: 'gone' })
  await pastThisMillisecond(tests.redis)
  await resendItem(ledger!, ref!, { batchWaitMs: undefined, by: 'ann' })
  await attemptOf(ledger!, ref!, { outcome: 'dead', reason: 'invalid' })
  const { items } = await askNotToldOf([ledger!])
  expect(items.map(({ uid, reason }) => `${uid} ${reason}`)).toEqual(['a/b/1 invalid'])
})

test('what is quarantined has pages too, and a cursor that is none is refused', async () => {
  const ledgers = await ledgersOf('a', 'b')
  for (const ledger of ledgers) await setAside(ledger, 'a/b/1', 'a/b/2', 'a/b/3')
  const pages = await pagesOf(ledgers, { state: 'quarantined', limit: 2 })
  expect(pages.map((page) => page.length)).toEqual([2, 2, 2])
  for (const cursor of ['x', '1.2.a', `${'1'.repeat(16)}.${'a'.repeat(24)}.a`]) {
    const asked = askNotToldOf(ledgers, { state: 'held', cursor })
    await expect(asked).rejects.toThrow(/cursor/u)
  }
})
