/** Which organization a key belongs to, asked once for all who need it. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import {
  createOrganizationLookup,
  createOrganizations,
} from '../../../src/upstream/access/organizations.ts'
import type { AccountKey } from '../../../src/upstream/access/tokens.ts'
import { redisForTests } from '../../support/ledger.ts'
import { anAccount } from '../../support/replica.ts'
import { until } from '../../support/until.ts'

const tests = redisForTests()

/** Asks a service that answers when a test says so. */
function aLookup() {
  const organizations = createOrganizations([anAccount({})])
  const asked: ((id: number) => void)[] = []
  const lookup = createOrganizationLookup({
    account: 'main',
    redis: tests.redis,
    keys: tests.keys(),
    clock: systemClock,
    accountKey: () => ({ fingerprint: 'key' }) as AccountKey,
    organizations,
    ask() {
      const { promise, resolve } = Promise.withResolvers<number>()
      asked.push(resolve)
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
  asked[0]!(7)
  await second
  expect(organizations.idFor('main')).toBe(7)
  expect(asked).toHaveLength(1)
})
