import { expect, test } from 'vitest'
import { openFeed, pauseFeed } from '../../../src/store/feed-state.ts'
import { readFleet, type FleetSources } from '../../../src/operator/fleet-state.ts'
import { writeAccounts, writeFleet, type SharedNotes } from '../../../src/daemon/state-gauges.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord } from '../../../src/store/records.ts'
import { beginAttempt, settleAttempt, type Outcome } from '../../support/attempts.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

/** A scrape after one pass over these ledgers; beforehand, the feed `brand` is known. */
async function scrapeOf({
  nowMs = 0,
  notes = {},
  ...given
}: Partial<FleetSources> & { nowMs?: number; notes?: Partial<SharedNotes> }): Promise<string> {
  const metrics = createMetrics()
  metrics.startAtZero({ feeds: ['brand'], sinks: [], accounts: [], routes: [] })
  const { ledgers = [], sinks = [], feeds = [] } = given
  const sources = {
    ledgers: ledgers,
    accounts: ledgers.map(({ account }) => account),
    feeds,
    sinks,
    findTrouble: () => Promise.resolve(undefined),
    searchesRemaining: async () => undefined,
    ...given,
  }
  const closed = { state: 'closed', lastSuccessMs: undefined } as const
  const state = metrics.beginState()
  const byAccount = Map.groupBy(
    feeds.map((feed) => ({ ...feed, quotaReserve: 0 })),
    ({ account }) => account,
  )
  const fleet = await readFleet(sources, nowMs, (accounts) =>
    writeAccounts(state, accounts, byAccount),
  )
  writeFleet(state, fleet, {
    redis: {
      isDurable: true,
      isEvictionSafe: true,
      usedMemoryBytes: 1,
      memoryLimitBytes: undefined,
    },
    circuits: new Map(sinks.map((name) => [name, closed])),
    digests: new Map(),
    canaries: {},
    loss: undefined,
    retention: undefined,
    silencesActive: 0,
    ...notes,
  })
  state.publish(nowMs)
  return (await metrics.render()).body
}

test('what waits for a sink that was removed is still counted; one without work is not named', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['removed'])])
  const body = await scrapeOf({ ledgers: [ledger], sinks: ['soc'] })
  expect(body).toContain('tocsin_items_pending{sink="removed",state="queued"} 1')
  expect(body).not.toContain('tocsin_items_pending{sink="soc",state="queued"}')
  expect(body).not.toContain('tocsin_sink_circuit_state{sink="removed"')
})

test('what an account that left could not read, or does not account for, is counted under its feeds', async () => {
  const keys = tests.keys()
  const [main, left] = [
    await tests.ledger({ keys }),
    await tests.ledger({ keys, account: 'umbrella' }),
  ]
  const bad = (n: number) => [{ uid: null, problem: 'no uid', raw: `{"n":${n}}` }]
  await takeIn(main, [], { malformed: bad(1) })
  await takeIn(left, [], { malformed: bad(2) })
  await takeIn(left, [], { feed: 'people', malformed: bad(3) })
  await left.redis.hincrby(left.key('counters'), 'f|brand|fetched', 5)
  const feeds = [{ name: 'brand', account: main.account }]
  const body = await scrapeOf({ ledgers: [main, left], accounts: ['main'], feeds })
  expect(body).toContain('tocsin_quarantine_entries{feed="brand"} 2\n')
  expect(body).toContain('tocsin_quarantine_entries{feed="people"} 1\n')
  expect(body).toContain('tocsin_feed_items_unaccounted{feed="brand"} 5\n')
})

test('a feed tells when its last rescan ended and whether an operator paused it', async () => {
  const ledger = await tests.ledger()
  await openFeed(ledger, 'brand', 0)
  await ledger.redis.hset(ledger.key('feed', 'brand'), 'whole_completed', 1_795_248_004_000)
  const feeds = [{ name: 'brand', account: ledger.account }]
  const scrape = () => scrapeOf({ ledgers: [ledger], feeds })
  const paused = 'tocsin_feed_paused{feed="brand",reason="operator"}'
  const rescanned = 'tocsin_feed_rescan_last_completed_timestamp_seconds{feed="brand"}'
  expect(await scrape()).not.toContain(paused)
  await pauseFeed(ledger, 'brand', { reason: 'maintenance', sinceMs: 0 })
  const body = await scrape()
  expect(body).toContain(`${paused} 1\n`)
  expect(body).toContain(`${rescanned} 1795248004\n`)
})

test('a feed whose account is refused is paused for that, also before it was ever polled', async () => {
  const ledger = await tests.ledger()
  const feeds = [{ name: 'brand', account: ledger.account }]
  const paused = 'tocsin_feed_paused{feed="brand",reason="auth"}'
  const refusal = { reason: 'auth', answer: 'no', sinceMs: 1, lastMs: 1, count: 1 }
  const findTrouble = () => Promise.resolve(refusal)
  expect(await scrapeOf({ ledgers: [ledger], feeds, findTrouble })).toContain(`${paused} 1\n`)
  await openFeed(ledger, 'brand', 0)
  expect(await scrapeOf({ ledgers: [ledger], feeds, findTrouble })).toContain(`${paused} 1\n`)
  expect(await scrapeOf({ ledgers: [ledger], feeds })).not.toContain(paused)
})

test('the memory that Redis may use is told where it has a limit', async () => {
  const redis = { isDurable: true, isEvictionSafe: true, usedMemoryBytes: 70 }
  const scrape = (memoryLimitBytes: number | undefined) =>
    scrapeOf({ notes: { redis: { ...redis, memoryLimitBytes } } })
  const limited = await scrape(100)
  expect(limited).toContain('tocsin_redis_memory_used_bytes 70\n')
  expect(limited).toContain('tocsin_redis_memory_max_bytes 100\n')
  expect(await scrape(undefined)).not.toMatch(/^tocsin_redis_memory_max_bytes/m)
})

test('a sink whose counters do not add up shows by how much, over all accounts', async () => {
  const keys = tests.keys()
  const ledgers = [await tests.ledger({ keys }), await tests.ledger({ keys, account: 'umbrella' })]
  const shown = async (): Promise<string | undefined> =>
    /^tocsin_sink_items_unaccounted\{sink="soc"\} .*/m.exec(
      await scrapeOf({ ledgers, sinks: ['soc'] }),
    )?.[0]
  for (const ledger of ledgers) await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc'])])
  expect(await shown()).toBeUndefined()
  const [first, second] = ledgers
  await tests.redis.hincrby(first!.key('counters'), 's|soc|created', 2)
  await tests.redis.hincrby(second!.key('counters'), 's|soc|created', -1)
  expect(await shown()).toBe('tocsin_sink_items_unaccounted{sink="soc"} 3')
})

test('dead letters and the longest-waiting work of a sink are those of all accounts', async () => {
  const keys = tests.keys()
  const ledgers = [await tests.ledger({ keys }), await tests.ledger({ keys, account: 'umbrella' })]
  const [early, late] = [1_795_248_004_000, 1_795_248_009_000]
  for (const [index, ledger] of ledgers.entries()) {
    await takeIn(ledger, [routed({ uid: `a/b/${index}` }, ['soc'])])
    const [ref] = await ledger.redis.zrange(ledger.key('due', 'soc'), '0', '0')
    await ledger.redis.zadd(ledger.key('due', 'soc'), index === 0 ? late : early, ref!)
    await ledger.redis.zadd(ledger.key('due', 'soc'), late + 60_000, 'i:later:0:soc')
    await ledger.redis.zadd(ledger.key('dead', 'soc'), Date.now(), 'i:x:0:soc')
    await ledger.redis.zadd(ledger.key('dead', 'soc'), 1, 'i:long-ago:0:soc') // older than its history
  }
  const body = await scrapeOf({ ledgers: ledgers, sinks: ['soc'], nowMs: late })
  expect(body).toContain('tocsin_dead_letters{sink="soc"} 2\n')
  expect(body).toContain(
    `tocsin_delivery_oldest_due_timestamp_seconds{sink="soc"} ${early / 1000}\n`,
  )
  const before = await scrapeOf({ ledgers: ledgers, sinks: ['soc'], nowMs: early - 1 })
  expect(before).not.toContain('tocsin_delivery_oldest_due_timestamp_seconds{sink="soc"}')
})

test('a sink owes the oldest critical event of all accounts until it takes it, and no other event', async () => {
  const keys = tests.keys()
  const [ledger, other] = [
    await tests.ledger({ keys }),
    await tests.ledger({ keys, account: 'umbrella' }),
  ]
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'high' }, ['soc'])])
  const owed = async (): Promise<string | undefined> => {
    const body = await scrapeOf({ ledgers: [ledger, other], sinks: ['soc'] })
    return /oldest_critical_timestamp_seconds\{sink="soc"\} (.+)/.exec(body)?.[1]
  }
  expect(await owed()).toBeUndefined()
  const since: string[] = []
  for (const [uid, of] of [
    ['a/b/2', other],
    ['a/b/3', ledger],
  ] as const) {
    await pastThisMillisecond(tests.redis)
    await takeIn(of, [routed({ uid, severity: 'critical' }, ['soc'])])
    const record = await readRecord(of, of.fingerprints.recordId(uid))
    since.push(String(record!.items[0]!.createdAtMs / 1000))
  }
  const send = async (of: AccountLedger, uid: string, result: Outcome): Promise<void> => {
    const ref = `i:${of.fingerprints.recordId(uid)}:0:soc`
    await beginAttempt(of, ref, 't', 30_000)
    await settleAttempt(of, { ref, token: 't', replica: 'r1' }, result)
  }
  expect(await owed()).toBe(since[0])
  await send(other, 'a/b/2', { outcome: 'retry', inMs: 60_000, counts: true, reason: 'timeout' })
  expect(await owed()).toBe(since[0])
  await send(other, 'a/b/2', { outcome: 'dead', reason: 'invalid' })
  expect(await owed()).toBe(since[1])
  await send(ledger, 'a/b/3', { outcome: 'delivered' })
  expect(await owed()).toBeUndefined()
})

test('a pass asks each account once, whatever the number of its feeds and of all sinks', async () => {
  const keys = tests.keys()
  const ledgers = await Promise.all(
    ['one', 'two', 'three'].map((account) => tests.ledger({ keys, account })),
  )
  const asked: string[] = []
  const counting = ledgers.map((ledger) => ({
    ...ledger,
    run: (script: string, ...args: (string | number)[]) => {
      asked.push(script)
      return ledger.run(script, ...args)
    },
  }))
  const feeds = ledgers.flatMap(({ account }) =>
    Array.from({ length: 20 }, (_, index) => ({ name: `${account}-${index}`, account })),
  )
  const sinks = Array.from({ length: 50 }, (_, index) => `sink-${index}`)
  await scrapeOf({ ledgers: counting, feeds, sinks })
  expect(asked).toEqual(['read-account', 'read-account', 'read-account'])
})
