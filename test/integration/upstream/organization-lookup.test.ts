/** Which organization a key belongs to, asked once for all who need it. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createOrganizationLookup } from '../../../src/upstream/access/capabilities.ts'
import { createOrganizations } from '../../../src/upstream/access/organizations.ts'
import type { AccountKey } from '../../../src/upstream/access/tokens.ts'
import { redisForTests } from '../../support/ledger.ts'
import { anAccount } from '../../support/replica.ts'
import { until } from '../../support/until.ts'

const tests = redisForTests()

/** Asks a service that answers when a test says so. */
function aLookup() {
  const organizations = createOrganizations([anAccount({})])
  const asked: { signal: AbortSignal; answer: (id: number) => void }[] = []
  const lookup = createOrganizationLookup({
    account: 'main',
    redis: tests.redis,
    keys: tests.keys(),
    clock: systemClock,
    accountKey: () => ({ fingerprint: 'key' }) as AccountKey,
    organizations,
    ask(signal) {
      const { promise, resolve, reject } = Promise.withResolvers<number>()
      signal.addEventListener('abort', () => reject(new Error('aborted')))
      asked.push({ signal, answer: resolve })
      return promise
    },
  })
  return { lookup, asked, organizations }
}

test('who gives up on the organization ends the question for nobody else', async () => {
  const { lookup, asked, organizations } = aLookup()
  const stopping = new AbortController()
  const first = lookup.ensure(stopping.signal)
  const second = lookup.ensure(undefined)
  await until('the service was asked', () => asked.length === 1)
  stopping.abort()
  await expect(first).rejects.toMatchObject({ reason: 'timeout' })
  expect(asked[0]!.signal.aborted).toBe(false)
  asked[0]!.answer(7)
  await second
  expect(organizations.idFor('main')).toBe(7)
  expect(asked).toHaveLength(1)
})

test('where all gave up the question ends, and the next one asks anew at once', async () => {
  const { lookup, asked, organizations } = aLookup()
  const stopping = new AbortController()
  const all = [lookup.ensure(stopping.signal), lookup.ensure(stopping.signal)]
  await until('the service was asked', () => asked.length === 1)
  stopping.abort()
  expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual(
    Array(2).fill('rejected'),
  )
  expect(asked[0]!.signal.aborted).toBe(true)
  const next = lookup.ensure(undefined)
  await until('the service was asked again', () => asked.length === 2)
  asked[1]!.answer(8)
  await next
  expect(organizations.idFor('main')).toBe(8)
})
