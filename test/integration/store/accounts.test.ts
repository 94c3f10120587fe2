import { expect, onTestFinished, test } from 'vitest'
import { ownFeed } from '../../../src/event.ts'
import { settleMembers, unfreezeMessage } from '../../../src/grouping/freeze.ts'
import type { Redis } from '../../../src/redis/client.ts'
import { connectRedis } from '../../../src/redis/connection.ts'
import { scanKeys } from '../../../src/redis/health.ts'
import { createKeys, type Keys } from '../../../src/redis/keys.ts'
import { openLedgers } from '../../../src/store/account-ledger.ts'
import {
  noteConfigured,
  noteDiscarding,
  openLeftLedgers,
  readAccounts,
  readHoldings,
  removeLedger,
} from '../../../src/store/accounts.ts'
import { firstDueMs } from '../../../src/store/pending-items.ts'
import { noteQuota } from '../../../src/upstream/rate-limits.ts'
import { beginAttempt, settleAttempt } from '../../support/attempts.ts'
import { ledgerConfig, redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'
import { startCluster } from '../../support/redis-cluster.ts'

const tests = redisForTests()
const noWait = (): Promise<void> => Promise.resolve()

async function namesIn(place: { redis: Redis; keys: Keys }): Promise<string[]> {
  return (await readAccounts(place)).map(({ name }) => name)
}

test('an account stays registered when it leaves, and its ledger opens with what it took in', async () => {
  const keys = tests.keys()
  const place = { redis: tests.redis, keys }
  const ledger = await tests.ledger({ keys, account: 'umbrella' })
  await tests.ledger({ keys, account: 'main' })
  await takeIn(ledger, [routed({ uid: 'a/b/1' }), routed({ uid: 'a/b/2' })])
  const beforeMs = Date.now()
  await noteConfigured(place, ['main'])
  const afterMs = Date.now()
  const entries = await readAccounts(place)
  expect(entries).toMatchObject([
    { name: 'main' },
    { name: 'umbrella', configuredMs: undefined, discarding: undefined },
  ])
  expect(entries[0]!.configuredMs).toBeGreaterThanOrEqual(beforeMs)
  expect(entries[0]!.configuredMs).toBeLessThanOrEqual(afterMs)
  const [left, ...others] = await openLeftLedgers({ ...place, config: ledgerConfig }, ['main'])
  expect([left!.account, others]).toEqual(['umbrella', []])
  const since = Number(await tests.redis.hget(keys.shared('accounts'), 'main|since'))
  expect(Math.abs(Date.now() - since)).toBeLessThan(60_000)
  expect(await readHoldings(left!)).toEqual({
    pending: { queued: 2 },
    pendingTotal: 2,
    deadLetters: 0,
    quarantined: 0,
    feeds: ['brand'],
  })
})

test('in a Cluster a removal takes its own keys only', async () => {
  const cluster = await startCluster()
  onTestFinished(() => cluster.stop())
  const redis = connectRedis(cluster.config, silent)
  onTestFinished(() => redis.disconnect())
  const place = { redis, keys: createKeys('tocsin') }
  const accounts = ['acme', 'globex', 'hooli', 'initech', 'main', 'umbrella']
  await openLedgers({ ...place, config: ledgerConfig }, accounts)
  expect(await namesIn(place)).toEqual(accounts)
  await noteDiscarding(place, 'hooli', 'ann')
  expect(await removeLedger(place, 'hooli', noWait)).toBe(true)
  const others = accounts.filter((name) => name !== 'hooli')
  expect(await namesIn(place)).toEqual(others)
  const ledgers = await openLeftLedgers({ ...place, config: ledgerConfig }, [])
  expect(ledgers.map(({ account }) => account)).toEqual(others)
})

test('a removal stops when the account is configured again, and keeps what is left', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  const ledger = await tests.ledger({ keys: place.keys, account: 'umbrella' })
  await takeIn(ledger, [routed({ uid: 'a/b/1' })])
  await noteDiscarding(place, 'umbrella', 'ann')
  expect(await openLeftLedgers({ ...place, config: ledgerConfig }, [])).toEqual([])
  await noteConfigured(place, ['umbrella'])
  expect(await removeLedger(place, 'umbrella', noWait)).toBe(false)
  expect((await readHoldings(ledger)).pendingTotal).toBe(1)
})

test.each(['before', 'during'])(
  'a removal does not take the digest key of an account that is back %s its last pass',
  async (when) => {
    const place = { redis: tests.redis, keys: tests.keys() }
    const ledger = await tests.ledger({ keys: place.keys, account: 'umbrella' })
    await takeIn(ledger, [routed({ uid: 'a/b/1' })])
    await noteDiscarding(place, 'umbrella', 'ann')
    let looksAtTheKeyAlone = 0
    const backAtTheEnd = async (): Promise<void> => {
      const names = await place.redis.keys(`${ledger.key()}*`)
      looksAtTheKeyAlone += names.length === 1 ? 1 : 0
      if (looksAtTheKeyAlone === (when === 'before' ? 1 : 2)) {
        await noteConfigured(place, ['umbrella'])
      }
    }
    expect(await removeLedger(place, 'umbrella', backAtTheEnd)).toBe(false)
    expect(await place.redis.exists(ledger.key('mark-key'))).toBe(1)
  },
)

test('a removal goes on until nothing is left, though keys were written behind it, and forgets the quota', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  const ledger = await tests.ledger({ keys: place.keys, account: 'umbrella' })
  await noteQuota(place.redis, place.keys, 'umbrella', { remaining: 7, atMs: 1 })
  await noteConfigured(place, ['umbrella'])
  await noteDiscarding(place, 'umbrella', 'ann')
  await takeIn(ledger, [routed({ uid: 'a/b/1' })])
  let passes = 0
  const write = async (): Promise<void> => {
    if ((passes += 1) <= 2) await place.redis.set(ledger.key('feed', 'late'), 1)
  }
  expect(await removeLedger(place, 'umbrella', write)).toBe(true)
  expect(await place.redis.keys(`${ledger.key()}*`)).toEqual([])
  expect(await place.redis.exists(place.keys.shared('quota', 'umbrella'))).toBe(0)
  expect(await place.redis.hkeys(place.keys.shared('accounts'))).toEqual([])
})

test('a message of several accounts waits for the one whose ledger is closed, and not for one that is discarded', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  const lead = await tests.ledger({ keys: place.keys })
  await tests.ledger({ keys: place.keys, account: 'umbrella' })
  const about = JSON.stringify({ accounts: ['main', 'umbrella'] })
  const settle = (): Promise<void> =>
    settleMembers(lead, 'b:m1:soc', { o: 'delivered', n: 1, about }, (account) =>
      account === 'main' ? lead : undefined,
    )
  await lead.redis.set(lead.key('batch', 'm1'), '{}')
  await lead.redis.zadd(lead.key('due', 'soc'), 1, 'b:m1:soc')
  await settle()
  expect(await lead.redis.exists(lead.key('batch', 'm1'))).toBe(1)
  const inAnHour = Date.now() + 3_600_000
  expect(Math.abs((await firstDueMs(lead, 'soc'))! - inAnHour)).toBeLessThan(60_000)
  await noteDiscarding(place, 'umbrella', 'ann')
  await removeLedger(place, 'umbrella', noWait)
  await settle()
  expect(await lead.redis.exists(lead.key('batch', 'm1'))).toBe(0)
  expect(await firstDueMs(lead, 'soc')).toBeUndefined()
})

test('a message that is undone waits for the account whose ledger is closed, and not for one that is discarded', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  const lead = await tests.ledger({ keys: place.keys })
  await tests.ledger({ keys: place.keys, account: 'umbrella' })
  const about = JSON.stringify({ accounts: ['main', 'umbrella'] })
  const name = lead.key('batch', 'm1')
  await lead.redis.set(name, JSON.stringify({ kind: 'group', n: 0, st: 'queued', about }))
  await lead.redis.zadd(lead.key('due', 'soc'), 1, 'b:m1:soc')
  const options = { ledgers: [lead], staleMs: 0, batchWaitMs: undefined, groups: {} }
  expect(await unfreezeMessage(lead, 'b:m1:soc', options)).toBe('open')
  expect(await lead.redis.exists(name)).toBe(1)
  const inAnHour = Date.now() + 3_600_000
  expect(Math.abs((await firstDueMs(lead, 'soc'))! - inAnHour)).toBeLessThan(60_000)
  await noteDiscarding(place, 'umbrella', 'ann')
  await removeLedger(place, 'umbrella', noWait)
  expect(await unfreezeMessage(lead, 'b:m1:soc', options)).toBe('open')
  expect(await lead.redis.exists(name)).toBe(0)
  expect(await firstDueMs(lead, 'soc')).toBeUndefined()
})

test('of more accounts than are opened at once each has its ledger, once and in its order', async () => {
  const place = { redis: tests.redis, keys: tests.keys(), config: ledgerConfig }
  const names = Array.from({ length: 101 }, (_none, n) => `a${n}`)
  const ledgers = await openLedgers(place, names)
  expect(ledgers.map(({ account }) => account)).toEqual(names)
  expect(await tests.redis.get(ledgers[0]!.key('mark-key'))).toMatch(/^[0-9a-f]{64}$/)
})

test('what Tocsin tells of itself is no feed of the account that holds it', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' })], { feed: ownFeed })
  await takeIn(ledger, [routed({ uid: 'a/b/2' })], { feed: 'brand' })
  for (const feed of ['zeta', 'apps']) await takeIn(ledger, [], { feed })
  expect((await readHoldings(ledger)).feeds).toEqual(['apps', 'brand', 'zeta'])
})

test('an account says that its ledger is being removed while it is, so that one broken off is seen', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  await tests.ledger({ keys: place.keys, account: 'umbrella' })
  await noteDiscarding(place, 'umbrella', 'ann')
  let pages = 0
  for await (const _names of scanKeys(place.redis, 'none')) pages += 1
  const seen: unknown[] = []
  const look = async (): Promise<void> => void seen.push((await readAccounts(place))[0]?.discarding)
  expect(await removeLedger(place, 'umbrella', look)).toBe(true)
  expect(seen[0]).toMatchObject({ by: 'ann', isRemoving: true })
  expect(seen.length).toBeLessThan(3 * pages) // a pass that removes nothing is the last
})

test('what an account holds is summed over its sinks, and names no state in which nothing is', async () => {
  const ledger = await tests.ledger()
  const malformed = ['1', '2'].map((raw) => ({ uid: null, problem: 'x: y', raw }))
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc', 'siem', 'lake'])], { malformed })
  const recordId = ledger.fingerprints.recordId('a/b/1')
  for (const [n, sink] of ['soc', 'siem', 'lake'].entries()) {
    const attempt = { ref: `i:${recordId}:${n}:${sink}`, token: 't', replica: 'r1' }
    await beginAttempt(ledger, attempt.ref, 't', 30_000)
    const outcome = sink === 'lake' ? 'dead' : 'retry'
    await settleAttempt(ledger, attempt, { outcome, inMs: 0 })
  }
  await tests.redis.zadd(ledger.key('dead', 'soc'), 1, 'i:expired:0:soc') // beyond the history
  expect(await readHoldings(ledger)).toEqual({
    pending: { retrying: 2 },
    pendingTotal: 2,
    deadLetters: 1,
    quarantined: 2,
    feeds: ['brand'],
  })
})
