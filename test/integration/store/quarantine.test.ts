/** What operators see of items that were set aside, and what becomes of those that they replay. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  countQuarantined,
  findQuarantined,
  listQuarantined,
  openFeed,
  replayQuarantined,
} from '../../../src/store/feed-state.ts'
import { redisForTests, takeIn } from '../../support/ledger.ts'
import { runScriptAt } from '../../support/script-clock.ts'

const tests = redisForTests()

function malformed(count: number, from = 0) {
  return Array.from({ length: count }, (_none, n) => ({
    uid: `a/b/${from + n}`,
    problem: 'id: odd',
    raw: `{"n":${from + n}}`,
  }))
}

/** The n-th entry was set aside n minutes ago. */
async function aBookWithEntries(count: number): Promise<AccountLedger> {
  const book = await tests.book()
  await takeIn(book, [], { malformed: malformed(count) })
  for (let n = 0; n < count; n += 1) await setAsideBefore(book, n, n * 60_000)
  return book
}

async function setAsideBefore(book: AccountLedger, n: number, agoMs: number): Promise<number> {
  const atMs = Date.now() - agoMs
  await tests.redis.zadd(
    book.key('quarantine-ages'),
    atMs,
    book.fingerprints.recordId(`{"n":${n}}`),
  )
  return atMs
}

test('every entry is listed, the newest first, however many there are', async () => {
  const book = await aBookWithEntries(130)
  expect((await listQuarantined(book)).map(({ uid }) => uid)).toEqual(
    Array.from({ length: 130 }, (_none, n) => `a/b/${n}`),
  )
})

test('a feed knows whether anything of its account was set aside', async () => {
  const book = await tests.book()
  expect((await openFeed(book, 'brand', 0)).hasQuarantine).toBe(false)
  await takeIn(book, [], { feed: 'leaks', malformed: malformed(1) })
  expect((await openFeed(book, 'brand', 0)).hasQuarantine).toBe(true)
})

test('in the very millisecond in which its history ends an entry is over', async () => {
  const book = await aBookWithEntries(1)
  const [id = ''] = await tests.redis.zrange(book.key('quarantine-ages'), '0', '-1')
  await tests.redis.zadd(book.key('quarantine-ages'), 1_000_000, id)
  const countAt = (nowMs: number) =>
    runScriptAt(
      { redis: tests.redis, nowMs },
      'count-quarantine',
      [book.key()],
      [60_000, 1_000_000],
    )
  expect(await countAt(1_059_999)).toEqual(['brand', '1', '1', '1000000'])
  expect(await countAt(1_060_000)).toEqual([])
})

test('an entry counts for the feed that set it aside last', async () => {
  const book = await tests.book()
  await takeIn(book, [], { feed: 'brand', malformed: malformed(1) })
  expect(Object.keys(await countQuarantined(book))).toEqual(['brand'])
  await takeIn(book, [], { feed: 'leaks', malformed: malformed(1) })
  expect(Object.keys(await countQuarantined(book))).toEqual(['leaks'])
})

test('entries are found by the beginning of their ids', async () => {
  const book = await aBookWithEntries(5)
  const [first] = await listQuarantined(book)
  expect(await listQuarantined(book, first!.id.slice(0, 12))).toEqual([first])
  expect(await listQuarantined(book, 'none')).toEqual([])
})

test('what is older than a history is neither listed nor counted, though nothing came to sweep it out', async () => {
  const book = await aBookWithEntries(2)
  await setAsideBefore(book, 1, book.retention.history + 60_000)
  expect((await listQuarantined(book)).map(({ uid }) => uid)).toEqual(['a/b/0'])
  expect(await countQuarantined(book)).toMatchObject({ brand: { open: 1 } })
  await setAsideBefore(book, 1, book.retention.history - 60_000)
  expect(await listQuarantined(book)).toHaveLength(2)
  expect(await countQuarantined(book)).toMatchObject({ brand: { open: 2 } })
})

test('entries are counted by feed, and those since a time as fresh', async () => {
  const book = await aBookWithEntries(3)
  await takeIn(book, [], { feed: 'leaks', malformed: malformed(1, 10) })
  const newestMs = await setAsideBefore(book, 0, 30_000)
  const sinceMs = await setAsideBefore(book, 1, 60_000)
  const counts = await countQuarantined(book, sinceMs + 0.5) // a clock may count fractions
  expect(counts).toMatchObject({
    brand: { open: 3, fresh: 2, newestMs },
    leaks: { open: 1, fresh: 1 },
  })
  expect(Object.keys(counts).toSorted()).toEqual(['brand', 'leaks'])
})

test('what is replayed is new to every feed that set it aside, and what is gone cannot be', async () => {
  const book = await tests.book()
  for (const feed of ['brand', 'leaks']) await takeIn(book, [], { feed, malformed: malformed(1) })
  const [entry] = await listQuarantined(book)
  expect(entry?.markedBy.toSorted()).toEqual(['brand', 'leaks'])
  expect(await replayQuarantined(book, 'f'.repeat(24))).toBe('gone')
  expect(await replayQuarantined(book, entry!.id)).toBe('done')
  expect(await findQuarantined(book, 'a/b/0')).toBeUndefined()
  for (const feed of ['brand', 'leaks']) {
    expect(await takeIn(book, [], { feed, malformed: malformed(1) })).toMatchObject({
      counts: { quarantined: 1, duplicate: 0 },
    })
  }
})

test('an entry without marks stays, though somebody replays it', async () => {
  const book = await aBookWithEntries(1)
  const [{ id } = { id: '' }] = await listQuarantined(book)
  const name = book.key('quarantine')
  const { marks: _none, ...stored } = JSON.parse((await tests.redis.hget(name, id))!) as {
    marks: unknown
  }
  await tests.redis.hset(name, id, JSON.stringify(stored))
  expect(await replayQuarantined(book, id)).toBe('no_mark')
  expect(await listQuarantined(book)).toMatchObject([{ id, markedBy: [] }])
})
