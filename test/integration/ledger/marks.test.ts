import { expect, test } from 'vitest'
import type { Book } from '../../../src/ledger/book.ts'
import { ledgerConfig, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const weekMs = 7 * 24 * 3_600_000

interface Week {
  number: number
  buckets: number
}

async function newestWeek(book: Book): Promise<Week> {
  const weeks = await tests.redis.hgetall(book.key('weeks'))
  const number = Math.max(
    ...Object.keys(weeks)
      .filter((field) => !field.includes(':'))
      .map(Number),
  )
  return { number, buckets: Number(weeks[number]) }
}

/** As if everything that is marked had been seen so many weeks ago. */
async function age(book: Book, weeks: number): Promise<void> {
  const { number, buckets } = await newestWeek(book)
  const start = book.key('marks', String(number), '')
  for (const name of await tests.redis.keys(`${start}*`)) {
    const older = book.key('marks', String(number - weeks), name.slice(start.length))
    await tests.redis.rename(name, older)
  }
  await tests.redis.hdel(book.key('weeks'), String(number), `${number}:n`)
  await tests.redis.hset(book.key('weeks'), String(number - weeks), buckets)
}

async function marksOfThisWeek(book: Book): Promise<number> {
  const number = String(Math.floor(Date.now() / weekMs))
  return (await tests.redis.keys(book.key('marks', number, '*'))).length
}

const event = routed({ uid: 'a/b/1' }, [])

test('what was seen within half the horizon is known, and not written again', async () => {
  const book = await tests.book()
  await takeIn(book, [event])
  await age(book, 3)
  expect(await takeIn(book, [event])).toMatchObject({ counts: { new: 0, duplicate: 1 } })
  expect(await marksOfThisWeek(book)).toBe(0)
})

test('what was last seen more than half the horizon ago is known, and remembered anew', async () => {
  const book = await tests.book()
  await takeIn(book, [event])
  await age(book, 8)
  expect(await takeIn(book, [event])).toMatchObject({ counts: { new: 0, duplicate: 1 } })
  expect(await marksOfThisWeek(book)).toBe(1)
})

test('what was last seen before the horizon is new, and its week is forgotten', async () => {
  const book = await tests.book()
  await takeIn(book, [event])
  const { number } = await newestWeek(book)
  await age(book, 16)
  expect(await takeIn(book, [event])).toMatchObject({ counts: { new: 1 } })
  expect(await tests.redis.hexists(book.key('weeks'), String(number - 16))).toBe(0)
})

test('what was last seen in the oldest week that the horizon reaches is known', async () => {
  const book = { ...(await tests.book()), horizonMs: 13 * weekMs }
  await takeIn(book, [event])
  await age(book, 13)
  expect(await takeIn(book, [event])).toMatchObject({ counts: { new: 0, duplicate: 1 } })
})

test('a lost event that is marked in two weeks is taken in again by a repair', async () => {
  const book = await tests.book()
  await takeIn(book, [event])
  await age(book, 8)
  await takeIn(book, [event]) // half the horizon is over: it is marked anew
  await tests.redis.del(book.key('rec', book.digests.recordId('a/b/1')))
  const repair = { isRepair: true, sequence: 0 }
  expect(await takeIn(book, [event], repair)).toMatchObject({ counts: { new: 1, duplicate: 0 } })
})

test('a clock that steps back over the end of a week makes no known event new', async () => {
  const book = await tests.book()
  const events = Array.from({ length: 100 }, (_, at) => routed({ uid: `a/b/${at}` }, []))
  await takeIn(book, [event])
  const { number, buckets } = await newestWeek(book)
  await age(book, 1)
  await tests.redis.hset(book.key('weeks'), `${number - 1}:n`, buckets * 600)
  await takeIn(book, events) // in a week of four times as many buckets as the next one would begin with
  await tests.redis.hset(book.key('weeks'), String(number + 1), buckets) // the clock was a week ahead
  await takeIn(book, [routed({ uid: 'a/b/first-since' }, [])])
  const records = await tests.redis.keys(book.key('rec', '*'))
  await tests.redis.del(...records) // retention has ended them: only marks tell
  expect(await takeIn(book, events)).toMatchObject({ counts: { new: 0, duplicate: 100 } })
  expect(Number(await tests.redis.hget(book.key('weeks'), String(number)))).toBe(buckets * 4)
})

test('a clock that was two weeks ahead forgets no week that the horizon still covers', async () => {
  const book = await tests.book()
  await takeIn(book, [event])
  await age(book, 14) // as it reads while the clock is ahead
  await takeIn(book, [routed({ uid: 'a/b/2' }, [])])
  const { number } = await newestWeek(book)
  expect(await tests.redis.hexists(book.key('weeks'), String(number - 14))).toBe(1)
})

test('marks expire a week after the horizon, and not before it', async () => {
  const book = await tests.book()
  await takeIn(book, [event])
  const names = await tests.redis.keys(book.key('marks', '*'))
  expect(names).toHaveLength(1)
  const leftMs = await tests.redis.pttl(names[0]!)
  expect(leftMs).toBeGreaterThan(ledgerConfig.dedupeHorizonMs)
  expect(leftMs).toBeLessThanOrEqual(ledgerConfig.dedupeHorizonMs + weekMs)
})

test('a week gets the buckets that the week before would have needed', async () => {
  const book = await tests.book()
  await takeIn(book, [event])
  const { number, buckets } = await newestWeek(book)
  await age(book, 1)
  await tests.redis.hset(book.key('weeks'), `${number - 1}:n`, buckets * 600)
  await takeIn(book, [routed({ uid: 'a/b/2' }, [])])
  expect(await newestWeek(book)).toEqual({ number, buckets: buckets * 4 })
})

test('a mark stays an integer of eight bytes in a compact set', async () => {
  const book = await tests.book()
  await takeIn(book, [event])
  const [name = ''] = await tests.redis.keys(book.key('marks', '*'))
  expect(await tests.redis.object('ENCODING', name)).toBe('intset')
})
