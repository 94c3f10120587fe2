import { expect, test } from 'vitest'
import {
  activateGeneration,
  readActiveHash,
  confirmGeneration,
  hasReplicas,
} from '../../../src/store/account-ledger.ts'
import { redisForTests } from '../../support/ledger.ts'
import { runScriptAt } from '../../support/script-clock.ts'

const tests = redisForTests()

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
  const confirm = (hash: string, patienceMs?: number) =>
    confirmGeneration(tests.redis, keys, hash, patienceMs)
  expect(await activateGeneration(tests.redis, keys, 'one')).toBe(1)
  expect(await activateGeneration(tests.redis, keys, 'one')).toBe(1)
  expect(await activateGeneration(tests.redis, keys, 'two')).toBe(2)
  expect(await confirm('one')).toBeUndefined()
  expect(await confirm('two')).toBe(2)
  expect(await confirm('one', -1)).toBe(3)
  expect(await confirm('two')).toBeUndefined()
})

test('a configuration keeps its place in the very millisecond in which its patience ends', async () => {
  const name = tests.keys().shared('generation')
  const confirmAt = (nowMs: number, hash: string) =>
    runScriptAt({ redis: tests.redis, nowMs }, 'activate-generation', [name], [hash, 'confirm', 60])
  expect(await confirmAt(1_000_000, 'one')).toBe(1)
  expect(await confirmAt(1_000_060, 'two')).toBe(0)
  expect(await confirmAt(1_000_061, 'two')).toBe(2)
})

test('commands see the configuration that is active, or that none ever was', async () => {
  const keys = tests.keys()
  expect(await readActiveHash(tests.redis, keys)).toBeUndefined()
  await activateGeneration(tests.redis, keys, 'one')
  await activateGeneration(tests.redis, keys, 'two')
  expect(await readActiveHash(tests.redis, keys)).toBe('two')
})
