/** Letters as operators page through them, and what replaying or discarding one leaves. */
import { expect, test } from 'vitest'
import { listDeadLetters } from '../../../src/store/pending-items.ts'
import { discardDeadLetter, replayDeadLetter } from '../../support/acts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord, type Item } from '../../../src/store/records.ts'
import {
  beginAttempt,
  claimRef,
  sealBatch,
  settleAttempt,
  type Outcome,
} from '../../support/attempts.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

function refOf(ledger: AccountLedger, n: number): string {
  return `i:${ledger.fingerprints.recordId(`a/b/${n}`)}:0:soc`
}

async function itemOf(ledger: AccountLedger, n: number): Promise<Item> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(`a/b/${n}`)))!.items[0]!
}

/** So many letters, the n-th of which died n minutes ago. */
async function aLedgerWithLetters(count: number): Promise<AccountLedger> {
  const ledger = await tests.ledger()
  await takeIn(
    ledger,
    Array.from({ length: count }, (_none, n) => routed({ uid: `a/b/${n}` })),
  )
  for (let n = 0; n < count; n += 1) await die(ledger, n)
  return ledger
}

async function die(ledger: AccountLedger, n: number): Promise<void> {
  const ref = refOf(ledger, n)
  await beginAttempt(ledger, ref, `t${n}`, 30_000)
  await settleAttempt(ledger, { ref, token: `t${n}`, replica: 'r' }, { outcome: 'dead' })
  await tests.redis.zadd(ledger.key('dead', 'soc'), Date.now() - n * 60_000, ref)
}

test('letters come in pages, the newest first, and those without a record are left out', async () => {
  const ledger = await aLedgerWithLetters(5)
  const uids = async (offset: number, count: number) => {
    const { total, letters } = await listDeadLetters(ledger, 'soc', { offset, count })
    return [total, letters.map(({ record }) => record.uid)]
  }
  expect(await uids(0, 2)).toEqual([5, ['a/b/0', 'a/b/1']])
  expect(await uids(2, 2)).toEqual([5, ['a/b/2', 'a/b/3']])
  expect(await uids(4, 2)).toEqual([5, ['a/b/4']])
  await tests.redis.del(ledger.key('rec', ledger.fingerprints.recordId('a/b/1')))
  expect(await uids(0, 3)).toEqual([5, ['a/b/0', 'a/b/2']])
  const { letters } = await listDeadLetters(ledger, 'soc', { offset: 1, count: 2 })
  const { endedAtMs: diedAtMs } = await itemOf(ledger, 2)
  expect(letters).toMatchObject([{ ref: refOf(ledger, 2), diedAtMs }])
})

test('a letter is kept as long as its history, also once it is discarded', async () => {
  const ledger = await aLedgerWithLetters(1)
  const recordId = ledger.fingerprints.recordId('a/b/0')
  const [record, payload] = [ledger.key('rec', recordId), ledger.key('pay', recordId)]
  for (const name of [record, payload]) await tests.redis.persist(name)
  expect(await discardDeadLetter(ledger, refOf(ledger, 0))).toBe('done')
  expect((await itemOf(ledger, 0)).state).toBe('discarded')
  const { history, payload: contentMs } = ledger.retention
  expect(history - (await tests.redis.pttl(record))).toBeLessThan(60_000)
  expect(contentMs - (await tests.redis.pttl(payload))).toBeLessThan(60_000)
  expect(await tests.redis.pttl(payload)).toBeLessThanOrEqual(contentMs)
})

test('what is replayed begins anew, as often as it is, in its batch or alone', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/0' })], { batchWaitMs: 60_000 })
  const batch = (await sealBatch(ledger, { sink: 'soc', destination: 'soc' }, [refOf(ledger, 0)]))!
  await beginAttempt(ledger, batch, 't', 30_000)
  await settleAttempt(ledger, { ref: batch, token: 't', replica: 'r' }, { outcome: 'dead' })
  const before = await itemOf(ledger, 0)
  const name = ledger.key('rec', ledger.fingerprints.recordId('a/b/0'))
  const stored = JSON.parse((await tests.redis.get(name))!) as { i: { c: number }[] }
  stored.i[0]!.c -= 3_600_000 // as if it had been made an hour ago
  await tests.redis.set(name, JSON.stringify(stored))
  expect(await replayDeadLetter(ledger, refOf(ledger, 0), 60_000)).toBe('collect')
  expect(await itemOf(ledger, 0)).toMatchObject({
    state: 'queued',
    replays: 1,
    messageId: undefined,
  })
  expect((await itemOf(ledger, 0)).createdAtMs).toBeGreaterThanOrEqual(before.createdAtMs)
  expect(await tests.redis.zrange(ledger.key('due', 'soc'), '0', '-1')).toEqual(['c:soc'])
  expect(await tests.redis.pttl(name)).toBe(-1)

  const again = (await sealBatch(ledger, { sink: 'soc', destination: 'soc' }, [refOf(ledger, 0)]))!
  await beginAttempt(ledger, again, 't', 30_000)
  await settleAttempt(ledger, { ref: again, token: 't', replica: 'r' }, { outcome: 'dead' })
  expect(await replayDeadLetter(ledger, refOf(ledger, 0), undefined)).toBe('done')
  expect(await itemOf(ledger, 0)).toMatchObject({ state: 'queued', replays: 2 })
  expect(await tests.redis.zrange(ledger.key('due', 'soc'), '0', '-1')).toEqual([refOf(ledger, 0)])
  await expectConservation(ledger)
})

test('what is replayed has all its tries again', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/0' })])
  const ref = refOf(ledger, 0)
  const settle = async (outcome: Outcome): Promise<void> => {
    await beginAttempt(ledger, ref, 't', 30_000)
    await settleAttempt(ledger, { ref, token: 't', replica: 'r' }, outcome)
  }
  for (let n = 0; n < 2; n += 1) {
    await settle({ outcome: 'retry', inMs: 0, counts: true, reason: 'unavailable' })
  }
  expect(await claimRef(ledger, ref, 'r', 1)).toMatchObject({ tries: 2 })
  await settle({ outcome: 'dead' })
  await replayDeadLetter(ledger, ref, undefined)
  expect(await claimRef(ledger, ref, 'r', 1)).toMatchObject({ tries: 0 })
})

test('what is no letter is not listed, and nothing happens to it', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/0' })])
  const before = await itemOf(ledger, 0)
  const gone = `i:${ledger.fingerprints.recordId('a/b/7')}:0:soc`
  await tests.redis.zadd(ledger.key('dead', 'soc'), Date.now(), refOf(ledger, 0), Date.now(), gone)
  const page = { offset: 0, count: 9 }
  expect((await listDeadLetters(ledger, 'soc', page)).letters).toEqual([])
  expect(await replayDeadLetter(ledger, refOf(ledger, 0), undefined)).toBe('busy')
  expect(await replayDeadLetter(ledger, gone, undefined)).toBe('other')
  expect(await discardDeadLetter(ledger, gone)).toBe('other')
  expect(await itemOf(ledger, 0)).toEqual(before)
})

test('what was found dead and was delivered meanwhile is not sent a second time', async () => {
  const ledger = await aLedgerWithLetters(1)
  const ref = refOf(ledger, 0)
  expect(await replayDeadLetter(ledger, ref, undefined)).toBe('done')
  await beginAttempt(ledger, ref, 't', 30_000)
  await settleAttempt(ledger, { ref, token: 't', replica: 'r' }, { outcome: 'delivered' })
  expect(await replayDeadLetter(ledger, ref, undefined)).toBe('other')
  expect((await itemOf(ledger, 0)).state).toBe('delivered')
  await expectConservation(ledger)
})

test('a letter that is discarded says by whom', async () => {
  const ledger = await aLedgerWithLetters(1)
  await discardDeadLetter(ledger, refOf(ledger, 0))
  expect(await itemOf(ledger, 0)).toMatchObject({ state: 'discarded', rule: 'by ann' })
})
