import { expect, test } from 'vitest'
import type { Keys } from '../../../src/redis/keys.ts'
import {
  activateGeneration,
  type ActiveGeneration,
  type GenerationNames,
  readActiveHash,
  confirmGeneration,
  hasReplicas,
  isForgotten,
  isNewestGeneration,
  type PreviousConfirmation,
} from '../../../src/store/account-ledger.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

/** Of a configuration that its hash tells from every other. */
const named = (hash: string, digest = `all of ${hash}`): GenerationNames => ({ hash, digest })
const numbered = (number: number, revision = number): ActiveGeneration => ({ number, revision })

async function activate(keys: Keys, names: GenerationNames): Promise<ActiveGeneration> {
  return (await activateGeneration(tests.redis, keys, names)).active
}

test('what no replica may disturb is refused while one runs, and for a minute after the last one', async () => {
  const keys = tests.keys()
  expect(await hasReplicas(tests.redis, keys)).toBe(false)
  await activateGeneration(tests.redis, keys, named('hash'))
  expect(await hasReplicas(tests.redis, keys)).toBe(true)
  const name = keys.shared('generation')
  await tests.redis.hset(name, 'confirmed', Date.now() - 50_000)
  expect(await hasReplicas(tests.redis, keys)).toBe(true)
  await tests.redis.hset(name, 'confirmed', Date.now() - 61_000)
  expect(await hasReplicas(tests.redis, keys)).toBe(false)
  await confirmGeneration(tests.redis, keys, named('hash'))
  expect(await hasReplicas(tests.redis, keys)).toBe(true)
})

test('the configuration started last is active; one that nobody confirms any more gives way', async () => {
  const keys = tests.keys()
  const confirm = async (hash: string, patienceMs?: number) =>
    (await confirmGeneration(tests.redis, keys, named(hash), patienceMs)).active
  expect(await activate(keys, named('one'))).toEqual(numbered(1))
  expect(await activate(keys, named('one'))).toEqual(numbered(1))
  expect(await activate(keys, named('two'))).toEqual(numbered(2))
  expect(await confirm('one')).toBeUndefined()
  expect(await confirm('two')).toEqual(numbered(2))
  expect(await confirm('one', -1)).toEqual(numbered(3))
  expect(await confirm('one')).toEqual(numbered(3))
})

test('a configuration that another stands in for stays the newest until one is started, and takes over again at once', async () => {
  const keys = tests.keys()
  const confirm = async (hash: string, patienceMs?: number) =>
    (await confirmGeneration(tests.redis, keys, named(hash), patienceMs)).active
  const isNewest = (hash: string) => isNewestGeneration(tests.redis, keys, named(hash))
  await activate(keys, named('one'))
  await activate(keys, named('two'))
  expect(await confirm('one', -1)).toEqual(numbered(3))
  expect([await isNewest('one'), await isNewest('two')]).toEqual([false, true])
  expect(await confirm('two')).toEqual(numbered(4))
  expect(await confirm('one')).toBeUndefined()
  expect(await activate(keys, named('one'))).toEqual(numbered(5)) // an operator went back to it
  expect([await isNewest('one'), await isNewest('two')]).toEqual([true, false])
  expect(await confirm('two')).toBeUndefined()
})

const hourAgo = -3_600_000
test.each<[string, Partial<PreviousConfirmation>, Partial<PreviousConfirmation>, boolean]>([
  ['an older state', { count: 9 }, { atMs: hourAgo }, true],
  ['nothing', { count: 9 }, { atMs: -1e12, ledgerId: '', count: 0 }, true],
  ['another ledger with a longer history', {}, { atMs: hourAgo, ledgerId: 'b', count: 9 }, true],
  ['one from before ledgers had ids', {}, { atMs: hourAgo, ledgerId: '', count: 9 }, true],
  ['a clock that was set back', {}, { atMs: hourAgo, count: 2 }, false],
  ['what a crash loses', { count: 9 }, { atMs: -9_000 }, false],
  ['what another replica began anew and told', {}, { atMs: 1, ledgerId: 'b' }, false],
  ['the first id of a ledger', { ledgerId: '' }, { atMs: 1, count: 2 }, false],
])('whether %s is a loss', (_what, seen, found, isLoss) => {
  const usual = { atMs: 0, count: 1, ledgerId: 'a' }
  expect(isForgotten({ ...usual, ...seen }, { ...usual, ...found })).toBe(isLoss)
})

test('commands see the configuration that is active, or that none ever was', async () => {
  const keys = tests.keys()
  expect(await readActiveHash(tests.redis, keys)).toBeUndefined()
  await activateGeneration(tests.redis, keys, named('one'))
  await activateGeneration(tests.redis, keys, named('two'))
  expect(await readActiveHash(tests.redis, keys)).toBe('two')
})

test('a change of what no replicas compete for is another revision of the same number', async () => {
  const keys = tests.keys()
  const start = (digest: string) => activate(keys, named('hash', digest))
  const confirm = async (digest: string) =>
    (await confirmGeneration(tests.redis, keys, named('hash', digest))).active
  expect(await start('a')).toEqual(numbered(1, 1))
  expect(await start('b')).toEqual(numbered(1, 2))
  // a replica with the older one polls on, and stays at its revision
  expect(await confirm('a')).toEqual(numbered(1, 0))
  expect(await confirm('b')).toEqual(numbered(1, 2))
  expect(await start('b')).toEqual(numbered(1, 2))
  expect(await start('a')).toEqual(numbered(1, 3))
  expect(await confirm('a')).toEqual(numbered(1, 3))
  expect(await activate(keys, named('other', 'a'))).toEqual(numbered(2, 4))
})

test('a digest that is not known, yet or to this process, is no change', async () => {
  const keys = tests.keys()
  const name = keys.shared('generation')
  await tests.redis.hset(name, { hash: 'hash', number: 7, confirmed: 0 })
  expect(await activate(keys, named('hash', 'a'))).toEqual(numbered(7))
  expect(await activate(keys, named('hash', ''))).toEqual(numbered(7))
  expect(await activate(keys, named('hash', 'a'))).toEqual(numbered(7))
  expect(await activate(keys, named('hash', 'b'))).toEqual(numbered(7, 8))
})
