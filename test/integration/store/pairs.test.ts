import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import type { CredentialPair, RoutedEvent } from '../../../src/store/intake.ts'
import { discardItem, moveItem, suppressItems } from '../../../src/store/pending-items.ts'
import { type Item, readRecord } from '../../../src/store/records.ts'
import { beginAttempt, settleAttempt } from '../../support/attempts.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

const pair: CredentialPair = { id: 'aa11', source: 'combo1' }

function leak(id: number, given: Partial<CredentialPair> = {}, severity = 'high'): RoutedEvent {
  const event = {
    uid: `credential/${id}`,
    kind: 'credential',
    type: 'credential',
    severity,
  } as const
  return { ...routed(event, ['soc']), pair: { ...pair, source: `combo${id}`, ...given } }
}

async function itemOf(ledger: AccountLedger, id: number): Promise<Item> {
  const record = await readRecord(ledger, ledger.fingerprints.recordId(`credential/${id}`))
  return record!.items[0]!
}

test('the same pair from another source is told to nobody who has it, and said on the first', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [leak(1)])
  await takeIn(ledger, [leak(2), leak(3)])
  expect(await itemOf(ledger, 1)).toMatchObject({ state: 'queued' })
  expect(await itemOf(ledger, 2)).toMatchObject({
    state: 'suppressed',
    heldFor: 'seen_again',
    rule: 'credential/1',
  })
  const first = await readRecord(ledger, ledger.fingerprints.recordId('credential/1'))
  expect(first!.seenAgain).toEqual({ times: 2, sources: ['combo1', 'combo2', 'combo3'] })
  await expectConservation(ledger)
})

test('another feed that shows the first of a pair changes nothing of what it says', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [leak(1)])
  await takeIn(ledger, [leak(1)], { feed: 'other' })
  const first = await readRecord(ledger, ledger.fingerprints.recordId('credential/1'))
  expect(first!.seenAgain).toBeUndefined()
})

test('another destination still gets the pair', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [leak(1)])
  const elsewhere = { ...leak(2), items: [{ sink: 'ir', destination: 'ir', routes: ['root'] }] }
  await takeIn(ledger, [elsewhere])
  expect((await itemOf(ledger, 2)).state).toBe('queued')
})

test('a pair that was never told, or is worse now, is told when it comes again', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [leak(1)])
  const ref = `i:${ledger.fingerprints.recordId('credential/1')}:0:soc`
  expect(
    await suppressItems(ledger, [{ ref, act: 'suppress', reason: 'silence', rule: 's1' }]),
  ).toEqual([ref])
  await takeIn(ledger, [leak(2)])
  expect((await itemOf(ledger, 2)).state).toBe('queued')
  await takeIn(ledger, [leak(3, {}, 'critical')])
  expect((await itemOf(ledger, 3)).state).toBe('queued')
  await takeIn(ledger, [leak(4, {}, 'low')])
  expect((await itemOf(ledger, 4)).heldFor).toBe('seen_again')
  await expectConservation(ledger)
})

test('a pair that went elsewhere is not told again, though worse of its event was silenced', async () => {
  const ledger = await tests.ledger()
  const recordId = ledger.fingerprints.recordId('credential/1')
  await takeIn(ledger, [leak(1)])
  const ir = { sink: 'ir', destination: 'ir', batchWaitMs: undefined }
  const first = { ref: `i:${recordId}:0:soc`, record: { uid: 'credential/1' } }
  await moveItem(ledger, { ...first, item: await itemOf(ledger, 1) }, [ir], 'ann')
  await takeIn(ledger, [leak(1, {}, 'critical')])
  const silenced = { ref: `i:${recordId}:2:soc`, act: 'suppress', reason: 'silence' } as const
  await suppressItems(ledger, [{ ...silenced, rule: 's1' }])
  expect((await readRecord(ledger, recordId))!.items.map(({ state }) => state)).toEqual([
    'diverted',
    'queued',
    'suppressed',
  ])
  await takeIn(ledger, [leak(2)])
  expect((await itemOf(ledger, 2)).heldFor).toBe('seen_again')
})

test('a pair that its destination never got, because it died or was discarded, is told when it comes again', async () => {
  const ledger = await tests.ledger()
  const refOf = (id: number): string =>
    `i:${ledger.fingerprints.recordId(`credential/${id}`)}:0:soc`
  await takeIn(ledger, [leak(1)])
  await beginAttempt(ledger, refOf(1), 't', 30_000)
  await settleAttempt(
    ledger,
    { ref: refOf(1), token: 't', replica: 'r1' },
    { outcome: 'dead', reason: 'invalid' },
  )
  await takeIn(ledger, [leak(2)])
  expect((await itemOf(ledger, 2)).state).toBe('queued')
  await discardItem(ledger, refOf(2), 'operator')
  await takeIn(ledger, [leak(3)])
  expect((await itemOf(ledger, 3)).state).toBe('queued')
  await expectConservation(ledger)
})

test('of very many sources the first twenty are named, each once, for as long as the pair is known', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [leak(1)])
  await takeIn(
    ledger,
    Array.from({ length: 24 }, (_none, n) => leak(n + 2)),
  )
  await takeIn(ledger, [leak(2)], { feed: 'second' }) // one that is known, shown by another feed
  const first = await readRecord(ledger, ledger.fingerprints.recordId('credential/1'))
  const named = Array.from({ length: 20 }, (_none, n) => `combo${n + 1}`)
  expect(first!.seenAgain).toEqual({ times: 24, sources: named })
  const leftMs = await tests.redis.pttl(ledger.key('pair', pair.id))
  expect(leftMs).toBeGreaterThan(180 * 86_400_000 - 60_000)
  expect(leftMs).toBeLessThanOrEqual(180 * 86_400_000)
})

test('a pair of which nobody knows any more who had it first is told when it comes again', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [leak(1)])
  await tests.redis.del(ledger.key('rec', ledger.fingerprints.recordId('credential/1')))
  await takeIn(ledger, [leak(2)])
  expect((await itemOf(ledger, 2)).state).toBe('queued')
})
