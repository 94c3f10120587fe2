import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLogger } from '../../../src/lib/logger.ts'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import type { Redis } from '../../../src/redis/client.ts'
import { connectRedis } from '../../../src/redis/connection.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { runScript } from '../../../src/redis/scripts.ts'
import {
  createAccountKey,
  createTokenStore,
  type AccountKey,
  type TokenStore,
} from '../../../src/upstream/access/tokens.ts'
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
  store = createTokenStore({ redis, keys })
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

test('a token is kept with its age, and an older one does not replace it', async () => {
  const key = aKey()
  await store.save(key, { value: 'newer', leftMs: 59_000 })
  await store.save(key, { value: 'older', leftMs: 30_000 })
  const read = await store.read(key)
  expect(read?.value).toBe('newer')
  expect(read?.leftMs).toBeGreaterThan(30_000)
  await store.save(key, { value: 'newest', leftMs: 60_000 })
  expect((await store.read(key))?.value).toBe('newest')
})

test('only the token that was refused is dropped', async () => {
  const key = aKey()
  const one = { value: 'one', leftMs: 60_000 }
  await store.save(key, one)
  await store.drop(key, { value: 'another', leftMs: 60_000 })
  expect(await store.read(key)).toBeDefined()
  await store.drop(key, one)
  expect(await store.read(key)).toBeUndefined()
})

test('an account whose key is refused is paused once for a while, then twice as long, up to a bound', async () => {
  const name = '{tokens}:account-pause'
  const pause = () => runScript(redis, 'pause-account', [name], ['auth', 30_000, 900_000, 'no'])
  const over = () => redis.hset(name, 'until', String(Date.now() - 1_000))
  const beganMs = Date.now()
  expect(await pause()).toEqual([30_000, 1, 1])
  const { until, ...rest } = await redis.hgetall(name)
  expect(Number(until)).toBeGreaterThanOrEqual(beganMs + 30_000)
  expect(Number(until)).toBeLessThanOrEqual(Date.now() + 30_000)
  expect(rest).toEqual({ times: '1', trouble: expect.stringContaining('"answer":"no"') })
  const leftMs = await redis.pttl(name)
  expect(leftMs).toBeGreaterThan(3_500_000)
  expect(leftMs).toBeLessThanOrEqual(3_600_000)
  const [stillMs, ...others] = (await pause()) as number[] // another request fails meanwhile
  expect(stillMs).toBeGreaterThan(0)
  expect(stillMs).toBeLessThanOrEqual(30_000)
  expect(others).toEqual([1, 0])
  for (const [times, ms] of [
    [2, 60_000],
    [3, 120_000],
    [4, 240_000],
    [5, 480_000],
    [6, 900_000],
  ]) {
    await over()
    expect(await pause()).toEqual([ms, times, 1])
  }
  await redis.hset(name, 'times', 5_000)
  await over()
  expect(await pause()).toEqual([900_000, 5_001, 1])
  await redis.hset(name, 'until', String(Date.now() + 1_000_000)) // the clock was set back
  expect(await pause()).toEqual([900_000, 5_002, 1])
  await redis.hset(name, 'until', String(Date.now() + 890_000))
  expect(await pause()).toEqual([expect.any(Number), 5_002, 0])
})

test('what cannot be opened counts as no token', async () => {
  const key = aKey()
  await redis.hset(`{tokens}:token:${key.fingerprint}`, { sealed: 'garbage', fp: 'x' })
  await redis.pexpire(`{tokens}:token:${key.fingerprint}`, 50_000)
  expect(await store.read(key)).toBeUndefined()
})

function aKey(): AccountKey {
  tests += 1
  const apiKey = secretFromText(`fw_key_${tests}`)
  return createAccountKey({ apiKey, tenantId: undefined, baseUrl: 'https://api.example.com' })()
}
