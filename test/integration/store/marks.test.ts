import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { ledgerConfig, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const weekMs = 7 * 24 * 3_600_000

interface Week {
  number: number
  buckets: number
}

async function newestWeek(ledger: AccountLedger): Promise<Week> {
  const weeks = await tests.redis.hgetall(ledger.key('weeks'))
  const number = Math.max(
    ...Object.keys(weeks)
      .filter((field) => !field.includes(':'))
      .map(Number),
  )
  return { number, buckets: Number(weeks[number]) }
}

/** As if everything that is marked had been seen so many weeks ago. */
async function age(ledger: AccountLedger, weeks: number): Promise<void> {
  const { number, buckets } = await newestWeek(ledger)
  const start = ledger.key('marks', String(number), '')
  for (const name of await tests.redis.keys(`${start}*`)) {
    const older = ledger.key('marks', String(number - weeks), name.slice(start.length))
    await tests.redis.rename(name, older)
  }
  const fields = [`${number}`, `${number}:n`, `${number}:first`]
  const [, held, first] = await tests.redis.hmget(ledger.key('weeks'), ...fields)
  await tests.redis.hdel(ledger.key('weeks'), ...fields)
  const week = number - weeks
  const older = {
    [week]: buckets,
    [`${week}:n`]: held!,
    ...(first && { [`${week}:first`]: first }),
  }
  await tests.redis.hset(ledger.key('weeks'), older)
}

async function marksOfThisWeek(ledger: AccountLedger): Promise<number> {
  const number = String(Math.floor(Date.now() / weekMs))
  return (await tests.redis.keys(ledger.key('marks', number, '*'))).length
}

const event = routed({ uid: 'a/b/1' }, [])

test.each<[string, number, number | undefined, [number, number]]>([
  ['within half the horizon is known, and not written again', 3, undefined, [0, 0]],
  ['more than half the horizon ago is known, and remembered anew', 8, undefined, [0, 1]],
  ['in the oldest week that the horizon reaches is known', 13, 13 * weekMs, [0, 1]],
  ['before the horizon is new, and its week is forgotten', 16, undefined, [1, 1]],
])('what was last seen %s', async (_what, weeks, horizonMs, [fresh, marks]) => {
  const own = await tests.ledger()
  const ledger = { ...own, horizonMs: horizonMs ?? own.horizonMs }
  await takeIn(ledger, [event])
  const { number } = await newestWeek(ledger)
  await age(ledger, weeks)
  expect(await takeIn(ledger, [event])).toMatchObject({ counts: { new: fresh } })
  expect(await marksOfThisWeek(ledger)).toBe(marks)
  const fields = await tests.redis.hkeys(ledger.key('weeks'))
  expect(fields.some((field) => field.startsWith(String(number - weeks)))).toBe(fresh === 0)
})

test('a week with as many marks as its own number is known like any other', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [event])
  const { number } = await newestWeek(ledger)
  await tests.redis.hset(ledger.key('weeks'), `${number}:n`, number)
  expect(await takeIn(ledger, [event])).toMatchObject({ counts: { new: 0, duplicate: 1 } })
})

test('a clock that steps back over the end of a week makes no known event new', async () => {
  const ledger = await tests.ledger()
  const events = Array.from({ length: 100 }, (_, at) => routed({ uid: `a/b/${at}` }, []))
  await takeIn(ledger, [event])
  const { number } = await newestWeek(ledger)
  await age(ledger, 1)
  await tests.redis.hset(ledger.key('weeks'), `${number - 1}:n`, 800)
  await takeIn(ledger, events) // in a week that begins with four times as many buckets as the next one
  const next = { [number + 1]: 1, [`${number + 1}:first`]: 1 }
  await tests.redis.hset(ledger.key('weeks'), next) // the clock was a week ahead
  await takeIn(ledger, [routed({ uid: 'a/b/first-since' }, [])])
  const records = await tests.redis.keys(ledger.key('rec', '*'))
  await tests.redis.del(...records) // retention has ended them: only marks tell
  expect(await takeIn(ledger, events)).toMatchObject({ counts: { new: 0, duplicate: 100 } })
  expect(Number(await tests.redis.hget(ledger.key('weeks'), String(number)))).toBe(4)
})

test('a clock that was two weeks ahead forgets no week that the horizon still covers', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [event])
  await age(ledger, 14) // as it reads while the clock is ahead
  await takeIn(ledger, [routed({ uid: 'a/b/2' }, [])])
  const { number } = await newestWeek(ledger)
  expect(await tests.redis.hexists(ledger.key('weeks'), String(number - 14))).toBe(1)
})

test('marks expire a week after the horizon, and not before it', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [event])
  const names = await tests.redis.keys(ledger.key('marks', '*'))
  expect(names).toHaveLength(1)
  const leftMs = await tests.redis.pttl(names[0]!)
  expect(leftMs).toBeGreaterThan(ledgerConfig.dedupeHorizonMs)
  expect(leftMs).toBeLessThanOrEqual(ledgerConfig.dedupeHorizonMs + weekMs)
})

test.each([
  ['a first week begins with one bucket', undefined, 1],
  ['a week begins with one bucket after a quiet one', 150, 1],
  ['a week begins with the buckets that the week before filled', 14_000, 64],
])('%s', async (_name, heldBefore, expected) => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [event])
  if (heldBefore !== undefined) {
    const { number } = await newestWeek(ledger)
    await age(ledger, 1)
    await tests.redis.hset(ledger.key('weeks'), `${number - 1}:n`, heldBefore)
    await takeIn(ledger, [routed({ uid: 'a/b/2' }, [])])
  }
  expect((await newestWeek(ledger)).buckets).toBe(expected)
})

/** Members and bucket choices, signs and lengths of every kind. */
function someMarks(count: number): { m: string; b: number }[] {
  return Array.from({ length: count }, () => {
    const bytes = randomBytes(12)
    const whole = bytes.readBigInt64BE(0)
    const m = bytes[8]! % 8 === 0 ? whole / 10n ** BigInt(bytes[9]! % 10) : whole
    return { m: m.toString(), b: bytes.readUInt32BE(8) }
  })
}

async function marksIn(ledger: AccountLedger, week: number): Promise<Map<string, string[]>> {
  const names = await tests.redis.keys(ledger.key('marks', String(week), '*'))
  const members = await Promise.all(names.map((name) => tests.redis.smembers(name)))
  return new Map(names.map((name, i) => [name, members[i]!]))
}

describe('as a week grows', () => {
  test.each([
    ['from one bucket', undefined],
    ['from as many as the week before filled', 3_300],
  ])(
    'its buckets split one by one, %s, and every mark stays where it is found',
    async (_name, heldBefore) => {
      const ledger = await tests.ledger()
      const week = Math.floor(Date.now() / weekMs)
      if (heldBefore !== undefined) {
        const before = { [week - 1]: 1, [`${week - 1}:first`]: 1, [`${week - 1}:n`]: heldBefore }
        await tests.redis.hset(ledger.key('weeks'), before)
      }
      const short = ['0', '-7', '12345678', '-123456789', '1234567890'].map((m, b) => ({ m, b }))
      const marks = [...short, ...someMarks(7_995)]
      await write(ledger, marks.slice(0, 500)) // and again
      for (let at = 0; at < marks.length; at += 1_000)
        await write(ledger, marks.slice(at, at + 1_000))
      const { buckets } = await newestWeek(ledger)
      expect(buckets).toBe(Math.ceil(8_000 / 200))
      expect(await tests.redis.hget(ledger.key('weeks'), `${week}:n`)).toBe('8000')
      const stored = await marksIn(ledger, week)
      expect(stored.size).toBe(buckets)
      const all = [...stored.values()].flat()
      expect(new Set(all)).toEqual(new Set(marks.map(({ m }) => m)))
      expect(all.length).toBe(new Set(all).size)
      for (const [name, members] of stored) {
        expect(members.length).toBeLessThanOrEqual(512)
        expect(await tests.redis.object('ENCODING', name)).toBe('intset')
        expect(await tests.redis.pttl(name)).toBeGreaterThan(ledger.horizonMs)
      }
      expect(await known(ledger, marks)).toBe(8_000)
      expect(await known(ledger, someMarks(2_000))).toBe(0)
    },
  )

  test('the bucket of a mark follows from its last 18 bits alone: what another version marked is found', async () => {
    const ledger = await tests.ledger()
    const week = Math.floor(Date.now() / weekMs)
    const begun = { [week]: 300_000, [`${week}:first`]: 2, [`${week}:n`]: 0 }
    await tests.redis.hset(ledger.key('weeks'), begun)
    const short = ['0', '-7', '12345678', '-123456789', '1234567890'].map((m, b) => ({ m, b }))
    const marks = [...short, ...someMarks(200)]
    await write(ledger, marks)
    const stored = await marksIn(ledger, week)
    for (const { m, b } of marks) {
      const bits = Number(BigInt.asUintN(18, BigInt(m.replace('-', ''))))
      const hash = (b % 2) + 2 * bits
      const bucket = hash < 300_000 ? hash : hash % 2 ** 18 // those from there on are not split yet
      expect(stored.get(ledger.key('marks', String(week), String(bucket)))).toContain(m)
    }
  })

  test('a commit of many events splits no more than its marks fill', async () => {
    const ledger = await tests.ledger()
    const events = Array.from({ length: 500 }, (_none, n) => routed({ uid: `a/b/${n}` }, ['soc']))
    await takeIn(ledger, events)
    expect((await newestWeek(ledger)).buckets).toBe(5)
    await tests.redis.del(...(await tests.redis.keys(ledger.key('rec', '*'))))
    expect(await takeIn(ledger, events)).toMatchObject({ counts: { new: 0, duplicate: 500 } })
    const again = await takeIn(ledger, events, { feed: 'second' })
    expect(again).toMatchObject({ counts: { new: 500 }, changes: [] }) // claimed, for the same place
  })
})

/** As the scripts of the ledger do it, and nothing else. */
async function run(
  ledger: AccountLedger,
  verb: 'write' | 'known',
  marks: { m: string; b: number }[],
): Promise<number[]> {
  const text = `
    -- @include lib/ledger.lua
    -- @include lib/marks.lua
    local answers, weeks = {}, open_weeks(tonumber(ARGV[2]))
    for i = 3, #ARGV, 2 do
      local mark = { m = ARGV[i], b = tonumber(ARGV[i + 1]) }
      if ARGV[1] == 'known' then
        answers[#answers + 1] = has_mark(weeks, mark) and 1 or 0
      else
        write_mark(weeks, mark, tonumber(ARGV[2]))
      end
    end
    finish()
    return answers`
  const script = withIncludes(text)
  const args = marks.flatMap(({ m, b }) => [m, b])
  return (await ledger.redis.eval(
    script,
    1,
    ledger.key(),
    verb,
    ledger.horizonMs,
    ...args,
  )) as number[]
}

function withIncludes(text: string): string {
  return text.replaceAll(/-- @include (\S+)/g, (_line, file: string) =>
    withIncludes(
      readFileSync(new URL(`../../../src/redis/scripts/${file}`, import.meta.url), 'utf8'),
    ),
  )
}

const write = (ledger: AccountLedger, marks: { m: string; b: number }[]) =>
  run(ledger, 'write', marks)

async function known(ledger: AccountLedger, marks: { m: string; b: number }[]): Promise<number> {
  return (await run(ledger, 'known', marks)).reduce((sum, one) => sum + one, 0)
}

test('the marks of one event differ, and agree in what chooses their bucket', async () => {
  const { fingerprints } = await tests.ledger()
  const signs = new Set<boolean>()
  for (let n = 0; n < 100; n += 1) {
    const of = fingerprints.ofEvent(`a/b/${n}`)
    const marks = [of.seen('one'), of.seen('other'), of.baseline('one'), of.claim('high', 'soc')]
    const sizes = marks.map(({ m }) => BigInt(m.replace('-', '')))
    expect(new Set(marks.map(({ b }) => b)).size).toBe(1)
    expect(new Set(sizes.map((size) => BigInt.asUintN(18, size))).size).toBe(1)
    expect(new Set(marks.map(({ m }) => m)).size).toBe(4)
    for (const { m } of marks) {
      expect(BigInt.asIntN(64, BigInt(m)).toString()).toBe(m)
      signs.add(m.startsWith('-'))
    }
  }
  expect(signs.size).toBe(2)
})

test('a mark stays an integer of eight bytes in a compact set', async () => {
  const ledger = await tests.ledger()
  await takeIn(
    ledger,
    Array.from({ length: 20 }, (_none, n) => routed({ uid: `a/b/${n}` })),
  )
  const [name = ''] = await tests.redis.keys(ledger.key('marks', '*'))
  expect(await tests.redis.object('ENCODING', name)).toBe('intset')
})
