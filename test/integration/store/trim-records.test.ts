/** One step of making room: how much it looks at, what it says, and that it loses count of nothing. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const plenty = 2 ** 40

async function trim(ledger: AccountLedger, wanted: number): Promise<number[]> {
  const answer = await ledger.run(
    'trim-records',
    ledger.retention.history,
    ledger.horizonMs,
    wanted,
  )
  return answer as number[]
}

/** Events that nobody was to get: each is settled when it comes. */
async function takeInSettled(ledger: AccountLedger, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_none, n) => routed({ uid: `a/b/${n}` }, []))
  await takeIn(ledger, events)
}

function counted(ledger: AccountLedger): Promise<string | null> {
  return tests.redis.hget(ledger.key('counters'), 'records')
}

test('a step drops two hundred events at most, so that nobody waits for it, and the next one goes on', async () => {
  const ledger = await tests.ledger()
  await takeInSettled(ledger, 250)
  const ids = await tests.redis.zrange(ledger.key('records'), '0', '-1')
  const atMs = Date.now() - 250_000
  for (const [n, id] of ids.entries()) await tests.redis.zadd(ledger.key('records'), atMs + n, id)
  await tests.redis.del(ledger.key('pay', ids[0]!)) // its content has ended before
  const bytes = Number(
    await ledger.run('weigh-records', ...Array.from({ length: 200 }, (_, n) => n)),
  )
  expect(await trim(ledger, plenty)).toEqual([200, 199, 0, bytes, atMs + 199, 1])
  expect([await tests.redis.zcard(ledger.key('records')), await counted(ledger)]).toEqual([
    50,
    '50',
  ])
  expect(await trim(ledger, plenty)).toEqual([50, 50, 0, expect.any(Number), atMs + 249, 0])
  expect([await tests.redis.zcard(ledger.key('records')), await counted(ledger)]).toEqual([0, '0'])
  expect(await tests.redis.keys(ledger.key('rec', '*'))).toEqual([])
  expect(await tests.redis.keys(ledger.key('pay', '*'))).toEqual([])
})

test('an event weighs what its history and its content take, and their places in the tables and the index', async () => {
  const ledger = await tests.ledger()
  await takeInSettled(ledger, 1)
  const [id = ''] = await tests.redis.zrange(ledger.key('records'), '0', '-1')
  let bytes = 200
  for (const kind of ['rec', 'pay']) {
    bytes += 60 + Number(await tests.redis.memory('USAGE', ledger.key(kind, id)))
  }
  expect(await ledger.run('weigh-records', 0)).toBe(bytes)
})

test('a step closes two hundred entries of the quarantine at most, the oldest first', async () => {
  const ledger = await tests.ledger()
  const malformed = Array.from({ length: 250 }, (_none, n) => {
    return { uid: null, problem: 'x: y', raw: `{"n":${n}}` }
  })
  await takeIn(ledger, [], { malformed })
  const ages = ledger.key('quarantine-ages')
  const ids = await tests.redis.zrange(ages, '0', '-1')
  const atMs = Date.now() - 250_000
  for (const [n, id] of ids.entries()) await tests.redis.zadd(ages, atMs + n, id)
  const texts = await tests.redis.hmget(ledger.key('quarantine'), ...ids)
  const bytes = texts.slice(0, 200).reduce((sum, text) => sum + Buffer.byteLength(text!) + 400, 0)
  expect(await trim(ledger, plenty)).toEqual([0, 0, 200, bytes, atMs + 199, 1])
  expect(await tests.redis.zrange(ages, '0', '-1')).toEqual(ids.slice(200))
  expect(await trim(ledger, plenty)).toEqual([0, 0, 50, expect.any(Number), atMs + 249, 0])
  expect(await tests.redis.exists(ledger.key('quarantine'))).toBe(0)
})

test('of events and entries of the quarantine the older ones go first, until there is room', async () => {
  const ledger = await tests.ledger()
  await takeInSettled(ledger, 2)
  await takeIn(ledger, [], {
    malformed: [1, 2].map((n) => ({ uid: null, problem: 'x: y', raw: `{"n":${n}}` })),
  })
  const [ages, records] = [ledger.key('quarantine-ages'), ledger.key('records')]
  const inOrder = async (name: string, ...agoMs: number[]): Promise<void> => {
    const ids = await tests.redis.zrange(name, '0', '-1')
    for (const [n, id] of ids.entries()) {
      await tests.redis.zadd(name, Date.now() - agoMs[n]! * 60_000, id)
    }
  }
  await inOrder(records, 40, 20)
  await inOrder(ages, 30, 10)
  const dropped: number[][] = []
  for (let step = 0; step < 5; step += 1) dropped.push((await trim(ledger, 1)).slice(0, 3))
  expect(dropped).toEqual([
    [1, 1, 0],
    [0, 0, 1],
    [1, 1, 0],
    [0, 0, 1],
    [0, 0, 0],
  ])
})

test('an entry of the index whose record is gone makes room for itself, and counts as no event', async () => {
  const ledger = await tests.ledger()
  await takeInSettled(ledger, 1)
  const [id = ''] = await tests.redis.zrange(ledger.key('records'), '0', '-1')
  await tests.redis.del(ledger.key('rec', id), ledger.key('pay', id))
  expect(await trim(ledger, 1)).toEqual([0, 0, 0, 200, expect.any(Number), 0])
  expect([await tests.redis.zcard(ledger.key('records')), await counted(ledger)]).toEqual([0, '0'])
  expect(await tests.redis.exists(ledger.key('trimmed'))).toBe(0)
})

test('what retention.history has ended goes whether or not there is room, and counts as ended', async () => {
  const ledger = await tests.ledger()
  await takeInSettled(ledger, 3)
  const [first = '', second = ''] = await tests.redis.zrange(ledger.key('records'), '0', '-1')
  const endedMs = Date.now() - ledger.retention.history - 60_000
  await tests.redis.zadd(ledger.key('records'), endedMs, first, endedMs + 120_000, second)
  expect(await trim(ledger, 0)).toEqual([0, 0, 0, 0, 0, 0])
  expect(await tests.redis.zscore(ledger.key('records'), first)).toBeNull()
  expect(await tests.redis.exists(ledger.key('rec', first))).toBe(0)
  expect([await tests.redis.zcard(ledger.key('records')), await counted(ledger)]).toEqual([2, '2'])
  expect(await tests.redis.exists(ledger.key('trimmed'))).toBe(0)
})

test('the last step forgets the dead letters whose events retention.history has ended, whoever asks', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc'])])
  const letters = ledger.key('dead', 'soc')
  const endedMs = Date.now() - ledger.retention.history - 60_000
  await tests.redis.zadd(letters, endedMs, 'i:expired:0:soc', endedMs + 120_000, 'i:kept:0:soc')
  expect((await trim(ledger, 0)).at(-1)).toBe(0)
  expect(await tests.redis.zrange(letters, '0', '-1')).toEqual(['i:kept:0:soc'])
})

test('up to when events were dropped never goes back', async () => {
  const ledger = await tests.ledger()
  const trimmed = () => tests.redis.get(ledger.key('trimmed'))
  await takeInSettled(ledger, 1)
  await tests.redis.set(ledger.key('trimmed'), Date.now() - 60_000)
  await trim(ledger, plenty)
  const first = Number(await trimmed())
  expect(first).toBeGreaterThan(Date.now() - 30_000)
  await pastThisMillisecond(tests.redis)
  await tests.redis.set(ledger.key('trimmed'), first + 3_600_000)
  await takeIn(ledger, [routed({ uid: 'a/b/later' }, [])])
  await trim(ledger, plenty)
  expect(Number(await trimmed())).toBe(first + 3_600_000)
})
