/** The index of records: every record where it belongs, whatever happens to it, and walks that miss none. */
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { type LedgerCheck, isConsistent } from '../../../src/operator/audit/ledger-check.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { redisNow } from '../../../src/redis/scripts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { replayDeadLetter } from '../../support/acts.ts'
import { scanEntries } from '../../../src/store/record-index.ts'
import { createRetention } from '../../../src/store/retention.ts'
import { beginAttempt, settleAttempt } from '../../support/attempts.ts'
import {
  pastThisMillisecond,
  proofOf,
  redisForTests,
  routed,
  scanPendingItems,
  silent,
  takeIn,
} from '../../support/ledger.ts'

const tests = redisForTests()

afterEach(() => tests.redis.flushdb())

async function proofOfOne(ledger: AccountLedger): Promise<LedgerCheck> {
  return (await proofOf([ledger]))[0]!
}

function refOf(ledger: AccountLedger, n: number): string {
  return `i:${ledger.fingerprints.recordId(`a/b/${n}`)}:0:soc`
}

async function settle(
  ledger: AccountLedger,
  ref: string,
  outcome: 'delivered' | 'dead',
): Promise<void> {
  await beginAttempt(ledger, ref, 't', 60_000)
  await settleAttempt(ledger, { ref, token: 't', replica: 'r' }, { outcome })
}

async function idsIn(walk: AsyncIterable<{ recordId: string }[]>): Promise<string[]> {
  const ids: string[] = []
  for await (const entries of walk) ids.push(...entries.map(({ recordId }) => recordId))
  return ids
}

test('a walk gives everything once, the pending first, each from the newest to what is older than wanted', async () => {
  const ledger = await tests.ledger()
  const events = Array.from({ length: 450 }, (_none, n) => routed({ uid: `a/b/${n}` }, []))
  await takeIn(ledger, events) // all at one time
  const now = await redisNow(ledger)
  const [old, older] = [now - 600_000, now - 800_000]
  await tests.redis.zadd(ledger.key('records'), -now, 'p1', -old, 'p2', -older, 'p3', older, 's')
  const ids = await idsIn(scanEntries(ledger))
  expect([ids.length, new Set(ids).size]).toEqual([454, 454])
  expect([ids.slice(0, 3), ids.at(-1)]).toEqual([['p1', 'p2', 'p3'], 's'])
  const some = await idsIn(scanEntries(ledger, () => now - 650_000))
  expect([some.length, some.includes('s')]).toEqual([453, false])
  const pages: unknown[] = []
  let leastMs = 0
  for await (const page of scanEntries(ledger, () => leastMs)) {
    pages.push(page.length)
    if (page.length > 3) leastMs = Infinity // the rest is not read
  }
  expect(pages).toEqual([3, 200])
})

test('pending records are found without a look at what is settled', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }), routed({ uid: 'a/b/2' }, [])])
  const reads = vi.spyOn(ledger.redis, 'zrevrangebyscore')
  onTestFinished(() => reads.mockRestore())
  expect(await idsIn(scanEntries(ledger, () => Infinity))).toEqual([
    ledger.fingerprints.recordId('a/b/1'),
  ])
  expect(reads).not.toHaveBeenCalled()
})

test('a walk misses nothing that settles or is replayed while it goes on', async () => {
  const ledger = await tests.ledger()
  const settled = Array.from({ length: 440 }, (_none, n) => routed({ uid: `a/old/${n}` }, []))
  const events = Array.from({ length: 220 }, (_none, n) => routed({ uid: `a/b/${n}` }))
  await takeIn(ledger, [...settled.slice(0, 220), ...events])
  await takeIn(ledger, settled.slice(220))
  for (let n = 0; n < 5; n += 1) await settle(ledger, refOf(ledger, n), 'dead')
  const ids: string[] = []
  let page = 0
  for await (const entries of scanEntries(ledger)) {
    page += 1
    const isFirst = page === 1 // of those that are pending
    for (let n = 210; isFirst && n < 220; n += 1)
      await settle(ledger, refOf(ledger, n), 'delivered')
    const isThird = page === 3 // the first of those that are settled
    for (let n = 0; isThird && n < 5; n += 1) {
      await replayDeadLetter(ledger, refOf(ledger, n), undefined)
    }
    ids.push(...entries.map(({ recordId }) => recordId))
  }
  expect(new Set(ids).size).toBe(660)
  expect(ids.length).toBe(660)
})

test('a walk misses nothing that is replayed after the clock of Redis stepped back', async () => {
  const ledger = await tests.ledger()
  await tests.redis.zadd(ledger.key('records'), -7, 'pending', 8, 'settled', 9, 'replayed')
  const nowMs = await redisNow(ledger)
  const ids: string[] = []
  for await (const entries of scanEntries(ledger)) {
    ids.push(...entries.map(({ recordId }) => recordId))
    await tests.redis.zadd(ledger.key('records'), 2_000 - nowMs, 'replayed')
  }
  expect(ids).toEqual(['pending', 'settled', 'replayed'])
})

test('a record is pending since the first of its items was, though it came back more severe', async () => {
  const ledger = await tests.ledger()
  for (const n of [1, 2]) {
    await takeIn(ledger, [routed({ uid: `a/b/${n}`, severity: 'low' })])
    await pastThisMillisecond(tests.redis)
  }
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'critical' })])
  const ids = [1, 2].map((n) => ledger.fingerprints.recordId(`a/b/${n}`))
  expect(await idsIn(scanEntries(ledger))).toEqual(ids.toReversed())
  await settle(ledger, refOf(ledger, 1), 'delivered') // the first of its two
  expect(await idsIn(scanEntries(ledger))).toEqual(ids)
})

/** How often each command ran since the counts were reset, but for those of the test itself. */
async function commandsRun(): Promise<Record<string, number>> {
  const info = await tests.redis.info('commandstats')
  const counts = [...info.matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g)].map(
    ([, name = '', calls]) => [name, Number(calls)] as const,
  )
  return Object.fromEntries(
    counts.filter(([name]) => !/^(?:config|info|time|ping|client)/.test(name)),
  )
}

test('no pass asks for names of keys, and keys of others cost none of them a command', async () => {
  const keys = createKeys('shared')
  const { redis } = tests
  const ledger = await tests.ledger({ keys })
  await takeIn(ledger, [routed({ uid: 'a/b/1' }), routed({ uid: 'a/b/2' }, [])])

  async function cost(): Promise<Record<string, number>> {
    const given = { ledgers: [ledger], redis, keys, logger: silent, isActive: () => true }
    const clock = { ...systemClock, sleep: () => Promise.resolve() }
    const retention = createRetention({ ...given, clock, maxBytes: 1, onTrimmed: () => undefined })
    await redis.del(keys.shared('keeping'))
    await redis.config('RESETSTAT')
    await retention.retainOnce(new AbortController().signal, () => undefined)
    expect(await proofOfOne(ledger)).toMatchObject({ records: 1 })
    for await (const _placed of scanPendingItems(ledger));
    return commandsRun()
  }

  await cost() // what could make room has
  const alone = await cost()
  const fill = `for i = 1, 20000 do redis.call('SET', 'foreign:' .. i, 1) end`
  await redis.eval(fill, 0)
  expect(await cost()).toEqual(alone)
  expect(alone).not.toHaveProperty('scan')
})

test('an index that lost a record, or has one too many, is found so; one that expired is no finding', async () => {
  const ledger = await tests.ledger()
  const events = [1, 2, 3].map((n) => routed({ uid: `a/b/${n}` }, n === 3 ? [] : ['soc']))
  await takeIn(ledger, events)
  await settle(ledger, refOf(ledger, 2), 'dead')
  const id = (n: number): string => ledger.fingerprints.recordId(`a/b/${n}`)
  await tests.redis.del(ledger.key('rec', id(3)))
  expect(isConsistent(await proofOfOne(ledger))).toBe(true)

  await tests.redis.zrem(ledger.key('records'), id(2))
  expect(await proofOfOne(ledger)).toMatchObject({ records: 2, unfiled: 1, misfiled: [] })
  await tests.redis.zadd(ledger.key('records'), -5, 'e'.repeat(24))
  await tests.redis.zadd(ledger.key('records'), 1, id(1)) // as if it were settled
  const proof = await proofOfOne(ledger)
  expect(proof.differences).toEqual([{ sink: 'soc', counted: 1, found: 0 }])
  expect(proof.misfiled).toEqual([
    { recordId: 'e'.repeat(24), why: 'gone' },
    { recordId: id(1), why: 'other_state' },
  ])
  expect(isConsistent(proof)).toBe(false)
})
