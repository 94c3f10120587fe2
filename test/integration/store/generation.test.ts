import { expect, test } from 'vitest'
import type { Keys } from '../../../src/redis/keys.ts'
import {
  activateGeneration,
  confirmGeneration,
  hasReplicas,
  isForgotten,
  isNewestGeneration,
  type PreviousConfirmation,
} from '../../../src/store/account-ledger.ts'
import { redisForTests } from '../../support/ledger.ts'
import { runScriptAt } from '../../support/script-clock.ts'

const tests = redisForTests()

async function activate(keys: Keys, hash: string): Promise<number | undefined> {
  return (await activateGeneration(tests.redis, keys, hash)).active
}

test('what no replica may disturb is refused while one runs, and for a minute after the last one', async () => {
  const keys = tests.keys()
  expect(await hasReplicas(tests.redis, keys)).toBe(false)
  await activateGeneration(tests.redis, keys, 'hash')
  expect(await hasReplicas(tests.redis, keys)).toBe(true)
  const name = keys.shared('generation')
  await tests.redis.hset(name, 'confirmed', Date.now() - 50_000)
  expect(await hasReplicas(tests.redis, keys)).toBe(true)
  await tests.redis.hset(name, 'confirmed', Date.now() - 61_000)
  expect(await hasReplicas(tests.redis, keys)).toBe(false)
  await confirmGeneration(tests.redis, keys, 'hash')
  expect(await hasReplicas(tests.redis, keys)).toBe(true)
})

test('the configuration started last is active; one that nobody confirms any more gives way', async () => {
  const keys = tests.keys()
  const confirm = async (hash: string, patienceMs?: number) =>
    (await confirmGeneration(tests.redis, keys, hash, patienceMs)).active
  expect(await activate(keys, 'one')).toEqual(1)
  expect(await activate(keys, 'one')).toEqual(1)
  expect(await activate(keys, 'two')).toEqual(2)
  expect(await confirm('one')).toBeUndefined()
  expect(await confirm('two')).toEqual(2)
  expect(await confirm('one', -1)).toEqual(3)
  expect(await confirm('one')).toEqual(3)
})

test('a configuration that another stands in for stays the newest until one is started, and takes over again at once', async () => {
  const keys = tests.keys()
  const confirm = async (hash: string, patienceMs?: number) =>
    (await confirmGeneration(tests.redis, keys, hash, patienceMs)).active
  const isNewest = (hash: string) => isNewestGeneration(tests.redis, keys, hash)
  await activate(keys, 'one')
  await activate(keys, 'two')
  expect(await confirm('one', -1)).toEqual(3)
  expect([await isNewest('one'), await isNewest('two')]).toEqual([false, true])
  expect(await confirm('two')).toEqual(4)
  expect(await confirm('one')).toBeUndefined()
  expect(await activate(keys, 'one')).toEqual(5) // an operator went back to it
  expect([await isNewest('one'), await isNewest('two')]).toEqual([true, false])
  expect(await confirm('two')).toBeUndefined()
})

test('a configuration keeps its place in the very millisecond in which its patience ends', async () => {
  const name = tests.keys().shared('generation')
  const confirmAt = (nowMs: number, hash: string) =>
    runScriptAt(
      { redis: tests.redis, nowMs },
      'activate-generation',
      [name],
      [hash, 'confirm', 60, `id of ${hash}`],
    )
  expect(await confirmAt(1_000_000, 'one')).toEqual([1, 0, 0, ''])
  expect(await confirmAt(1_000_060, 'two')).toEqual([0, 1_000_000, 1, 'id of one'])
  expect(await confirmAt(1_000_061, 'two')).toEqual([2, 1_000_000, 1, 'id of one'])
  expect(await confirmAt(1_000_061, 'two')).toEqual([2, 1_000_061, 2, 'id of one'])
})

test('a configuration that stood in for an hour on end, while the newest did not come back, is the newest', async () => {
  const name = tests.keys().shared('generation')
  const second = 1_000
  let nowMs = 1_000_000
  const run = (hash: string, verb = 'confirm') =>
    runScriptAt(
      { redis: tests.redis, nowMs },
      'activate-generation',
      [name],
      [hash, verb, 60 * second, 'id'],
    )
  const readNewest = () => tests.redis.hget(name, 'newest')
  const standInFor = async (ms: number) => {
    for (const endMs = nowMs + ms; nowMs < endMs;) {
      nowMs += 30 * second
      await run('two')
    }
  }
  await run('two', 'start')
  await run('one', 'start') // an old replica restarts in a roll, and goes away
  nowMs += 61 * second
  await run('two')
  await standInFor(3_570 * second)
  expect(await readNewest()).toBe('one')
  await run('one') // it is back in the last half minute
  nowMs += 61 * second
  await run('two')
  await standInFor(3_570 * second)
  nowMs += 61 * second // nobody confirmed: Redis was away for all
  await run('two')
  await standInFor(3_570 * second)
  expect(await readNewest()).toBe('one')
  await standInFor(30 * second)
  expect(await readNewest()).toBe('two')
  await run('one')
  expect(await tests.redis.hget(name, 'hash')).toBe('two')
  await run('one', 'start')
  expect(await readNewest()).toBe('one')
})

const hourAgo = -3_600_000
test.each<[string, Partial<PreviousConfirmation>, Partial<PreviousConfirmation>, boolean]>([
  ['an older state', { count: 9 }, { atMs: hourAgo }, true],
  ['nothing', { count: 9 }, { atMs: -1e12, ledgerId: '', count: 0 }, true],
  ['another ledger with a longer history', {}, { atMs: hourAgo, ledgerId: 'b', count: 9 }, true],
  ['a clock that was set back', {}, { atMs: hourAgo, count: 2 }, false],
  ['what a crash loses', { count: 9 }, { atMs: -9_000 }, false],
  ['what another replica began anew and told', {}, { atMs: 1, ledgerId: 'b' }, false],
  ['the first id of a ledger', { ledgerId: '' }, { atMs: 1, count: 2 }, false],
])('whether %s is a loss', (_what, seen, found, isLoss) => {
  const usual = { atMs: 0, count: 1, ledgerId: 'a' }
  expect(isForgotten({ ...usual, ...seen }, { ...usual, ...found })).toBe(isLoss)
})
