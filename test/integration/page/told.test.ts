/** Searches of what was told by words, over messages of many events. */
import { expect, test, vi } from 'vitest'
import type { Asker } from '../../../src/page/asker.ts'
import { localUser } from '../../../src/page/access/user.ts'
import { readMessages, toldQuery } from '../../../src/page/questions/told.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { redisForTests, redisMs, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

/** A message of so many events that are gone, and then of this one. */
async function tell(ledger: AccountLedger, [id, gone, uid]: [string, number, string?]) {
  const places = Array.from({ length: gone }, (_none, n) => `${n.toString(16).padStart(24, '0')}.0`)
  if (uid !== undefined) places.push(`${ledger.fingerprints.recordId(uid)}.0`)
  const entry = ['d', 'soc', 4, places.join(' '), 5, 1, '', id.repeat(40)]
  await ledger.redis.xadd(ledger.key('ended'), '*', 'e', JSON.stringify(entry))
}

test('a search by words reads a message of thousands in parts, and its page ends behind that message', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/found' })])
  await tell(ledger, ['a', 0, 'a/b/found'])
  await tell(ledger, ['b', 1_600])
  await tell(ledger, ['c', 700, 'a/b/found'])
  const config = { ledger: { historyRetentionMs: 86_400_000 } }
  const nowMs = await redisMs(tests.redis)
  const asker = {
    user: localUser,
    ledgers: [ledger],
    config,
    labels: new Map(),
    nowMs,
  } as unknown as Asker
  const find = async (cursor?: string) => {
    const query = toldQuery.parse({ text: 'FOUND', cursor })
    const found = await readMessages(asker, query)
    return { ids: found.messages.map(({ id }) => id.slice(0, 2)), cursor: found.cursor }
  }
  const reads = vi.spyOn(tests.redis, 'mget')
  const first = await find()
  expect(first.ids).toEqual(['bc'])
  expect(Math.max(...reads.mock.calls.map(([names]) => names.length))).toBeLessThanOrEqual(600)
  reads.mockRestore()
  expect(await find(first.cursor)).toEqual({ ids: ['ba'], cursor: undefined })
})
