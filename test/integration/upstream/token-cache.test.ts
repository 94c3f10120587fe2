import { expect, test } from 'vitest'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import {
  createAccountKey,
  createTokenCache,
  type TokenCache,
} from '../../../src/upstream/access/tokens.ts'
import { clockToSet } from '../../support/grouping.ts'
import { redisForTests, silent } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000

interface Rig {
  cache: TokenCache
  clock: ReturnType<typeof clockToSet>
  /** The API key from now on. */
  useKey: (key: string) => void
  /** What the service issues next. */
  issue: (...tokens: (() => Promise<string>)[]) => void
  asked: () => number
}

function aRig(): Rig {
  let apiKey = secretFromText('fw_first')
  const tokens: (() => Promise<string>)[] = []
  let asked = 0
  const clock = clockToSet()
  const credentials = () =>
    createAccountKey({ apiKey, tenantId: undefined, baseUrl: 'https://api.example.com' })()
  const cache = createTokenCache({
    account: 'main',
    redis: tests.redis,
    keys: tests.keys(),
    clock,
    logger: silent,
    accountKey: credentials,
    generate: () => {
      asked += 1
      const token = tokens.shift()
      if (token === undefined) throw new Error('asked for more tokens than there are')
      return token()
    },
    random: () => 0.5,
  })
  return {
    cache,
    clock,
    useKey: (key) => void (apiKey = secretFromText(key)),
    issue: (...given) => void tokens.push(...given),
    asked: () => asked,
  }
}

const token = (value: string) => () => Promise.resolve(value)

test('a token that the service issues again after it refused it is used: the next 401 speaks for itself', async () => {
  const { cache, issue, asked, clock } = aRig()
  issue(token('same'), token('same'))
  const first = await cache.get()
  clock.aheadMs += 1_000
  await cache.refuse(first)
  clock.aheadMs += 1_000
  expect((await cache.get()).value).toBe('same')
  expect((await cache.get()).value).toBe('same')
  expect(asked()).toBe(2)
})

test('a request under a new API key does not get the token that is being made for the old one', async () => {
  const { cache, issue, useKey } = aRig()
  const slow = Promise.withResolvers<string>()
  issue(() => slow.promise, token('of the new key'))
  const old = cache.get()
  useKey('fw_second')
  const next = cache.get()
  slow.resolve('of the old key')
  expect((await old).value).toBe('of the old key')
  expect((await next).value).toBe('of the new key')
})

test('a token that was refused while it was being renewed is not handed out again where the renewal fails', async () => {
  const { cache, issue, clock, asked } = aRig()
  issue(token('first'))
  const old = await cache.get()
  clock.aheadMs += 0.8 * hourMs // time to renew it, while the old one serves
  const refused = Promise.withResolvers<void>()
  const fails = async () => {
    await refused.promise
    throw new Error('the service is away')
  }
  issue(fails, token('second'))
  expect((await cache.get()).value).toBe('first')
  await cache.refuse(old)
  const next = cache.get()
  refused.resolve()
  expect((await next).value).toBe('second')
  expect(asked()).toBe(3)
})
