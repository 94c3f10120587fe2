/** The one look at all keys for accounts and records that older versions left. */
import { expect, onTestFinished, test } from 'vitest'
import type { Redis } from '../../../src/redis/connection.ts'
import { createKeys, type Keys } from '../../../src/redis/keys.ts'
import { openLedger } from '../../../src/store/account-ledger.ts'
import { readAccounts } from '../../../src/store/accounts.ts'
import { isMigrationScanDone, runMigrationScan } from '../../../src/store/record-index.ts'
import { ledgerConfig, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const always = { holder: 'test', mayGoOn: () => Promise.resolve(true) }

async function namesIn(place: { redis: Redis; keys: Keys }): Promise<string[]> {
  return (await readAccounts(place)).map(({ name }) => name)
}

/** Ledgers as a version left them that registered none, and kept no index. */
async function oldLedgers(place: { redis: Redis; keys: Keys }, accounts: string[]): Promise<void> {
  for (const account of accounts) await openLedger({ ...place, account, config: ledgerConfig })
  const indexed = accounts.map((account) => place.keys.account(account, 'indexed'))
  await place.redis.del(place.keys.shared('accounts'), place.keys.shared('look'), ...indexed)
}

test('accounts that left before there was a registry are found among foreign keys, in steps, once', async () => {
  const keys = tests.keys()
  const place = { redis: tests.redis, keys }
  await oldLedgers(place, ['main', 'umbrella', 'a-b_9'])
  await tests.ledger({ keys: createKeys('other'), account: 'stranger' })
  const foreign = Array.from({ length: 6_000 }, (_, i) => [`foreign:${i}:mark-key`, 'x'])
  await tests.redis.mset(foreign.flat())
  onTestFinished(() => void tests.redis.unlink(...foreign.map(([name = '']) => name)))
  for (const nobodys of ['No Name', 'x:nested']) {
    await tests.redis.set(keys.account(nobodys, 'mark-key'), 'x')
  }
  const beforeMs = Date.now()

  let steps = 0
  const some = { holder: 'test', mayGoOn: async () => (steps += 1) < 3 }
  expect(await runMigrationScan(place, some)).toBe(false)
  const rest = { holder: 'test', mayGoOn: async () => (steps += 1) > 0 }
  expect(await runMigrationScan(place, rest)).toBe(true)
  expect(await namesIn(place)).toEqual(['a-b_9', 'main', 'umbrella'])
  for (const { sinceMs } of await readAccounts(place)) {
    expect(sinceMs).toBeGreaterThanOrEqual(beforeMs)
    expect(sinceMs).toBeLessThanOrEqual(Date.now())
  }
  expect(steps).toBeGreaterThan(4)
  expect(steps).toBeLessThan(9) // what was looked through is not looked through again

  const before = steps
  expect(await runMigrationScan(place, rest)).toBe(true)
  expect(steps).toBe(before)
})

test('a look goes on from the beginning where Redis was restarted: its cursor means nothing there', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  await oldLedgers(place, ['umbrella'])
  await place.redis.hset(place.keys.shared('look'), 'master', 'another-run end')
  expect(await runMigrationScan(place, always)).toBe(true)
  expect(await namesIn(place)).toEqual(['umbrella'])
})

test('a look that was made to its end is never made again, also after a restart of Redis', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  await oldLedgers(place, ['umbrella'])
  expect(await isMigrationScanDone(place)).toBe(false)
  expect(await runMigrationScan(place, always)).toBe(true)
  expect(await isMigrationScanDone(place)).toBe(true)
  await place.redis.del(place.keys.shared('accounts'))
  await place.redis.hset(place.keys.shared('look'), 'master', 'another-run 0')
  expect(await runMigrationScan(place, always)).toBe(true)
  expect(await namesIn(place)).toEqual([])
})

test('a look ends where another process took it over meanwhile', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  await oldLedgers(place, ['umbrella'])
  await place.redis.eval(`for i = 1, 3000 do redis.call('SET', 'foreign:' .. i, 1) end`, 0)
  const names = Array.from({ length: 3_000 }, (_none, n) => `foreign:${n + 1}`)
  onTestFinished(() => void place.redis.unlink(...names))
  const lease = place.keys.shared('accounts-looking')
  const mayGoOn = async (): Promise<boolean> =>
    (await place.redis.set(lease, 'somebody else')) === 'OK'
  expect(await runMigrationScan(place, { holder: 'test', mayGoOn })).toBe(false)
  expect(await isMigrationScanDone(place)).toBe(false)
  expect(await place.redis.get(lease)).toBe('somebody else')
})

test('one step puts two hundred records at most into the index: Redis answers others in between', async () => {
  const { redis } = tests
  const keys = tests.keys()
  await oldLedgers({ redis, keys }, ['umbrella'])
  const names = Array.from({ length: 450 }, (_none, n) =>
    keys.account('umbrella', 'rec', n.toString(16).padStart(24, '0')),
  )
  await redis.mset(names.flatMap((name) => [name, '{"i":[],"t":1}']))
  const counts: number[] = []
  const watched = Object.create(redis) as Redis
  watched.evalsha = ((...args: Parameters<Redis['evalsha']>) => {
    counts.push(args.length)
    return redis.evalsha(...args)
  }) as Redis['evalsha']
  expect(await runMigrationScan({ redis: watched, keys }, always)).toBe(true)
  expect(await redis.zcard(keys.account('umbrella', 'records'))).toBe(450)
  expect(Math.max(...counts)).toBe(2 + 2 + 200) // the script, its keys, the records
})

test('one process looks at a time', async () => {
  const place = { redis: tests.redis, keys: tests.keys() }
  await place.redis.set(place.keys.shared('accounts-looking'), 'somebody else', 'PX', 60_000)
  expect(await runMigrationScan(place, always)).toBe(false)
})
