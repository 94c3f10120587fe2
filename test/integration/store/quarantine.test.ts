/** What operators see of items that were set aside, and that they close. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  closeQuarantined,
  countQuarantined,
  listQuarantined,
} from '../../../src/store/feed-state.ts'
import { redisForTests, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

function malformed(count: number, from = 0) {
  return Array.from({ length: count }, (_none, n) => ({
    uid: `a/b/${from + n}`,
    problem: 'id: odd',
    raw: `{"n":${from + n}}`,
  }))
}

/** The n-th entry was set aside n minutes ago. */
async function aLedgerWithEntries(count: number): Promise<AccountLedger> {
  const ledger = await tests.ledger()
  await takeIn(ledger, [], { malformed: malformed(count) })
  for (let n = 0; n < count; n += 1) await setAsideBefore(ledger, n, n * 60_000)
  return ledger
}

async function setAsideBefore(ledger: AccountLedger, n: number, agoMs: number): Promise<number> {
  const atMs = Date.now() - agoMs
  await tests.redis.zadd(
    ledger.key('quarantine-ages'),
    atMs,
    `${ledger.fingerprints.recordId(`a/b/${n}`)} brand`,
  )
  return atMs
}

test('every entry is listed, the newest first, however many there are', async () => {
  const ledger = await aLedgerWithEntries(130)
  expect((await listQuarantined(ledger)).map(({ uid }) => uid)).toEqual(
    Array.from({ length: 130 }, (_none, n) => `a/b/${n}`),
  )
})

test('an entry counts for the feed that set it aside last', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [], { feed: 'brand', malformed: malformed(1) })
  expect(Object.keys(await countQuarantined(ledger))).toEqual(['brand'])
  await takeIn(ledger, [], { feed: 'leaks', malformed: malformed(1) })
  expect(Object.keys(await countQuarantined(ledger))).toEqual(['leaks'])
})

test('what is older than a history is neither listed nor counted, though nothing came to rescan it out', async () => {
  const ledger = await aLedgerWithEntries(2)
  await setAsideBefore(ledger, 1, ledger.retention.history + 60_000)
  expect((await listQuarantined(ledger)).map(({ uid }) => uid)).toEqual(['a/b/0'])
  expect(await countQuarantined(ledger)).toMatchObject({ brand: 1 })
  await setAsideBefore(ledger, 1, ledger.retention.history - 60_000)
  expect(await listQuarantined(ledger)).toHaveLength(2)
  expect(await countQuarantined(ledger)).toMatchObject({ brand: 2 })
})

test('entries are counted by feed', async () => {
  const ledger = await aLedgerWithEntries(3)
  await takeIn(ledger, [], { feed: 'leaks', malformed: malformed(1, 10) })
  expect({ ...(await countQuarantined(ledger)) }).toEqual({ brand: 3, leaks: 1 })
})

test('what is closed is neither listed, counted nor set aside again', async () => {
  const ledger = await aLedgerWithEntries(2)
  const [first] = await listQuarantined(ledger)
  expect(await closeQuarantined(ledger, first!)).toBe(true)
  expect(await closeQuarantined(ledger, first!)).toBe(false)
  expect(await takeIn(ledger, [], { malformed: malformed(2) })).toMatchObject({
    counts: { quarantined: 0, duplicate: 2 },
  })
  expect((await listQuarantined(ledger)).map(({ uid }) => uid)).toEqual(['a/b/1'])
  expect(await countQuarantined(ledger)).toMatchObject({ brand: 1 })
})
