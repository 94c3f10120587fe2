/** Which token a request gets while one is made or renewed. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import {
  createAccountKey,
  createTokenCache,
  createTokenStore,
} from '../../../src/upstream/access/tokens.ts'
import { redisForTests, silent } from '../../support/ledger.ts'

const tests = redisForTests()

/** `issued`: what the service gives, one after the other. */
function aRig(issued: Promise<string>[]) {
  let apiKey = secretFromText('fw_first')
  const accountKey = () =>
    createAccountKey({ apiKey, tenantId: undefined, baseUrl: 'https://api.example.com' })()
  const parts = { redis: tests.redis, keys: tests.keys() }
  const cache = createTokenCache({
    ...parts,
    account: 'main',
    clock: systemClock,
    logger: silent,
    accountKey,
    generate: () => issued.shift() ?? Promise.reject(new Error('asked once too often')),
  })
  return {
    cache,
    useKey: (key: string) => void (apiKey = secretFromText(key)),
    save: (value: string, leftMs: number) =>
      createTokenStore(parts).save(accountKey(), { value, leftMs }),
  }
}

test('a request under a new API key does not get the token that is being made for the old one', async () => {
  const slow = Promise.withResolvers<string>()
  const { cache, useKey } = aRig([slow.promise, Promise.resolve('of the new key')])
  const old = cache.get()
  useKey('fw_second')
  const next = cache.get()
  slow.resolve('of the old key')
  expect((await old).value).toBe('of the old key')
  expect((await next).value).toBe('of the new key')
})

test('a token is renewed before it ends, and serves meanwhile', async () => {
  const slow = Promise.withResolvers<string>()
  const { cache, save } = aRig([slow.promise])
  await save('old', 12 * 60_000) // of an hour
  expect((await cache.get()).value).toBe('old')
  slow.resolve('new')
  await expect.poll(async () => (await cache.get()).value).toBe('new')
})

test('an old token serves where its renewal fails', async () => {
  const slow = Promise.withResolvers<string>()
  const { cache, save } = aRig([slow.promise])
  await save('old', 12 * 60_000) // of an hour
  for (const _time of [1, 2]) expect((await cache.get()).value).toBe('old')
  slow.reject(new Error('the service is away'))
  expect((await cache.get()).value).toBe('old')
})

test('a token at the end of its life is not handed out, and one is made for all who wait', async () => {
  const slow = Promise.withResolvers<string>()
  const { cache, save } = aRig([slow.promise])
  await save('old', 59_000)
  const waiting = [cache.get(), cache.get()]
  slow.resolve('new')
  expect((await Promise.all(waiting)).map(({ value }) => value)).toEqual(['new', 'new'])
  expect((await cache.get()).value).toBe('new')
})
