import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectRedis, type Redis } from '../../../src/redis/connection.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { secretFromText } from '../../../src/runtime/secret.ts'
import {
  createCredentials,
  fingerprintOf,
  type Credentials,
} from '../../../src/service/tokens/credentials.ts'
import {
  createTokenStore,
  type Token,
  type TokenStore,
} from '../../../src/service/tokens/token-store.ts'
import { startRedis, type TestRedis } from '../../support/redis.ts'

let server: TestRedis
let redis: Redis
let store: TokenStore
let tests = 0

beforeAll(async () => {
  server = await startRedis()
  const config = { url: secretFromText(server.url), prefix: 'x', allowUnsafe: false }
  redis = connectRedis(config, createLogger({ level: 'silent' }))
  const keys = createKeys('tokens')
  store = createTokenStore({ redis, keys, clock: systemClock, lifetimeMs: 60_000 })
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

test('a token is kept with its age, and is gone when its life is over', async () => {
  const key = aKey()
  await store.keep(key, aToken('one', 20_000), 'no lock')
  const read = await store.read(key)
  expect(read?.value).toBe('one')
  expect(systemClock.monotonic() - read!.bornMs).toBeGreaterThan(19_900)
  expect(systemClock.monotonic() - read!.bornMs).toBeLessThan(25_000)
  expect(await redis.pttl(`{tokens}:token:${key.fingerprint}`)).toBeLessThanOrEqual(40_000)
})

test('an older token does not replace a newer one, a newer one does', async () => {
  const key = aKey()
  await store.keep(key, aToken('newer', 1000), 'no lock')
  await store.keep(key, aToken('older', 30_000), 'no lock')
  expect((await store.read(key))?.value).toBe('newer')
  await store.keep(key, aToken('newest', 0), 'no lock')
  expect((await store.read(key))?.value).toBe('newest')
})

test('only the token that was refused is dropped', async () => {
  const key = aKey()
  await store.keep(key, aToken('one', 0), 'no lock')
  await store.drop(key, fingerprintOf('another'))
  expect(await store.read(key)).toBeDefined()
  await store.drop(key, fingerprintOf('one'))
  expect(await store.read(key)).toBeUndefined()
})

test('one holds the lock, and nobody opens the lock of another', async () => {
  const key = aKey()
  const lock = await store.lock(key)
  expect(lock).toBeDefined()
  expect(await store.lock(key)).toBeUndefined()
  await store.unlock(key, 'of another')
  await store.keep(key, aToken('one', 0), 'of another')
  expect(await store.lock(key)).toBeUndefined()
  await store.keep(key, aToken('two', 0), lock!)
  expect(await store.lock(key)).toBeDefined()
  expect(await redis.pttl(`{tokens}:token:${key.fingerprint}:lock`)).toBeLessThanOrEqual(15_000)
})

test('what cannot be opened counts as no token', async () => {
  const key = aKey()
  await redis.hset(`{tokens}:token:${key.fingerprint}`, { sealed: 'garbage', fp: 'x' })
  await redis.pexpire(`{tokens}:token:${key.fingerprint}`, 50_000)
  expect(await store.read(key)).toBeUndefined()
})

function aKey(): Credentials {
  tests += 1
  const apiKey = secretFromText(`fw_key_${tests}`)
  return createCredentials({ apiKey, tenantId: undefined, baseUrl: 'https://api.example.com' })()
}

function aToken(value: string, ageMs: number): Token {
  return { value, fingerprint: fingerprintOf(value), bornMs: systemClock.monotonic() - ageMs }
}
